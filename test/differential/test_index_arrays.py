"""Code that reads entries of arrays of indices, in LLVM and C, on guarded memory: the interpreter's results, and for
callers that check nothing the nearest indices of the range, never other memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

import pdojo
from differential.c_code import compiled_c
from differential.compiled import Arrays, compiled, kernel, run, same
from pdojo.backends.c.targets import c_text
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import compile
from pdojo.backends.llvm.targets import llvm_text
from pdojo.backends.measure.guarded import GuardedArray, GuardPlacement
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of

KERNELS = {
    "embedding": """\
kernel embedding(x, idx) -> (y)
x f32 [10, 16] heap
idx {} [5] heap in 0..9{}
y f32 [5, 16] heap

5:p 16:v y[{{0}},{{1}}] = x[idx[{{0}}],{{1}}]
""",
    "take along": """\
kernel take_along(x, idx) -> (y)
x f32 [5, 9] heap
idx {} [5, 8] heap in 0..8{}
y f32 [5, 8] heap

5 8:u y[{{0}},{{1}}] = x[{{0}},idx[{{0}},{{1}}]]
""",
    "causal mask": """\
kernel causal(x, idx) -> (y)
x f32 [4, 16] heap
idx {} [] heap in 2..12{}
y f32 [4, 16] heap

4 16:v y[{{0}},{{1}}] = -inf
4 2 8:v where ({{1}}*8+{{2}} <= {{0}}+idx[]) y[{{0}},{{1}}*8+{{2}}] = x[{{0}},{{1}}*8+{{2}}] * 2
""",
    "cache": """\
kernel cache(k, q, idx) -> (s)
k f32 [20, 8] heap
q f32 [8] heap
idx {} [1] heap in 0..20{}
s f32 [20] heap

20 s[{{0}}] = 0
20:p where ({{0}} < idx[0]) 8 s[{{0}}] max= k[{{0}},{{1}}] * q[{{1}}]
""",
    "slice": """\
kernel slice(x, idx) -> (y)
x f32 [20, 8] heap
idx {} [2] heap in 0..4{}
y f32 [8, 4] heap

8 4:v y[{{0}},{{1}}] = x[{{0}}+idx[0]*3,{{1}}+idx[1]]
""",
    "value": """\
kernel value(x, idx) -> (y, z)
x f32 [4, 8] heap
idx {} [4, 8] heap in 1..9{}
y f32 [4, 8] heap
z f32 [4, 8] heap

4 8:v y[{{0}},{{1}}] = x[{{0}},{{1}}] * index(idx[{{0}},0]//2+{{1}})
4 8:u where (idx[{{0}},{{1}}] >= 5) z[{{0}},{{1}}] = x[{{0}},{{1}}]
4 8 where (idx[{{0}},{{1}}] < 5) z[{{0}},{{1}}] = 0
""",
    "gather": """\
kernel gather(x, w, idx) -> (y, z, u)
x f32 [10, 6] heap
w f32 [3, 8] heap
idx {} [3, 8] heap in 2..9{}
y f32 [3, 8] heap
z f32 [3, 8] heap
u f32 [3, 8] heap
t i64 [9] table 3, 0, 5, 5, 2, 1, 4, 0, 3

3 8:v y[{{0}},{{1}}] = x[idx[{{0}},{{1}}],{{0}}] * w[{{0}},{{1}}]
3 8:v z[{{0}},{{1}}] = x[idx[{{0}},{{1}}]//2,t[{{1}}+1]]
3 8:v u[{{0}},{{1}}] = 0
3 2 4:v where ({{1}}*4+{{2}} < 7, {{0}} <= {{2}})
| u[{{0}},{{1}}*4+{{2}}] = x[idx[{{0}},{{1}}*4+{{2}}],2] + x[t[({{1}}+{{2}})*2],{{2}}+2]
""",
    "scatter": """\
kernel scatter(x, idx) -> (y, z)
x f32 [6, 16] heap
idx {} [6] heap in 0..9{}
y f32 [10, 16] heap
z f32 [20] heap

10 16:v y[{{0}},{{1}}] = 0
10 2:u z[{{0}}*2+{{1}}] = 1
2:p 6 8:v y[idx[{{1}}],{{0}}*8+{{2}}] += x[{{1}},{{0}}*8+{{2}}]
6:u
| 16:v z[idx[{{0}}]*2] max= x[{{0}},{{1}}]
| z[idx[{{0}}]+10] = x[{{0}},3]
""",
}


class Unchecked:
    """A compiled kernel whose caller does not check the indices."""

    def __init__(self, text: str) -> None:
        self.executable = compile(kernel(text), threads=2, optimize="search")
        self.parameters = self.executable.parameters

    def __call__(self, **arrays: NDArray[Any]) -> None:
        self.executable.run([arrays[parameter.name] for parameter in self.parameters])


def arrays_for(text: str, kind: str, dtype: str) -> Arrays:
    """Inputs whose indices are at the ends of the range, random, equal, or (`any`) of the whole type."""
    random, given = np.random.default_rng(3), dict[str, NDArray[Any]]()
    for parameter in parameters_of(nest_of(kernel(text))):
        shape = parameter.shape
        if parameter.indices is not None:
            low, last = parameter.indices.bounds
            limits = np.iinfo(INTERFACE[dtype])
            choices = {"ends": [low, last], "equal": [last], "any": [limits.min, limits.max, low - 1, last + 1, -1]}
            values = random.choice(choices.get(kind, np.arange(low, last + 1)), shape)
            given[parameter.name] = np.asarray(values).astype(INTERFACE[dtype])
        elif not parameter.written:
            given[parameter.name] = random.standard_normal(shape).astype(np.float32)
    return given


@pytest.mark.parametrize("dtype", ["i64", "i32", "i8"])
@pytest.mark.parametrize("name", KERNELS)
def test_indices_of_the_range(name: str, dtype: str, tmp_path: Path) -> None:
    text = KERNELS[name].format(dtype, "")
    code = compiled_c(kernel(text), tmp_path)
    for kind in ("ends", "equal", "random"):
        inputs = arrays_for(text, kind, dtype)
        wanted = interpret_stepwise(kernel(text), inputs)
        for found in (interpret(kernel(text), inputs), compiled(text, inputs)[1], code(inputs)):
            assert all(same(found[array], wanted[array], "f32") for array in wanted)


@pytest.mark.parametrize("outside", ["", " clamp", " wrap"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_other_memory_is_read(name: str, outside: str, tmp_path: Path) -> None:
    text = KERNELS[name].format("i64", outside)
    given = arrays_for(text, "any", "i64")
    used = given
    if outside == " wrap":
        (array,) = nest_of(kernel(text)).index_arrays.values()
        past = array.bounds[1] + 1
        used = {**given, "idx": np.where(given["idx"] < 0, given["idx"] + past, given["idx"])}
    wanted = interpret(kernel(KERNELS[name].format("i64", " clamp")), used)
    for found in (run(Unchecked(text), given), compiled_c(kernel(text), tmp_path)(given)):
        assert all(same(found[array], wanted[array], "f32") for array in wanted)


AHEAD = """\
kernel ahead(x, idx) -> (y, z)
size N in 2..40
size M in 16..48 multiple 16
x f32 [N, M] heap
idx {} [N, 2] heap in 0..N-1
y f32 [N, M] heap
z f32 [N] heap

N:p (M//16) 16:v y[{{0}},{{1}}*16+{{2}}] = x[idx[{{0}},1],{{1}}*16+{{2}}]!ahead(3)
2 20 where ({{0}}*20+{{1}} < N) z[{{0}}*20+{{1}}] = x[idx[{{0}}*20+{{1}},0],3]!ahead(50)!prefetch(64)
"""


@pytest.mark.parametrize("dtype", ["i64", "i8"])
def test_loads_ahead_read_no_other_memory(dtype: str) -> None:
    """Indices end at memory that cannot be read; the last iterations fetch what the nearest entries name."""
    code = pdojo.compile(AHEAD.format(dtype), threads=2)
    for rows, columns in ((2, 16), (40, 48), (21, 32)):
        random = np.random.default_rng(rows)
        x = random.standard_normal((rows, columns)).astype(np.float32)
        guarded = GuardedArray((rows, 2), INTERFACE[dtype], GuardPlacement("behind", INTERFACE[dtype].itemsize))
        guarded.array[...] = random.integers(0, rows, (rows, 2))
        y, z = np.empty((rows, columns), np.float32), np.empty(rows, np.float32)
        code(x=x, idx=guarded.array, y=y, z=z)
        assert (y == x[guarded.array[:, 1]]).all()
        assert (z == x[guarded.array[:, 0], 3]).all()


def test_loads_ahead_are_prefetched(tmp_path: Path) -> None:
    (known,) = parse_notation(AHEAD.format("i32"), given={"N": 21, "M": 32})
    text = c_text(known)
    place = r"pd_min\(pd_max\(\(int64_t\)\(i0\+3\), 0\), 20\)"
    assert re.search(rf"__builtin_prefetch\(.*x \+ sizeof \*x .*idx\[.*{place}", text)
    assert text.count("__builtin_prefetch") == 3
    assert len(re.findall(r"call void @\"?llvm\.prefetch", llvm_text(ModuleOp([known.clone()])))) == 3
    given: Arrays = {"x": np.random.default_rng(0).random((21, 32), np.float32), "idx": np.zeros((21, 2), np.int32)}
    wanted = interpret(known, given)
    found = compiled_c(known, tmp_path)(given)
    assert all(same(found[array], wanted[array], "f32") for array in wanted)
