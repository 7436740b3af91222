"""Recurrent networks, and attention by a state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.build.recurrent import Function, linear_attention_network, recurrent_layer
from pdojo.math.composites import COMPOSITES
from pdojo.onnx.operators.arguments import optional
from pdojo.onnx.operators.registry import Node, operator

_GATES = {"RNN": "h", "GRU": "zrh", "LSTM": "iofc"}
_DEFAULTS: dict[str, tuple[float | None, float | None]] = {
    **{"leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0, 0.0)},
    **{"scaledtanh": (None, None), "affine": (None, None)},
}
"""Activations with parameters alpha and beta, and their defaults, which are those of the operators of these names."""
_FUNCTIONS = {
    **{name: name for name in ("relu", "tanh", "sigmoid", "softsign", "softplus", "affine", "hardsigmoid", "elu")},
    **{"leakyrelu": "leaky_relu", "scaledtanh": "scaled_tanh"},
}
"""Functions of `build.map` by activations; the parameter of `leaky_relu` is the slope."""


def _activation(node: Node, name: str, alpha: float, beta: float) -> Function:
    word = name.lower()
    if word == "thresholdedrelu":
        # Unlike the operator of this name, the activation keeps an element at the bound.
        return lambda x: build.where(x >= alpha, x, 0)
    if word not in _FUNCTIONS:
        node.refuse(f"'{name}' is no activation")
    if word not in _DEFAULTS:
        return partial(build.map, _FUNCTIONS[word])
    known, given = COMPOSITES[_FUNCTIONS[word]].parameters, {"alpha": alpha, "slope": alpha, "beta": beta}
    return partial(build.map, _FUNCTIONS[word], **{own: value for own, value in given.items() if own in known})


def activation_of(node: Node, name: str, alpha: float | None = None, beta: float | None = None) -> Function:
    """The activation of a name, with defaults for parameters that are None."""
    defaults = _DEFAULTS.get(name.lower(), (0.0, 0.0))
    given = [default if value is None else value for value, default in zip((alpha, beta), defaults, strict=True)]
    if given[0] is None or given[1] is None:
        node.refuse(f"activation '{name}' has no alpha or no beta")
    return _activation(node, name, given[0], given[1])


def activations_of(node: Node, defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """The activations of each direction."""
    names: list[str] = list(node.attribute("activations") or [*defaults] * directions)
    if len(names) != len(defaults) * directions:
        node.refuse(f"{len(names)} activations for {directions} directions of {len(defaults)}")
    alphas, betas = (iter(node.attribute(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found: list[Function] = []
    for name in names:
        given = (next(alphas, None), next(betas, None)) if name.lower() in _DEFAULTS else (None, None)
        found.append(activation_of(node, name, *given))
    return [found[k : k + len(defaults)] for k in range(0, len(found), len(defaults))]


def _directions(node: Node, defaults: Sequence[str], state_operands: Sequence[int], **facts: Any) -> list[Array]:
    """The results of all directions, in the layout of the node."""
    kind = node.attribute("direction", "forward")
    if kind not in ("forward", "reverse", "bidirectional"):
        node.refuse(f"'{kind}' is no direction")
    given = node.array(0)
    for operand in (0, 1, 2):
        if (rank := len(node.value(operand).shape)) != 3:
            node.contradicts(f"operand {operand} has {rank} dimensions, not 3")
    batch_first = bool(node.attribute("layout", 0))
    x = build.transpose(given, (1, 0, 2)) if batch_first else given
    w, r = node.array(1), node.array(2)
    _check_shapes(node, x.shape[-1], 2 if kind == "bidirectional" else 1)
    functions = activations_of(node, defaults, w.shape[0])
    peepholes = optional(node, 7) if node.op_type == "LSTM" else None
    found = [
        recurrent_layer(
            x,
            w[d],
            r[d],
            build.split(node.array(3)[d], 2) if node.given(3) else None,
            [_state(node, operand, d, x, r.shape[-1], batch_first=batch_first) for operand in state_operands],
            kind=node.op_type.lower(),
            functions=functions[d],
            peephole=None if peepholes is None else peepholes[d],
            lengths=optional(node, 4),
            backwards=kind == "reverse" or d == 1,
            clip=node.attribute("clip"),
            **facts,
        )
        for d in range(w.shape[0])
    ]
    outputs = build.stack([each[0] for each in found], 1)
    last = [build.stack([each[1 + k] for each in found], 0) for k in range(len(state_operands))]
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
    whole = node.array(operand)
    return whole[:, direction] if batch_first else whole[direction]


@operator("RNN")
def rnn(node: Node) -> list[Array]:
    """A network of one gate."""
    return _directions(node, ("Tanh",), [5])


@operator("GRU")
def gru(node: Node) -> list[Array]:
    """A network of gated recurrent units."""
    linear = bool(node.attribute("linear_before_reset", 0))
    return _directions(node, ("Sigmoid", "Tanh"), [5], linear_before_reset=linear)


@operator("LSTM")
def lstm(node: Node) -> list[Array]:
    """A network of long short-term memory."""
    coupled = bool(node.attribute("input_forget", 0))
    return _directions(node, ("Sigmoid", "Tanh", "Tanh"), [5, 6], coupled=coupled)


@operator("LinearAttention")
def linear_attention(node: Node) -> tuple[Array, Array]:
    """Attention by a state that each step decays, corrects and adds to."""
    rule = node.attribute("update_rule", "gated_delta")
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        node.refuse(f"'{rule}' is no rule of updates")
    query_heads, heads = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    given = node.array(0)

    def by_step(operand: int, groups: int) -> Array:
        """[steps, batch, heads, elements]."""
        x = node.array(operand)
        return build.transpose(build.reshape(x, (*x.shape[:2], groups, x.shape[2] // groups)), (1, 0, 2, 3))

    q, k, v = by_step(0, query_heads), by_step(1, heads), by_step(2, heads)
    factors = None
    if rule.endswith("delta"):
        factors = by_step(5, heads if node.array(5).shape[2] == heads else 1)
    start = optional(node, 3)
    zeros = build.constant(0, given.dtype, (q.shape[1], heads, q.shape[3], v.shape[3]))
    outputs, state = linear_attention_network(
        q,
        k,
        v,
        zeros if start is None else start,
        decays=by_step(4, heads) if rule.startswith("gated") else None,
        factors=factors,
        scale=node.attribute("scale", 0.0) or q.shape[3] ** -0.5,
    )
    packed = build.reshape(build.transpose(outputs, (1, 0, 2, 3)), (*given.shape[:2], query_heads * v.shape[3]))
    return packed, build.cast(state, given.dtype if start is None else start.dtype)
