"""C code of kernels with strided arrays, on arrays with random gaps, which must stay."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from differential.c_code import require
from differential.strided import Memory
from pdojo.backends.c.targets import c_text
from pdojo.backends.calling.arrays import aligned_empty, parameters_at, parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import make_moves

KERNELS = {
    "rows": """\
kernel rows(x, w) -> (y)
size N in 1..40
x f32 [N, 24] heap strided
w f32 [2, N, 24] heap strided ?, 40
y f32 [N, 24] heap strided 31 -> y, t
s f32 [N] heap

N 24 t[{0},{1}] = x[{0},{1}] + w[1,{0},{1}]
N
| s[{0}] = 0
| 24 s[{0}] += t[{0},{1}]
N 24 y[{0},{1}] = t[{0},{1}] * s[{0}]
""",
    "turned": """\
kernel turned(x, u) -> (y)
x i32 [32, 16] heap strided
u i32 [16, 32] heap strided 0
y i32 [16, 32] heap strided

16 32 y[{0},{1}] = x[{1},{0}] - u[{0},{1}]
""",
}


@pytest.mark.parametrize("is_tuned", [False, True], ids=["plain", "tuned"])
@pytest.mark.parametrize("name", KERNELS)
def test_c_code_keeps_gaps(name: str, is_tuned: bool, tmp_path: Path) -> None:
    compiler = require()
    (plain,) = parse_notation(KERNELS[name])
    kernel = make_moves(plain, host(), "heuristic").after if is_tuned else plain
    (tmp_path / "k.c").write_text(c_text(kernel, machine=host()))
    command = [compiler, "-O1", "-shared", "-fPIC", str(tmp_path / "k.c"), "-o", str(tmp_path / "k.so"), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    nest, random = nest_of(kernel), np.random.default_rng(0)
    parameters, plan = parameters_of(nest), plan_memory(nest)
    workspace = aligned_empty((plan.shared_bytes + plan.thread_bytes + 64,), np.dtype(np.uint8))
    function = ctypes.CDLL(str(tmp_path / "k.so"))[name]
    for length in (1, 7, 40):
        sizes = dict.fromkeys(nest.sizes, length)
        found = parameters_at(parameters, sizes)
        given = [random.integers(-90, 90, p.shape).astype(INTERFACE[p.dtype]) for p in found]
        memory = [Memory(p, values, random) for p, values in zip(found, given, strict=True)]
        numbers = [*sizes.values(), *(stride for each in memory for stride in each.strides)]
        pointers = [ctypes.c_void_p(each.array.ctypes.data) for each in memory]
        function(*pointers, *map(ctypes.c_int64, numbers), ctypes.c_void_p(workspace.ctypes.data), 1)
        rows = list(zip(found, memory, strict=True))
        inputs = {p.name: each.values for p, each in rows if p.intent is not Intent.OUT}
        wanted = interpret(bound(plain, sizes), inputs)
        for parameter, each in rows:
            each.check()
            if parameter.written:
                np.testing.assert_allclose(each.array, wanted[parameter.name], rtol=1e-4)
