"""ONNX models on command lines: inputs, checks against ONNX's reference, times beside ONNX Runtime."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from math import inf
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from pdojo_tools.machines import named_machine
from pdojo_tools.onnx_inputs import input_shapes, inputs_of, random_inputs
from pdojo_tools.outputs import write_json
from pdojo_tools.phases import phase
from rich.console import Console

from pdojo.errors import MeasurementError, UsageError
from pdojo.files import existing_database

if TYPE_CHECKING:
    from pdojo.onnx.model import CallableOnnxModel, OnnxModel
    from pdojo.search.database import Database

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
"""Greatest difference from the reference, relative to the largest element of an output, keyed by element type.

Long sums in another order differ by more than roundings of single elements; elements near 0 are no measure for them.
"""
SECONDS, ROUNDS = 3.0, 200
"""Time and number of rounds in which pdojo and ONNX Runtime run in turns."""
WARM = 0.1
"""Seconds before a timed call: ONNX Runtime's threads look for work for 60 ms."""


def known_programs() -> AbstractContextManager[Database | None]:
    """A context with the usual database; None if there is none."""
    if existing_database() is None:
        return nullcontext()
    from pdojo.search.database import Database

    return Database.existing()


def run_model(given: argparse.Namespace) -> None:
    """Run the model of `pdojo-run`. Raises PdojoError."""
    for option in ("kernel", "dtype", "trace", "cold", "align", "output"):
        if getattr(given, option):
            raise UsageError(f"--{option} is for kernels; '{given.program}' is a model")
    from pdojo import onnx

    machine = named_machine(given.machine or "host", trust=given.trust_machine)
    console = Console(stderr=True)
    with phase(console, "reading the model"):
        model = onnx.load(given.program)
        inputs = random_inputs(model, given.shape, given.seed)
    # On terminals, the compilation shows its own progress.
    with known_programs() as database, nullcontext() if console.is_terminal else phase(console, "compiling"):
        compiled = model.compile(machine, threads=given.threads, database=database)
        explained = compiled.explain(**inputs)
    calls = sum(len(each.calls) for each in explained.models)
    size = sum(each.memory.bytes for each in explained.models)
    say = (sys.stderr if given.json else sys.stdout).write
    say(f"model '{model.name}': {calls} calls of {len(explained.kernels)} kernels, ")
    say(f"{size / 1e6:.3g} MB of intermediates\n")
    for remark in explained.remarks:
        say(f"{remark}\n")
    facts: dict[str, Any] = {
        "model": model.name,
        "machine": machine.name,
        "threads": given.threads or machine.threads,
        "calls": calls,
        "kernels": len(explained.kernels),
        "bytes": size,
        "static": sorted(model.static),
        "steps": [[each.title, each.reason] for each in explained.steps],
    }
    if not calls:
        why = "NumPy computes the outputs" if explained.steps else "the outputs are known or inputs in other shapes"
        say(f"no kernels, and nothing to check or time: {why}\n")
        given.check = given.time = False
    outputs: Any = compiled(**inputs)
    found = cast("Sequence[NDArray[Any]]", outputs if isinstance(outputs, tuple) else [outputs])
    if given.check:
        compiled.check_memory()
        with phase(console, "ONNX's reference computes the right results"):
            worst = check(model, inputs, found)
        say(f"right: agrees with onnx.reference; largest error {worst:.1%} of what is allowed\n")
        facts["error"] = worst
    if given.time:
        facts["times"] = time(compiled, given.program, inputs, given.threads or machine.threads, say)
    if given.json:
        write_json(facts)


def check(model: OnnxModel, inputs: dict[str, NDArray[Any]], found: Sequence[NDArray[Any]]) -> float:
    """The largest difference from ONNX's reference as a share of the allowed error. Raises MeasurementError above 1."""
    from pdojo.onnx.reference import reference

    try:
        evaluator: Any = reference(model.proto)
        expected: list[Any] = evaluator.run(None, inputs)
    except Exception as error:
        reason = " ".join(str(error).split())
        message = f"ONNX's reference evaluator fails: {reason}; --no-check runs the model without it"
        raise MeasurementError(message) from error
    worst = 0.0
    for name, ours, theirs in zip(model.outputs, found, expected, strict=True):
        worst = max(worst, _difference(name, ours, np.asarray(theirs)))
    return worst


def _difference(name: str, ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """The largest error of an output as a share of the allowed error. Raises MeasurementError if it is larger."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise MeasurementError(
            f"output '{name}' is {ours.dtype} {ours.shape}, the reference's is {theirs.dtype} {theirs.shape}"
        )
    allowed = TOLERANCES.get(ours.dtype.name)
    if allowed is None:
        if not np.array_equal(ours, theirs):
            raise MeasurementError(f"output '{name}' differs from the reference in {np.sum(ours != theirs)} elements")
        return 0.0
    error = relative_error(ours, theirs) / allowed
    if error == inf:
        raise MeasurementError(f"output '{name}' differs from the reference in infinities or NaN")
    if error > 1:
        raise MeasurementError(f"output '{name}' is wrong: its largest error is {error:.3g} times what is allowed")
    return error


def relative_error(ours: NDArray[Any], theirs: NDArray[Any], least: float = 0.0) -> float:
    """The largest difference over the largest element, or over `least` if that is more; inf for other infinities."""
    left, right = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(left[finite]).all():
        return inf
    scale = max(np.abs(right[finite]).max(initial=0.0), least) or 1.0
    return float(np.abs(left[finite] - right[finite]).max(initial=0.0) / scale)


def time(
    compiled: CallableOnnxModel,
    path: str,
    inputs: dict[str, NDArray[Any]],
    threads: int,
    say: Callable[[str], object],
) -> dict[str, list[float]]:
    """The seconds of each call, in turns with ONNX Runtime if it is installed; `say` prints them."""
    calls: dict[str, Callable[[], object]] = {"pdojo": lambda: compiled(**inputs)}
    if find_spec("onnxruntime") is not None:
        calls["ONNX Runtime"] = onnx_runtime(path, inputs, threads)
    times = in_turns(calls)
    medians = {name: median(samples) for name, samples in times.items()}
    for name, samples in times.items():
        say(f"time: {name} median {medians[name] * 1e3:.4g} ms, minimum {min(samples) * 1e3:.4g} ms\n")
    if len(medians) > 1:
        ratio = medians["ONNX Runtime"] / medians["pdojo"]
        say(f"pdojo takes {1 / ratio:.3g} times the time of ONNX Runtime, {threads} threads each\n")
    else:
        say("time: ONNX Runtime is not installed (pip install onnxruntime), so there is nothing to compare\n")
    return times


def onnx_runtime(path: str, inputs: dict[str, NDArray[Any]], threads: int) -> Callable[[], object]:
    """A call of ONNX Runtime on these inputs. Raises MeasurementError if it cannot run the model."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(Path(path)), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # its errors have no common base
        raise MeasurementError(f"ONNX Runtime cannot run '{path}': {str(error).splitlines()[0]}") from None
    return lambda: session.run(None, inputs)


def in_turns(calls: dict[str, Callable[[], object]], seconds: float = SECONDS) -> dict[str, list[float]]:
    """The seconds of each call, one of each in every round: at least three rounds, and no more after `seconds`.

    Calls in the `WARM` seconds before it are not timed: they bring its data into the caches, and threads of the other
    that look for work go to sleep.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    begun = perf_counter()
    while len(times["pdojo"]) < 3 or (perf_counter() - begun < seconds and len(times["pdojo"]) < ROUNDS):
        for name, call in calls.items():
            turn = perf_counter()
            call()
            while perf_counter() - turn < WARM:
                call()
            start = perf_counter()
            call()
            times[name].append(perf_counter() - start)
    return times


def kernels_of(path: str, sizes: str | None) -> Sequence[tuple[str, Any]]:
    """The different kernels of a model with their titles, with sizes if extents are ranges. Raises PdojoError."""
    from pdojo import onnx

    model = onnx.load(path)
    shapes = input_shapes(model, sizes)
    inputs = inputs_of(model, shapes, 0)
    is_open = any(isinstance(extent, range) for shape in shapes.values() for extent in shape)
    kernels = model.opened(inputs, shapes).kernels if is_open else model.kernels(**inputs)
    if not kernels:
        raise UsageError(f"model '{model.name}' has no kernels: its outputs are known or inputs in other shapes")
    return [(f"{Path(path).stem}:{number}:{k.sym_name.data}", k) for number, k in enumerate(kernels)]
