"""Loops over memrefs of kernels with sizes, for some of their values: xDSL's interpreter and the kernel's agree."""

from __future__ import annotations

import numpy as np
import pytest

from differential.compiled import random_inputs
from differential.library import close
from differential.mlir import loops
from differential.sized import values_of
from differential.test_loops_library import executed
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of

TILED = """\
kernel tiled(x) -> (y, s)
size N in 1..12
size M in 4..12 multiple 4
x f32 [N, M] heap
y f32 [(N+1), (M//2)] heap
s f32 [N] heap
t f32 [N] heap

N t[{0}] = x[{0},M-1] * N
3:p 4 where ({0}*4+{1} < N)
| s[{0}*4+{1}] = t[N-1-{0}*4-{1}]
| 6:v where ({2}*2 < M) y[{0}*4+{1},{2}] = x[{0}*4+{1},{2}*2]
(M//2) y[N,{0}] = M
"""
GUARDED = """\
kernel guarded(x) -> (y)
size N in 1..12
x f32 [N, 12] heap
y f32 [N, 12] heap

N 12 y[{0},{1}] = 0
N
| 6 where ({0}*2+{1} < N) y[{0},{1}] = x[{0},{1}]
| 6 y[{0},{1}+6] = 1
N 12 where ({0} < N-3+{1}) y[{0},{1}] += x[{0},{1}]
N 12 where ({1} >= N//3) y[{0},{1}] += 2
"""


@pytest.mark.parametrize("text", [TILED, GUARDED], ids=["tiled", "guarded"])
@pytest.mark.parametrize("sequential", [False, True], ids=["parallel", "sequential"])
def test_interpreted(sequential: bool, text: str) -> None:
    (kernel,) = parse_notation(text)
    module = loops(kernel, sequential=sequential)
    for values in values_of(kernel, (4, 8)):
        known = bound(kernel, values)
        parameters = parameters_of(nest_of(known))
        inputs = random_inputs(parameters, 0)
        wanted = interpret(known, inputs)
        arrays = {p.name: inputs[p.name] if p.name in inputs else np.zeros_like(wanted[p.name]) for p in parameters}
        close(executed(module, parameters, arrays, *values.values()), wanted, known)
