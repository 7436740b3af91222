"""The process that uses the GPU: one job per line of standard input, its result as a line of standard output.

`python -m benchmarks.gpu.child FILE` serves jobs about the programs of a file; with numbers of programs after FILE, it
calls each of these once, for a profiler.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.programs import Prepared, Programs
from benchmarks.origin import JSON
from benchmarks.peers import ranges_of
from benchmarks.work import work_of
from pdojo.backends.gpu.executable import GpuKernel
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.errors import PdojoError
from pdojo.kernels import Workload
from pdojo.kernels.reference import numpy_reference

Array: TypeAlias = NDArray[Any]
CACHE = 2
"""Size of cold arrays together, as a multiple of the last-level cache."""
TOLERANCE = {"f64": 1e-12, "f32": 5e-5, "f16": 2e-2, "bf16": 3e-2}
"""Greatest error relative to the largest result; none for other types."""


def main(arguments: Sequence[str]) -> None:
    """Serve until the parent closes the pipe, or call some programs once."""
    programs = Programs.read(Path(arguments[0]))
    if len(arguments) > 1:
        for number in arguments[1:]:
            row = programs.rows[int(number)]
            _bound(row, row.load(programs.compiler), 1)[0]()
        return
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            result = JOBS[job["kind"]](programs, job)
        except PdojoError as error:
            result = {"error": str(error)}
        except Exception:  # noqa: BLE001  # a kernel's failure is a result; the traceback is kept
            result = {"error": traceback.format_exc(limit=8)}
        answers.write(f"{json.dumps(result)}\n")
        answers.flush()


def device(programs: Programs, _: JSON) -> JSON:
    """The name of the device, and PyTorch's facts about it if PyTorch is installed."""
    name = programs.compiler.gpu().info.name
    if find_spec("torch") is None:
        return {"name": name}
    from benchmarks.gpu import device as found

    return {"name": name, **found.facts()}


def check(programs: Programs, job: JSON) -> JSON:
    """The comparison of programs with their meaning, by NumPy in float64: the largest error of all."""
    largest = 0.0
    for number in job["rows"]:
        row = programs.rows[number]
        kernel = row.load(programs.compiler)
        call, inputs, outputs = _bound(row, kernel, 1)
        call()
        wanted = numpy_reference(row.workload)(*inputs)
        written = [p for p in kernel.parameters if p.written]
        for parameter, found, exact in zip(written, outputs, wanted, strict=True):
            error = error_of(_values(found, parameter.dtype), np.asarray(exact))
            if not error <= TOLERANCE.get(parameter.dtype, 0.0):
                return {"error": f"{row.name}: '{parameter.name}' is wrong by {error:.3g} of its largest element"}
            largest = max(largest, error)
    return {"largest_error": largest}


def _bound(row: Prepared, kernel: GpuKernel, seed: int) -> tuple[Callable[[], None], list[Array], list[Array]]:
    """A call on fresh random inputs and poisoned outputs, the inputs, and the written arrays."""
    inputs = random_inputs(kernel.parameters, seed, ranges_of(row.workload))
    arrays: list[Array] = []
    for parameter in kernel.parameters:
        array = _poison(parameter.shape, INTERFACE[parameter.dtype])
        if parameter.name in inputs:
            array[...] = inputs[parameter.name]
        arrays.append(array)
    outputs = [a for p, a in zip(kernel.parameters, arrays, strict=True) if p.written]
    return kernel.bind(*arrays), list(inputs.values()), outputs


def _values(array: Array, dtype: str) -> Array:
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else array


def error_of(found: Array, wanted: Array) -> float:
    """The largest difference relative to the largest finite result; infinite if only one side is NaN or infinite."""
    values, exact = found.astype(np.float64), wanted.astype(np.float64).reshape(found.shape)
    special = ~np.isfinite(exact)
    if not np.array_equal(values[special], exact[special], equal_nan=True) or not np.isfinite(values[~special]).all():
        return float("inf")
    scale = np.abs(exact[~special]).max(initial=1e-30)
    return float(np.abs(values[~special] - exact[~special]).max(initial=0.0) / scale)


def time_row(programs: Programs, job: JSON) -> JSON:
    """Seconds of each implementation of a workload, warm and cold, and of its call on the host, with its error."""
    from benchmarks.gpu import device as gpu

    rows = [programs.rows[number] for number in job["rows"]]
    workload: Workload = rows[0].workload
    kernels = [row.load(programs.compiler) for row in rows]
    parameters = kernels[0].parameters
    work = work_of(workload)
    size = sum(int(np.prod(p.shape)) * INTERFACE[p.dtype].itemsize for p in parameters)
    inputs = random_inputs(parameters, 2, ranges_of(workload))
    arrays = [(inputs.get(p.name, _poison(p.shape, INTERFACE[p.dtype])), p.dtype) for p in parameters]
    sets = [gpu.on_device(arrays) for _ in range(1 + CACHE * gpu.cache_bytes() // max(1, size))]
    ours = [gpu.ours(f"pdojo: {row.title}", kernel) for row, kernel in zip(rows, kernels, strict=True)]
    others = gpu.peers(workload, compile_too=job["compiled"], autotune=job["autotune"])
    found: JSON = {"bytes": work.bytes, "flops": work.operations, "rows": job["rows"]}
    found["errors"] = gpu.errors(workload, [*ours, *others], sets[0])
    found["host"] = {each.name: gpu.host_seconds(each, sets[0]) for each in (ours[0], *others)}
    found["warm"] = gpu.timed([*ours, *others], sets[:1])
    found["cold"] = gpu.timed([*ours, *others], sets)
    return found


def _poison(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 0xFF
    return array


JOBS: dict[str, Callable[[Programs, JSON], JSON]] = {
    "device": device,
    "small": check,
    "check": check,
    "time": time_row,
}


if __name__ == "__main__":
    main(sys.argv[1:])
