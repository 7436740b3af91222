"""Cases of calls on CUDA tensors: streams, graphs, memory, threads, sizes, options (`standin.torch_cuda`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from pdojo.backends.gpu.driver import driver_of
from pdojo.backends.gpu.vendors import CUDA_VENDOR
from pdojo.files import cache_folder
from pdojo.torch import explain
from standin.gpu import CUDA as CUDA_COMPILERS
from standin.gpu import FiberCompiler
from standin.torch_cuda import Device
from unit.torch.cuda.kernels import CUDA, Block, assert_close, check, kernels

assert isinstance(CUDA_COMPILERS.compiler, FiberCompiler)
CUDA_COMPILER = CUDA_COMPILERS.compiler


def programs() -> set[Path]:
    """The files of compiled kernels in the cache."""
    folder = cache_folder("kernels")
    assert folder is not None
    return {*folder.rglob("*.kernel")}


def two_kernels() -> torch.nn.Module:
    """A module with an intermediate tensor and workspaces."""
    return torch.nn.Sequential(torch.nn.Linear(64, 48), Block(48), torch.nn.Linear(48, 16))


def compiled_on_device(network: torch.nn.Module, **options: Any) -> Any:
    """The compiled module on the device, without gradients."""
    run: Any = torch.compile(network.to(CUDA), backend="pdojo", **options)

    def call(*inputs: torch.Tensor) -> Any:
        with torch.no_grad():
            return run(*inputs)

    return call


def case_the_current_stream_is_taken(device: Device) -> None:
    call = compiled_on_device(Block(32))
    x = torch.randn(8, 32).to(CUDA)
    call(x).cpu()
    gpu = driver_of(CUDA_VENDOR).gpu()
    stream = gpu.stream()
    kernels(device)
    with device.stream(stream.handle):
        found = call(x)
    gpu.synchronize(0)
    assert kernels(device) == [], "the kernel is in the other stream"
    stream.synchronize()
    assert len(kernels(device)) == 1
    assert_close(found, call(x).cpu())


def case_a_call_waits_for_nothing(device: Device) -> None:
    call = compiled_on_device(two_kernels())
    x = torch.randn(32, 64).to(CUDA)
    call(x)
    kernels(device)
    waits, allocations = device.count("waits"), device.count("allocations")
    found = call(x)
    assert device.count("waits") == waits
    assert kernels(device) == [], "nothing has run yet"
    # The result, and one block of intermediates and workspaces.
    assert device.count("allocations") == allocations + 2
    found.cpu()
    assert len(kernels(device)) > 2


def case_memory_is_given_back(device: Device) -> None:
    call = compiled_on_device(two_kernels())
    x = torch.randn(32, 64).to(CUDA)
    call(x)
    held = device.count("held")
    found = [call(x) for _ in range(5)]
    assert device.count("held") == held + 5 * 32 * 16 * 4
    del found
    assert device.count("held") == held


def case_a_graph_replays_calls(device: Device) -> None:
    network = two_kernels()
    x = torch.randn(32, 64)
    given = x.to(CUDA)
    wanted = network(x).detach()
    call = compiled_on_device(network)
    call(given)
    waits = device.count("waits")
    (first, second), replay = device.captured(lambda: (call(given), call(given)))
    assert device.count("waits") == waits
    replay()
    assert_close((first, second), (wanted, wanted))
    other = torch.randn(32, 64)
    given.copy_(other)
    call(given)
    replay()
    right = network.to("cpu")(other).detach()
    assert_close((first, second), (right, right))


def case_threads_share_a_model(device: Device) -> None:
    network = two_kernels()
    inputs = [torch.randn(32, 64) for _ in range(12)]
    wanted = [network(x).detach() for x in inputs]
    call = compiled_on_device(network)
    given = [x.to(CUDA) for x in inputs]
    call(given[0])
    gpu = driver_of(CUDA_VENDOR).gpu()

    def work(numbers: range) -> list[torch.Tensor]:
        stream = gpu.stream()
        with device.stream(stream.handle):
            found = [call(given[n]) for n in numbers]
            stream.synchronize()
        return found

    with ThreadPoolExecutor(2) as pool:
        halves = [*pool.map(work, [range(6), range(6, 12)])]
    assert_close([*halves[0], *halves[1]], wanted)


def case_sizes_are_known_when_a_call_runs(device: Device) -> None:
    block = Block(24)
    wanted = {n: block(torch.ones(n, 24).cumsum(0).sin()).detach() for n in (5, 9, 33, 12)}
    call = compiled_on_device(block, dynamic=True)
    before = programs()
    for n, right in wanted.items():
        assert_close(call(torch.ones(n, 24).cumsum(0).sin().to(CUDA)), right)
        assert len(set(kernels(device))) == 1
    assert len(programs() - before) == 1, "one program for all"


def case_shapes_without_sizes(_: Device) -> None:
    def function(a: torch.Tensor) -> torch.Tensor:
        return torch.relu(a.reshape(-1, a.shape[0]) + 1).sum(0)

    run: Any = torch.compile(function, backend="pdojo", dynamic=True)
    for rows, columns in ((4, 6), (5, 10), (7, 3)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(run(x.to(CUDA)).cpu(), function(x))


def case_code_comes_from_the_cache(device: Device) -> None:
    x = torch.randn(8, 40)
    check(Block(40), x)
    before, compiled = programs(), CUDA_COMPILER.compiled
    torch._dynamo.reset()
    kernels(device)
    check(Block(40), x)
    assert (programs(), CUDA_COMPILER.compiled) == (before, compiled)
    assert kernels(device)


def case_kernels_are_checked(_: Device) -> None:
    check(two_kernels(), torch.randn(8, 64), options={"check": True})


def case_kernels_as_they_are_written(_: Device) -> None:
    check(Block(24), torch.randn(4, 24), options={"tune": "none"})


def case_kernels_are_searched_on_the_device(device: Device) -> None:
    with TemporaryDirectory() as folder:
        options = {"tune": "search", "budget": "6", "database": str(Path(folder) / "found.sqlite")}
        check(Block(24), torch.randn(4, 24), options=options)
        assert (Path(folder) / "found.sqlite").exists()
    assert kernels(device)


def case_times_are_explained(device: Device) -> None:
    kernels(device)
    with torch.no_grad():
        found = explain(two_kernels().to(CUDA), torch.randn(32, 64).to(CUDA))
    assert not found.fallbacks
    assert len(found.kernels) > 1
    # By fibers, a kernel that has run takes more than its launch.
    assert all(part.seconds > 1e-4 for part in found.kernels)
    assert kernels(device)
