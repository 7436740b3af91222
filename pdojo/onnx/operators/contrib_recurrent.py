"""Recurrent networks of ONNX Runtime's domain, with quantised weights."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array, indexing, quantising
from pdojo.build.recurrent import Function, RecurrentCell, lstm_network
from pdojo.onnx.operators.arguments import integers, optional
from pdojo.onnx.operators.contrib import check_rank, check_shape, contrib
from pdojo.onnx.operators.quantisation import known_zero
from pdojo.onnx.operators.recurrences import activations_of
from pdojo.onnx.operators.registry import NeedsArrays, Node
from pdojo.onnx.operators.shapes import reversed_places

_OPERANDS = 12
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

    The inputs of all steps, and the states of each step, are quantised to u8 over the range of their elements. Steps
    behind the longest sequence do not count, and neither do states of rows that ended before the last step, if the
    outputs of all steps are wanted. Rows begin together, backwards, too.
    """
    x, r = node.array(0), node.array(2)
    check_rank(node, "X", x, 3)
    check_rank(node, "R", r, 3)
    directions, size = 2 if _kind(node) == "bidirectional" else 1, r.shape[1]
    wanted = {1: ("W", (directions, x.shape[2], 4 * size)), 2: ("R", (directions, size, 4 * size))}
    wanted |= {3: ("B", (directions, 8 * size)), 4: ("sequence_lens", (x.shape[1],)), 7: ("P", (directions, 3 * size))}
    wanted |= {k: (name, (directions, x.shape[1], size)) for k, name in ((5, "initial_h"), (6, "initial_c"))}
    for operand, (name, shape) in wanted.items():
        if node.given(operand):
            check_shape(node, name, node.value(operand), shape)
    if _kind(node) != "forward" and node.given(4) and isinstance(node.value(4), Array):
        raise NeedsArrays(
            lambda given: reversed_places(given.array(4), given.array(0).shape[:2], 0), _networks, range(_OPERANDS)
        )
    return _networks(node)


def _kind(node: Node) -> str:
    return node.choice("direction", ("forward", "reverse", "bidirectional"))


def _networks(node: Node) -> list[Array]:
    """The results of all directions; an operand behind those of the node has the places of reversed rows."""
    x, w, r = (node.array(k) for k in range(3))
    lengths, kind, size = optional(node, 4), _kind(node), r.shape[1]
    if lengths is not None:
        steps = build.iota((x.shape[0], 1, 1), lengths.dtype, 0)
        x = build.where(steps < build.max(lengths), x, 0)
    functions = activations_of(node, ("Sigmoid", "Tanh", "Tanh"), w.shape[0])
    network, peepholes = lstm_network(bool(node.attribute("input_forget", 0))), optional(node, 7)
    found: list[list[Array]] = []
    for d in range(w.shape[0]):
        is_reversed = kind == "reverse" or d == 1
        turns = is_reversed and lengths is not None
        cell = RecurrentCell(
            _reversed(node, x) if turns else x,
            build.transpose(w[d]),
            build.transpose(r[d]),
            build.split(node.array(3)[d], 2) if node.given(3) else None,
            functions[d],
            "iofc",
            lengths,
            is_reversed and not turns,
            node.attribute("clip"),
            _product(node, 1, d),
            _product(node, 2, d),
            forgets=bool(node.outputs[0]),
        )
        zeros = build.constant(0, "f32", (x.shape[1], size))
        states = [node.array(k)[d] if node.given(k) else zeros for k in (5, 6)]
        outputs, last = network(cell, states, None if peepholes is None else peepholes[d])
        found.append([_reversed(node, outputs) if turns else outputs, *last])
    outputs = build.stack([each[0] for each in found], 1)
    last = [build.stack([each[k] for each in found], 0) for k in (1, 2)]
    return [outputs, *last][: len(node.outputs)]


def _reversed(node: Node, x: Array) -> Array:
    """Sequences [steps, batch, ...], each with its elements in reverse order."""
    if node.given(_OPERANDS):
        places = node.array(_OPERANDS)
        return indexing.take_at(x, [places, build.iota(places.shape, "i64", 1)])
    return indexing.reverse_sequences(x, integers(node, 4), 0, 1)


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
