"""Placement of barriers, and of waits for asynchronous copies, in a block.

Two statements that touch one cell of shared memory or of the heap, at least one of them writing, keep their order
because one thread runs both, or because of a barrier between the nodes of their innermost common scope (atomic
operations that commute need none). A barrier stands at the level of that scope, so every thread that runs the two
statements runs the barrier too. In a loop, the statement of the later iteration may come first in the text; then the
barrier may stand anywhere on the way around the loop. `Collisions` determines exactly which statements meet in which
iterations, so that double buffering costs one barrier.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

from pdojo.backends.gpu.batches import Batch, batches_of, holds
from pdojo.backends.gpu.launches import Launch, reduced_by
from pdojo.dialect.affine import Expr, var
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.collision import ANY, BEFORE, EQUAL, Collisions, Query, Relation
from pdojo.dialect.flow.uses import Use, uses_together
from pdojo.dialect.rules.block_threads import threads_of
from pdojo.dialect.view.nest import Leaf, Nest, Node, Scope

Body: TypeAlias = Scope | None
"""A scope whose nodes run one after the other; None is the body of a launch: the nodes that each block runs."""
_LOOPS = (Mapping.SEQUENTIAL, Mapping.UNROLL)
_SEARCHED = 12
"""Largest number of places for which all sets of barriers are tried."""
_FARTHEST = 4
"""Largest number of iterations that copies may run ahead; copies further ahead are all waited for."""


@dataclass
class Synchronisation:
    """Barriers, waits and ends of copy groups, keyed by the node that they stand before or after."""

    barriers: dict[Node, int] = field(default_factory=dict[Node, int])
    """The threads that wait for each other before a node: all of the block, or a part of a warp."""
    waits: dict[Node, int] = field(default_factory=dict[Node, int])
    """Number of copy groups that may still be in flight when a node begins."""
    commits: set[Node] = field(default_factory=set[Node])
    """Nodes after which a group of asynchronous copies ends."""
    early_commits: set[Node] = field(default_factory=set[Node])
    """Nodes whose copy group ends before their wait: copy and node are inside the same node of `commits`."""

    batches: dict[Node, Batch] = field(default_factory=dict[Node, Batch])
    """Batches of asynchronous instructions, keyed by the nodes that a fence and the end of their group enclose."""
    product_waits: dict[Node, int] = field(default_factory=dict[Node, int])
    """Number of groups of asynchronous instructions that may still run when a node begins."""
    released: set[Node] = field(default_factory=set[Node])
    """Nodes before which threads wait for accumulators."""
    drained: set[Node] = field(default_factory=set[Node])
    """The nodes of batches that end with a wait for their group."""

    def is_before(self, node: Node) -> bool:
        """Whether a barrier, a wait or the end of a group stands before a node."""
        return node in self.barriers or node in self.waits or node in self.early_commits or node in self.product_waits


@dataclass(frozen=True)
class _Need:
    """A barrier must stand before one of these nodes of a body, given by index."""

    places: frozenset[int]


@dataclass(frozen=True)
class _Arrival:
    """Elements that an asynchronous copy writes or reads, and the first node that touches them."""

    body: Body
    copy: int | None
    """The index of the node with the copy; None if the number of groups after it is not known."""
    reader: int
    distance: int = 0
    """Iterations of the body between the copy and the node."""
    early: bool = False
    """True if the copy's group would end after the node, unless an additional end stands before the node."""
    crosses: bool = True
    """False if only the copying thread touches the elements, so that its own wait is enough."""

    def places(self, count: int) -> list[int]:
        """Indices of the nodes, of `count`, before which the wait may stand, the last one first."""
        if self.copy is None:
            return [self.reader]
        if self.distance == 0:
            return list(range(self.reader, self.copy, -1))
        return [*range(self.reader, -1, -1), *range(count - 1, max(self.copy, self.reader), -1)]

    def outstanding(self, commits: Sequence[int], place: int) -> int:
        """Number of groups that may still be in flight before a node, if groups end after the nodes `commits`."""
        if self.copy is None:
            return 0
        if self.distance == 0:
            return sum(self.copy < k < place for k in commits)
        whole = (self.distance - 1) * len(commits)
        if place > self.reader:
            return whole + sum(self.copy < k < place for k in commits)
        return whole + sum(k > self.copy for k in commits) + sum(k < place for k in commits)


def synchronisation(nest: Nest, found: Launch, atomics: Container[Leaf]) -> Synchronisation:
    """The barriers and waits of a launch, some of whose statements are atomic operations."""
    return _Synchroniser(nest, found, atomics).result()


class _Synchroniser:
    def __init__(self, nest: Nest, found: Launch, atomics: Container[Leaf]) -> None:
        self.launch, self.atomics = found, atomics
        self.collisions = Collisions()
        self.uses: list[Use] = []
        for buffer in nest.buffers:
            if buffer.memory in (Memory.SHARED, Memory.HEAP):
                inside = uses_together(nest, [buffer], buffer.reuse)
                self.uses += [
                    use for use in inside if use.leaf in found.leaves and use.access in found.touched(use.leaf)
                ]
        self.depth = found.depth
        self.sync = Synchronisation()

    def result(self) -> Synchronisation:
        """Barriers for all pairs of uses, and waits for asynchronous copies."""
        needs: dict[Body, set[_Need]] = {}
        for first, second in self._pairs():
            for body, need in self._needs(first, second):
                needs.setdefault(body, set()).add(need)
        copies = [leaf for leaf in self.launch.leaves if leaf.asynchronous]
        self.sync.commits.update(self._item(self._loop_body(leaf), leaf) for leaf in copies)
        arrivals = [a for leaf in copies for a in self._arrivals(leaf)]
        batches = batches_of(self.launch)
        self.sync.batches.update((batch.inside, batch) for batch in batches)
        finished = [a for batch in batches for a in self._finished(batch)]
        for arrival in (*(a for a in arrivals if a.crosses), *finished):
            if self._group(arrival.body) > 1:
                places = arrival.places(len(self._nodes(arrival.body)))
                needs.setdefault(arrival.body, set()).add(_Need(frozenset(places)))
        self._place_barriers(needs)
        for arrival in arrivals:
            self._wait(arrival, self.sync.commits, self.sync.waits)
        for batch in batches:
            self._wait_for(batch)
        for arrival in finished:
            self._wait(arrival, [batch.node for batch in batches], self.sync.product_waits)
        return self.sync

    def _place_barriers(self, needs: dict[Body, set[_Need]]) -> None:
        """Put as few barriers as possible into each body."""
        for body, wanted in needs.items():
            for place in _fewest(wanted, len(self._nodes(body))):
                self.sync.barriers[self._nodes(body)[place]] = self._group(body)

    # Asynchronous instructions

    def _finished(self, batch: Batch) -> list[_Arrival]:
        """The next writes of the elements that a batch reads; the batch waits by itself if it is inside of a node."""
        leaf = batch.leaves[0]
        home = self._loop_body(leaf, batch.node)
        if self._item(home, leaf) is not batch.node:
            self.sync.drained.add(batch.inside)
            return []
        return [a for one in batch.leaves for a in self._arrivals(one, batch.node)]

    def _wait_for(self, batch: Batch) -> None:
        """Wait for a batch's accumulators before other nodes that touch them."""
        touching = [
            leaf
            for leaf in self.launch.leaves
            if not holds(batch.node, leaf)
            and any(a.array.buffer in batch.accumulators for a in self.launch.touched(leaf))
        ]
        waited = False
        for leaf in touching:
            common = self._common(batch.leaves[0], leaf)
            body = common[-1] if len(common) > self.depth else None
            later = leaf.order > batch.leaves[0].order
            if later or any(_repeats(s) for s in common[self.depth :]):
                node = self._item(body, leaf)
                self.sync.product_waits[node] = 0
                self.sync.released.add(node)
            waited = waited or later
        if not waited:
            self.sync.drained.add(batch.inside)

    def _pairs(self) -> Iterator[tuple[Use, Use]]:
        for first in self.uses:
            for second in self.uses:
                if first.memory is second.memory and (first.writes or second.writes):
                    commute = first.commutes_with is not None and first.commutes_with == second.commutes_with
                    plain = any(self._is_shared(u.leaf) or u.leaf not in self.atomics for u in (first, second))
                    if not commute or plain:
                        yield first, second

    def _is_shared(self, leaf: Leaf) -> bool:
        """Whether several threads write a statement's cells: they add up a result, or compute a tile together."""
        return bool(reduced_by(leaf)) or self.launch.collectives.of(leaf) is not None

    def _needs(self, first: Use, second: Use) -> Iterator[tuple[Body, _Need]]:
        """Barriers between an instance of `first` and a later one of `second`."""
        common = self._common(first.leaf, second.leaf)
        body = common[-1] if len(common) > self.depth else None
        several = self.launch.group(common) > 1
        together = self.launch.collectives.of(first.leaf)
        if together is not None and together is self.launch.collectives.of(second.leaf):
            pass  # one instruction for all
        elif several and first.leaf.order < second.leaf.order and self._meet(first, second, (EQUAL,) * len(common)):
            one, other = self._place(body, first.leaf), self._place(body, second.leaf)
            yield body, _Need(frozenset(range(one + 1, other + 1)))
        for scope in filter(_repeats, common[self.depth :]):
            if self.launch.group(scope.chain) > 1 and self._meet(first, second, _later(scope, common)):
                one, other = self._place(scope, first.leaf), self._place(scope, second.leaf)
                count = len(self._nodes(scope))
                yield scope, _Need(frozenset((*range(one + 1, count), *range(other + 1))))

    def _meet(self, first: Use, second: Use, relation: Relation) -> bool:
        """Whether two different threads touch one cell, in iterations with this relation."""
        differs: tuple[tuple[Expr, Expr], ...] = ()
        if self._same_threads(first.leaf, second.leaf):
            pairs = zip(threads_of(first.leaf.chain), threads_of(second.leaf.chain), strict=True)
            differs = tuple((var(a.depth), var(b.depth)) for a, b in pairs)
            if not differs:
                return False
        equal = tuple(zip(first.cell, second.cell, strict=True))
        query = Query(first.domain, second.domain, equal, relation, differs)
        return self.collisions.find(query) is not None

    def _same_threads(self, first: Leaf, second: Leaf) -> bool:
        """Whether the iteration determines the thread of a statement, by the same formula for both statements."""
        if self._is_shared(first) or self._is_shared(second):
            return False
        one, other = (
            [(s.extent, self.launch.strides[s], s.mapping) for s in threads_of(leaf.chain)] for leaf in (first, second)
        )
        single = all(self.launch.group(leaf.chain) == 1 or _stores(leaf) for leaf in (first, second))
        return one == other and single

    # Asynchronous copies

    def _arrivals(self, copy: Leaf, batch: Scope | None = None) -> Iterator[_Arrival]:
        """The next accesses to the elements that a copy, or an instruction of a batch, writes or reads.

        Groups of one thread complete in order, copies of one group in any order.
        """
        again: list[_Arrival] = []
        early: set[Body] = set()
        for own in self.uses:
            for use in self.uses if own.leaf is copy else ():
                if use.memory is own.memory and (own.writes or use.writes):
                    crosses = self._crosses(own, use)
                    found = [replace(arrival, crosses=crosses) for arrival in self._arrival(own, use, batch)]
                    if use.leaf is copy:
                        again += found
                    else:
                        early.update(arrival.body for arrival in found if arrival.early)
                        yield from found
        # A wait between two instances of the copy is enough for both.
        yield from (arrival for arrival in again if not arrival.early or arrival.body not in early)

    def _crosses(self, own: Use, use: Use) -> bool:
        """Whether a thread other than the copying one may touch the copied elements."""
        common = self._common(own.leaf, use.leaf)
        relation = (*(EQUAL,) * self.depth, *(ANY,) * (len(common) - self.depth))
        return self._meet(own, use, relation)

    def _arrival(self, own: Use, use: Use, batch: Scope | None) -> Iterator[_Arrival]:
        home = self._loop_body(own.leaf, batch)
        common = self._common(own.leaf, use.leaf)
        if home is not None and home not in common:
            body = common[-1] if len(common) > self.depth else None
            yield _Arrival(body, None, self._place(body, use.leaf))
            return
        above = self.depth if home is None else home.depth + 1
        later = [_later(s, common) for s in common[self.depth : above] if _repeats(s)]
        reader = self._place(home, use.leaf)
        if self._place(home, own.leaf) == reader:
            yield from self._within(own, use, above)
            if not any(self._meet(own, use, relation) for relation in later):
                return
        if len(later) > 1:
            yield _Arrival(home, None, reader)
        else:
            yield from self._counted(own, use, home)

    def _within(self, own: Use, use: Use, above: int) -> Iterator[_Arrival]:
        """The next use inside the node, at depth `above`, after which the copy's group ends."""
        common = self._common(own.leaf, use.leaf)
        relations = [_later(s, common) for s in common[above:] if _repeats(s)]
        if own.leaf.order < use.leaf.order:
            relations.append((EQUAL,) * len(common))
        if any(self._touch(own, use, relation) for relation in relations):
            yield _Arrival(common[-1], None, self._place(common[-1], use.leaf), early=True)

    def _counted(self, own: Use, use: Use, loop: Body) -> Iterator[_Arrival]:
        """The next use in another node of the body at whose level groups end, or in a later iteration."""
        mine, reader = self._place(loop, own.leaf), self._place(loop, use.leaf)
        depth = self.depth if loop is None else loop.depth
        if mine < reader and self._touch(own, use, (EQUAL,) * (depth if loop is None else depth + 1)):
            yield _Arrival(loop, mine, reader)
        elif loop is not None and self._touch(own, use, (*(EQUAL,) * depth, BEFORE)):
            near = range(1, min(loop.extent, _FARTHEST + 1)) if _is_gapless(loop) else ()
            distance = next((d for d in near if self._pairs_at(own, use, loop, d)), None)
            yield _Arrival(loop, None, reader) if distance is None else _Arrival(loop, mine, reader, distance)

    def _touch(self, first: Use, second: Use, relation: Relation, *more: tuple[Expr, Expr]) -> bool:
        """Whether instances of two uses with this relation touch one cell."""
        cells = tuple(zip(first.cell, second.cell, strict=True))
        return self.collisions.find(Query(first.domain, second.domain, (*cells, *more), relation)) is not None

    def _pairs_at(self, own: Use, use: Use, loop: Scope, distance: int) -> bool:
        """Whether the use touches an element that the copy touched `distance` iterations earlier."""
        variable = var(loop.depth)
        # The second instance's variable equals the first's plus the distance.
        return self._touch(own, use, (*(EQUAL,) * loop.depth, BEFORE), (variable + distance, variable))

    def _wait(self, arrival: _Arrival, ends: Container[Node], waits: dict[Node, int]) -> None:
        """Wait at the last barrier before the access, so that all threads have waited, or at the access.

        Groups end after the nodes `ends`; the wait is added to `waits`.
        """
        nodes = self._nodes(arrival.body)
        places = [p for p in arrival.places(len(nodes)) if nodes[p] in self.sync.barriers]
        place = places[0] if places else arrival.reader
        commits = [k for k, node in enumerate(nodes) if node in ends]
        allowed = arrival.outstanding(commits, place)
        waits[nodes[place]] = min(allowed, waits.get(nodes[place], allowed))
        if arrival.early:
            self.sync.early_commits.add(nodes[place])

    # Bodies

    def _group(self, body: Body) -> int:
        """Number of threads that share the work of a body."""
        return self.launch.group(() if body is None else body.chain)

    def _common(self, first: Leaf, second: Leaf) -> tuple[Scope, ...]:
        """The scopes around both statements that run sequentially."""
        shared = [a for a, b in zip(first.chain, second.chain, strict=False) if a is b]
        inside = [k for k, s in enumerate(shared) if s in self.launch.collectives.scopes]
        return tuple(s for s in shared[: inside[0] if inside else None] if s.mapping is not Mapping.VECTOR)

    def _nodes(self, body: Body) -> Sequence[Node]:
        return self.launch.nodes if body is None else body.children

    def _item(self, body: Body, leaf: Leaf) -> Node:
        """The node of a body that contains a statement."""
        return self._nodes(body)[self._place(body, leaf)]

    def _place(self, body: Body, leaf: Leaf) -> int:
        depth = self.depth if body is None else body.depth + 1
        held = leaf.chain[depth] if len(leaf.chain) > depth else leaf
        return next(k for k, node in enumerate(self._nodes(body)) if node is held)

    def _loop_body(self, leaf: Leaf, batch: Scope | None = None) -> Body:
        """The innermost loop around a statement, or the batch with it, and all its thread scopes; None without one."""
        outside = leaf.chain[self.depth : None if batch is None else batch.depth]
        threads = [k for k, s in enumerate(outside) if s in threads_of(leaf.chain)]
        outside = outside[: threads[0]] if threads else outside
        loops = [s for s in outside if _repeats(s)]
        return loops[-1] if loops else None


def _repeats(scope: Scope) -> bool:
    """Whether one thread runs several iterations of a scope."""
    return scope.extent > 1 and scope.mapping in _LOOPS


def _later(loop: Scope, common: Sequence[Scope]) -> Relation:
    """The relation of instances of two statements in which the first is in an earlier iteration of `loop`."""
    return (*(EQUAL,) * loop.depth, BEFORE, *(ANY,) * (len(common) - loop.depth - 1))


def _is_gapless(loop: Scope) -> bool:
    """Whether the guard admits consecutive iterations: its constraints do not divide the loop's variable."""
    return not any((g - var(loop.depth) * g.coefficient(loop.depth)).uses(loop.depth) for g in loop.guard)


def _stores(leaf: Leaf) -> bool:
    """Whether one thread runs a statement for its group, because it writes memory that the group shares."""
    return leaf.output.array.buffer.memory in (Memory.SHARED, Memory.HEAP)


def _fewest(needs: set[_Need], places: int) -> tuple[int, ...]:
    """A smallest set of places that satisfies every need."""
    if places <= _SEARCHED:
        for count in range(places + 1):
            for chosen in combinations(range(places), count):
                if all(not need.places.isdisjoint(chosen) for need in needs):
                    return chosen
    return tuple(sorted({max(need.places) for need in needs}))
