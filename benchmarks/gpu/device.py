"""The GPU through PyTorch: arrays in its memory, PyTorch's own kernels, and times of CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.origin import JSON
from benchmarks.peers.pytorch import EXPRESSIONS
from pdojo.backends.gpu.executable import GpuKernel
from pdojo.kernels import Workload

Tensors: TypeAlias = list[Tensor]
Call: TypeAlias = Callable[[Tensors], Tensor]
ROUNDS = 15
"""Number of samples of each implementation, in turns."""
SAMPLE = 5e-3
"""Desired seconds of a sample, of which the launch of a graph takes a few microseconds."""
MOST_CALLS = 1000
"""Greatest number of calls in a graph."""
ENQUEUED = 50
"""Number of calls for a host time, fewer than the device's queue holds."""


@dataclass(frozen=True)
class Timed:
    """An implementation on the device."""

    name: str
    call: Call


def facts() -> JSON:
    """Name, versions, cache, and the bandwidth of a copy in bytes per second; `error` if there is no GPU."""
    if not torch.cuda.is_available():
        return {"error": "PyTorch finds no GPU here; `pdojo-opt -t fibers` prints device code for a CPU, to check it"}
    source = torch.ones(1 << 28, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    ways = [Timed("copy", lambda _: target.copy_(source)), Timed("negation", lambda _: torch.neg(source, out=target))]
    seconds = min(timed(ways, [[]]).values())
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "torch": torch.__version__,
        "cache_bytes": int(properties.L2_cache_size),
        "copy": 2 * source.nbytes / seconds,
    }


def cache_bytes() -> int:
    """Bytes of the last-level cache."""
    return int(torch.cuda.get_device_properties(0).L2_cache_size)


def on_device(arrays: Sequence[tuple[NDArray[Any], str]]) -> Tensors:
    """Arrays of the host, with their element types in the notation, copied to the device."""
    found: Tensors = []
    for array, dtype in arrays:
        signed = array.view(np.int16) if array.dtype == np.uint16 else array
        tensor = torch.from_numpy(np.ascontiguousarray(signed)).cuda()
        found.append(tensor.view(torch.bfloat16) if dtype == "bf16" else tensor)
    return found


def ours(name: str, kernel: GpuKernel) -> Timed:
    """A kernel, launched in PyTorch's current stream."""

    def call(arrays: Tensors) -> Tensor:
        kernel(*arrays, stream=torch.cuda.current_stream().cuda_stream)
        return arrays[-1]

    return Timed(name, call)


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
        Timed("strict", under(False, False, function)),
        Timed("default", under(False, True, function)),
        Timed("TF32", under(True, True, function)),
    ]
    # Each workload is compiled for its own sizes, like a first one: a second size would make code for any size.
    torch.compiler.reset()
    if compile_too:
        found.append(Timed("compile", under(False, False, torch.compile(function, dynamic=False))))
    if autotune:
        tuned = torch.compile(function, dynamic=False, mode="max-autotune-no-cudagraphs")
        found.append(Timed("autotune", under(False, False, tuned)))
    return found


def errors(workload: Workload, rows: Sequence[Timed], arrays: Tensors) -> dict[str, float]:
    """The largest error of each implementation relative to the largest result, against PyTorch in float64."""
    inputs = [a.double() if a.is_floating_point() else a for a in arrays[:-1]]
    exact = EXPRESSIONS[workload.kernel](workload.sizes)(*inputs)
    scale = exact.abs().max().clamp(min=1e-30)
    found: dict[str, float] = {}
    for row in rows:
        result = row.call(arrays).double().reshape(exact.shape)
        found[row.name] = float(((result - exact).abs().max() / scale).nan_to_num(float("inf")))
    return found


def host_seconds(row: Timed, arrays: Tensors) -> float:
    """Host seconds of a call outside of graphs, without waiting for the device."""
    taken: list[float] = []
    for _ in range(5):
        torch.cuda.synchronize()
        begun = perf_counter()
        for _ in range(ENQUEUED):
            row.call(arrays)
        taken.append((perf_counter() - begun) / ENQUEUED)
    torch.cuda.synchronize()
    return min(taken)


def timed(rows: Sequence[Timed], sets: Sequence[Tensors]) -> dict[str, float]:
    """Median seconds of a call, by implementation, from graphs of calls that rotate over sets of arrays, in turns."""
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
    calls = max(1, min(MOST_CALLS, round(SAMPLE / max(replayed(once), 1e-6))))
    calls = -(-calls // len(sets)) * len(sets)
    graph = captured(call, sets, calls)
    replayed(graph)
    return graph, calls


def captured(call: Call, sets: Sequence[Tensors], calls: int) -> torch.cuda.CUDAGraph:
    """A graph of `calls` calls."""
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
