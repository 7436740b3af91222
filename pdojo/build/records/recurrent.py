"""Recurrent layers, and attention by a state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import recurrent
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]


@operator(
    recurrent.linear_attention_network,
    call(array("3 2 4 2"), array("3 2 2 2"), array("3 2 2 3"), array("2 2 2 3"), scale=0.5),
    call(array("3 1 2 2"), array("3 1 2 2"), array("3 1 2 3"), array("1 2 2 3"),
         decays=array("3 1 2 1", low=-1, high=0)),
    call(array("2 1 3 2"), array("2 1 1 2"), array("2 1 1 3"), array("1 1 2 3"), factors=array("2 1 1 1", low=0)),
    call(array("1 1 1 2"), array("1 1 1 2"), array("1 1 1 1"), array("1 1 2 1"),
         decays=array("1 1 1 2", low=-1, high=0), factors=array("1 1 1 1", low=0)),
    results=("result", "state"),
    ulps=32,
)  # fmt: skip
def linear_attention_network(
    queries: Values, keys: Values, values: Values, state: Values, *, decays: Values | None = None,
    factors: Values | None = None, scale: float = 1.0,
) -> list[Values]:  # fmt: skip
    """The outputs of all steps, and the last state."""
    outputs: list[Values] = []
    for step, (query, key, value) in enumerate(zip(queries, keys, values, strict=True)):
        state = state if decays is None else state * np.exp(decays[step])[..., None]
        if factors is not None:
            value = factors[step] * (value - np.einsum("bhkv,bhk->bhv", state, key))
        state = state + key[..., None] * value[..., None, :]
        shared = np.repeat(state, query.shape[1] // key.shape[1], 1)
        outputs.append(np.einsum("bhk,bhkv->bhv", query, shared) * scale)
    return [np.stack(outputs), state]


def _layer(kind: str, count: int, states: int, *rest: Any, batch: int = 2, **facts: Any) -> Any:
    """A call with inputs [4, batch, 3], and states of 5 elements; `rest` says whether biases and states are given."""
    has_biases, has_states = rest
    biases = [array(f"{5 * count}")] * 2 if has_biases else None
    first = [array(f"{batch} 5")] * states if has_states else None
    weights = array(f"{5 * count} 3"), array(f"{5 * count} 5")
    return call(array(f"4 {batch} 3"), *weights, biases, first, kind=kind, **facts)


_LENGTHS = array("3", "i32", given=[4, 1, 2])


@operator(
    recurrent.recurrent_layer,
    _layer("rnn", 1, 1, True, False),
    _layer("rnn", 1, 1, False, True, batch=3, lengths=_LENGTHS, backwards=True),
    _layer("rnn", 1, 1, True, True, batch=1, clip=0.25),
    _layer("gru", 3, 1, True, True),
    _layer("gru", 3, 1, True, True, linear_before_reset=True, gates="rzh"),
    _layer("gru", 3, 1, False, False, batch=3, linear_before_reset=True, lengths=_LENGTHS, clip=0.5),
    _layer("lstm", 4, 2, True, True, gates="ifco"),
    _layer("lstm", 4, 2, False, False, batch=3, lengths=_LENGTHS, backwards=True),
    _layer("lstm", 4, 2, True, True, peephole=array("15"), clip=0.75),
    _layer("lstm", 4, 2, True, False, batch=1, coupled=True, peephole=array("15")),
    results=("result", "h", "c"),
    ulps=64,
)
def recurrent_layer(
    x: Values, w: Values, r: Values, biases: Any = None, states: Any = None, *, kind: str, gates: str = "",
    peephole: Values | None = None, lengths: Values | None = None, backwards: bool = False, clip: float | None = None,
    coupled: bool = False, linear_before_reset: bool = False,
) -> list[Values]:  # fmt: skip
    """The outputs of all steps, and the last states, sequence by sequence."""
    order = gates or {"rnn": "h", "gru": "zrh", "lstm": "iofc"}[kind]
    size, steps = r.shape[1], len(x)
    rows, columns = (dict(zip(order, np.split(each, len(order)), strict=True)) for each in (w, r))
    of_inputs, of_states = (
        dict(zip(order, np.split(each, len(order)), strict=True)) for each in biases or [np.zeros(len(w))] * 2
    )
    through = dict(zip("iof", np.zeros((3, size)) if peephole is None else np.split(peephole, 3), strict=True))
    outputs = np.zeros((steps, x.shape[1], size))
    last = np.stack(states) if states else np.zeros((2 if kind == "lstm" else 1, x.shape[1], size))

    def limited(value: Values) -> Values:
        return value if clip is None else np.clip(value, -clip, clip)

    def gate(letter: str, element: Values, h: Values, c: Values) -> Values:
        plain = rows[letter] @ element + columns[letter] @ h + of_inputs[letter] + of_states[letter]
        return 1 / (1 + np.exp(-limited(plain + through.get(letter, 0) * c)))

    for b in range(x.shape[1]):
        count = steps if lengths is None else int(lengths[b])
        h, c = last[0, b], last[-1, b]
        for t in reversed(range(count)) if backwards else range(count):
            u = x[t, b]
            if kind == "lstm":
                entering = gate("i", u, h, c)
                kept = 1 - entering if coupled else gate("f", u, h, c)
                inner = rows["c"] @ u + columns["c"] @ h + of_inputs["c"] + of_states["c"]
                c = kept * c + entering * np.tanh(limited(inner))
                h = gate("o", u, h, c) * np.tanh(c)
            elif kind == "gru":
                zero = np.zeros(size)
                z, reset = gate("z", u, h, zero), gate("r", u, h, zero)
                inner = columns["h"] @ (h if linear_before_reset else reset * h) + of_states["h"]
                inner = reset * inner if linear_before_reset else inner
                new = np.tanh(limited(rows["h"] @ u + of_inputs["h"] + inner))
                h = (1 - z) * new + z * h
            else:
                h = np.tanh(limited(rows["h"] @ u + columns["h"] @ h + of_inputs["h"] + of_states["h"]))
            outputs[t, b] = h
        last[0, b] = h
        if kind == "lstm":
            last[1, b] = c
    return [outputs, *last]
