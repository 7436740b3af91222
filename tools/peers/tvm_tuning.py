"""MetaSchedule looks for a schedule, in a process of its own: `python -m pdojo_tools.peers.tvm_tuning`.

Candidates are built here and run in forks of this process: TVM's own workers start anew after every batch and every
time limit, import TVM within that limit, and so may not finish a single candidate. A fork has everything already, and
a candidate that runs for long ends with it.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from pdojo_tools.peers.tvm_definitions import function

from pdojo.backends.arrays import aligned_empty, parameters_of
from pdojo.dialect.nest import nest_of
from pdojo.dialect.rounding import INTERFACE
from pdojo.kernels import Workload

tvm: Any = import_module("tvm")
ms: Any = import_module("tvm.s_tir.meta_schedule")
derived_object: Any = import_module("tvm.ir.utils").derived_object

LIMIT = 5.0
"""Seconds for a candidate."""
ENOUGH = 0.05
"""Seconds of samples of a candidate."""
BATCH = 16
"""Candidates between two looks at the cost model."""
POPULATION = 512
"""Of the evolutionary search; TVM's own choice."""


def target(threads: int) -> Any:
    """The processor that this runs on."""
    import llvmlite.binding as llvm

    return tvm.target.Target({"kind": "llvm", "mcpu": llvm.get_host_cpu_name(), "num-cores": threads})


def definition_of(workload: Workload) -> Any:
    """The function of TIR to be scheduled."""
    parameters = parameters_of(nest_of(workload.instantiate()))
    shapes = [(p.shape, str(INTERFACE[p.dtype])) for p in parameters[:-1]]
    return function(workload.kernel, workload.sizes, shapes)


def search(workload: Workload, threads: int, trials: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """The best of so many trials, as JSON."""
    started = time.perf_counter()
    modules: dict[str, Any] = {}
    best = [float("inf")]
    done = [0]
    arrays = [_random(p.shape, INTERFACE[p.dtype]) for p in parameters_of(nest_of(workload.instantiate()))]

    @derived_object
    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        """Compiles here; a path is a key of `modules`."""

        def build(self, inputs: Sequence[Any]) -> list[Any]:
            return [_build(each, modules) for each in inputs]

    @derived_object
    class Runner(ms.runner.PyRunner):  # type: ignore[misc]
        """Runs in forks."""

        def run(self, inputs: Sequence[Any]) -> list[Any]:
            results: list[Any] = []
            for each in inputs:
                seconds = run_apart(modules.pop(str(each.artifact_path)), arrays)
                best[0] = min([best[0], *seconds])
                done[0] += 1
                tell(f"trial {done[0]} of {trials}, best {best[0] * 1e3:.3f} ms")
                results.append(_future(seconds))
            return results

    scheduled_for = target(threads)
    module = definition_of(workload)
    with tempfile.TemporaryDirectory() as folder:
        tell("preparing")
        logging.disable(logging.CRITICAL)
        database = ms.tune_tir(
            module,
            scheduled_for,
            folder,
            trials,
            num_trials_per_iter=min(BATCH, trials),
            builder=Builder(),
            runner=Runner(),
            strategy=ms.search_strategy.EvolutionarySearch(population_size=POPULATION),
            measure_callbacks=[ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel()],
            num_tuning_cores=threads,
            seed=1,
        )
        schedule = ms.tir_integration.compile_tir(database, module, scheduled_for)
    if schedule is None:
        raise SystemExit(f"none of {trials} candidates could be built and run")
    return {
        "module": tvm.ir.save_json(schedule.mod),
        "milliseconds": best[0] * 1e3,
        "seconds": time.perf_counter() - started,
    }


def _random(shape: Sequence[int], dtype: Any) -> Any:
    array = aligned_empty(tuple(shape), dtype, 64)
    array[...] = np.random.default_rng(0).standard_normal(shape)
    return array


def _build(given: Any, modules: dict[str, Any]) -> Any:
    from tvm.s_tir.meta_schedule.builder.local_builder import default_build

    try:
        key = f"m{len(modules)}-{time.monotonic_ns()}"
        modules[key] = default_build(given.mod, given.target, None)
        return ms.builder.BuilderResult(key, None)
    except Exception as error:  # noqa: BLE001 - a candidate that cannot be built is one that is not chosen
        return ms.builder.BuilderResult(None, str(error))


def _future(seconds: list[float]) -> Any:
    from tvm.s_tir.meta_schedule.runner.local_runner import LocalRunnerFuture

    if seconds:
        return LocalRunnerFuture(res=seconds, error_message=None)
    return LocalRunnerFuture(res=None, error_message=f"longer than {LIMIT} s, or ended without a result")


def run_apart(module: Any, arrays: Sequence[Any]) -> list[float]:
    """Seconds of calls in a fork of this process; none where it takes too long or ends."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(_samples(module, arrays)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], LIMIT)
        text = os.read(reader, 1 << 16) if ready else b""
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
    return [float(s) for s in json.loads(text)] if text else []


def _samples(module: Any, arrays: Sequence[Any]) -> list[float]:
    given = [tvm.runtime.from_dlpack(array) for array in arrays]
    call = module["main"]
    call(*given)
    samples: list[float] = []
    started = time.perf_counter()
    while not samples or (time.perf_counter() - started < ENOUGH and len(samples) < 100):
        before = time.perf_counter()
        call(*given)
        samples.append(time.perf_counter() - before)
    return samples


def main() -> None:
    """Arguments: the workload as JSON, threads, trials, the file of the result."""
    text, threads, trials, path = sys.argv[1:]
    found = search(
        Workload.from_json(json.loads(text)), int(threads), int(trials), lambda line: print(line, flush=True)
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    # All of it or nothing: another run may look for it.
    with tempfile.NamedTemporaryFile("w", dir=Path(path).parent, delete=False) as file:
        json.dump(found, file)
    Path(file.name).replace(path)


if __name__ == "__main__":
    main()
