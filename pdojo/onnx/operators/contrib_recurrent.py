"""Recurrent networks of ONNX Runtime's domain, with quantised weights."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array, quantising
from pdojo.build.recurrent import Function, RecurrentCell, lstm_network
from pdojo.onnx.operators.arguments import optional
from pdojo.onnx.operators.contrib import check_rank, check_shape, contrib
from pdojo.onnx.operators.quantisation import known_zero
from pdojo.onnx.operators.recurrences import activations_of
from pdojo.onnx.operators.registry import Node

_WEIGHTS = {1: ("W", 8), 2: ("R", 10)}
"""Operands with weights: the name, and the place of the scale, before that of the zero point."""


@contrib(
    "DynamicQuantizeLSTM",
    "X:S W:Q R:W B:S? sequence_lens:N? initial_h:S? initial_c:S? P:S? W_scale:S W_zero_point:Q "
    "R_scale:S R_zero_point:W",
    "activation_alpha activation_beta activations clip direction hidden_size input_forget~",
)
def dynamic_quantize_lstm(node: Node) -> list[Array]:
    """A network of long short-term memory with quantised weights.

    The inputs of all steps, and the states of each step, are quantised to u8 over the range of their elements.
    """
    kind = node.choice("direction", ("forward", "reverse", "bidirectional"))
    x, w, r = (node.array(k) for k in range(3))
    check_rank(node, "X", x, 3)
    check_rank(node, "R", r, 3)
    directions, size = 2 if kind == "bidirectional" else 1, r.shape[1]
    wanted = {1: ("W", (directions, x.shape[2], 4 * size)), 2: ("R", (directions, size, 4 * size))}
    wanted |= {3: ("B", (directions, 8 * size)), 4: ("sequence_lens", (x.shape[1],)), 7: ("P", (directions, 3 * size))}
    wanted |= {k: (name, (directions, x.shape[1], size)) for k, name in ((5, "initial_h"), (6, "initial_c"))}
    for operand, (name, shape) in wanted.items():
        if node.given(operand):
            check_shape(node, name, node.value(operand), shape)
    functions = activations_of(node, ("Sigmoid", "Tanh", "Tanh"), directions)
    network, peepholes = lstm_network(bool(node.attribute("input_forget", 0))), optional(node, 7)
    found: list[list[Array]] = []
    for d in range(directions):
        cell = RecurrentCell(
            x,
            build.transpose(w[d]),
            build.transpose(r[d]),
            build.split(node.array(3)[d], 2) if node.given(3) else None,
            functions[d],
            "iofc",
            optional(node, 4),
            kind == "reverse" or d == 1,
            node.attribute("clip"),
            _product(node, 1, d),
            _product(node, 2, d),
        )
        zeros = build.constant(0, "f32", (x.shape[1], size))
        states = [node.array(k)[d] if node.given(k) else zeros for k in (5, 6)]
        outputs, last = network(cell, states, None if peepholes is None else peepholes[d])
        found.append([outputs, *last])
    outputs = build.stack([each[0] for each in found], 1)
    last = [build.stack([each[k] for each in found], 0) for k in (1, 2)]
    return [outputs, *last][: len(node.outputs)]


def _product(node: Node, operand: int, direction: int) -> Function:
    """The product of numbers, quantised by their range, with the weights of a direction."""
    name, place = _WEIGHTS[operand]
    weights = node.array(operand)[direction]
    scale, zero = node.array(place), known_zero(node, place + 1)
    for each, title in ((scale, f"{name}_scale"), (zero, f"{name}_zero_point")):
        if each is not None and each.size != 1:
            first = node.value(operand).shape[0]
            check_shape(node, title, each, (first,), (first, weights.shape[1]))
    own = _of_direction(scale, direction)
    point = None if zero is None else _of_direction(zero, direction)

    def product(x: Array) -> Array:
        numbers, factor, middle = quantising.quantize_by_range(x)
        sums = quantising.integer_matmul(numbers, weights, middle, point)
        return build.cast(sums, "f32") * (factor * quantising.along(own, sums, -1))

    return product


def _of_direction(values: Array, direction: int) -> Array:
    return build.reshape(values, ()) if values.size == 1 else values[direction]
