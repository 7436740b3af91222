"""Carried values: what an iteration passes to the next one, in memory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Access,
    Array,
    DictionaryAttr,
    Expr,
    InsertPoint,
    Leaf,
    Mapping,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    ScopeOp,
    StatementOp,
    Transformation,
    build_op,
    chain_ops,
    const,
    describe_access,
    describe_scope,
    fresh_id,
    rehearse,
    var,
)
from pdojo.transforms.common.declaring import declare, fresh_name, name_reason
from pdojo.transforms.common.redirecting import Target, redirect

_ORDERED = (Mapping.SEQUENTIAL, Mapping.UNROLL)
_NONE = DictionaryAttr({})


@dataclass(frozen=True, eq=False)
class _Carried:
    """A value that each iteration of a scope writes, and the next one reads."""

    site: Scope
    write: Leaf
    reads: tuple[Access, ...]

    @property
    def source(self) -> Array:
        """The array that holds the values of all iterations."""
        return self.write.output.array

    @property
    def scopes(self) -> list[Scope]:
        """The scopes around the write except the site: each has a dimension of the carried array."""
        return [scope for scope in self.write.chain if scope is not self.site]

    @property
    def slot(self) -> tuple[Expr, ...]:
        """The index of the carried array inside of the site."""
        return tuple(const(0) if s.extent == 1 else var(s.depth) for s in self.scopes)

    def before(self) -> tuple[Expr, ...]:
        """The element of the array that the previous iteration writes, over the variables of the write."""
        depth = self.site.depth
        return tuple(e - e.coefficient(depth) for e in self.write.output.index)


def _written_once(leaf: Leaf, site: Scope) -> bool:
    """Whether the instances of a write inside an iteration of the scopes around the site write different elements."""
    mine = [scope.depth for scope in leaf.chain[site.depth :] if scope.extent > 1]
    alone = [[v for v in mine if e.uses(v)] for e in leaf.output.index]
    return all([v] in alone for v in mine)


def _carried(site: Scope, array: Array) -> _Carried | Reason:
    """The value that a scope carries in an array; a Reason if it is not such a value."""
    name = array.name
    if site.mapping not in _ORDERED or site.guard or site.extent == 1:
        return Reason(f"{describe_scope(site)} is mapped, has a guard, or a single iteration")
    uses = [(leaf, a) for leaf in site.leaves for a in leaf.accesses if a.array.buffer is array.buffer]
    writes = [leaf for leaf, access in uses if access is leaf.output]
    if len(array.buffer.names) > 1 or len(writes) != 1:
        return Reason(f"not one statement writes '{name}', or other arrays share its memory")
    (write,) = writes
    if write.accumulate is not None or write.asynchronous:
        return Reason(f"{describe_access(write.output)} is accumulated or asynchronous, not assigned")
    if write.output.hints.data or not all(e.is_linear for e in write.output.index) or not _written_once(write, site):
        return Reason(f"{describe_access(write.output)} has hints, or several iterations write one element")
    found = _Carried(site, write, ())
    inner = write.chain[site.depth + 1 :]
    if any(scope.mapping not in _ORDERED or scope.guard for scope in inner):
        return Reason(f"{describe_access(write.output)} is in a mapped scope, or in one with a guard")
    reads = tuple(access for leaf, access in uses if access is not leaf.output and _is_passed(leaf, access, found))
    if not reads:
        return Reason(f"no statement before {describe_access(write.output)} reads what the previous iteration wrote")
    return replace(found, reads=reads)


def _is_passed(leaf: Leaf, access: Access, found: _Carried) -> bool:
    """Whether an access reads what the previous iteration wrote, before the next write."""
    inner, wanted = (chain[found.site.depth + 1 :] for chain in (leaf.chain, found.write.chain))
    return (
        access.index == found.before()
        and leaf.order < found.write.order
        and not access.hints.data
        and [s.extent for s in inner] == [s.extent for s in wanted]
        and not any(s.mapping not in _ORDERED or s.guard for s in inner)
    )


@dataclass(frozen=True)
class CarryValue(Transformation[Scope]):
    """Keep what an iteration of a scope passes to the next one in memory of its own; the array gets a copy.

    `carry_value@t:1{array=s location=stack into=p}`:

    4                                  4
    | s[{0},0] = x[{0}]                | s[{0},0] = x[{0}]
    | 8                                | p[{0}] = s[{0},0]
    | | t[{1}] = s[{0},{1}] * 2   -->  | 8
    | | s[{0},{1}+1] = t[{1}] + 1      | | t[{1}] = p[{0}] * 2
                                       | | p[{0}] = t[{1}] + 1
                                       | | s[{0},{1}+1] = p[{0}]

    The memory has a dimension for every other scope around the write. Other reads of the array stay.

    Legal iff the scope has one write W of the array, an assignment whose instances write different elements, and a read
    R of the element that the previous iteration wrote, R(i, k) = W(i - 1, k), before W in scopes of the same extents k;
    without guards.
    """

    name: ClassVar[str] = "carry_value"
    keeps_statements: ClassVar = False
    array: str
    location: str
    into: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes with an array that they read and write; the carried value is on the stack."""
        for scope in program.nest.scopes:
            read = {access.array.name for leaf in scope.leaves for access in leaf.reads}
            for array in dict.fromkeys(leaf.output.array for leaf in scope.leaves):
                if array.name in read and isinstance(_carried(scope, array), _Carried):
                    yield scope, cls(array.name, Memory.STACK.value)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires a carried value, and a memory; storage is checked on the program after the move."""
        array = program.nest.arrays.get(self.array)
        if array is None:
            return Reason(f"there is no array '{self.array}'")
        if self.location not in (m.value for m in Memory):
            return Reason(f"'{self.location}' is no memory; known are {', '.join(m.value for m in Memory)}")
        found = _carried(site, array)
        return name_reason(program, self.into) or (found if isinstance(found, Reason) else None)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        found = _carried(site, program.nest.arrays[self.array])
        assert isinstance(found, _Carried)
        write, shape = found.write, [scope.extent for scope in found.scopes]
        name = fresh_name(program.nest.arrays, self.into or f"{self.array}_carried")
        copy = declare(program, name, found.source.dtype, shape, [0] * len(shape), Memory(self.location), rewriter)
        ids = self._ids(program, found)
        rewriter.insert(_first(found, copy, ids[:-1], rewriter), InsertPoint.before(site.op))
        kept = build_op(
            (found.source, write.output.index), [Access(copy, found.slot, _NONE)], chain_ops(write), identifier=ids[-1]
        )
        rewriter.insert(kept, InsertPoint.after(write.op))
        target: Target = (copy, found.slot)
        redirect(site.leaves, dict.fromkeys((write.output, *found.reads), target), rewriter)

    @staticmethod
    def _ids(program: Program, found: _Carried) -> list[str]:
        """Identifiers of the scopes before the site, of the statement in them, and of the copy behind the write."""
        inner = range(len(found.write.chain) - found.site.depth - 1)
        prefix = f"{found.site.id}.{found.source.name}"
        return [fresh_id(program.nest.by_id, f"{prefix}.{part}") for part in (*inner, "first", "kept")]

    def inverse(self, program: Program, site: Scope) -> Move:
        return RereadValue().as_move(fresh_name(program.nest.arrays, self.into or f"{self.array}_carried"))


def _first(found: _Carried, copy: Array, ids: Sequence[str], rewriter: PatternRewriter) -> ScopeOp | StatementOp:
    """The nest that assigns the carried value of the first iteration, not yet inserted."""
    depth, chain = found.site.depth, found.write.chain
    scopes = [ScopeOp(s.extent, id=i) for s, i in zip(chain[depth + 1 :], ids, strict=False)]
    around = (*chain_ops(found.site), *scopes)
    extents = [scope.count for scope in around]
    moved = {depth: const(0), **{v: var(v - 1) for v in range(depth + 1, len(chain))}}

    def outside(index: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(e.substitute(moved, extents) for e in index)

    read = Access(found.source, outside(found.before()), _NONE)
    nodes = [*scopes, build_op((copy, outside(found.slot)), [read], around, identifier=ids[-1])]
    for outer, inner in zip(scopes, nodes[1:], strict=True):
        rewriter.insert(inner, InsertPoint.at_end(outer.body.block))
    return nodes[0]


@dataclass(frozen=True)
class RereadValue(Transformation[Array]):
    """Read what the previous iteration passed on from the array that has the values of all iterations.

    `reread_value@p`:

    4                                  4
    | s[{0},0] = x[{0}]                | s[{0},0] = x[{0}]
    | p[{0}] = s[{0},0]                | 8
    | 8                                | | t[{1}] = s[{0},{1}] * 2
    | | t[{1}] = p[{0}] * 2       -->  | | s[{0},{1}+1] = t[{1}] + 1
    | | p[{0}] = t[{1}] + 1
    | | s[{0},{1}+1] = p[{0}]

    Legal iff `carry_value` would lead back.
    """

    name: ClassVar[str] = "reread_value"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries with a first value, a write, and a copy of each."""
        for array in program.nest.arrays.values():
            if _guessed(program, array) is not None:
                yield array, cls()

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires that carrying the value again gives this program."""
        return None if self._again(program, site) else Reason(f"'{site.name}' is no value that carry_value made")

    def _again(self, program: Program, site: Array) -> tuple[CarryValue, str] | None:
        """The move that leads back, and its scope; None if there is none."""
        return program.memoised((self, site.name), lambda: self._find(program, site))

    def _find(self, program: Program, site: Array) -> tuple[CarryValue, str] | None:
        guess = _guessed(program, site)
        if guess is None:
            return None
        source = guess.kept.output.array
        copied = program.copy()
        again = _guessed(copied, copied.nest.arrays[site.name])
        assert again is not None
        _restore(again, PatternRewriter(next(iter(copied.kernel.body.block.ops))))
        without = copied.successor(copied.kernel)
        scope = without.nest.by_id[guess.site.id]
        assert isinstance(scope, Scope)
        move = CarryValue(source.name, site.buffer.memory.value, site.name)
        if move.check(without, scope) is not None:
            return None
        return (move, scope.id) if _text(rehearse(move, without, scope)) == _text(program) else None

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        guess = _guessed(program, site)
        assert guess is not None
        _restore(guess, rewriter)

    def inverse(self, program: Program, site: Array) -> Move:
        again = self._again(program, site)
        assert again is not None
        return again[0].as_move(f"%{again[1]}")


@dataclass(frozen=True, eq=False)
class _Guess:
    """A carried value, perhaps: the assignment before the scope, the write in it, and the copy to the array."""

    site: Scope
    first: Leaf
    write: Leaf
    kept: Leaf


def _guessed(program: Program, array: Array) -> _Guess | None:
    """The statements of what may be a carried value; None if it is certainly none."""
    nest = program.nest
    if array.intent is not None or len(array.buffer.names) != 1 or len(nest.writers[array.name]) != 2:
        return None
    first, write = sorted(nest.writers[array.name], key=lambda leaf: leaf.order)
    kept = nest.next_sibling(write)
    if not isinstance(kept, Leaf) or not (_copies(first) and _copies(kept)):
        return None
    if kept.reads[0].key != write.output.key or first.reads[0].array is not kept.output.array:
        return None
    for scope in write.chain:
        before = nest.previous_sibling(scope)
        if before is not None and [*(before.leaves if isinstance(before, Scope) else [before])] == [first]:
            reads = [leaf for leaf in nest.readers[array.name] if leaf is not kept]
            inside = all(scope in leaf.chain and len(leaf.chain) == len(write.chain) for leaf in reads)
            return _Guess(scope, first, write, kept) if inside else None
    return None


def _copies(leaf: Leaf) -> bool:
    """Whether a statement is a plain copy of an element."""
    return leaf.function is None and leaf.accumulate is None and len(leaf.reads) == len(leaf.inputs) == 1


def _restore(guess: _Guess, rewriter: PatternRewriter) -> None:
    """Let the scope read and write the array, without the carried value."""
    array, output = guess.write.output.array, guess.kept.output
    depth = guess.site.depth
    before: Target = (output.array, tuple(e - e.coefficient(depth) for e in output.index))
    targets = {
        a: before for leaf in guess.site.leaves for a in leaf.reads if a.array is array and leaf is not guess.kept
    }
    top = next(s for s in (*guess.first.chain[depth:], guess.first))
    rewriter.erase(top.op)
    rewriter.erase(guess.kept.op)
    leaves = [leaf for leaf in guess.site.leaves if leaf is not guess.kept]
    redirect(leaves, {**targets, guess.write.output: (output.array, output.index)}, rewriter)
    assert array.buffer.op is not None
    rewriter.erase(array.buffer.op)


def _text(program: Program) -> tuple[list[str], str]:
    """The declarations, sorted, and the rest of the program's text."""
    header, _, tree = program.text.partition("\n\n")
    return sorted(header.splitlines()), tree
