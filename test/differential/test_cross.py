"""Object files for other processors, linked with a C program and run under qemu-user, against the interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from differential.compiled import kernel, random_inputs, same
from differential.cross import NATIVE, PLATFORMS, TEAM, QemuTooOldError, built_object, built_program, run_object
from differential.library import close, library_kernel
from differential.test_llvm_functions import FUNCTIONS, agrees, special_values, text_of
from differential.test_llvm_vectors import ACCESSES, MASKS
from pdojo.backends.c.header import header_text
from pdojo.backends.c.targets import c_text
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.targets import object_bytes
from pdojo.dialect.functions import is_float
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.kernels import kernel_names
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from sample import SAMPLE

TARGETS = [pytest.param(t, marks=pytest.mark.slow) if t == "aarch64-neon" else t for t in PLATFORMS]
"""The oldest machine is like the newest of its architecture, with less."""


LIBRARY = [
    pytest.param(t, n, marks=[pytest.mark.slow] if n not in SAMPLE or t != ("neoverse-v2", "rv64gcv")[k % 2] else [])
    for k, n in enumerate(kernel_names(long=False))
    for t in PLATFORMS
]
"""Every kernel for every machine; kernels of the sample for one of them where there is little time."""


@pytest.mark.parametrize(("target", "name"), LIBRARY)
def test_tuned_library(target: str, name: str, tmp_path: Path) -> None:
    PLATFORMS[target].require()
    game = Game(library_kernel(name, len(name)), machine(target))
    run_pass("heuristic", game)
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), len(name))
    close(run_object(game.kernel, target, inputs, tmp_path), interpret(game.programs[0].kernel, inputs), game.kernel)


TYPED = """kernel k(x) -> (y, z)
x {0} [7, 48] heap
y {0} [7, 48] heap
z {0} [7, 48] heap
t {0} [7, 48] heap

7 48 t[{{0}},{{1}}] = x[{{0}},{{1}}] * 1.5
7 48 y[{{0}},{{1}}] = max(t[{{0}},{{1}}], 0)
7 48 z[{{0}},{{1}}] = tanh(x[{{0}},{{1}}])
"""


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
@pytest.mark.parametrize("target", TARGETS)
def test_tuned_types(target: str, dtype: str, tmp_path: Path) -> None:
    PLATFORMS[target].require()
    game = Game(kernel(TYPED.format(dtype)), machine(target))
    run_pass("heuristic", game)
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), 3)
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
OTHERS = [name for name in FUNCTIONS if name not in OLD_QEMU]
GROUPS = (OLD_QEMU, *(OTHERS[k::11] for k in range(11)))
"""The functions of a program each."""


@pytest.mark.parametrize("group", range(len(GROUPS)))
@pytest.mark.parametrize("target", TARGETS)
def test_functions(target: str, group: int, tmp_path: Path) -> None:
    """Every function on every element type, scalar and in vectors, on special values."""
    PLATFORMS[target].require()
    functions = GROUPS[group]
    try:
        check_functions(functions, target, group % 3, tmp_path)
    except QemuTooOldError:
        for function in functions:
            try:
                check_functions([function], target, group % 3, tmp_path)
            except QemuTooOldError:
                assert function in OLD_QEMU


def check_functions(functions: Sequence[str], target: str, turn: int, folder: Path) -> None:
    program, inputs, owner = function_program(functions)
    arrays = {name: special_values(dtype, "abc".index(name[0]) * turn) for name, dtype in inputs.items()}
    found, wanted = run_object(program, target, arrays, folder), interpret(program, arrays)
    for parameter in parameters_of(nest_of(program)):
        if parameter.written:
            name = parameter.name
            assert agrees(found[name], wanted[name], parameter.dtype, owner[name]), (owner[name], parameter.dtype)


def function_program(functions: Sequence[str]) -> tuple[KernelOp, dict[str, str], dict[str, str]]:
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


WORKSPACES = """\
kernel k(x) -> (y, s)
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
"""
"""Memory of all threads and of each one, values that pass between parallel scopes."""


@pytest.mark.parametrize("target", [*TARGETS, "x86-64-avx2"])
@pytest.mark.parametrize("stand_in", [False, True])
def test_threads(target: str, stand_in: bool, tmp_path: Path) -> None:
    """Workspace of all threads and of each one, values that pass between parallel scopes, any number of threads."""
    PLATFORMS.get(target, NATIVE).require()
    program = kernel(WORKSPACES)
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    wanted = interpret_stepwise(program, inputs)
    built = built_object(program, target, tmp_path, stand_in=stand_in)
    for threads in (1, 3, 16):
        found = built(inputs, threads)
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


@pytest.mark.parametrize("target", TARGETS)
def test_printed_c(target: str, tmp_path: Path) -> None:
    """What `-t c` prints, by the compilers for those machines."""
    PLATFORMS[target].require()
    for name in ("softmax", "matmul", "gelu"):
        game = Game(library_kernel(name, 5), machine(target))
        run_pass("heuristic", game)
        inputs = random_inputs(parameters_of(nest_of(game.kernel)), 5)
        (tmp_path / "kernel.c").write_text(c_text(game.kernel))
        (tmp_path / "kernel.h").write_text(header_text([nest_of(game.kernel)]))
        found = built_program(nest_of(game.kernel), PLATFORMS[target], tmp_path, "kernel.c")(inputs, TEAM)
        close(found, interpret(game.programs[0].kernel, inputs), game.kernel)
