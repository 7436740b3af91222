"""Dead code: deleting a statement whose results are never read, and inserting one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Array,
    InsertPoint,
    Intent,
    KernelOp,
    Leaf,
    Mapping,
    Move,
    Node,
    NotationError,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    ScopeOp,
    SSAValue,
    StatementOp,
    Transformation,
    accesses_of,
    chain_ops,
    conditions_of,
    declaration_line,
    declared,
    describe_access,
    describe_scope,
    element_uses,
    fault,
    fragment_text,
    fresh_id,
    leaves_of,
    nest_of,
    number_of,
    parse_fragment,
    reindex,
    set_id,
    shorter_extent,
    statement_of,
)
from pdojo.transforms.common.declaring import add_buffer
from pdojo.transforms.common.ordering import rewritten

KEEP = "keep"
"""The value of `declaration` that keeps an unused array declared."""


def needed(program: Program, leaf: Leaf) -> Reason | None:
    """The reason why a statement is needed: another statement or the caller reads one of its elements; or None."""
    array = leaf.output.array
    uses = element_uses(program.nest, array)
    write = number_of(uses, leaf, leaf.output)
    reader = program.origins.reader(uses, write)
    if reader is not None:
        return Reason(
            f"the op that writes {describe_access(uses[reader].leaf.output)} reads the values that this one "
            f"writes into '{array.name}'"
        )
    if array.intent in (Intent.OUT, Intent.INOUT) and program.origins.remains(uses, write):
        return Reason(f"elements of the output '{array.name}' keep the values that this op writes")
    return None


@dataclass(frozen=True)
class DeleteOp(Transformation[Leaf]):
    """Delete a statement whose results are never read, with the scopes and the declaration that only it uses.

    `delete_op@t`:

    N t[{0}] = exp(x[{0}])
    N y[{0}] = x[{0}] * 2   -->  N y[{0}] = x[{0}] * 2

    Legal iff no other statement reads a value that the statement writes, and no output has such a value at the end.
    """

    name: ClassVar[str] = "delete_op"
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)
    declaration: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Statements whose output no other statement reads, or that a later assignment might overwrite."""
        for leaf in program.nest.leaves:
            name = leaf.output.array.name
            unread = leaf.output.array.intent is None and all(r is leaf for r in program.nest.readers[name])
            writers = [w for w in program.nest.writers[name] if w is not leaf]
            if (unread and not any(w.accumulate for w in writers if w.order > leaf.order)) or any(
                w.accumulate is None and w.order > leaf.order for w in writers
            ):
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires results that are not needed, and a kernel that is not empty afterwards."""
        if self.declaration not in ("", KEEP):
            return Reason(f"'declaration' is '{KEEP}' or left out")
        if (reason := needed(program, site)) is not None:
            return reason
        if len(program.nest.siblings(topmost(site))) == 1:
            return Reason("the kernel would have no op left")
        return fault(self, conditions_of(program), rewritten(program, self, site))

    def _declaration(self, program: Program, site: Leaf) -> Array | None:
        """The array whose declaration is deleted with the statement; None if it stays."""
        array = site.output.array
        others = [leaf for leaf, _ in accesses_of(program.nest, array.buffer) if leaf is not site]
        goes = array.buffer.op is not None and array.buffer.names == (array.name,) and not others
        return array if goes and self.declaration != KEEP else None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Erase the outermost scope that contains nothing else, and the declaration."""
        array = self._declaration(program, site)
        rewriter.erase(topmost(site).op)
        if array is not None:
            assert array.buffer.op is not None
            rewriter.erase(array.buffer.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        node, array = topmost(site), self._declaration(program, site)
        following = program.nest.next_sibling(node)
        neighbour = following or program.nest.siblings(node)[node.position - 1]
        declaration = "" if array is None else declaration_line(array.buffer)
        again = InsertOp(fragment_text(node), "before" if following else "after", declaration)
        return again.as_move(f"%{neighbour.id}")


def topmost(leaf: Leaf) -> Node:
    """The outermost node that contains this statement and no other."""
    return next((s for s in leaf.chain if s.leaves == [leaf]), leaf)


@dataclass(frozen=True)
class InsertOp(Transformation[Scope | Leaf]):
    """Insert a statement whose results are never read, with scopes around it, before or after the node at the location.

    `insert_op@y:0{text="8 t[{0}] = exp(x[{0}])" declare="t f32 [8] heap"}`:

    N y[{0}] = x[{0}] * 2  -->  N t[{0}] = exp(x[{0}])
                                N y[{0}] = x[{0}] * 2

    The text is a line of the notation. Legal iff the kernel with this line verifies, the statement reads only values
    written before, no other statement reads its results, no output has them at the end, memory keeps every other
    value, and no iterations race.
    """

    name: ClassVar[str] = "insert_op"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "values"
    promises: ClassVar = Promises(conditions=True, adds=0)
    text: str
    place: str = "before"
    declare: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope | Leaf, Self]]:
        """None, because there are infinitely many; inverses of deletions name theirs."""
        yield from ()

    def check(self, program: Program, site: Scope | Leaf) -> Reason | None:
        """Requires a line that is valid at this place and changes nothing."""
        if self.place not in ("before", "after"):
            return Reason("'place' is 'before' or 'after'")
        if site.parent is not None and site.parent.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        try:
            fragment = self._fragment(program, site)
        except NotationError as error:
            return Reason(f"'text' or 'declare' cannot be read: {error}")
        if (declared(fragment, program.nest) is None) is not (self.declare == ""):
            return Reason("'declare' declares no buffer")
        after = rewritten(program, self, site)
        return fault(self, conditions_of(program), after) or self._changes(after, program)

    @staticmethod
    def _changes(after: Program, program: Program) -> Reason | None:
        """The reason why the new statement, the only one that `program` lacks, changes something; or None."""
        leaf = next(leaf for leaf in after.nest.leaves if leaf.id not in program.nest.by_id)
        for scope in leaf.chain:
            if scope.id not in program.nest.by_id and (short := shorter_extent(scope)) is not None:
                return Reason(f"{describe_scope(scope)} has {short} iterations: write {short}")
        reads = leaf.accesses if leaf.accumulate is not None else leaf.reads
        for access in reads:
            uses = element_uses(after.nest, access.array)
            given = access.array.intent in (Intent.IN, Intent.INOUT)
            if not given and not after.origins.writers(uses, number_of(uses, leaf, access))[1]:
                return Reason(f"{describe_access(access)} gets an element that nothing has written")
        return needed(after, leaf)

    def _fragment(self, program: Program, site: Scope | Leaf) -> KernelOp:
        return parse_fragment(program.nest, site.parent, self.declare, self.text)

    @staticmethod
    def _ids(program: Program, site: Scope | Leaf, count: int) -> list[str]:
        return [fresh_id(program.nest.by_id, f"{site.id}.n{k}") for k in range(count)]

    def rewrite(self, program: Program, site: Scope | Leaf, rewriter: PatternRewriter) -> None:
        """Declare the array, and insert the line's scopes and statement in canonical form."""
        fragment, chain = self._fragment(program, site), chain_ops(site)
        path = statement_of(fragment, len(chain))
        view = nest_of(fragment)
        values: dict[SSAValue, SSAValue] = {
            a.value: program.nest.arrays[name].value for name, a in view.arrays.items() if name in program.nest.arrays
        }
        values |= {s.op.iv: op.iv for s, op in zip(view.leaves[0].chain, chain, strict=False)}
        new = path[0].clone(values)
        nodes = [op for op in new.walk() if isinstance(op, ScopeOp | StatementOp)]
        for op, identifier in zip(nodes, self._ids(program, site, len(nodes)), strict=True):
            set_id(op, identifier)
        buffer = declared(fragment, program.nest)
        if buffer is not None:
            buffer.detach()
            add_buffer(program.kernel, buffer, rewriter)
        # From here on, only the kernel uses the array.
        path[0].detach()
        path[0].erase()
        where = InsertPoint.before(site.op) if self.place == "before" else InsertPoint.after(site.op)
        rewriter.insert(new, where)
        (node,) = (n for n in program.successor(program.kernel).nest.by_id.values() if n.op is new)
        reindex([node], {}, chain, rewriter)

    def inverse(self, program: Program, site: Scope | Leaf) -> Move:
        fragment = self._fragment(program, site)
        view = nest_of(fragment)
        (leaf,) = leaves_of(view.children[0])
        identifiers = self._ids(program, site, leaf.depth + 1 - len(chain_ops(site)))
        array = program.nest.arrays.get(leaf.output.array.name)
        unused = array is not None and array.intent is None and not accesses_of(program.nest, array.buffer)
        return DeleteOp(KEEP if unused else "").as_move(f"%{identifiers[-1]}")
