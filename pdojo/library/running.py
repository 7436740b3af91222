"""Calls of the entries of a shared library, compared with the reference interpreter, in a process that may crash.

`python -m pdojo.library.running FOLDER LIBRARY LEVELS FIRST` runs the cases of LEVELS from number FIRST on. It writes a
line of JSON before each case and for each fault, which `pdojo.library.supervising` reads.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from secrets import randbits

import numpy as np

from pdojo.backends.calling.arrays import Parameter, array_bytes
from pdojo.backends.measure.arrays import poison
from pdojo.backends.measure.guarded import GuardedArray, GuardPlacement
from pdojo.dialect.affine import Size
from pdojo.dialect.attributes import Intent
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.sizes import probes, spelled
from pdojo.dialect.view.build import nest_of
from pdojo.library.client.runtime import Library
from pdojo.library.entries import halved
from pdojo.library.expected import Content, Expected
from pdojo.library.manifest import Manifest, is_open
from pdojo.library.model_running import ModelCase, ModelRunner, model_cases
from pdojo.library.plain import plain_kernel
from pdojo.library.records import Entry
from pdojo.library.schema import read_manifest

CALLERS, CALLS = 4, 3
"""Concurrent callers, each with its own handle, and the calls of each."""
PLACEMENTS = (
    GuardPlacement("before", 64),
    GuardPlacement("behind", 64),
    GuardPlacement("before", 1, odd=True),
    GuardPlacement("behind", 1, odd=True),
)
BETWEEN = 2
"""Random sizes of an entry whose sizes calls choose."""
MOST_BYTES, MOST_INSTANCES = 1 << 26, 1 << 19
"""Most bytes of arrays and statement instances of its calls: enough for threads, and a part of a second."""
CONTENTS: tuple[Content, ...] = ("random", "special")


@dataclass(frozen=True)
class Case:
    """A call of an entry, or several at once."""

    entry: Entry
    sizes: Mapping[str, int]
    """The values of all size arguments."""
    level: str
    content: Content
    placement: GuardPlacement
    threads: int
    callers: int = 1

    @property
    def name(self) -> str:
        """The entry's name."""
        return self.entry.name

    def __str__(self) -> str:
        contents = "random inputs" if self.content == "random" else "inputs with NaN and infinities"
        at_once = f", {self.callers} callers at once" if self.callers > 1 else ""
        sizes = f"{spelled(self.sizes)}, " if is_open(self.entry.sizes) else ""
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"{sizes}level {self.level}, {contents}, {self.placement}, {threads}{at_once}"


def cases_of(folder: Path, manifest: Manifest, levels: Sequence[str]) -> list[Case | ModelCase]:
    """All cases of the library in a folder at some of its levels, entry by entry, then models."""
    found: list[Case | ModelCase] = []
    for entry in manifest.entries:
        for sizes in called_sizes(entry, plain_kernel(folder, entry)):
            found += [Case(entry, sizes, *each) for each in product(levels, CONTENTS, PLACEMENTS, (1, 2))]
            found += [Case(entry, sizes, level, "random", PLACEMENTS[3], 2, CALLERS) for level in levels]
    return [*found, *model_cases(manifest, levels)]


def called_sizes(entry: Entry, plain: KernelOp) -> list[dict[str, int]]:
    """The sizes of an entry's calls, equal for equal entries: ends of its ranges, and sizes between them.

    The greatest ones are less than those of the ranges where a call would take long.
    """

    def is_small(values: Mapping[str, int]) -> bool:
        kernel = bound(plain, values)
        return array_bytes(nest_of(kernel), {}) <= MOST_BYTES and count_instances(nest_of(kernel)) <= MOST_INSTANCES

    ranges = halved(plain, is_small)
    random = Random(entry.name)
    sizes = [Size(name, each[0], each[-1], each.step) for name, each in ranges.items()]
    calls = [*probes(sizes), *({name: random.choice(each) for name, each in ranges.items()} for _ in range(BETWEEN))]
    constant = {name: size for name, size in entry.sizes.items() if isinstance(size, int)}
    found = [{name: {**constant, **call}[name] for name in entry.sizes} for call in calls]
    return [values for k, values in enumerate(found) if values not in found[:k]]


class Runner:
    """Runs cases; keeps the expected results of the latest ones."""

    def __init__(self, folder: Path, library: Library) -> None:
        self._folder = folder
        self._library = library
        self._latest: tuple[object, Expected] | None = None

    def run(self, case: Case) -> str | None:
        """A message about the first fault of a case; None if all results are right."""
        own = self._expected_of(case)
        if case.content not in own.contents:
            return None
        if case.callers == 1:
            return self._calls(case, own, 1, lambda: None)
        # Two sets of inputs: callers that shared memory would mix their results.
        other = Expected(own.plain, randbits(32))
        for each in (own, other):
            each.of(case.content)
        faults: list[str] = []
        together = threading.Barrier(case.callers)

        def call(expected: Expected) -> None:
            try:
                fault = self._calls(case, expected, CALLS, together.wait)
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

    def _expected_of(self, case: Case) -> Expected:
        """The plain kernel for the sizes of a case."""
        key = case.entry.name, tuple(case.sizes.values())
        if self._latest is None or self._latest[0] != key:
            plain = plain_kernel(self._folder, case.entry)
            values = {name: case.sizes[name] for name in plain.known_sizes()}
            self._latest = key, Expected(bound(plain, values), randbits(32))
        return self._latest[1]

    def _calls(self, case: Case, expected: Expected, calls: int, ready: Callable[[], object]) -> str | None:
        """Call with a handle of its own; returns a message about a fault. `ready` is called before each call."""
        parameters, sizes = expected.parameters, [*case.sizes.values()]
        kinds = [ctypes.c_void_p, *[ctypes.c_int64] * len(sizes), *[ctypes.c_void_p] * len(parameters)]
        function = self._library.function(case.entry.operator, ctypes.c_int, *kinds)
        handle = self._library.new_handle(case.threads, case.level)
        for _ in range(calls):
            arrays = [_array(p, expected, case) for p in parameters]
            ready()
            code = function(handle.pointer, *sizes, *(each.array.ctypes.data for each in arrays))
            if code:
                return f"the call was refused with code {code}: {self._library.message(code)}"
            for parameter, each in zip(parameters, arrays, strict=True):
                damage = each.damage(parameter.name)
                if damage is not None:
                    return damage
            results = {p.name: each.array for p, each in zip(parameters, arrays, strict=True) if p.written}
            wrong = expected.difference(results, case.content)
            if wrong is not None:
                return f"wrong result: {wrong}"
        return None


def _array(parameter: Parameter, expected: Expected, case: Case) -> GuardedArray:
    """An array of a call: inputs are filled and read-only, outputs are poisoned."""
    found = GuardedArray(parameter.shape, INTERFACE[parameter.dtype], case.placement)
    if parameter.intent is Intent.OUT:
        poison(found.array, parameter.dtype)
        return found
    found.array[...] = expected.of(case.content)[0][parameter.name]
    if parameter.intent is Intent.IN:
        found.close_writing()
    return found


def _say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """Run the cases from a number on."""
    folder, library, levels, first = Path(arguments[0]), arguments[1], arguments[2].split(","), int(arguments[3])
    manifest = read_manifest(folder)
    loaded = Library(library, manifest.prefix)
    runner, models = Runner(folder, loaded), ModelRunner(folder, loaded)
    with np.errstate(all="ignore"):
        for number, case in list(enumerate(cases_of(folder, manifest, levels)))[first:]:
            _say(case=number)
            fault = models.run(case, randbits(32)) if isinstance(case, ModelCase) else runner.run(case)
            if fault is not None:
                _say(fault=fault)
    _say(end=True)


if __name__ == "__main__":
    main(sys.argv[1:])
