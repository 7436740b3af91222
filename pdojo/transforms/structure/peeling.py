"""Peeling: the first or the last iterations of a scope become a scope of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pdojo.transforms.api import (
    MOST_STATEMENTS,
    NONTEMPORAL,
    Access,
    IndexType,
    InsertPoint,
    IntegerAttr,
    Leaf,
    Mapping,
    Memory,
    Move,
    Node,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    ScopeOp,
    StatementOp,
    Transformation,
    chain_ops,
    const,
    describe_scope,
    fact,
    fresh_id,
    is_whole,
    move_into,
    nest_of,
    nodes_of,
    rebuilt,
    reindex,
    run_time_extent,
    set_guard,
    set_id,
    unrolled,
    var,
)
from pdojo.transforms.common.ordering import displaced_buffers
from pdojo.transforms.structure.digits import vector_lengths
from pdojo.transforms.structure.matching import Cut, Match, match_scopes

PEELED = (Mapping.SEQUENTIAL, Mapping.UNROLL)
"""Mappings of scopes that can be peeled: their iterations run in order."""

DROP = "drop"
"""The value of `empty` that leaves out a part in which nothing runs."""
MOST_CUTS = 4
"""Most cuts per scope that candidates propose."""


@dataclass(frozen=True)
class PeelScope(Transformation[Scope]):
    """Split a scope into two: its first `after` iterations, and the others.

    `peel_scope@y:0{after=2}`:

    N y[{0}] = x[{0}]  -->  2 y[{0}] = x[{0}]
                            6 y[{0}+2] = x[{0}+2]

    If the extent depends on sizes, `multiple` in place of `after` cuts after the last whole tile of so many iterations:
    `peel_scope@y:0{multiple=8}` leaves `N % 8` iterations for the second scope.

    Legal: the order of the instances stays. Guards that always hold in a part are dropped, as are nodes that never run
    in it. Refused for mapped scopes, except unrolled ones, and if buffers that several scopes share would lose a value.
    Also refused if nothing runs in a part; with `empty=drop` the other part alone remains: a shorter scope.
    """

    name: ClassVar[str] = "peel_scope"
    after: int = 0
    multiple: int = 0
    empty: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Cuts after the first iteration, before the last one, and where guards begin or cease to hold."""
        for scope in program.nest.scopes:
            if scope.mapping in PEELED and scope.extent > 1:
                yield from ((scope, move) for at in likely_cuts(scope) for move in cls._proposed(scope, at))
                if run_time_extent(scope) is not None:
                    lengths = sorted(n for n in vector_lengths(program) if 1 < n <= scope.extent)
                    yield from ((scope, cls(multiple=n)) for n in lengths if not is_whole(scope, n))

    @classmethod
    def _proposed(cls, site: Scope, at: int) -> Iterator[Self]:
        """The cut, and the one that drops a part in which nothing runs."""
        whole = cls(at)
        yield whole
        if any(leaf.guards for leaf in site.leaves) and any(site.id in dead for dead in whole._dead(site)):
            yield replace(whole, empty=DROP)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires a scope in order and statements in both parts; storage is checked on the program after the move."""
        if site.mapping not in PEELED:
            return Reason(f"{describe_scope(site)} is mapped; unmap it first")
        if (wrong := self._wrong(site)) is not None:
            return wrong
        kept = [site.id not in dead for dead in self._dead(site)]
        if self.empty and all(kept):
            return Reason("'empty' drops a part in which nothing runs, but both parts run")
        for is_kept, which in zip(kept, ("before", "from"), strict=True):
            if not is_kept and not (self.empty and any(kept)):
                return Reason(f"nothing runs {which} iteration {self._cut(site).at.render(str)}")
        if (register := _thread_register(site)) is not None:
            return Reason(f"'{register}' is in registers of the threads inside, which would use it in two scopes")
        return None

    def _wrong(self, site: Scope) -> Reason | None:
        """The reason why a parameter does not fit the scope; None if it does."""
        if self.empty not in ("", DROP):
            return Reason(f"'empty' must be {DROP}, not '{self.empty}'")
        if not self.multiple:
            good = 0 < self.after < site.extent
            return None if good else Reason(f"'after' must be between 1 and {site.extent - 1}, the extent less one")
        if self.after:
            return Reason("'after' and 'multiple' are two ways to say where the scope is cut")
        if run_time_extent(site) is None:
            return Reason(f"the extent {site.extent} is constant: 'after' says where it is cut")
        if not 1 < self.multiple <= site.extent:
            return Reason(f"'multiple' must be between 2 and {site.extent}, the greatest extent")
        return Reason(f"{self.multiple} divides every extent: no rest") if is_whole(site, self.multiple) else None

    def _cut(self, site: Scope) -> Cut:
        found = run_time_extent(site)
        if self.multiple and found is not None:
            return Cut.at_multiple(site.depth, found[0], self.multiple)
        return Cut(site.depth, const(self.after), const(site.extent))

    def _dead(self, site: Scope) -> tuple[set[str], set[str]]:
        """Identifiers of the nodes that never run in the first part, and of those that never run in the second."""

        def found() -> tuple[set[str], set[str]]:
            dead: tuple[set[str], set[str]] = (set(), set())
            _find_dead(site, self._cut(site), dead)
            return dead

        return fact(site.facts, f"dead {self.after} {self.multiple}", found)

    def _names(self, program: Program, site: Scope) -> dict[str, str]:
        """New identifiers of the second part's nodes, by their present ones."""
        first, second = self._dead(site)
        names: dict[str, str] = {}
        taken = dict[str, object](program.nest.by_id)
        for node in nodes_of(site):
            if node.id in first:
                names[node.id] = node.id
            elif node.id not in second:
                names[node.id] = fresh_id(taken, f"{node.id}.r")
                taken[names[node.id]] = node
        return names

    def argues(self, program: Program, site: Scope) -> bool:
        """True if both parts keep all statements, cells and vectors, so that only memory for both parts can be lacking.

        Then every condition holds for two scopes if it holds for one.
        """
        inside = [node for node in nodes_of(site) if isinstance(node, Scope)]
        plain = not any(s.mapping.is_threaded or s.mapping.is_special or s.hints.data for s in inside)
        return (
            plain
            and not any(map(_depends_on_place, {a: None for leaf in site.leaves for a in leaf.accesses}))
            and not (program.machine.aligned_vectors or any(self._dead(site)))
            and not displaced_buffers(site.leaves, site.depth)
            and unrolled(program.nest, MOST_STATEMENTS // 4) is None
        )

    def grows(self, program: Program, site: Scope) -> bool:
        """True if some registers are used only inside; their live ranges then extend over both parts."""
        return any(
            buffer.memory is Memory.REGISTER and live.scope is not None and site in live.scope.chain
            for buffer, live in program.live_ranges.items()
        )

    promises: ClassVar = Promises(conditions=argues, grows=grows, adds=0, is_local=True)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Copy the scope; restrict one copy to the first iterations, the other to the rest."""
        first, second = self._dead(site)
        names = self._names(program, site)
        copy = site.op.clone()
        kept = {op: not (self.empty and site.id in dead) for op, dead in ((site.op, first), (copy, second))}
        rewriter.insert(copy, InsertPoint.after(site.op))
        for original, copied in zip(_nodes_in(site.op), _nodes_in(copy), strict=True):
            identifier = "" if original.id is None else original.id.data
            set_id(copied, names.get(identifier, identifier))
            for op, dead in ((original, first), (copied, second)):
                if identifier in dead and op.parent is not None:
                    set_id(op, "")
        _erase_unnamed(site.op, rewriter)
        _erase_unnamed(copy, rewriter)
        for op in (op for op, is_kept in kept.items() if not is_kept):
            rewriter.erase(op)
        nest, cut = nest_of(program.kernel), self._cut(site)
        ends, extents = cut.ends(), cut.greatest
        values = (var(site.depth), var(site.depth) + cut.at)
        for op, extent, value, end in zip(kept, extents, values, ends[:2], strict=True):
            if not kept[op]:
                continue
            part = next(s for s in nest.scopes if s.op is op)
            op.properties["extent"] = IntegerAttr(extent, IndexType())
            chain = (*chain_ops(part), op)
            value = value.substitute({}, [s.count for s in chain])
            reindex(part.children, {site.depth: value}, chain, rewriter)
            rest = [g for g in part.guard if g != ends[2]]
            guard = [g.substitute({site.depth: value}, [s.count for s in chain]) for g in rest]
            set_guard(op, [*guard, end], chain, rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        return UnpeelScope().as_move(f"%{site.id}")


@dataclass(frozen=True)
class UnpeelScope(Transformation[Scope]):
    """Merge two neighbouring scopes, which are the first and the last iterations of one scope.

    `unpeel_scope@y#0:0`:

    2 y[{0}] = x[{0}]      -->  8 y[{0}] = x[{0}]
    6 y[{0}+2] = x[{0}+2]

    Legal iff `peel_scope` could have made the two from one scope, and no statement depends on other iterations of
    itself.
    """

    name: ClassVar[str] = "unpeel_scope"
    promises: ClassVar = Promises(is_local=True, takes_next=True)
    undoes: ClassVar = True

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes followed by a scope of the same mapping."""
        for scope in program.nest.scopes:
            second = program.nest.next_sibling(scope)
            if isinstance(second, Scope) and scope.mapping is second.mapping and scope.mapping in PEELED:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires two parts of one scope; storage is checked on the program after the move."""
        second = program.nest.next_sibling(site)
        if not isinstance(second, Scope):
            return Reason("no scope follows immediately")
        if site.mapping not in PEELED or site.mapping is not second.mapping:
            return Reason(f"{describe_scope(site)} and {describe_scope(second)} are not both sequential or unrolled")
        if match_scopes(site, second) is None:
            return Reason("the two scopes are not the first and the last iterations of one loop")
        return None

    def _match(self, program: Program, site: Scope) -> tuple[Match, Cut]:
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        found = match_scopes(site, second)
        assert found is not None
        return found

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Give the first scope all iterations, and the nodes of the second scope only."""
        found, cut = self._match(program, site)
        second = found.second
        assert isinstance(second, Scope)
        site.op.properties["extent"] = IntegerAttr(cut.whole, IndexType())
        _merge(found, cut, chain_ops(site), rewriter)
        rewriter.erase(second.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        _, cut = self._match(program, site)
        peel = PeelScope(multiple=cut.multiple) if cut.multiple else PeelScope(site.extent)
        return peel.as_move(f"%{site.id}")


def _depends_on_place(access: Access) -> bool:
    """Whether an access restricts its index beyond the stride: by alignment or by granules of a swizzle."""
    return bool(access.array.buffer.swizzles) or NONTEMPORAL in access.hints.data


def likely_cuts(site: Scope) -> list[int]:
    """Cuts after the first iteration, before the last one, and where guards inside begin or cease to hold."""
    found = {1, site.extent - 1}
    for leaf in site.leaves:
        for guard in leaf.guards:
            factor = guard.coefficient(site.depth)
            low, high = (guard - var(site.depth) * factor).bounds(leaf.extents)
            for rest in (low, high) if factor else ():
                # factor * i + rest >= 0 holds from some i on, or up to some i.
                found.add(-(rest // factor) if factor > 0 else rest // -factor + 1)
    return sorted(at for at in found if 0 < at < site.extent)[:MOST_CUTS]


def _find_dead(node: Node, cut: Cut, dead: tuple[set[str], set[str]]) -> tuple[bool, bool]:
    """Whether a node never runs in each of two parts; adds it, and such nodes inside it, to `dead`."""
    if isinstance(node, Leaf):
        return False, False
    gone = cut.dead(node.guard, [s.extent for s in node.chain])
    inside = [_find_dead(child, cut, dead) for child in node.children]
    first, second = (gone[part] or all(each[part] for each in inside) for part in (0, 1))
    for is_dead, names in zip((first, second), dead, strict=True):
        if is_dead:
            names |= {n.id for n in nodes_of(node)}
    return first, second


def _thread_register(site: Scope) -> str | None:
    """An array in registers that threads inside the scope use; None if there is none."""
    for leaf in site.leaves:
        if any(s.mapping.is_threaded for s in leaf.chain[site.depth :]):
            for access in leaf.accesses:
                if access.array.buffer.memory is Memory.REGISTER:
                    return access.array.name
    return None


def _nodes_in(op: ScopeOp) -> list[ScopeOp | StatementOp]:
    return [o for o in op.walk() if isinstance(o, ScopeOp | StatementOp)]


def _erase_unnamed(scope: ScopeOp, rewriter: PatternRewriter) -> None:
    """Erase the nodes inside without identifiers."""
    for op in tuple(scope.body.block.ops):
        if isinstance(op, ScopeOp | StatementOp) and op.id is not None and not op.id.data:
            rewriter.erase(op)
        elif isinstance(op, ScopeOp):
            _erase_unnamed(op, rewriter)


def _merge(found: Match, cut: Cut, outside: Sequence[ScopeOp], rewriter: PatternRewriter) -> None:
    """Turn the first of two matching scopes, inside `outside`, into the whole scope."""
    scope = found.first
    assert isinstance(scope, Scope)
    chain = (*outside, scope.op)
    set_guard(scope.op, found.guard, chain, rewriter)
    for child in found.children:
        node = child.node
        move_into([node.op], scope.op, rewriter)
        if child.first is None or child.second is None:
            later = {cut.depth: var(cut.depth) - cut.at} if child.first is None else {}
            reindex([node], later, chain, rewriter)
            if isinstance(node, Scope):
                set_guard(node.op, child.guard, (*chain, node.op), rewriter)
        elif isinstance(node, Leaf):
            rewriter.replace(node.op, rebuilt(node, chain, child.output, child.inputs))
        else:
            _merge(child, cut, chain, rewriter)
