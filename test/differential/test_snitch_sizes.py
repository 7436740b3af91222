"""Kernels with sizes on a simulated Snitch core, for values at the ends of ranges and around multiples of tiles."""

from __future__ import annotations

import numpy as np
import pytest

import pdojo
from differential.library import close
from differential.sized import values_of
from differential.snitch import DIVIDES
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.snitch.executable import load
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError

TEXTS = {
    "rows": """\
kernel rows(x) -> (y, m)
size N in 1..9
size M in 4..16 multiple 4
x f64 [N, M] heap
y f64 [N, (M-1)] heap
m f64 [N] heap
t f64 [N] heap

N
| t[{0}] = -inf
| M t[{0}] max= x[{0},{1}]
N m[{0}] = t[N-1-{0}] + M
N (M-1) y[{0},{1}] = x[{0},{1}+1] * m[{0}]
""",
    "tiles": """\
kernel tiles(x, w) -> (y)
size M in 1..11
size K in 2..12
x f32 [M, K] heap
w f32 [K, 6] heap
y f32 [M, 6] heap

3 4 where ({0}*4+{1} < M) 3 2:v y[{0}*4+{1},{2}*2+{3}] = 0
3 4 where ({0}*4+{1} < M) 4 3 where ({2}*3+{3} < K) 6 y[{0}*4+{1},{4}] += x[{0}*4+{1},{2}*3+{3}] * w[{2}*3+{3},{4}]
""",
    "columns": """\
kernel columns(x) -> (y, z)
size H in 3..8
x f32 [2, H, (H+1), 3] heap
y f32 [(H+1), H, 2] heap
z f32 [(H-2), (H-2)] heap

(H+1) H 2 y[{0},{1},{2}] = x[{2},{1},{0},2] + {0}
2 4 where ({0}*4+{1} < H-2) (H-2)
| z[{0}*4+{1},{2}] = 0
| 3:u 3 z[{0}*4+{1},{2}] += x[1,{0}*4+{1}+{3},{2}+{4},{3}]
""",
    "triangle": """\
kernel triangle(x) -> (y, n)
size N in 1..10
x f64 [N, N] heap
y f64 [N, N] heap
n f64 [N] heap

N
| N y[{0},{1}] = 0
| N where ({1} <= {0}) y[{0},{1}] = x[{1},{0}]
| N where ({1}*2 < N+{0})
| | 3 where ({1}*3+{2} < N) y[{0},{1}*3+{2}] += x[{0},{1}*3+{2}] * 0.5
| n[{0}] = y[(N+{0})//2,0] + N//2
""",
    "ragged": """\
kernel ragged(x) -> (y)
size N in 1..8
x f64 [8, 8, 8, 2] heap
y f64 [8, 8, 8, 2] heap

8 8 8 2 y[{0},{1},{2},{3}] = 0
N 8 where ({0}+{1} < N) N 2 y[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]
N 8 where ({0}+{1} < N)
| 8 where ({1}+{2} < N) 2 y[{0},{1},({0}+{2})//2,{3}] += x[{0},{2},{1},{3}]
""",
    "lanes": """\
kernel lanes(x) -> (y, z)
size N in 1..12
size M in 4..16 multiple 4
x f32 [N, M] heap align 8
y f32 [N, M] heap align 8
z f32 [N, N] heap align 8

N 4 where ({1}*4 < M) 2 2:v y[{0},{1}*4+{2}*2+{3}] = x[{0},{1}*4+{2}*2+{3}] * 2
N 6 2:v where ({1}*2+{2} < N) z[{0},{1}*2+{2}] = x[{0},0] + x[{1}*2+{2},1]
""",
    "unrolled": """\
kernel unrolled(x) -> (y)
size N in 1..7
x f64 [N, 5] heap
y f64 [N, 5] heap
a f64 [7, 5] register

N:u 5:u a[{0},{1}] = x[{0},{1}]
N:u 5:u y[{0},{1}] = a[{0},4-{1}] + x[N-1-{0},{1}]
""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_simulated(name: str) -> None:
    (kernel,) = parse_notation(TEXTS[name])
    loaded = load(kernel, DIVIDES)
    for values in values_of(kernel, (4, 8)):
        known = bound(kernel, values)
        inputs = random_inputs(parameters_of(nest_of(known)), 0)
        close(loaded.run(inputs, sizes=values).outputs, interpret(known, inputs), known)


def test_sizes_are_found_in_shapes() -> None:
    text = """\
kernel shifted(x) -> (y)
size N in 1..9
size K in 1..6
x f64 [N, 8] heap
y f64 [N, 8] heap

N 8 y[{0},{1}] = x[{0},{1}] + K
"""
    (kernel,) = parse_notation(text)
    x = np.random.default_rng(0).standard_normal((3, 8))
    run = load(kernel, DIVIDES).run({"x": x}, sizes={"K": 5})
    np.testing.assert_array_equal(run.outputs["y"], x + 5)
    with pytest.raises(UsageError, match="kernel 'shifted' needs its size K, which no shape gives: K="):
        pdojo.run(kernel, x, machine="snitch")
    fixed = text.replace("size K in 1..6\n", "").replace("+ K", "+ N")
    np.testing.assert_array_equal(pdojo.run(fixed, x, machine="snitch"), x + 3)
