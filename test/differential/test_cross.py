"""Object files for other processors, linked with a C program and run under qemu-user, against the interpreter."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from differential.compiled import Arrays, kernel, random_inputs, same
from differential.cross import NATIVE, PLATFORMS, QemuTooOldError, run_object
from differential.test_llvm_functions import FUNCTIONS, agrees, special_values, text_of
from differential.test_llvm_vectors import ACCESSES, MASKS
from pdojo.backends.arrays import parameters_of
from pdojo.backends.llvm.targets import object_bytes
from pdojo.dialect.functions import is_float
from pdojo.dialect.interpreter import interpret, interpret_stepwise
from pdojo.dialect.machine import machine
from pdojo.dialect.nest import nest_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rounding import from_interface
from pdojo.errors import LoweringError
from pdojo.search.experts import expert_pass
from pdojo.transforms.game import Game

TARGETS = [pytest.param(t, marks=pytest.mark.slow) if t == "aarch64-neon" else t for t in PLATFORMS]
"""The oldest machine is like the newest of its architecture, with less."""

OPERATORS = {
    "softmax": """kernel k(x) -> (y)
x f32 [R, C] heap
y f32 [R, C] heap
m f32 [R] heap
e f32 [R, C] heap
s f32 [R] heap

R
| m[{0}] = -inf
| C m[{0}] max= x[{0},{1}]
R C e[{0},{1}] = x[{0},{1}] - m[{0}]
R C e[{0},{1}] = exp(e[{0},{1}])
R
| s[{0}] = 0
| C s[{0}] += e[{0},{1}]
R C y[{0},{1}] = e[{0},{1}] / s[{0}]
""",
    "layernorm": """kernel k(x, g, b) -> (y)
x f32 [R, C] heap
g f32 [C] heap
b f32 [C] heap
y f32 [R, C] heap
m f32 [R] heap
d f32 [R, C] heap
q f32 [R, C] heap
v f32 [R] heap
n f32 [R, C] heap

R
| m[{0}] = 0
| C m[{0}] += x[{0},{1}]
R m[{0}] = m[{0}] / C
R C d[{0},{1}] = x[{0},{1}] - m[{0}]
R C q[{0},{1}] = d[{0},{1}] * d[{0},{1}]
R
| v[{0}] = 0
| C v[{0}] += q[{0},{1}]
R v[{0}] = v[{0}] / C
R v[{0}] = v[{0}] + 1e-05
R v[{0}] = rsqrt(v[{0}])
R C n[{0},{1}] = d[{0},{1}] * v[{0}]
R C n[{0},{1}] = n[{0},{1}] * g[{1}]
R C y[{0},{1}] = n[{0},{1}] + b[{1}]
""",
    "matmul": """kernel k(a, b) -> (c)
a f32 [R, C] heap
b f32 [C, C] heap
c f32 [R, C] heap
t f32 [R:N, C:N, C:N] stack

R C
| c[{0},{1}] = 0
| C
| | t[{0},{1},{2}] = a[{0},{2}] * b[{2},{1}]
| | c[{0},{1}] += t[{0},{1},{2}]
""",
    "matmul of f16": """kernel k(a, b) -> (c)
a f16 [R, C] heap
b f16 [C, C] heap
c f32 [R, C] heap
u f32 [R:N, C:N, C:N] stack
v f32 [R:N, C:N, C:N] stack
t f32 [R:N, C:N, C:N] stack

R C
| c[{0},{1}] = 0
| C
| | u[{0},{1},{2}] = cast(a[{0},{2}])
| | v[{0},{1},{2}] = cast(b[{2},{1}])
| | t[{0},{1},{2}] = u[{0},{1},{2}] * v[{0},{1},{2}]
| | c[{0},{1}] += t[{0},{1},{2}]
""",
    "product of bytes": """kernel k(a, b) -> (c)
a i8 [R, C] heap
b i8 [C, C] heap
c i32 [R, C] heap
u i32 [R:N, C:N, C:N] stack
v i32 [R:N, C:N, C:N] stack
t i32 [R:N, C:N, C:N] stack

R C
| c[{0},{1}] = 0
| C
| | u[{0},{1},{2}] = cast(a[{0},{2}])
| | v[{0},{1},{2}] = cast(b[{2},{1}])
| | t[{0},{1},{2}] = u[{0},{1},{2}] * v[{0},{1},{2}]
| | c[{0},{1}] += t[{0},{1},{2}]
""",
    "gelu": """kernel k(x) -> (y)
x f32 [R, C] heap
y f32 [R, C] heap
t f32 [R, C] heap

R C t[{0},{1}] = x[{0},{1}] * 0.70710677
R C t[{0},{1}] = erf(t[{0},{1}])
R C t[{0},{1}] = t[{0},{1}] + 1
R C t[{0},{1}] = t[{0},{1}] * 0.5
R C y[{0},{1}] = t[{0},{1}] * x[{0},{1}]
""",
    "tanh and logarithm": """kernel k(x) -> (y, z)
x f32 [R, C] heap
y f32 [R, C] heap
z f32 [R, C] heap
t f32 [R, C] heap

R C y[{0},{1}] = tanh(x[{0},{1}])
R C t[{0},{1}] = abs(x[{0},{1}])
R C z[{0},{1}] = log(t[{0},{1}])
""",
    "bf16": """kernel k(x) -> (y)
x bf16 [R, C] heap
y bf16 [R, C] heap
t bf16 [R, C] heap

R C t[{0},{1}] = x[{0},{1}] * 1.5
R C y[{0},{1}] = max(t[{0},{1}], 0)
""",
    "f16": """kernel k(x) -> (y)
x f16 [R, C] heap
y f16 [R, C] heap
t f16 [R, C] heap

R C t[{0},{1}] = x[{0},{1}] * 1.5
R C y[{0},{1}] = max(t[{0},{1}], 0)
""",
    "transpose": "kernel k(x) -> (y)\nx f32 [R, C] heap\ny f32 [C, R] heap\n\nC R y[{0},{1}] = x[{1},{0}]\n",
    "reducemean": """kernel k(x) -> (y)
x f32 [R, C] heap
y f32 [R] heap

R
| y[{0}] = 0
| C y[{0}] += x[{0},{1}]
R y[{0}] = y[{0}] / C
""",
}
SIZES = {"even": (8, 64), "odd": (7, 37)}


def sized(text: str, rows: int, columns: int) -> KernelOp:
    text = re.sub(r"\bR\b", str(rows), text)
    return kernel(re.sub(r"\bC\b", str(columns), text))


def close(found: Arrays, wanted: Arrays, program: KernelOp) -> None:
    """Equal up to the rounding of sums in another order, and of functions that are approximated."""
    for parameter in parameters_of(nest_of(program)):
        if not parameter.written:
            continue
        left, right, dtype = found[parameter.name], wanted[parameter.name], parameter.dtype
        if not is_float(dtype):
            assert np.array_equal(left, right), parameter.name
            continue
        left, right = (from_interface(v, dtype).astype(np.float64) for v in (left, right))
        assert np.allclose(left, right, {"f16": 2e-3, "bf16": 1e-2}.get(dtype, 1e-4), 1e-5), parameter.name


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("target", TARGETS)
def test_tuned_operators(target: str, name: str, size: str, tmp_path: Path) -> None:
    PLATFORMS[target].require()
    game = Game(sized(OPERATORS[name], *SIZES[size]), machine(target))
    expert_pass("heuristic")(game)
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), len(name))
    close(run_object(game.kernel, target, inputs, tmp_path), interpret(game.programs[0].kernel, inputs), game.kernel)


def bundle(bodies: dict[str, str], dtype: str, *, fill: bool) -> str:
    """One kernel with an output of 32 elements for every body, which are written for x and y."""
    names = [f"y{k}" for k in range(len(bodies))]
    declared = "\n".join(f"{n} {dtype} [32] heap align 64" for n in ("x", *names))
    lines: list[str] = []
    for name, body in zip(names, bodies.values(), strict=True):
        lines += [f"32 {name}[{{0}}] = 3"] * fill
        lines += [re.sub(r"\by\[", f"{name}[", line) for line in body.split("\n")]
    return f"kernel k(x) -> ({', '.join(names)})\n{declared}\n\n" + "\n".join(lines) + "\n"


HINTS = {
    "past the caches": "2 16:v y[{0}*16+{1}]!nontemporal = x[{0}*16+{1}]",
    "scalar past the caches": "32 y[{0}]!nontemporal = x[{0}]",
    "reads past the caches": "2 16:v y[{0}*16+{1}] = x[{0}*16+{1}]!nontemporal",
    "prefetch": "2 16:v y[{0}*16+{1}] = x[{0}*16+{1}]!prefetch(256)",
    "threads past the caches": "2:p 16:v y[{0}*16+{1}]!nontemporal = x[{0}*16+{1}]",
}
THREADS = {
    "threads": "32:p y[{0}] = x[{0}] * 2",
    "guarded threads": "40:p where ({0} < 32) y[{0}] = x[{0}] * 2",
    "threads of vectors": "4:p 8:v y[{0}*8+{1}] = x[{0}*8+{1}] * 3",
    "threads in a loop": "4 8:p y[{0}*8+{1}] = x[{0}*8+{1}]",
    "one iteration": "1:p 32 y[{1}] = x[{1}]",
}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "f64"])
@pytest.mark.parametrize("target", TARGETS)
def test_vectors(target: str, dtype: str, tmp_path: Path) -> None:
    """Accesses of every shape, masks, hints, threads, in the bits that the interpreter gives."""
    PLATFORMS[target].require()
    cases = {
        "accesses": (ACCESSES, False),
        "masks": (MASKS, True),
        "threads": (THREADS, False),
        "hints": (HINTS, False),
    }
    for number, (name, (bodies, fill)) in enumerate(cases.items()):
        if not is_float(dtype):
            bodies = {k: body.replace("2.5", "2") for k, body in bodies.items()}
        program = kernel(bundle(bodies, dtype, fill=fill))
        parameters = parameters_of(nest_of(program))
        inputs = random_inputs(parameters, number)
        found, wanted = run_object(program, target, inputs, tmp_path), interpret_stepwise(program, inputs)
        for parameter, case in zip([p for p in parameters if p.written], bodies, strict=True):
            assert same(found[parameter.name], wanted[parameter.name], dtype), (name, case)


OLD_QEMU = ("math.trunc", "arith.fptosi", "arith.fptoui")
"""Functions whose vector code an old qemu may fail on whatever is around it."""
GROUPS = 12
"""Programs that all functions are spread over."""


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("target", TARGETS)
def test_functions(target: str, group: int, tmp_path: Path) -> None:
    """Every function on every element type, scalar and in vectors, on special values."""
    PLATFORMS[target].require()
    functions = list(FUNCTIONS)[group::GROUPS]
    try:
        check_functions(functions, target, group % 3, tmp_path)
    except QemuTooOldError:
        for function in functions:
            try:
                check_functions([function], target, group % 3, tmp_path)
            except QemuTooOldError:
                assert function in OLD_QEMU


def check_functions(functions: list[str], target: str, turn: int, folder: Path) -> None:
    program, inputs, owner = function_program(functions)
    arrays = {name: special_values(dtype, "abc".index(name[0]) * turn) for name, dtype in inputs.items()}
    found, wanted = run_object(program, target, arrays, folder), interpret(program, arrays)
    for parameter in parameters_of(nest_of(program)):
        if parameter.written:
            name = parameter.name
            assert agrees(found[name], wanted[name], parameter.dtype, owner[name]), (owner[name], parameter.dtype)


def function_program(functions: list[str]) -> tuple[KernelOp, dict[str, str], dict[str, str]]:
    """One kernel that applies functions; the element types of its inputs, and the function behind each output."""
    declared: list[str] = []
    lines: list[str] = []
    inputs: dict[str, str] = {}
    owner: dict[str, str] = {}
    for number, function in enumerate(functions):
        text, given = text_of(function)
        head, *rest = re.sub(r"\b([abcsv]\d+)\b", rf"\1_{number}", text).splitlines()
        owner.update(dict.fromkeys(head.partition(" -> ")[2].strip("()").split(", "), function))
        inputs.update({f"{name}_{number}": dtype for name, dtype in given.items()})
        blank = rest.index("")
        declared += rest[:blank]
        lines += rest[blank + 1 :]
    head = f"kernel k({', '.join(inputs)}) -> ({', '.join(owner)})"
    return kernel("\n".join([head, *declared, "", *lines]) + "\n"), inputs, owner


@pytest.mark.parametrize("target", [*TARGETS, "x86-64-avx2"])
@pytest.mark.parametrize("stand_in", [False, True])
def test_threads(target: str, stand_in: bool, tmp_path: Path) -> None:
    """Workspace of all threads and of each one, values that pass between parallel scopes, any number of threads."""
    PLATFORMS.get(target, NATIVE).require()
    program = kernel("""kernel k(x) -> (y, s)
x f32 [13, 40] heap
y f32 [13, 40] heap
s f32 [13] heap
t f32 [13:N, 40] heap
w f32 [13, 40] heap

13:p
| 5 8:v t[{0},{1}*8+{2}] = x[{0},{1}*8+{2}] * 3
| 40 w[{0},{1}] = t[{0},39-{1}] + 1
13:p
| s[{0}] = 0
| 40 s[{0}] += w[12-{0},{1}]
| 40 y[{0},{1}] = w[12-{0},{1}] * 2
""")
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    for threads in (1, 3, 16):
        found = run_object(program, target, inputs, tmp_path, threads=threads, stand_in=stand_in)
        wanted = interpret_stepwise(program, inputs)
        assert same(found["y"], wanted["y"], "f32")
        assert same(found["s"], wanted["s"], "f32")


def test_names_that_c_has_taken(tmp_path: Path) -> None:
    NATIVE.require()
    program = kernel("kernel double(int, exp) -> (y_)\nint i32 [8] heap\nexp f64 [8] heap\ny_ f64 [8] heap\n\n"
                     "8 y_[{0}] = cast(int[{0}])\n8 y_[{0}] += exp[{0}]\n")  # fmt: skip
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    found = run_object(program, "host", inputs, tmp_path)
    assert np.array_equal(found["y_"], inputs["int"] + inputs["exp"])


@pytest.mark.parametrize("name", ["nvidia-sm90", "amd-gfx942", "snitch"])
def test_machines_without_llvm_code(name: str) -> None:
    program = kernel("kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8 y[{0}] = x[{0}]\n")
    with pytest.raises(
        LoweringError, match=f"machine '{name}' is of the architecture .* does for aarch64, riscv64, x86"
    ):
        object_bytes(program, machine(name))
