"""Recurrent networks, and attention by a state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pdojo import build
from pdojo.build import Array, recurrent
from pdojo.build.recurrent import (
    Function,
    Network,
    RecurrentCell,
)
from pdojo.onnx.operators.arguments import optional, wide_type
from pdojo.onnx.operators.registry import Node, operator

_GATES = {"RNN": "h", "GRU": "zrh", "LSTM": "iofc"}
_DEFAULTS: dict[str, tuple[float | None, float | None]] = {
    **{"leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0, 0.0)},
    **{"scaledtanh": (None, None), "affine": (None, None)},
}
"""Activations with parameters alpha and beta, and their defaults, which are those of the operators of these names."""


def _activation(node: Node, name: str, alpha: float, beta: float) -> Function:
    functions: dict[str, Function] = {
        "relu": build.relu,
        "tanh": build.tanh,
        "sigmoid": build.sigmoid,
        "softsign": partial(build.map, "softsign"),
        "softplus": build.softplus,
        "affine": lambda x: x * alpha + beta,
        "leakyrelu": lambda x: build.leaky_relu(x, alpha),
        "thresholdedrelu": lambda x: build.where(x >= alpha, x, 0),
        "scaledtanh": lambda x: build.tanh(x * beta) * alpha,
        "hardsigmoid": partial(build.map, "hardsigmoid", alpha=alpha, beta=beta),
        "elu": lambda x: build.elu(x, alpha),
    }
    if name.lower() not in functions:
        node.refuse(f"'{name}' is no activation")
    return functions[name.lower()]


def _activations(node: Node, defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """The activations of each direction."""
    names: list[str] = list(node.attribute("activations") or [*defaults] * directions)
    if len(names) != len(defaults) * directions:
        node.refuse(f"{len(names)} activations for {directions} directions of {len(defaults)}")
    alphas, betas = (iter(node.attribute(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found: list[Function] = []
    for name in names:
        alpha, beta = _DEFAULTS.get(name.lower(), (0.0, 0.0))
        if name.lower() in _DEFAULTS:
            alpha, beta = next(alphas, alpha), next(betas, beta)
        if alpha is None or beta is None:
            node.refuse(f"activation '{name}' has no alpha or no beta")
        found.append(_activation(node, name, alpha, beta))
    return [found[k : k + len(defaults)] for k in range(0, len(found), len(defaults))]


def _directions(
    node: Node, defaults: Sequence[str], state_operands: Sequence[int], network: Network, peephole: int | None = None
) -> list[Array]:
    """The results of all directions, in the layout of the node."""
    kind = node.attribute("direction", "forward")
    if kind not in ("forward", "reverse", "bidirectional"):
        node.refuse(f"'{kind}' is no direction")
    given = node.array(0)
    x = build.cast(given, wide_type(given.dtype))
    for operand in (0, 1, 2):
        if (rank := len(node.value(operand).shape)) != 3:
            node.contradicts(f"operand {operand} has {rank} dimensions, not 3")
    batch_first = bool(node.attribute("layout", 0))
    x = build.transpose(x, (1, 0, 2)) if batch_first else x
    w, r = (build.cast(node.array(k), x.dtype) for k in (1, 2))
    _check_shapes(node, x.shape[-1], 2 if kind == "bidirectional" else 1)
    functions = _activations(node, defaults, w.shape[0])
    lengths = optional(node, 4)
    found: list[tuple[Array, list[Array]]] = []
    for d in range(w.shape[0]):
        both = build.split(build.cast(node.array(3), x.dtype)[d], 2) if node.given(3) else None
        backwards = kind == "reverse" or d == 1
        cell = RecurrentCell(
            x,
            w[d],
            r[d],
            both,
            functions[d],
            _GATES[node.op_type],
            lengths=lengths,
            backwards=backwards,
            clip=node.attribute("clip"),
        )
        states = [_state(node, operand, d, x, r.shape[-1], batch_first=batch_first) for operand in state_operands]
        weights = None
        if peephole is not None and node.given(peephole):
            weights = build.cast(node.array(peephole), x.dtype)[d]
        found.append(network(cell, states, weights))
    outputs = build.stack([each for each, _ in found], 1)
    last = [build.stack([states[k] for _, states in found], 0) for k in range(len(state_operands))]
    if batch_first:
        outputs = build.transpose(outputs, (2, 0, 1, 3))
        last = [build.transpose(each, (1, 0, 2)) for each in last]
    return [build.cast(each, given.dtype) for each in (outputs, *last)][: len(node.outputs)]


def _check_shapes(node: Node, inputs: int, directions: int) -> None:
    """Refuse weights and biases that do not fit together."""
    gates, size = len(_GATES[node.op_type]), node.value(2).shape[-1]
    wanted = {1: (directions, gates * size, inputs), 2: (directions, gates * size, size)}
    wanted |= {3: (directions, 2 * gates * size), 7: (directions, 3 * size)}
    for operand, shape in wanted.items():
        if node.given(operand) and tuple(node.value(operand).shape) != shape:
            node.contradicts(f"operand {operand} has shape {list(node.value(operand).shape)}, not {list(shape)}")


def _state(node: Node, operand: int, direction: int, x: Array, size: int, *, batch_first: bool) -> Array:
    if not node.given(operand):
        return build.constant(0, x.dtype, (x.shape[1], size))
    whole = build.cast(node.array(operand), x.dtype)
    return whole[:, direction] if batch_first else whole[direction]


@operator("RNN")
def rnn(node: Node) -> list[Array]:
    """A network of one gate."""
    return _directions(node, ("Tanh",), [5], recurrent.rnn_network)


@operator("GRU")
def gru(node: Node) -> list[Array]:
    """A network of gated recurrent units."""
    network = recurrent.gru_network(bool(node.attribute("linear_before_reset", 0)))
    return _directions(node, ("Sigmoid", "Tanh"), [5], network)


@operator("LSTM")
def lstm(node: Node) -> list[Array]:
    """A network of long short-term memory."""
    network = recurrent.lstm_network(bool(node.attribute("input_forget", 0)))
    return _directions(node, ("Sigmoid", "Tanh", "Tanh"), [5, 6], network, 7)


@operator("LinearAttention")
def linear_attention(node: Node) -> tuple[Array, Array]:
    """Attention by a state that each step decays, corrects and adds to."""
    rule = node.attribute("update_rule", "gated_delta")
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        node.refuse(f"'{rule}' is no rule of updates")
    query_heads, heads = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    given = node.array(0)
    kind = wide_type(given.dtype)

    def by_step(operand: int, groups: int) -> Array:
        """[steps, batch, heads, elements]."""
        x = build.cast(node.array(operand), kind)
        return build.transpose(build.reshape(x, (*x.shape[:2], groups, x.shape[2] // groups)), (1, 0, 2, 3))

    q, k, v = by_step(0, query_heads), by_step(1, heads), by_step(2, heads)
    factors = None
    if rule.endswith("delta"):
        factors = by_step(5, heads if node.array(5).shape[2] == heads else 1)
    start = optional(node, 3)
    zeros = build.constant(0, kind, (q.shape[1], heads, q.shape[3], v.shape[3]))
    outputs, state = recurrent.linear_attention_network(
        q,
        k,
        v,
        zeros if start is None else build.cast(start, kind),
        decays=by_step(4, heads) if rule.startswith("gated") else None,
        factors=factors,
        scale=node.attribute("scale", 0.0) or q.shape[3] ** -0.5,
    )
    packed = build.reshape(build.transpose(outputs, (1, 0, 2, 3)), (*given.shape[:2], query_heads * v.shape[3]))
    return build.cast(packed, given.dtype), build.cast(state, given.dtype if start is None else start.dtype)
