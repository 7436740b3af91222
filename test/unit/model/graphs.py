"""Small graphs of operations for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import numpy as np

from pdojo import build
from pdojo.model.graph import Graph, GraphBuilder, Known, Lower, Lowered, Operand, Value
from pdojo.model.model import folded


def lowering(function: Callable[..., build.Array]) -> Lower:
    """The lowering of an operation without attributes; known operands become constants of the kernel."""

    def lower(inputs: tuple[Value | None, ...], prefix: str) -> Lowered:
        handles: list[build.Array] = []
        constants: list[tuple[build.Array, Known]] = []
        for number, value in enumerate(inputs):
            if isinstance(value, np.ndarray):
                constants.append((build.input(f"{prefix}{number}", "f32", value.shape, const=True), value))
                handles.append(constants[-1][0])
            elif value is not None:
                handles.append(value)
        return Lowered((function(*handles),), tuple(constants))

    return lower


class Graphs:
    """A builder of small graphs."""

    def __init__(self) -> None:
        self.builder = GraphBuilder(folded)

    def input(self, name: str, *shape: int) -> Operand:
        return self.builder.input(name, "f32", shape)

    @overload
    def __call__(self, name: str, function: Callable[[build.Array], build.Array], x: Operand, /) -> Operand: ...

    @overload
    def __call__(
        self, name: str, function: Callable[[build.Array, build.Array], build.Array], x: Operand, y: Operand, /
    ) -> Operand: ...

    def __call__(self, name: str, function: Callable[..., build.Array], *operands: Operand) -> Operand:
        (result,) = self.builder.apply(name, lowering(function), operands)
        return result

    def finish(self, *outputs: Operand) -> Graph:
        return self.builder.finish("test", [(f"out{n}", value) for n, value in enumerate(outputs)])


def constant(*shape: int) -> Known:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)
