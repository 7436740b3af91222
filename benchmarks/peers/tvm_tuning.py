"""MetaSchedule's search for a schedule in its own process: `python -m benchmarks.peers.tvm_tuning`.

Forks of this process build and run the candidates. TVM's own workers restart after every batch and every timeout, and
import TVM within the time limit, so they may not finish a single candidate. A fork has everything loaded, and a slow
candidate ends only its fork.
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
from typing import Any, TypeAlias

import numpy as np

from benchmarks.peers.tvm_definitions import function
from pdojo.backends.calling.arrays import aligned_empty, parameters_of
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import Workload

tvm: Any = import_module("tvm")
ms: Any = import_module("tvm.s_tir.meta_schedule")
derived_object: Any = import_module("tvm.ir.utils").derived_object

BUILD_LIMIT = 30.0
"""Limit of seconds for building a candidate, as in TVM's own builder. LLVM takes many minutes for some candidates."""
LIMIT = 5.0
"""Limit of seconds for running a candidate."""
ENOUGH = 0.05
"""Seconds of samples per candidate."""
BATCH = 16
"""Number of candidates between two updates of the cost model."""
POPULATION = 512
"""Population of the evolutionary search; TVM's default."""


Prepare: TypeAlias = Callable[[], Callable[[], list[float]]]
"""Prepares a candidate in a fork; returns the function that takes samples."""
_READY = "ready"


def target(threads: int) -> Any:
    """The target for this processor."""
    import llvmlite.binding as llvm

    return tvm.target.Target({"kind": "llvm", "mcpu": llvm.get_host_cpu_name(), "num-cores": threads})


def definition_of(workload: Workload) -> Any:
    """The TIR function to schedule."""
    parameters = parameters_of(nest_of(workload.instantiate()))
    shapes = [(p.shape, str(INTERFACE[p.dtype])) for p in parameters[:-1]]
    return function(workload.kernel, workload.sizes, shapes)


def search(workload: Workload, threads: int, trials: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """The best of `trials` trials, as JSON."""
    started = time.perf_counter()
    built: dict[str, Apart] = {}
    best = [float("inf")]
    done = [0]
    arrays = [_random(p.shape, INTERFACE[p.dtype]) for p in parameters_of(nest_of(workload.instantiate()))]

    @derived_object
    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        """Compiles in forks, as many at once as threads; an artifact's path is a key of `built`."""

        def build(self, inputs: Sequence[Any]) -> list[Any]:
            results: list[Any] = []
            for first in range(0, len(inputs), threads):
                forks = [Apart(_sampler(each, arrays)) for each in inputs[first : first + threads]]
                results += [_keep(fork, built) for fork in forks]
            return results

    @derived_object
    class Runner(ms.runner.PyRunner):  # type: ignore[misc]
        """Runs the built candidates one after the other."""

        def run(self, inputs: Sequence[Any]) -> list[Any]:
            results: list[Any] = []
            for each in inputs:
                seconds = built.pop(str(each.artifact_path)).samples()
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


def _sampler(given: Any, arrays: Sequence[Any]) -> Prepare:
    """A function that builds a candidate and returns its timer."""
    from tvm.s_tir.meta_schedule.builder.local_builder import default_build

    def prepare() -> Callable[[], list[float]]:
        module = default_build(given.mod, given.target, None)
        return lambda: _samples(module, arrays)

    return prepare


def _keep(fork: Apart, built: dict[str, Apart]) -> Any:
    error = fork.prepared()
    if error is not None:
        # Candidates that cannot be built are not chosen.
        return ms.builder.BuilderResult(None, error)
    key = str(fork.process)
    built[key] = fork
    return ms.builder.BuilderResult(key, None)


def _future(seconds: list[float]) -> Any:
    from tvm.s_tir.meta_schedule.runner.local_runner import LocalRunnerFuture

    if seconds:
        return LocalRunnerFuture(res=seconds, error_message=None)
    return LocalRunnerFuture(res=None, error_message=f"longer than {LIMIT} s, or ended without a result")


class Apart:
    """A fork of this process that prepares a candidate at once and takes samples on demand."""

    def __init__(self, prepare: Prepare) -> None:
        self._answers, answers = os.pipe()
        orders, self._orders = os.pipe()
        parent = os.getpid()
        self.process = os.fork()
        if self.process == 0:
            try:
                _serve(prepare, parent, orders, answers)
            finally:
                os._exit(0)
        os.close(answers)
        os.close(orders)

    def prepared(self, limit: float = BUILD_LIMIT) -> str | None:
        """The reason why the candidate is not prepared, after which the fork has ended; None if it is prepared."""
        said = self._answer(limit)
        if said == _READY:
            return None
        self._end()
        return said or f"longer than {limit:g} s, or ended"

    def samples(self, limit: float = LIMIT) -> list[float]:
        """Seconds of calls; empty if they take too long or the fork dies. Afterwards the fork has ended."""
        try:
            os.write(self._orders, b"!")
            said = self._answer(limit)
        except BrokenPipeError:
            said = ""
        self._end()
        return [float(s) for s in json.loads(said)] if said.startswith("[") else []

    def _answer(self, limit: float) -> str:
        ready, _, _ = select.select([self._answers], [], [], limit)
        return os.read(self._answers, 1 << 16).decode() if ready else ""

    def _end(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._answers)
        os.close(self._orders)


def _serve(prepare: Prepare, parent: int, orders: int, answers: int) -> None:
    """The loop of the fork."""
    try:
        take = prepare()
        os.write(answers, _READY.encode())
        while not select.select([orders], [], [], 1.0)[0]:
            if os.getppid() != parent:
                return
        os.write(answers, json.dumps(take()).encode())
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent is told
        os.write(answers, f"{type(error).__name__}: {error}"[:1000].encode())


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
    """Search for a schedule. Arguments: the workload as JSON, threads, trials, the output file."""
    text, threads, trials, path = sys.argv[1:]
    found = search(
        Workload.from_json(json.loads(text)), int(threads), int(trials), lambda line: print(line, flush=True)
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    # Write atomically: another run may read it.
    with tempfile.NamedTemporaryFile("w", dir=Path(path).parent, delete=False) as file:
        json.dump(found, file)
    Path(file.name).replace(path)


if __name__ == "__main__":
    main()
