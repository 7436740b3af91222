"""Attention by a state."""

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
    types=("f64", "f32"),
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
