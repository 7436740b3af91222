"""The reference interpreter for small programs: one statement instance at a time, in the order of a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from pdojo.dialect.semantics.accumulate import Accumulator, Terms
from pdojo.dialect.semantics.functions import apply, constant, index_values, poison
from pdojo.dialect.semantics.oracle.instances import Instances, LeafInstances, enumerate_instances
from pdojo.dialect.semantics.oracle.schedule import EventPart, is_streamed, schedule
from pdojo.dialect.semantics.rounding import CARRIERS, Values
from pdojo.dialect.view.nest import Access, Constant, Leaf, Nest


def run_stepwise(
    nest: Nest, inputs: Mapping[str, Values], seed: int | None, storage: Literal["elements", "cells"]
) -> dict[str, Values]:
    """Interface arrays after the run, in their carriers; `inputs` are carried as well.

    A seed chooses one of the permitted schedules; None runs every scope in order.
    """
    instances = enumerate_instances(nest, storage, lockstep=seed is not None)
    return _Stepper(instances, inputs).run(schedule(instances, seed).tolist())


class _Stepper:
    def __init__(self, instances: Instances, inputs: Mapping[str, Values]) -> None:
        self.instances = instances
        # Each cell is an array of one element, because every function is defined on arrays.
        self.cells: list[Values] = [np.zeros(1)] * instances.memory.size
        for one in instances.leaves:
            for access, touch in zip(one.leaf.accesses, one.touches, strict=True):
                unwritten = poison((1,), access.array.dtype)
                for part in (touch, *touch.copies):
                    for cell in part.cells.tolist():
                        self.cells[cell] = unwritten
        for name, run in instances.memory.interface.items():
            array = instances.nest.arrays[name]
            contents = inputs.get(name, poison(array.shape, array.dtype))
            self.cells[run] = list(contents.reshape(-1, 1))
        self.loaded: dict[int, tuple[Values, Terms]] = {}
        """Old value and terms of the instances between their load and their store, keyed by row."""
        self.fetched: dict[tuple[int, int], Values] = {}
        """The values that a statement reads ahead, keyed by row and access."""

    def run(self, steps: list[int]) -> dict[str, Values]:
        # The last step of an event is the one that writes.
        writing = {step >> 2: step for step in steps}
        leaf_of: list[int] = self.instances.event_leaf.tolist()
        rows_of: list[int] = self.instances.event_rows.tolist()
        for step in steps:
            event, part = step >> 2, step & 3
            one = self.instances.leaves[leaf_of[event]]
            rows = range(rows_of[event] - one.first_row, rows_of[event + 1] - one.first_row)
            if part == EventPart.FETCH:
                self._fetch(one, rows)
            if part == EventPart.RUN:
                for row in rows:
                    number = one.first_row + row
                    old = self.fetched.pop((number, 0), self.cells[int(one.touches[0].cells[row])])
                    self.loaded[number] = (old, self._terms(one, row))
            if step == writing[event]:
                self._store(one, rows)
        return {name: self._contents(name, run) for name, run in self.instances.memory.interface.items()}

    def _fetch(self, one: LeafInstances, rows: range) -> None:
        """Read ahead the values that come through streams."""
        for number, (access, touch) in enumerate(zip(one.leaf.accesses, one.touches, strict=True)):
            for row in rows if is_streamed(access, one.leaf) else ():
                self.fetched[one.first_row + row, number] = self.cells[int(touch.cells[row])]

    def _terms(self, one: LeafInstances, row: int) -> Terms:
        operands: list[Values] = []
        reads = enumerate(one.touches[1:], 1)
        for value, index in zip(one.leaf.inputs, one.indices, strict=True):
            if isinstance(value, Access):
                number, touch = next(reads)
                ahead = self.fetched.pop((one.first_row + row, number), None)
                operands.append(self.cells[int(touch.cells[row])] if ahead is None else ahead)
            elif isinstance(value, Constant):
                operands.append(constant(value.value, value.dtype).reshape(1))
            else:
                assert index is not None
                operands.append(index_values(index[row : row + 1], value.dtype))
        dtypes = [i.array.dtype if isinstance(i, Access) else i.dtype for i in one.leaf.inputs]
        accumulator = _accumulator(one.leaf)
        if accumulator is not None:
            return accumulator.terms(one.leaf.function, operands, dtypes)
        return (apply(one.leaf.function, operands, dtypes, one.leaf.output.array.dtype),)

    def _store(self, one: LeafInstances, rows: range) -> None:
        written: set[int] = set()
        accumulator = _accumulator(one.leaf)
        for row in rows:
            cell = int(one.touches[0].cells[row])
            old, terms = self.loaded.pop(one.first_row + row)
            # Lanes of one vector that share a cell are one reduction.
            old = self.cells[cell] if cell in written else old
            self.cells[cell] = terms[0] if accumulator is None else accumulator.combine(old, terms)
            for copy in one.touches[0].copies:
                other = int(copy.cells[row])
                new = terms[0] if accumulator is None else accumulator.combine(self.cells[other], terms)
                self.cells[other] = new
            written.add(cell)

    def _contents(self, name: str, run: slice) -> Values:
        array = self.instances.nest.arrays[name]
        return np.array(self.cells[run], CARRIERS[array.dtype]).reshape(array.shape)


def _accumulator(leaf: Leaf) -> Accumulator | None:
    return None if leaf.accumulate is None else Accumulator(leaf.accumulate, leaf.output.array.dtype, leaf.contracted)
