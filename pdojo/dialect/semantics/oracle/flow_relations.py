"""The flow relation: each read is related to the writes that make up its value.

The value of a place is its last plain write and all accumulations since. The flow also relates accumulations of
different functions to each other, in order; accumulations of one function commute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.affine import Expr
from pdojo.dialect.semantics.oracle.relations import Event, Kind, MemoryEvents, Place, depth_of, union_map

if TYPE_CHECKING:
    import islpy as isl

    from pdojo.dialect.view.nest import Array

Timing: TypeAlias = Callable[[Event, int], list[Expr | int]]

_THE_END = 1 << 30
"""The time at which the caller reads the outputs."""


class Flow:
    """The flow of values through one memory, whose events happen at `timing` and touch `place`.

    Computed by the algebra of relations: isl's dataflow analysis loses flows from domains with divisions, and its
    lexicographic maximum fails for some of these.
    """

    def __init__(self, memory: MemoryEvents, place: Callable[[Event], Place], timing: Timing, *, cells: bool) -> None:
        self.memory = memory
        self.cells = cells
        depth = depth_of(memory)

        def touching(kind: Kind) -> list[str]:
            return [e.relation(place(e)) for e in memory.of(kind)]

        times = [e.relation(timing(e, depth)) for e in memory.events]
        length = len(timing(memory.events[0], depth))
        final = [self._final(k, array) for k, array in enumerate(memory.arrays) if array in memory.outputs]
        self.reads = union_map(
            [*touching(Kind.READ), *(f"{piece} -> [{target}] : {box}" for piece, target, box in final)]
        )
        self.writes = union_map(touching(Kind.WRITE))
        self.folds = union_map(touching(Kind.FOLD))
        end = ", ".join([str(_THE_END)] + ["0"] * (length - 1))
        self.time = union_map([*times, *(f"{piece} -> [{end}] : {box}" for piece, _, box in final)])

    def _final(self, number: int, array: Array) -> tuple[str, str, str]:
        """Instance, place and domain of a read at the end: the caller reads every element of an array."""
        names = [f"d{k}" for k in range(len(array.shape))]
        copies = self.memory.copy_depth
        outside = [] if copies < 0 else ["0" if self.cells else "-1", *["-1"] * copies]
        target = ", ".join(["0" if self.cells else str(number), *names, *outside])
        box = " and ".join(f"0 <= {name} < {n}" for name, n in zip(names, array.shape, strict=True)) or "true"
        return f"F{number}[{', '.join(names)}]", target, box

    @cached_property
    def values(self) -> isl.UnionMap:
        """Pairs (write or accumulation, read) such that the write is part of the read's value."""
        last = self._last_write(self.reads)
        if not self.memory.of(Kind.FOLD):
            return last.reverse()
        return last.union(self._folds_since(self.reads, last)).reverse()

    @cached_property
    def order(self) -> isl.UnionMap:
        """Pairs of accumulations of different functions, the earlier one first, with no plain write in between."""
        functions = sorted({e.leaf.accumulate or "" for e in self.memory.of(Kind.FOLD)})
        if len(functions) < 2:
            return union_map([])
        since = self._folds_since(self.folds, self._last_write(self.folds))
        same = (
            f"{x.instance()} -> {y.name}[{', '.join(f'o{d}' for d in range(y.leaf.depth))}]"
            for x in self.memory.of(Kind.FOLD)
            for y in self.memory.of(Kind.FOLD)
            if x.leaf.accumulate == y.leaf.accumulate
        )
        return since.subtract(union_map(same)).reverse()

    def _last_write(self, reads: isl.UnionMap) -> isl.UnionMap:
        """From each read to the last plain write of its place before it."""
        earlier = self._earlier(reads, self.writes)
        if self._written_once:
            return earlier
        followed = earlier.apply_range(self._earlier(self.writes, self.writes))
        return earlier.subtract(followed)

    @cached_property
    def _written_once(self) -> bool:
        """Whether no two plain writes touch one place, so that any write before a read is the last one."""
        return self.writes.is_injective()

    def _folds_since(self, reads: isl.UnionMap, last: isl.UnionMap) -> isl.UnionMap:
        """From each read to the accumulations into its place after the last plain write and before the read."""
        overwritten = last.apply_range(self._earlier(self.writes, self.folds))
        return self._earlier(reads, self.folds).subtract(overwritten)

    def _earlier(self, late: isl.UnionMap, early: isl.UnionMap) -> isl.UnionMap:
        """From each event of `late` to the events of `early` on the same place before it."""
        meeting = late.apply_range(early.reverse())
        return meeting.intersect(self._when(late).lex_gt_union_map(self._when(early)))

    def _when(self, events: isl.UnionMap) -> isl.UnionMap:
        return self.time.intersect_domain(events.domain())


def describe_pair(relation: isl.UnionMap, memory: MemoryEvents) -> str:
    """One pair of the relation in words."""
    import islpy as isl

    pair = relation.sample()
    spaces = [pair.get_tuple_name(kind) for kind in (isl.dim_type.in_, isl.dim_type.out)]
    point = pair.wrap().sample_point()
    total = sum(pair.dim(kind) for kind in (isl.dim_type.in_, isl.dim_type.out))
    numbers = iter([point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(total)])
    parts = [_describe(space, numbers, memory) for space in spaces]
    return " and ".join(parts)


def _describe(space: str, numbers: Iterator[int], memory: MemoryEvents) -> str:
    from pdojo.dialect.view.messages import describe_access

    if space.startswith("F"):
        array = memory.arrays[int(space[1:])]
        index = [str(next(numbers)) for _ in array.shape]
        return f"the final {array.name}[{', '.join(index)}]"
    event = next(e for e in memory.events if e.name == space)
    iteration = [next(numbers) for _ in range(event.leaf.depth)]
    return f"{event.kind.value} of {describe_access(event.access)} at iteration ({', '.join(map(str, iteration))})"
