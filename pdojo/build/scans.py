"""Recurrences: steps in order, each of which takes the results of the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat

from pdojo.build.arguments import fits
from pdojo.build.array import Array
from pdojo.build.extents import shown
from pdojo.build.graph import Computed, Definition, Loop, Operand, Read, Write, identity, reads
from pdojo.build.plan import needed
from pdojo.build.shapes import expand_dims
from pdojo.dialect.affine import const, var
from pdojo.errors import UsageError


def scan(
    step: Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]],
    initial: Sequence[Array],
    sequences: Sequence[Array],
) -> list[Array]:
    """The results of steps in order, one array for each: `[steps, *shape]`.

    `step(states, elements)` gets the states before the step, and its elements of `sequences`, along their first axis.
    It returns the states after the step, of the shapes and types of `initial`, and may return further results. All
    statements of a step are in one scope; what depends on neither states nor elements is computed before.

    >>> from pdojo import build
    >>> x, r = build.input("x", "f32", (5, 8)), build.input("r", "f32", (8, 8))
    >>> build.scan(lambda h, e: [build.tanh(build.matmul(h[0], r) + e[0])], [build.constant(0, "f32", (8,))], [x])
    [<Array f32 [5, 8]>]
    """
    counts = {sequence.shape[:1] for sequence in sequences}
    if len(counts) != 1 or () in counts:
        raise UsageError(f"sequences {', '.join([shown(s.shape) for s in sequences])} have no common number of steps")
    (count,) = counts.pop()
    if count == 1:
        results = step(initial, [sequence[0] for sequence in sequences])
        _check(initial, results)
        return [expand_dims(result, 0) for result in results]
    before = [Definition(state.storage, state.shape) for state in initial]
    elements = [Definition(sequence.storage, sequence.shape[1:]) for sequence in sequences]
    results = step(
        [_whole(state.dtype, each) for state, each in zip(initial, before, strict=True)],
        [_whole(sequence.dtype, each) for sequence, each in zip(sequences, elements, strict=True)],
    )
    _check(initial, results)
    lifted = _Lifted(count, dict(zip(elements, sequences, strict=True)))
    for state, each in zip(initial, before, strict=True):
        lifted.states[each] = Definition(state.storage, (count + 1, *state.shape))
    lifted.add_definitions(results)
    return [
        lifted.result(array, start)
        for array, start in zip(
            results, [*zip(before, initial, strict=True), *repeat(None, len(results))], strict=False
        )
    ]


def _whole(dtype: str, definition: Definition) -> Array:
    return Array(dtype, definition.shape, Read(definition, identity(definition.shape)))


def _check(initial: Sequence[Array], results: Sequence[Array]) -> None:
    if not fits(results, Sequence[Array]):
        raise UsageError(f"a step returns a list of handles, not {results!r:.80}")
    if len(results) < len(initial):
        raise UsageError(f"a step returns {len(results)} arrays for {len(initial)} states")
    for old, new in zip(initial, results, strict=False):
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            raise UsageError(f"a step turns a state {old!r} into {new!r}")


class _Lifted:
    """The definitions of one step, with an axis of steps."""

    def __init__(self, count: int, sequences: dict[Definition, Array]) -> None:
        self.count = count
        self.sequences = sequences
        self.states: dict[Definition, Definition] = {}
        self.inner: dict[Definition, Definition] = {}
        self.loop = Loop()

    def add_definitions(self, results: Sequence[Array]) -> None:
        """Lift all definitions that depend on the states or on elements."""
        roots = [read.definition for array in results for read in reads(array.operand)]
        for each in needed(roots):
            if any(self._depends(read.definition) for write in each.writes for read in write.reads()):
                writes = tuple(self._write(write) for write in each.writes)
                self.inner[each] = Definition(each.dtype, (self.count, *each.shape), writes)

    def _depends(self, definition: Definition) -> bool:
        return definition in self.states or definition in self.sequences or definition in self.inner

    def _write(self, write: Write) -> Write:
        if write.loop is not None:
            raise UsageError("a step of a scan has no scan of its own")
        extents = (self.count, *write.extents)
        rank = 0 if write.reduction is None else write.reduction.rank
        moved = write.reindexed(extents, [var(d + 1) for d in range(len(write.extents))], rank)
        target = (var(0), *moved.target)
        return replace(moved, target=target, value=self._operand(moved.value, extents), loop=self.loop)

    def _operand(self, operand: Operand, extents: Sequence[int]) -> Operand:
        """An operand over the iterations of a step and its own."""
        match operand:
            case Computed(function, operands, dtype):
                return Computed(function, tuple(self._operand(each, extents) for each in operands), dtype)
            case Read(definition, index):
                place = (var(0), *index)
                if definition in self.sequences:
                    sequence = self.sequences[definition]
                    return Write(sequence.shape, (), sequence.operand).reindexed(tuple(extents), place, 0).value
                known = self.states.get(definition) or self.inner.get(definition)
                return operand if known is None else Read(known, place)
            case _:
                return operand

    def result(self, array: Array, start: tuple[Definition, Array] | None) -> Array:
        """The results of all steps; `start` is the state that they continue, and its first value."""
        shape = (self.count, *array.shape)
        nest = self._write(Write(array.shape, identity(array.shape), array.operand))
        if start is None:
            return _whole(array.dtype, Definition(array.storage, shape, (nest,)))
        before, initial = start
        state = self.states[before]
        if any(read.definition is state for read in reads(nest.value)):
            # No statement depends on another iteration of itself.
            own = Definition(array.storage, shape, (nest,))
            nest = replace(nest, value=Read(own, identity(shape)))
        first = Write(initial.shape, (const(0), *identity(initial.shape)), initial.operand)
        state.writes = (first, replace(nest, target=(var(0) + 1, *nest.target[1:])))
        state.renew()
        return Array(array.dtype, shape, Read(state, (var(0) + 1, *identity(shape)[1:])))
