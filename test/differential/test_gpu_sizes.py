"""Device code of kernels with sizes, for values at the ends of ranges and around multiples of blocks."""

from __future__ import annotations

import pytest

from differential.device_code import compile_kernels
from differential.gpu_ir import Device
from differential.library import close
from differential.sized import run_in_gpu_form, values_of
from differential.test_gpu_ir import MACHINES, lowered
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.fibers import WAYS, Order, compilers
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of

TILED = """\
kernel tiled(x) -> (y, m)
size N in 1..70
size M in 8..64 multiple 8
x f32 [N, M] heap
y f32 [N, (M-1)] heap
m f32 [N] heap

18:g
| 4:b where ({0}*4+{1} < N)
| | m[{0}*4+{1}] = -inf
| | M m[{0}*4+{1}] max= x[{0}*4+{1},{2}]
5:g 2:g 16:b where ({0}*16+{2} < N) 32 where ({1}*32+{3} < M-1) y[{0}*16+{2},{1}*32+{3}] = x[{0}*16+{2},{1}*32+{3}] + 1
"""
STAGED = """\
kernel staged(x) -> (y, s)
size N in 1..40
size M in 8..32 multiple 4
x f32 [N, M] heap
y f32 [N, M] heap
s f32 [N] heap
t f32 [10:N, 4, M] shared
p f32 [N] heap

10:g
| 4:b where ({0}*4+{1} < N) 8 where ({2}*4 < M) 4:v t[{0},{1},{2}*4+{3}] = x[{0}*4+{1},{2}*4+{3}]
| 4:b where ({0}*4+{1} < N) M y[{0}*4+{1},{2}] = t[{0},{1},M-1-{2}]
N:g
| p[{0}] = 0
| M:b p[{0}] += x[{0},{1}]
N:g s[{0}] = p[N-1-{0}] + N
"""
HOST = """\
kernel host(x) -> (y)
size N in 2..20
x f32 [N, N] heap
y f32 [N, N] heap

N
| 2:g 10:b where ({1}*10+{2} < N-{0}) y[{0},{0}+{1}*10+{2}] = x[{0},{0}+{1}*10+{2}] * 2
| 20:g where ({1} < {0}) y[{0},{1}] = x[{1},{0}] - 1
"""
TEXTS = {"tiles": TILED, "shared memory and trees": STAGED, "loops of the host": HOST}
FEW: tuple[tuple[bool, Order], ...] = (WAYS[0], WAYS[4])
"""Ways to run device code that together show most races."""


@pytest.mark.skipif(not compilers(), reason="no C++ compiler")
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("warp", [32, 64])
def test_device_code(name: str, warp: int) -> None:
    (kernel,) = parse_notation(TEXTS[name])
    compiled = compile_kernels([kernel], described=machine(MACHINES[warp]))
    for values in values_of(kernel, (16, 32)):
        known = bound(kernel, values)
        inputs = random_inputs(parameters_of(nest_of(known)), 0)
        wanted = interpret(known, inputs)
        for found in compiled.run(kernel, inputs, sizes=values, ways=FEW):
            close(found, wanted, known)


@pytest.mark.parametrize("name", TEXTS)
def test_the_gpu_dialect(name: str) -> None:
    (kernel,) = parse_notation(TEXTS[name])
    module = lowered(kernel, 4)
    for values in values_of(kernel, (10,)):
        known = bound(kernel, values)
        inputs = random_inputs(parameters_of(nest_of(known)), 0)
        found = run_in_gpu_form(Device(module, warp=4, seed=0), kernel, inputs, values)
        close(found, interpret(known, inputs), known)
