"""A state of the game as moves see it: the kernel, its nest, the machine, and the questions common to all moves.

Two statements *conflict* under a relation of their iterations if some pair of instances in that relation touches one
memory cell, at least one of them writing, other than two accumulations that commute. A schedule move is legal exactly
if the pairs of instances whose order it changes do not conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from pdojo.dialect.attributes import Intent, Mapping, Numerics
from pdojo.dialect.flow.collision import Collisions, Domain, Query, Relation, Witness
from pdojo.dialect.flow.flows import Caller
from pdojo.dialect.flow.liveness import LiveRange, live_ranges
from pdojo.dialect.flow.origins import Origins
from pdojo.dialect.flow.remembered import Remembered
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.flow.storage_check import StorageChecks
from pdojo.dialect.flow.uses import Use, UsesOnDemand, domain_of, remapped_chain, uses_of, uses_together
from pdojo.dialect.functions import ACCUMULATIONS
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation.printer import print_nest
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.build import nest_on
from pdojo.dialect.view.copying import copy_nest
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Nest, Node, Scope, fact
from pdojo.dialect.view.storage import accesses_of, cell_of, copy_depths

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that touch one cell, the statements they belong to, and the iterations that collide."""

    first: Leaf
    first_access: Access
    second: Leaf
    second_access: Access
    witness: Witness
    first_writes: bool
    second_writes: bool

    def __str__(self) -> str:
        return (
            f"{_describe(self.first_access, self.first_writes, self.witness.first)} and "
            f"{_describe(self.second_access, self.second_writes, self.witness.second)}"
        )


def _describe(access: Access, writes: bool, iteration: tuple[int, ...]) -> str:
    at = f" at iteration ({', '.join(map(str, iteration))})" if iteration else ""
    return f"{'write' if writes else 'read'} of {describe_access(access)}{at}"


@dataclass(frozen=True, slots=True)
class AnalysisCache:
    """Answers about the states of a game, keyed by the content of the questions.

    Answers about one program only are in `Program.once`; those about a nest or a buffer in `excerpts` or `remembered`,
    by content. Facts about nodes and uses of buffers that a move does not change stay with the view.
    """

    collisions: Collisions = field(default_factory=Collisions)
    storage: StorageChecks = field(default_factory=StorageChecks)
    origins: Origins = field(default_factory=Origins)
    remembered: Remembered = field(default_factory=Remembered)


class Program:
    """A kernel and all facts computed about it; built once per state.

    `known` is shared between the states of a game, so only a move's changes are asked about again. `nest` is the view
    of the kernel. If it is None, the view is computed, in the nodes `touched` only, from `before`, the view before the
    kernel was rewritten in place.
    """

    has_excerpts: ClassVar[bool] = True
    """Whether questions about a part of the program may be answered on that part alone (`excerpts`)."""

    def __init__(
        self,
        kernel: KernelOp,
        machine: Machine,
        known: AnalysisCache | None = None,
        nest: Nest | None = None,
        before: Nest | None = None,
        touched: Container[Node] | None = None,
    ) -> None:
        self._kernel: KernelOp | None = kernel
        self.machine = machine
        self.known = known or AnalysisCache()
        self._nest, self._before, self._touched = nest, before, touched
        self.verdicts: dict[Hashable, object] = {}
        """Decisions about this program, by keys that the deciding code chooses."""
        self._rehearsed: tuple[Hashable, Program] | None = None

    def memoised(self, question: Hashable, decide: Callable[[], AnswerT]) -> AnswerT:
        """The answer to a question about this program, decided on first use."""
        if question not in self.verdicts:
            self.verdicts[question] = decide()
        found: Any = self.verdicts[question]
        return found

    def rehearsed(self, move: Hashable, make: Callable[[], Program]) -> Program:
        """The program after a move; the latest one is kept, because checks ask several times."""
        if self._rehearsed is None or self._rehearsed[0] != move:
            self._rehearsed = move, make()
        return self._rehearsed[1]

    def take_rehearsed(self, move: Hashable) -> Program | None:
        """The latest program of `rehearsed` if it follows from this move, else None; it is then no longer kept."""
        latest, self._rehearsed = self._rehearsed, None
        return latest[1] if latest is not None and latest[0] == move else None

    @property
    def collisions(self) -> Collisions:
        """The memo of collisions between accesses."""
        return self.known.collisions

    @property
    def storage(self) -> StorageChecks:
        """The memo of storage questions."""
        return self.known.storage

    @property
    def origins(self) -> Origins:
        """The memo of origins of values."""
        return self.known.origins

    @property
    def kernel(self) -> KernelOp:
        """The kernel. Raises RuntimeError, as all questions do, if the kernel has since been rewritten in place."""
        if self._kernel is None:
            raise RuntimeError("the kernel was rewritten in place: ask the program that succeeds this one")
        return self._kernel

    @property
    def nest(self) -> Nest:
        """The kernel as a tree of scopes and statements."""
        if self._nest is None:
            self._nest = nest_on(self.kernel, self.machine, self._before, self._touched)
            self._before = self._touched = None
        return self._nest

    @property
    def text(self) -> str:
        """The canonical text of the kernel."""
        return self.memoised("text", lambda: print_nest(self.nest))

    @property
    def uses(self) -> MappingABC[Leaf, tuple[Use, ...]]:
        """The accesses of every statement under the mappings and slots of the kernel."""
        return self.memoised("uses", self.uses_if)

    @property
    def element_uses(self) -> MappingABC[Leaf, tuple[Use, ...]]:
        """The accesses of every statement if every element had memory of its own: the meaning of the program."""
        return self.memoised("element_uses", self._element_uses)

    def _element_uses(self) -> MappingABC[Leaf, tuple[Use, ...]]:
        def uses(leaf: Leaf) -> tuple[Use, ...]:
            return fact(leaf.facts, "element uses", lambda: tuple(use.of_element() for use in _own_uses(leaf)))

        return UsesOnDemand(self.nest.leaves, uses)

    def uses_if(
        self,
        mappings: MappingABC[Scope, Mapping] | None = None,
        reuse: MappingABC[Buffer, Sequence[int]] | None = None,
        only: Container[Buffer] | None = None,
    ) -> MappingABC[Leaf, tuple[Use, ...]]:
        """The accesses under other mappings of some scopes, or other reuse flags of some buffers.

        `only` restricts the buffers.
        """
        nest, flags = self.nest, reuse or {}
        copies: dict[Buffer, tuple[int, ...]] = {}
        is_present = not mappings and not reuse and only is None

        def use(leaf: Leaf, access: Access, chain: tuple[Scope, ...], domain: Domain) -> Use:
            buffer = access.array.buffer
            reused = flags.get(buffer, buffer.reuse)
            if any(reused) and buffer not in copies:
                placed = ((a, remapped_chain(user, mappings)) for user, a in accesses_of(nest, buffer))
                copies[buffer] = copy_depths(placed, reused)
            return Use(leaf, access, chain, domain, cell_of(access, chain, reused, copies.get(buffer, ())), buffer)

        def uses(leaf: Leaf) -> tuple[Use, ...]:
            if is_present and not any(any(a.array.buffer.reuse) for a in leaf.accesses):
                return fact(leaf.facts, "uses", lambda: _own_uses(leaf))
            wanted = [a for a in leaf.accesses if only is None or a.array.buffer in only]
            chain, domain = remapped_chain(leaf, mappings) if wanted else (), domain_of(leaf)
            return tuple(use(leaf, access, chain, domain) for access in wanted)

        return UsesOnDemand(nest.leaves, uses)

    def uses_shared(self, guest: Buffer, host: Buffer) -> dict[Leaf, tuple[Use, ...]]:
        """The accesses to two buffers as if the arrays of both lived in `host`."""
        found: dict[Leaf, list[Use]] = {leaf: [] for leaf in self.nest.leaves}
        for use in uses_together(self.nest, [guest, host], host.reuse):
            found[use.leaf].append(use)
        return {leaf: tuple(uses) for leaf, uses in found.items()}

    @property
    def live_ranges(self) -> dict[Buffer, LiveRange]:
        """Per buffer, the statements and the scope within which its values are needed."""
        return self.memoised("live_ranges", lambda: live_ranges(self.nest))

    def permits(self, numerics: Numerics) -> bool:
        """Whether the kernel permits moves of a numerics class."""
        return numerics is Numerics.EXACT or numerics in self.kernel.permitted

    def conflict(
        self,
        first: Iterable[Leaf],
        second: Iterable[Leaf],
        relation: Relation,
        *,
        racing: bool = False,
        uses: MappingABC[Leaf, tuple[Use, ...]] | None = None,
        seconds: MappingABC[Leaf, tuple[Use, ...]] | None = None,
        only: Container[Buffer] | None = None,
    ) -> Conflict | None:
        """A conflict of a statement of `first` with one of `second`, for iterations related by `relation`; or None.

        With `racing`, accumulations into one cell also conflict: concurrent ones lose updates. `uses` replace the
        accesses of the program, `seconds` those of the second instance; `only` restricts the buffers.
        """
        known = self.uses if uses is None else uses
        for one, other in _pairs(first, second, known, known if seconds is None else seconds, only):
            witness = self._collide(one, other, relation, racing=racing)
            if witness is not None:
                return Conflict(one.leaf, one.access, other.leaf, other.access, witness, one.writes, other.writes)
        return None

    def reorders(
        self,
        first: Iterable[Leaf],
        second: Iterable[Leaf],
        relation: Relation,
        seconds: MappingABC[Leaf, tuple[Use, ...]] | None = None,
    ) -> bool:
        """Whether `relation` relates accumulations that commute but round differently in another order.

        `seconds` are the element accesses of the second instance (None: the program's).
        """
        known = self.element_uses
        for one, other in _pairs(first, second, known, known if seconds is None else seconds):
            mine = one.commutes_with
            if mine is None or mine != other.commutes_with or ACCUMULATIONS[mine[1]].exact:
                continue
            equal = tuple(zip(one.cell, other.cell, strict=True))
            if self.collisions.find(Query(one.domain, other.domain, equal, relation)) is not None:
                return True
        return False

    def _collide(self, one: Use, other: Use, relation: Relation, *, racing: bool) -> Witness | None:
        equal = tuple(zip(one.cell, other.cell, strict=True))
        if racing or one.commutes_with is None or one.commutes_with != other.commutes_with:
            return self.collisions.find(Query(one.domain, other.domain, equal, relation))
        if isinstance(one.memory, Array):
            return None
        # Commuting accumulations conflict only if one cell holds two elements; these differ in an index that a slot
        # replaces.
        elements = zip(one.access.index, other.access.index, strict=True)
        differs = tuple(pair for pair, place in zip(elements, equal, strict=False) if pair != place)
        if not differs:
            return None
        return self.collisions.find(Query(one.domain, other.domain, equal, relation, differs))

    def storage_violation(
        self,
        array: str,
        reuse: Sequence[int],
        mappings: MappingABC[Scope, Mapping] | None = None,
        within: int | None = None,
    ) -> Reason | None:
        """The violation if the array's buffer has slots `reuse` and scopes have other `mappings`; or None.

        `within` also forbids values to cross iterations of the scopes down to that depth.
        """
        buffer = self.nest.arrays[array].buffer
        return self.storage.violation(uses_of(self.nest, array, reuse, mappings), reuse, within, caller_of(buffer))

    def sharing_violation(self, guest: Buffer, host: Buffer) -> Reason | None:
        """The violation if the arrays of two buffers live in the memory of `host`; None if there is none."""
        uses = uses_together(self.nest, [guest, host], host.reuse)
        return self.storage.violation(uses, host.reuse, None, caller_of(host))

    def merging_violation(self, guest: Array, host: Array) -> Reason | None:
        """The violation if `guest` is stored in the elements of `host`, an array of the same shape; or None."""
        users = {leaf for array in (guest, host) for leaf, _ in accesses_of(self.nest, array.buffer)}
        ordered = sorted(users, key=lambda leaf: leaf.order)
        uses = [use for leaf in ordered for use in self.element_uses[leaf] if use.memory in (guest, host)]
        caller = None if host.intent is None else caller_of(host.buffer)
        return self.storage.violation(uses, (0,) * len(host.shape), None, caller)

    def successor(self, kernel: KernelOp, nest: Nest | None = None, touched: Container[Node] | None = None) -> Program:
        """The program for the kernel after a move that changed the nodes `touched`; keeps `known`."""
        before = None if nest is not None or not is_used("same nodes") else self.nest
        return Program(kernel, self.machine, self.known, nest, before, touched)

    def copy(self) -> Program:
        """A program for a copy of the kernel, which may be changed; keeps `known`."""
        nest = copy_nest(self.nest)
        return self.successor(nest.kernel, nest)

    def retire(self, released_for: Program | None = None) -> None:
        """Invalidate this program after its kernel was rewritten in place: all questions raise RuntimeError.

        The view is released if `released_for`, the successor of this program, is given.
        """
        if released_for is not None:
            self.nest.release(released_for.nest)
        self._kernel = self._nest = self._rehearsed = None
        self.verdicts.clear()


def _own_uses(leaf: Leaf) -> tuple[Use, ...]:
    """The accesses of a statement, with a cell of its own for each index."""
    domain = domain_of(leaf)
    return tuple(Use(leaf, a, leaf.chain, domain, a.index, a.array.buffer) for a in leaf.accesses)


def caller_of(buffer: Buffer) -> Caller | None:
    """The caller's use of a buffer's memory; None if the memory is the kernel's own."""
    if buffer.op is not None:
        return None
    return Caller(buffer.names[0], buffer.extents, buffer.intent is not Intent.OUT)


def _pairs(
    first: Iterable[Leaf],
    second: Iterable[Leaf],
    firsts: MappingABC[Leaf, tuple[Use, ...]],
    seconds: MappingABC[Leaf, tuple[Use, ...]],
    only: Container[Buffer] | None = None,
) -> Iterator[tuple[Use, Use]]:
    """Pairs of accesses to one buffer, at least one writing; `only` restricts the buffers."""
    others: dict[Array | Buffer, list[Use]] = {}
    for leaf in second:
        for use in seconds[leaf]:
            if only is None or use.buffer in only:
                others.setdefault(use.memory, []).append(use)
    for leaf in first:
        for use in firsts[leaf]:
            for other in others.get(use.memory, ()):
                if use.writes or other.writes:
                    yield use, other
