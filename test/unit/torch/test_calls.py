"""The code of Python that a call of a compiled graph runs: as long as a small kernel, if it is not kept short."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.options import Options
from pdojo.torch.program import RegionStep

MOST_FRAMES = 12


def compiled_with(function: Callable[..., Any], **options: Any) -> tuple[Any, list[CompiledGraph]]:
    """A compiled function, and the graphs that its calls make."""
    graphs: list[CompiledGraph] = []

    def make(*arguments: Any) -> CompiledGraph:
        graphs.append(CompiledGraph(*arguments))
        return graphs[-1]

    def backend(graph: Any, inputs: Any) -> Any:
        return compiled_graph(graph, inputs, Options(tune="none"), make)

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, **options), graphs


def test_a_call_of_one_kernel_runs_few_functions() -> None:
    x, y, z = (torch.randn(3, 50) for _ in range(3))
    compiled, graphs = compiled_with(lambda x, y, z: torch.relu(x + y) * z)
    with torch.no_grad():
        compiled(x, y, z)
        (graph,) = graphs
        frames: list[str] = []

        def count(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                frames.append(frame.f_code.co_qualname)

        sys.setprofile(count)
        try:
            (found,) = graph([x, y, z])
        finally:
            sys.setprofile(None)
    assert torch.allclose(found, torch.relu(x + y) * z)
    assert len(frames) <= MOST_FRAMES, frames


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_product_of_batches_is_one_step(dynamic: bool) -> None:
    compiled, graphs = compiled_with(lambda x, y: x @ y, dynamic=dynamic)
    with torch.no_grad():
        for n in (3, 5, 4) if dynamic else (3,):
            x, y = torch.randn(2, n, 7), torch.randn(2, 7, n)
            assert torch.allclose(compiled(x, y), x @ y, atol=1e-5)
    programs = [program for graph in graphs for program in graph.programs.values()]
    assert programs
    assert all([type(step) for step in program.plain_steps] == [RegionStep] for program in programs if program)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.view(x.shape), x + 1),
        lambda x: (y := x + 1, y.view(y.shape)),
        lambda x: (x + 1, x.expand(x.shape)),
        lambda x: (x + 1).expand(x.shape),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_share_memory_as_they_do_in_pytorch(function: Callable[..., Any], dynamic: bool) -> None:
    compiled, _ = compiled_with(function, dynamic=dynamic)
    with torch.no_grad():
        for n in (4, 6):
            given = torch.randn(n, 3)
            other = given.clone()
            ours, theirs = compiled(given), function(other)
            ours, theirs = [each if isinstance(each, tuple) else (each,) for each in (ours, theirs)]
            for mine, expected in zip(ours, theirs, strict=True):
                assert (mine is given) == (expected is other)
                mine += 1
                expected += 1
            for mine, expected in zip((given, *ours), (other, *theirs), strict=True):
                assert torch.equal(mine, expected)
