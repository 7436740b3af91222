"""The code of Python that a call of a compiled graph runs: as long as a small kernel, if it is not kept short."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.options import Options

MOST_FRAMES = 12


def test_a_call_of_one_kernel_runs_few_functions() -> None:
    graphs: list[CompiledGraph] = []

    def make(*arguments: Any) -> CompiledGraph:
        graphs.append(CompiledGraph(*arguments))
        return graphs[-1]

    def backend(graph: Any, inputs: Any) -> Any:
        return compiled_graph(graph, inputs, Options(tune="none"), make)

    torch._dynamo.reset()
    x, y, z = (torch.randn(3, 50) for _ in range(3))
    compiled: Any = torch.compile(lambda x, y, z: torch.relu(x + y) * z, backend=backend)
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
