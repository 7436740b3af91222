"""Layouts: tensors between convolutions of narrow numbers have channels last, and results are those of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.channels_last import conv_of_pairs
from pdojo.build.quantising import integer_conv
from pdojo.model.classify import Kind
from pdojo.model.graph import Graph, Lowered, Operand, Tensor
from pdojo.model.layouts import in_layouts
from pdojo.model.model import Model
from unit.model.graphs import Graphs

C = 8


class Images(Graphs):
    """A builder of graphs of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng(0)

    def bytes(self, name: str, *shape: int) -> Operand:
        return self.builder.input(name, "u8", shape)

    def conv(self, x: Operand, outputs: int, k: int = 3, **keywords: Any) -> Operand:
        """A convolution of bytes whose results are bytes."""
        groups = keywords.get("groups", 1)
        shape = (outputs, x.shape[1] // groups, k, k)
        weights = self.random.integers(-3, 4, shape).astype(np.int8)

        def lower(given: Any, prefix: str) -> Lowered:
            w = build.input(f"{prefix}w", "i8", shape, const=True)
            sums = integer_conv(given[0], w, padding=k // 2, **keywords)
            return Lowered((build.cast(build.clip(sums // 4, 0, 255), "u8"),), ((w, weights),))

        (result,) = self.builder.apply("conv", lower, [x])
        return result


def laid(graph: Graph) -> list[str]:
    """The names of the operations whose results have channels last."""
    return [each.name for each in in_layouts(graph).operations if any(t.plain is not None for t in each.made)]


def check(graph: Graph) -> None:
    """Compare a model in layouts with the same one without, interpreted and compiled."""
    random = np.random.default_rng(1)
    types: dict[str, Any] = {"u8": np.uint8, "f32": np.float32}
    given: dict[str, NDArray[Any]] = {
        t.name: random.integers(0, 200, t.shape).astype(types[t.dtype]) for t in graph.inputs
    }
    model, plain = Model.of(graph), Model.of(_unlaid(graph))
    assert any(t.plain is not None for step in model.steps for t in step.outputs)
    assert not any(t.plain is not None for step in plain.steps for t in step.outputs)
    wanted = plain.interpret(**given)
    for made in (model.interpret, model.compile(tune="none"), model.compile()):
        found: Any = made(**given)
        for each, right in zip([found] if len(wanted) == 1 and made != model.interpret else found, wanted, strict=True):
            np.testing.assert_array_equal(each, right)


def _unlaid(graph: Graph) -> Graph:
    """The graph with convolutions that ask for no layout."""
    for operation in graph.operations:
        operation.images = frozenset()
    return graph


def block(made: Images, x: Operand) -> Operand:
    """Two convolutions and a residual connection."""
    inner = made.conv(made.conv(x, C), C)
    return made("add", lambda a, b: build.minimum(a, b), inner, x)


def test_images_between_convolutions_have_channels_last() -> None:
    made = Images()
    x = made.conv(made.bytes("x", 2, 3, 9, 10), C)
    graph = made.finish(made.conv(block(made, x), 5))
    assert laid(graph) == ["conv", "conv", "conv", "add"]
    assert [each.made[0].shape for each in in_layouts(graph).operations][:2] == [(2, 9, 10, C)] * 2
    check(graph)


def test_pools_and_convolutions_by_channels_take_either_order() -> None:
    made = Images()
    x = made.conv(made.bytes("x", 1, 4, 12, 12), C)
    pooled = made("pool", lambda a: build.pool("max", a, (3, 3), stride=2, padding=1), x)
    graph = made.finish(made.conv(made.conv(pooled, C, groups=C), 6, k=1))
    assert laid(graph) == ["conv", "pool", "conv"]
    by_channels = graph.operations[2]
    assert by_channels.kind is Kind.CONTRACTION
    assert by_channels.windows
    check(graph)


def test_inputs_outputs_and_views_keep_their_order() -> None:
    made = Images()
    first = made.conv(made.bytes("x", 1, 4, 6, 6), C)
    second = made.conv(first, C)
    third = made.conv(second, C)
    flat = made("flatten", lambda a: build.reshape(a, (1, C * 36)), third)
    graph = made.finish(made.conv(second, 4), made("twice", lambda a: build.maximum(a, 3), flat), first)
    assert laid(graph) == ["conv"]
    check(graph)


def test_pieces_of_a_concatenation_stay_side_by_side() -> None:
    made = Images()
    x = made.conv(made.bytes("x", 1, 4, 8, 8), C)
    parts = made.conv(x, C), made.conv(x, C, k=1)
    both = made("concat", lambda a, b: build.concatenate([a, b], 1), *parts)
    graph = made.finish(made.conv(both, 4))
    assert laid(graph) == ["conv"]
    assert any(step.places for step in Model.of(graph).steps)
    check(graph)


def test_a_large_operand_in_another_order_outweighs_a_convolution() -> None:
    made = Images()
    x = made.conv(made.bytes("x", 1, 4, 6, 6), C)
    others = [made.bytes(f"x{n}", 1, C, 6, 6) for n in (1, 2, 3)]
    for other in others:
        x = made("add", lambda a, b: build.minimum(a, b), x, other)
    assert laid(made.finish(made.conv(x, 4))) == []


def test_f32_convolutions_want_no_layout() -> None:
    made = Images()
    x = made.input("x", 1, 4, 6, 6)
    for _ in range(2):
        w = np.ones((4, 4, 3, 3), np.float32)
        x = made("conv", lambda a, b: build.conv(a, b, padding=1), x, w)
    assert laid(made.finish(x)) == []


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_bf16_convolutions_of_any_rank(rank: int) -> None:
    made = Images()
    x = made.input("x", 2, 3, *[7, 6, 5][:rank])
    narrow = made("cast", lambda a: build.cast(a, "bf16"), x)
    for number in range(3):
        w = np.random.default_rng(number).integers(-2, 3, (6, narrow.shape[1], *[3] * rank)).astype(np.float32)
        narrow = made("conv", lambda a, b: conv_of_pairs(a, build.cast(b, "bf16"), padding=1), narrow, w)
    graph = made.finish(made("wide", lambda a: build.cast(a, "f32"), narrow))
    assert laid(graph) == ["conv", "conv"]
    assert isinstance(narrow, Tensor)
    x_value = np.random.default_rng(5).integers(-2, 3, (2, 3, *[7, 6, 5][:rank])).astype(np.float32)
    (wanted,) = Model.of(_unlaid(made.finish(*[value for _, value in graph.outputs]))).interpret(x_value)
    found = Model.of(graph).compile()(x_value)
    np.testing.assert_allclose(found, wanted, rtol=2**-6, atol=2**-6 * np.abs(wanted).max())
