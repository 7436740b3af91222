"""Calls of the entries of a shared library, compared with the reference interpreter, in a process that may crash.

`python -m pdojo.library.running FOLDER LIBRARY LEVELS FIRST` runs the cases of LEVELS from number FIRST on. It writes a
line of JSON before each case and for each fault, which `pdojo.library.supervising` reads.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from secrets import randbits
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter
from pdojo.backends.measure.arrays import poison
from pdojo.backends.measure.guarded import GuardedArray, GuardPlacement
from pdojo.dialect.attributes import Intent
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.library.client.runtime import Library
from pdojo.library.expected import Arrays, Content, Expected
from pdojo.library.manifest import Entry, Manifest
from pdojo.library.plain import plain_kernel
from pdojo.library.schema import read_manifest

CALLERS, CALLS = 4, 3
"""Concurrent callers, each with its own handle, and the calls of each."""
PLACEMENTS = (
    GuardPlacement("before", 64),
    GuardPlacement("behind", 64),
    GuardPlacement("before", 1, odd=True),
    GuardPlacement("behind", 1, odd=True),
)
CONTENTS: tuple[Content, ...] = ("random", "special")


@dataclass(frozen=True)
class Case:
    """A call of an entry, or several at once."""

    entry: Entry
    level: str
    content: Content
    placement: GuardPlacement
    threads: int
    callers: int = 1
    rest: Entry | None = None
    """The one-row entry; then the call has rows for two chunks and some more. None: the call has the entry's sizes."""

    def __str__(self) -> str:
        contents = "random inputs" if self.content == "random" else "inputs with NaN and infinities"
        at_once = f", {self.callers} callers at once" if self.callers > 1 else ""
        rows = "" if self.rest is None else ", two chunks and single rows"
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"level {self.level}, {contents}, {self.placement}, {threads}{at_once}{rows}"


def cases_of(manifest: Manifest, levels: Sequence[str]) -> list[Case]:
    """All cases of a library at some of its levels, entry by entry."""
    found: list[Case] = []
    for entry in manifest.entries:
        found += [Case(entry, *each) for each in product(levels, CONTENTS, PLACEMENTS, (1, 2))]
        found += [Case(entry, level, "random", PLACEMENTS[3], 2, CALLERS) for level in levels]
        if entry.dispatch == "chunk":
            row = next(e for e in manifest.entries if e.dispatch == "row" and _is_row_of(e, entry))
            found += [Case(entry, *each, PLACEMENTS[3], 2, rest=row) for each in product(levels, CONTENTS)]
    return found


def _is_row_of(row: Entry, chunk: Entry) -> bool:
    return row.operator == chunk.operator and all(
        one.shape[1:] == other.shape[1:] for one, other in zip(row.arrays, chunk.arrays, strict=True)
    )


@dataclass(frozen=True)
class Piece:
    """Rows of a call that a plain kernel computes."""

    expected: Expected
    start: int
    stop: int


class Runner:
    """Runs cases; keeps the expected results of the latest entries."""

    def __init__(self, folder: Path, library: Library) -> None:
        self._folder = folder
        self._library = library
        self._expected: dict[str, Expected] = {}
        self._rows: dict[Expected, Expected] = {}

    def run(self, case: Case) -> str | None:
        """A message about the first fault of a case; None if all results are right."""
        own = self._expected_of(case.entry)
        if case.content not in own.contents:
            return None
        if case.callers == 1:
            return self._calls(case, self._pieces(case, own), 1, lambda: None)
        # Two sets of inputs: callers that shared memory would mix their results.
        other = Expected(own.plain, randbits(32))
        for each in (own, other):
            each.of(case.content)
        faults: list[str] = []
        together = threading.Barrier(case.callers)

        def call(expected: Expected) -> None:
            try:
                fault = self._calls(case, self._pieces(case, expected), CALLS, together.wait)
            except threading.BrokenBarrierError:
                return
            except Exception as error:  # noqa: BLE001  # the fault of another thread is reported by this one
                fault = f"{type(error).__name__}: {error}"
            if fault is not None:
                faults.append(fault)
                together.abort()

        callers = [threading.Thread(target=call, args=((own, other)[k % 2],)) for k in range(case.callers)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        return next(iter(faults), None)

    def _expected_of(self, entry: Entry) -> Expected:
        if entry.name not in self._expected:
            while len(self._expected) > 1:
                del self._expected[next(iter(self._expected))]
            self._expected[entry.name] = Expected(plain_kernel(self._folder, entry), randbits(32))
        return self._expected[entry.name]

    def _row_of(self, row: Entry, chunk: Expected) -> Expected:
        """The one-row kernel with the chunk's inputs that have no rows."""
        if chunk not in self._rows:
            self._rows = {chunk: Expected(plain_kernel(self._folder, row), randbits(32), chunk)}
        return self._rows[chunk]

    def _pieces(self, case: Case, own: Expected) -> list[Piece]:
        """The rows of a call, each with the plain kernel that computes them."""
        if case.rest is None:
            return [Piece(own, 0, 0)]
        both = zip(case.entry.sizes.values(), case.rest.sizes.values(), strict=True)
        rows = next(chunk for chunk, row in both if chunk != row)
        row = self._row_of(case.rest, own)
        singles = [Piece(row, 2 * rows + k, 2 * rows + k + 1) for k in range(min(3, rows - 1))]
        return [Piece(own, 0, rows), Piece(own, rows, 2 * rows), *singles]

    def _calls(self, case: Case, pieces: Sequence[Piece], calls: int, ready: Callable[[], object]) -> str | None:
        """Call with a handle of its own; returns a message about a fault. `ready` is called before each call."""
        parameters = pieces[0].expected.parameters
        sizes = self._sizes(case, pieces)
        kinds = [ctypes.c_void_p, *[ctypes.c_int64] * len(sizes), *[ctypes.c_void_p] * len(parameters)]
        function = self._library.function(case.entry.operator, ctypes.c_int, *kinds)
        handle = self._library.new_handle(case.threads, case.level)
        for _ in range(calls):
            arrays = [self._array(p, pieces, case) for p in parameters]
            ready()
            code = function(handle.pointer, *sizes, *(each.array.ctypes.data for each in arrays))
            if code:
                return f"the call was refused with code {code}: {self._library.message(code)}"
            for parameter, each in zip(parameters, arrays, strict=True):
                damage = each.damage(parameter.name)
                if damage is not None:
                    return damage
            results = {p.name: each.array for p, each in zip(parameters, arrays, strict=True) if p.written}
            wrong = _difference(results, pieces, case.content)
            if wrong is not None:
                return f"wrong result: {wrong}"
        return None

    def _sizes(self, case: Case, pieces: Sequence[Piece]) -> list[int]:
        """The size arguments; a size that differs between chunk and row is the number of rows."""
        if case.rest is None:
            return list(case.entry.sizes.values())
        both = zip(case.entry.sizes.values(), case.rest.sizes.values(), strict=True)
        return [chunk if chunk == row else pieces[-1].stop for chunk, row in both]

    def _array(self, parameter: Parameter, pieces: Sequence[Piece], case: Case) -> GuardedArray:
        """An array of a call: inputs are filled and read-only, outputs are poisoned."""
        one = next(p for p in pieces[-1].expected.parameters if p.name == parameter.name)
        has_rows = one.shape != parameter.shape
        shape = (pieces[-1].stop, *parameter.shape[1:]) if has_rows else parameter.shape
        found = GuardedArray(shape, INTERFACE[parameter.dtype], case.placement)
        if parameter.intent is Intent.OUT:
            poison(found.array, parameter.dtype)
            return found
        for piece in pieces:
            part = _rows(found.array, piece) if has_rows else found.array
            part[...] = piece.expected.of(case.content)[0][parameter.name]
        if parameter.intent is Intent.IN:
            found.close_writing()
        return found


def _rows(array: NDArray[Any], piece: Piece) -> NDArray[Any]:
    return array[piece.start : piece.stop] if piece.stop else array


def _difference(results: Arrays, pieces: Sequence[Piece], content: Content) -> str | None:
    for piece in pieces:
        wrong = piece.expected.difference({name: _rows(a, piece) for name, a in results.items()}, content)
        if wrong is not None:
            return wrong if not piece.stop else f"in rows {piece.start} to {piece.stop - 1}: {wrong}"
    return None


def _say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """Run the cases from a number on."""
    folder, library, levels, first = Path(arguments[0]), arguments[1], arguments[2].split(","), int(arguments[3])
    manifest = read_manifest(folder)
    runner = Runner(folder, Library(library, manifest.prefix))
    with np.errstate(all="ignore"):
        for number, case in list(enumerate(cases_of(manifest, levels)))[first:]:
            _say(case=number)
            fault = runner.run(case)
            if fault is not None:
                _say(fault=fault)
    _say(end=True)


if __name__ == "__main__":
    main(sys.argv[1:])
