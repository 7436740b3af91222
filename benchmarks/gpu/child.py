"""The process that uses the GPU: a job in a line of standard input, its result in a line of standard output."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.peers import ranges_of
from benchmarks.peers.pytorch import EXPRESSIONS
from benchmarks.work import work_of
from pdojo.backends.arrays import Parameter, parameters_of
from pdojo.backends.backend import backend_of
from pdojo.backends.gpu.executable import GpuKernel
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.assumptions import ALIGNMENT, with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError
from pdojo.kernels import Workload
from pdojo.kernels.meaning import meaning
from pdojo.search.experts.choices import Decisions, Played
from pdojo.search.experts.gpu.heuristic import open_heuristic
from pdojo.transforms.game import Game

JSON: TypeAlias = dict[str, Any]
Tensors: TypeAlias = list[Tensor]
Call: TypeAlias = Callable[[Tensors], Tensor]
ROUNDS = 15
"""Samples of each implementation, in turns."""
SAMPLE = 1e-3
"""Seconds that a sample should take."""
CACHE = 2
"""Arrays that are not in the last cache exceed it this many times together."""
MOST_VARIANTS = 8
"""Most programs of the pass that are timed."""
TOLERANCE = {"f64": 1e-9, "f32": 1e-3, "f16": 2e-2, "bf16": 1e-1}
"""Largest error relative to the largest result."""


@dataclass(frozen=True)
class Timed:
    """An implementation on the device."""

    name: str
    call: Call


def main() -> None:
    """Serve until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            result = JOBS[job["kind"]](job)
        except PdojoError as error:
            result = {"error": str(error)}
        except Exception:  # noqa: BLE001  # a kernel's failure is a result; the traceback is kept
            result = {"error": traceback.format_exc(limit=8)}
        answers.write(f"{json.dumps(result)}\n")
        answers.flush()
        if "error" in result and "CUDA" in result["error"]:
            # After an illegal address nothing works in this process any more.
            os._exit(1)


def the_machine() -> Machine:
    """The description of the device."""
    return known_machine("nvidia-sm90" if torch.version.hip is None else "amd-gfx942")


def device(_: JSON) -> JSON:
    """Facts of the device: name, versions, and the bandwidth of a copy in bytes per second."""
    if not torch.cuda.is_available():
        return {"error": "PyTorch finds no GPU here; `pdojo-opt -t fibers` prints device code for a CPU, to check it"}
    backend_of(the_machine()).check_runs_here(the_machine())
    source = torch.empty(1 << 28, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    (seconds,) = timed([Timed("copy", lambda _: target.copy_(source))], [[]]).values()
    properties = torch.cuda.get_device_properties(0)
    facts = {"name": properties.name, "multiprocessors": properties.multi_processor_count, "torch": torch.__version__}
    cache = int(getattr(properties, "L2_cache_size", 0)) or the_machine().cache_bytes[-1]
    return {**facts, "cache_bytes": cache, "copy": 2 * source.nbytes / seconds}


def played(workload: Workload, decisions: Decisions | None = None) -> tuple[Game, Played]:
    """The heuristic pass's program."""
    game = Game(with_alignment(workload.instantiate(), ALIGNMENT), the_machine())
    return game, open_heuristic(game, decisions)


def compiled(game: Game) -> GpuKernel:
    """A program on the device."""
    kernel = backend_of(game.machine).compile(game.program.kernel, game.machine, None, "full")  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(kernel, GpuKernel)
    return kernel


def inputs_of(workload: Workload, parameters: Sequence[Parameter], seed: int) -> dict[str, NDArray[Any]]:
    """Fresh random inputs."""
    return random_inputs(parameters, seed, ranges_of(workload))


def on_device(parameters: Sequence[Parameter], inputs: Mapping[str, NDArray[Any]]) -> Tensors:
    """The interface arrays on the device, outputs poisoned."""
    found: Tensors = []
    for parameter in parameters:
        array = np.zeros(parameter.shape, INTERFACE[parameter.dtype])
        if parameter.name in inputs:
            array[...] = inputs[parameter.name]
        else:
            array.reshape(-1).view(np.uint8)[...] = 0xFF
        signed = array.view(np.int16) if array.dtype == np.uint16 else array
        found.append(torch.from_numpy(np.ascontiguousarray(signed)).cuda())
    return found


def call_of(kernel: GpuKernel) -> Call:
    """A launch of a kernel in PyTorch's current stream."""

    def call(arrays: Tensors) -> Tensor:
        kernel(*arrays, stream=torch.cuda.current_stream().cuda_stream)
        return arrays[-1]

    return call


def check(job: JSON) -> JSON:
    """Whether a kernel computes what it means, by float64 NumPy."""
    workload = Workload.from_json(job["workload"])
    game, _ = played(workload)
    kernel = compiled(game)
    parameters = parameters_of(nest_of(game.program.kernel))
    inputs = inputs_of(workload, parameters, 1)
    arrays = on_device(parameters, inputs)
    call_of(kernel)(arrays)
    torch.cuda.synchronize()
    wanted = meaning(workload)(*inputs.values())
    written = [(p, a) for p, a in zip(parameters, arrays, strict=True) if p.written]
    errors = [error_of(a, np.asarray(w), p.dtype) for (p, a), w in zip(written, wanted, strict=True)]
    if any(error > TOLERANCE.get(p.dtype, 0.0) for (p, _), error in zip(written, errors, strict=True)):
        return {"error": f"wrong result: the largest error is {max(errors):.3g} of the largest result"}
    return {"largest_error": max(errors), "launches": len(kernel.program.entries)}


def error_of(found: Tensor, wanted: NDArray[Any], dtype: str) -> float:
    """The largest difference over the largest result; infinite for NaN where none should be."""
    values = found.view(torch.bfloat16).double() if dtype == "bf16" else found.double()
    exact = torch.from_numpy(np.ascontiguousarray(wanted.astype(np.float64))).cuda().reshape(values.shape)
    if bool((values.isnan() != exact.isnan()).any()):
        return float("inf")
    difference = (values - exact).nan_to_num(0.0).abs().max()
    return float(difference / exact.nan_to_num(0.0).abs().max().clamp(min=1e-30))


def time_row(job: JSON) -> JSON:
    """A row of the table: seconds of each implementation, warm and cold, and its error."""
    workload = Workload.from_json(job["workload"])
    ours = programs(workload)
    parameters = parameters_of(nest_of(ours[0][1].program.kernel))
    work = work_of(workload, parameters)
    size = sum(int(np.prod(p.shape)) * INTERFACE[p.dtype].itemsize for p in parameters)
    inputs = inputs_of(workload, parameters, 2)
    cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
    sets = [on_device(parameters, inputs) for _ in range(1 + CACHE * cache // max(1, size))]
    exact = expression(workload, [a.double() if a.is_floating_point() else a for a in sets[0][:-1]])
    rows = [Timed(f"pdojo: {title}", call_of(compiled(game))) for title, game in ours]
    rows += peers(workload, compile_too=job["compiled"], autotune=job["autotune"])
    errors: JSON = {}
    for row in rows:
        result = row.call(sets[0])
        torch.cuda.synchronize()
        scale = exact.abs().max()
        errors[row.name] = float((result.double().reshape(exact.shape) - exact).abs().max() / scale)
    warm = timed(rows, sets[:1])
    cold = timed(rows, sets)
    return {"warm": warm, "cold": cold, "errors": errors, "bytes": work.bytes, "flops": work.operations}


def programs(workload: Workload) -> list[tuple[str, Game]]:
    """The pass's program, and those with one other answer to what it leaves open."""
    first, notes = played(workload)
    found = [("the pass", first)]
    for choice in notes.choices:
        for other in choice.others:
            game, _ = played(workload, {choice.question: other})
            found.append((f"{choice.question}: {other}", game))
    return found[:MOST_VARIANTS]


def expression(workload: Workload, arrays: Sequence[Tensor]) -> Tensor:
    """PyTorch's result."""
    return EXPRESSIONS[workload.kernel](workload.sizes)(*arrays)


def peers(workload: Workload, *, compile_too: bool, autotune: bool) -> list[Timed]:
    """PyTorch with strict float32, with its defaults, with TF32; torch.compile."""
    function = EXPRESSIONS[workload.kernel](workload.sizes)

    def under(matmul: bool, convolution: bool, body: Callable[..., Tensor]) -> Call:
        def call(arrays: Tensors) -> Tensor:
            torch.backends.cuda.matmul.allow_tf32 = matmul
            torch.backends.cudnn.allow_tf32 = convolution
            return body(*arrays[:-1])

        return call

    found = [
        Timed("torch, strict", under(False, False, function)),
        Timed("torch, default", under(False, True, function)),
        Timed("torch, TF32", under(True, True, function)),
    ]
    if compile_too:
        found.append(Timed("torch.compile", under(False, False, torch.compile(function))))
    if autotune:
        tuned = torch.compile(function, mode="max-autotune-no-cudagraphs")
        found.append(Timed("torch.compile, max-autotune", under(False, False, tuned)))
    return found


def timed(rows: Sequence[Timed], sets: Sequence[Tensors]) -> dict[str, float]:
    """Median seconds of a call, by implementation: graphs of calls that rotate over sets of arrays, in turns."""
    graphs = [(row.name, *graph_of(row.call, sets)) for row in rows]
    samples: dict[str, list[float]] = {name: [] for name, _, _ in graphs}
    for _ in range(ROUNDS):
        for name, graph, calls in graphs:
            samples[name].append(replayed(graph) / calls)
    return {name: median(taken) for name, taken in samples.items()}


def graph_of(call: Call, sets: Sequence[Tensors]) -> tuple[torch.cuda.CUDAGraph, int]:
    """A graph of calls that takes about `SAMPLE` seconds, and the number of calls."""
    for arrays in (*sets[:2], sets[0]):
        call(arrays)
    torch.cuda.synchronize()
    once = captured(call, sets, 1)
    replayed(once)
    calls = max(1, min(200, round(SAMPLE / max(replayed(once), 1e-6))))
    calls = -(-calls // len(sets)) * len(sets) if len(sets) <= 64 else calls
    graph = captured(call, sets, calls)
    replayed(graph)
    return graph, calls


def captured(call: Call, sets: Sequence[Tensors], calls: int) -> torch.cuda.CUDAGraph:
    """A graph of so many calls."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(calls):
            call(sets[number % len(sets)])
    return graph


def replayed(graph: torch.cuda.CUDAGraph) -> float:
    """Seconds of a graph, between events."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


JOBS: dict[str, Callable[[JSON], JSON]] = {"device": device, "check": check, "time": time_row}


if __name__ == "__main__":
    main()
