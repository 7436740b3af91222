"""Data flow of one scheduled execution, found by walking the schedule once, symbolically.

Every write makes a new *value* (so reuse of a cell costs nothing); every read takes the value that its cell holds at
that step. The flow has levels: the rows of a level depend on lower levels only, and are computed together.
Accumulations of one function into one cell, with no other access between them, are one value, a fold of their terms,
because they commute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.semantics.oracle.instances import Instances
from pdojo.dialect.semantics.oracle.schedule import EventPart, is_streamed
from pdojo.dialect.view.nest import Leaf

Ints: TypeAlias = NDArray[np.int64]


@dataclass(eq=False)
class Fold:
    """The value of a cell after accumulations: `base`, then `terms` in any order."""

    function: int
    """Position in `Flow.functions`."""
    base: int
    terms: list[int]
    is_read: bool = False


@dataclass(eq=False)
class Flow:
    """The data flow; values are numbered: initial contents of the cells, then one per row, then one per fold."""

    cells: int
    rows: int
    reads: list[Sequence[int]]
    """Per row, the values of its accesses."""
    folds: list[Fold]
    ready: list[int]
    """Per value, the first level that may use it."""
    final: list[int]
    """Per cell, its value at the end."""
    functions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Accumulations: function and type."""
    pending: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Per torn row between load and store: the value loaded, and its number of terms at that time."""


def trace(instances: Instances, steps: Ints) -> Flow:
    """Walk the steps in order."""
    torn, late = (
        set(instances.event_leaf[steps[steps & 3 == p] >> 2].tolist()) for p in (EventPart.STORE, EventPart.DELIVER)
    )
    return _Tracer(instances, torn, late).run(steps.tolist())


def _copies(instances: Instances) -> dict[int, list[int]]:
    """Per row that writes the copies of several threads, the cells of all copies."""
    found: dict[int, list[int]] = {}
    for one in instances.leaves:
        touch = one.touches[0]
        for cells in (touch.cells, *(copy.cells for copy in touch.copies)) if touch.copies else ():
            for row, cell in enumerate(cells.tolist(), one.first_row):
                found.setdefault(row, []).append(cell)
    return found


class _Tracer:
    def __init__(self, instances: Instances, torn: set[int], late: set[int]) -> None:
        cells, rows = instances.memory.size, instances.rows
        self.current = list(range(cells))
        self.flow = Flow(cells, rows, [()] * rows, [], [0] * (cells + rows), self.current)
        self.outputs: list[int] = []
        self.sources: list[Sequence[int]] = []
        for one in instances.leaves:
            self.outputs += one.touches[0].cells.tolist()
            columns = [touch.cells.tolist() for touch in one.touches[1:]]
            self.sources += zip(*columns, strict=True) if columns else [()] * one.rows
        self.copies = _copies(instances)
        """Per row that writes the copies of several threads, the cells of all copies."""
        self.accumulates = [self._function(one.leaf) for one in instances.leaves]
        """Per statement, -1 for a plain write, otherwise the number of its accumulation."""
        self.torn = torn
        """The statements that load and store in separate steps."""
        self.late = late
        """The statements whose writes arrive later."""
        self.streamed = [[is_streamed(a, one.leaf) for a in one.leaf.accesses] for one in instances.leaves]
        """Per statement, which accesses go through streams."""
        self.fetched: dict[int, list[int]] = {}
        """Per row, the values read ahead; -1 for accesses that are not streams."""
        self.event_leaf: list[int] = instances.event_leaf.tolist()
        self.event_rows: list[int] = instances.event_rows.tolist()

    def _function(self, leaf: Leaf) -> int:
        if leaf.accumulate is None:
            return -1
        function = (leaf.accumulate, leaf.output.array.dtype)
        if function not in self.flow.functions:
            self.flow.functions.append(function)
        return self.flow.functions.index(function)

    def run(self, steps: list[int]) -> Flow:
        torn, late = self.torn, self.late
        event_leaf, event_rows = self.event_leaf, self.event_rows
        steps.append(-1)
        last = -1
        for step, following in pairwise(steps):
            event, part = step >> 2, step & 3
            leaf = event_leaf[event]
            rows = range(event_rows[event], event_rows[event + 1])
            accumulates = self.accumulates[leaf]
            if part == EventPart.RUN:
                self._read(rows)
                if leaf in late:
                    if accumulates >= 0 and rows[0] not in self.flow.pending:
                        self._load(rows)
                elif accumulates >= 0 and leaf in torn and following != step + EventPart.STORE:
                    self._load(rows)
                else:
                    self._change(rows, accumulates)
            elif part == EventPart.FETCH:
                self._fetch(rows, leaf)
            elif part == EventPart.DELIVER or last != step - EventPart.STORE:
                self._change(rows, accumulates)
            last = step
        return self.flow

    def _change(self, rows: range, accumulates: int) -> None:
        """Write the values that rows compute or accumulate."""
        if accumulates < 0:
            self._write(rows)
        elif rows and rows[0] in self.flow.pending:
            self._store(rows, accumulates)
        else:
            # No event comes between load and store.
            self._accumulate(rows, accumulates)

    def _fetch(self, rows: range, leaf: int) -> None:
        """Read ahead the values that come through streams."""
        first_fold = self.flow.cells + self.flow.rows
        for row in rows:
            cells = zip(self.sources[row], self.streamed[leaf][1:], strict=True)
            values = [self.current[cell] if streamed else -1 for cell, streamed in cells]
            for value in values:
                if value >= first_fold:
                    self.flow.folds[value - first_fold].is_read = True
            self.fetched[row] = values
        if self.accumulates[leaf] >= 0 and self.streamed[leaf][0]:
            self._load(rows)

    def _read(self, rows: range) -> None:
        flow = self.flow
        current, ready, sources, reads, folds = self.current, flow.ready, self.sources, flow.reads, flow.folds
        first_fold = flow.cells + flow.rows
        for row in rows:
            values = [current[cell] for cell in sources[row]]
            if row in self.fetched:
                values = [a if a >= 0 else b for a, b in zip(self.fetched.pop(row), values, strict=True)]
            level = 0
            for value in values:
                if value >= first_fold:
                    folds[value - first_fold].is_read = True
                if ready[value] > level:
                    level = ready[value]
            reads[row] = values
            ready[flow.cells + row] = level + 1

    def _write(self, rows: range) -> None:
        """Write the values of lanes; if several lanes write one cell, the first wins (in order, the last would)."""
        for row in reversed(rows):
            for cell in self.copies.get(row, ()) or (self.outputs[row],):
                self.current[cell] = self.flow.cells + row

    def _accumulate(self, rows: Sequence[int], function: int) -> None:
        flow = self.flow
        first_fold = flow.cells + flow.rows
        for row in rows:
            for cell in self.copies.get(row, ()) or (self.outputs[row],):
                value = self.current[cell]
                fold = flow.folds[value - first_fold] if value >= first_fold else None
                if fold is None or fold.is_read or fold.function != function:
                    value = self._new_fold(function, value)
                    self.current[cell] = value
                self._add_term(value, flow.cells + row)

    def _new_fold(self, function: int, base: int) -> int:
        flow = self.flow
        first_fold = flow.cells + flow.rows
        if base >= first_fold:
            flow.folds[base - first_fold].is_read = True
        flow.folds.append(Fold(function, base, []))
        flow.ready.append(flow.ready[base] + 1)
        return len(flow.ready) - 1

    def _add_term(self, value: int, term: int) -> None:
        flow = self.flow
        flow.folds[value - flow.cells - flow.rows].terms.append(term)
        flow.ready[value] = max(flow.ready[value], flow.ready[term] + 1)

    def _load(self, rows: Sequence[int]) -> None:
        flow = self.flow
        first_fold = flow.cells + flow.rows
        for row in rows:
            value = self.current[self.outputs[row]]
            terms = len(flow.folds[value - first_fold].terms) if value >= first_fold else 0
            flow.pending[row] = (value, terms)

    def _store(self, rows: Sequence[int], function: int) -> None:
        """Write the loaded value plus its term; an update between load and store is lost."""
        flow = self.flow
        first_fold = flow.cells + flow.rows
        lanes: dict[int, int] = {}
        for row in rows:
            cell = self.outputs[row]
            loaded, terms = flow.pending.pop(row)
            if cell in lanes:
                # Lanes of one vector that share a cell are one reduction.
                self._add_term(lanes[cell], flow.cells + row)
                continue
            now = self.current[cell]
            unchanged = now == loaded and (now < first_fold or len(flow.folds[now - first_fold].terms) == terms)
            if unchanged:
                self._accumulate((row,), function)
            else:
                self.current[cell] = self._new_fold(function, self._as_loaded(loaded, terms))
                self._add_term(self.current[cell], flow.cells + row)
            lanes[cell] = self.current[cell]

    def _as_loaded(self, value: int, terms: int) -> int:
        """The value with its first `terms` terms, as an earlier load found it."""
        flow = self.flow
        first_fold = flow.cells + flow.rows
        if value < first_fold or len(flow.folds[value - first_fold].terms) == terms:
            return value
        fold = flow.folds[value - first_fold]
        earlier = self._new_fold(fold.function, fold.base)
        for term in fold.terms[:terms]:
            self._add_term(earlier, term)
        return earlier
