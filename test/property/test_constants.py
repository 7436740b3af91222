"""Random walks through kernels with constants: nests that run at binding stay apart from the others, and right."""

from __future__ import annotations

import pytest

from property.walks import assert_walk
from qa.walks import Counts

LAYERS = """
kernel layers(x, w, v) -> (y)
x f32 [2, 4] heap
w f32 [4, 4] heap const
v f32 [4, 3] heap const
y f32 [2, 3] heap
p f32 [4, 4] heap const
e f32 [4, 3] heap const
t f32 [4:N] heap
s f32 [2, 4] heap

4 4 p[{0},{1}] = w[{1},{0}]
2 4
| s[{0},{1}] = 0
| 4 s[{0},{1}] fma= x[{0},{2}] * p[{1},{2}]
4
| t[{0}] = {0}
| 3 e[{0},{1}] = v[{0},{1}] * t[{0}]
2 4 s[{0},{1}] = max(s[{0},{1}], 0)
2 3
| y[{0},{1}] = 0
| 4 y[{0},{1}] fma= s[{0},{2}] * e[{2},{1}]
"""
"""Two layers with packed weights; between them a nest that scales weights, with a temporary of its own."""

MIXING = (
    "bind_array",
    "unbind_array",
    "stage_in",
    "join_scopes",
    "split_scopes",
    "inline_op",
    "hoist_nodes",
    "swap_nodes",
)
"""Moves that could mix the two sorts of nests."""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["toy", "toy-gpu"])
def test_walks_with_constants(name: str, seed: int) -> None:
    counts = Counts()
    assert_walk(LAYERS, name, seed, 20, counts, prefer=MIXING)
    assert counts.moves == 20
