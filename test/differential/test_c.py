"""The C that `-t c` prints, compiled by the system's compiler with all warnings as errors, against the interpreter."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from differential.c_code import compiled_c, require, run_c
from differential.compiled import Arrays, kernel, random_inputs, same
from differential.library import close, library_kernel
from differential.test_cross import HINTS, THREADS, WORKSPACES, bundle, function_program
from differential.test_llvm_functions import FUNCTIONS, agrees, special_values
from differential.test_llvm_random import FEATURES
from differential.test_llvm_vectors import ACCESSES, MASKS
from pdojo.backends.c.spelling import CSpelling
from pdojo.backends.c.targets import c_text
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import is_float
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.kernels import workload
from pdojo.names import EXPERT_PASSES
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from property.kernels import kernel_texts
from sample import sampled
from toolchain import C_COMPILERS

NATIVE = ("-march=native", "-std=gnu11")
"""With instructions for fused products, and in a dialect of C that would use them unasked."""


def agree(text: str, folder: Path, inputs: Arrays | None = None, *, flags: tuple[str, ...] = ()) -> None:
    program = kernel(text)
    parameters = parameters_of(nest_of(program))
    inputs = random_inputs(parameters, 0) if inputs is None else inputs
    wanted = interpret_stepwise(program, inputs)
    for compiler in C_COMPILERS or [require()]:
        found = run_c(program, inputs, folder, compiler=compiler, flags=flags)
        for parameter in parameters:
            if parameter.written:
                assert same(found[parameter.name], wanted[parameter.name], parameter.dtype), parameter.name


@pytest.mark.parametrize("group", range(12))
def test_functions(group: int, tmp_path: Path) -> None:
    functions = list(FUNCTIONS)[group::12]
    program, inputs, owner = function_program(functions)
    code = compiled_c(program, tmp_path)
    for turn in range(3):
        arrays = {name: special_values(dtype, "abc".index(name[0]) * turn) for name, dtype in inputs.items()}
        found, wanted = code(arrays), interpret(program, arrays)
        for parameter in parameters_of(nest_of(program)):
            if parameter.written:
                name = parameter.name
                assert agrees(found[name], wanted[name], parameter.dtype, owner[name]), (owner[name], parameter.dtype)


@pytest.mark.parametrize(
    ("dtype", "flags"),
    [
        *((dtype, ()) for dtype in ("f32", "f64", "f16", "bf16", "i8", "i32", "i64")),
        *((dtype, NATIVE) for dtype in ("f32", "f16", "i8")),
        *(pytest.param(dtype, NATIVE, marks=pytest.mark.slow) for dtype in ("f64", "bf16", "i32", "i64")),
    ],
)
def test_vectors(dtype: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    for bodies, fill in [(ACCESSES, False), (MASKS, True), (THREADS, False), (HINTS, False)]:
        if not is_float(dtype):
            bodies = {k: body.replace("2.5", "2") for k, body in bodies.items()}
        agree(bundle(bodies, dtype, fill=fill), tmp_path, flags=flags)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_contracted(dtype: str, tmp_path: Path) -> None:
    """Products are fused where the program says so, and only there."""
    for body in (
        "24 z[{0}] fma= x[{0}] * y[{0}]",
        "3 8:v z[{0}*8+{1}] fma= x[{0}*8+{1}] * y[{0}]",
        "4 8:v where ({0}*8+{1} < 22) z[{0}*8+{1}] fma= x[{0}*8+{1}] * y[{0}*8+{1}]",
        "24 z[0] fma= x[{0}] * y[{0}]",
        "24:p z[{0}] = x[{0}] * y[{0}]\n24 z[{0}] += x[{0}]",
        "3 8:v t[{0}*8+{1}] = x[{0}*8+{1}] * y[{0}*8+{1}]\n3 8:v z[{0}*8+{1}] += t[{0}*8+{1}]",
        "24\n| t[{0}] = x[{0}] * y[{0}]\n| z[{0}] += t[{0}]",
    ):
        declared = "\n".join(f"{array} {dtype} [24] heap" for array in "xyz") + f"\nt {dtype} [24] stack"
        agree(f"kernel k(x, y, z) -> (z)\n{declared}\n\n{body}\n", tmp_path, flags=NATIVE)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(program=st.data())
def test_random_kernels(program: st.DataObject) -> None:
    require()
    text = program.draw(kernel_texts(FEATURES))
    assume(not any(leaf.contracted for leaf in nest_of(kernel(text)).leaves))
    with tempfile.TemporaryDirectory() as folder:
        agree(text, Path(folder), random_inputs(parameters_of(nest_of(kernel(text))), program.draw(st.integers(0, 99))))


@pytest.mark.parametrize("name", sampled())
def test_library(name: str, tmp_path: Path) -> None:
    require()
    plain = library_kernel(name, 6)
    inputs = random_inputs(parameters_of(nest_of(plain)), 1)
    wanted = interpret(plain, inputs)
    close(run_c(plain, inputs, tmp_path), wanted, plain)
    for number, target in enumerate(("x86-64-avx512", "neoverse-v2", "rv64gcv")):
        game = Game(plain, machine(target))
        run_pass(EXPERT_PASSES[-1 - number], game)
        close(run_c(game.kernel, inputs, tmp_path), wanted, plain)


def test_workspaces(tmp_path: Path) -> None:
    agree(WORKSPACES, tmp_path)


STORAGE = """kernel k(x) -> (y)
x f32 [12, 32] heap
y f32 [12, 32] heap -> y, e
s f32 [12, 32^0*4] stack
r f32 [12:N3, 32] heap
h f32 [12:N, 32:N] register

4 3:u
| 8 4:v s[{0}*3+{1},{2}*4+{3}] = x[{0}*3+{1},{2}*4+{3}] * 2
| 32
| | h[{0}*3+{1},{2}] = s[{0}*3+{1},31-{2}]
| | r[{0}*3+{1},{2}] = exp(h[{0}*3+{1},{2}])
| 2 16:v e[{0}*3+{1},{2}*16+{3}] = r[{0}*3+{1},{2}*16+{3}] + 1
12:p 32 y[{0},{1}] = e[{0},{1}] * 0.5
"""


def test_storage(tmp_path: Path) -> None:
    """Circular and swizzled buffers, arrays in the memory of others."""
    require()
    program = kernel(STORAGE)
    inputs = random_inputs(parameters_of(nest_of(program)), 0)
    close(run_c(program, inputs, tmp_path), interpret(program, inputs), program)


TEMPLATE = """
static inline void dot4(const int8_t *a, const int8_t *b, int32_t *c, int64_t stride) {
  for (int k = 0; k < 4; k++) c[0] += a[k] * b[k * stride];
}
"""
MEANING = """
kernel dot4(a, b, c) -> (c)
a i8 [4] heap
b i8 [4] heap
c i32 [] heap
u i32 [4] stack
s i32 [4] stack

4
| u[{0}] = cast(a[{0}])
| s[{0}] = cast(b[{0}])
| c[] += u[{0}] * s[{0}]
"""
DOTS = """
kernel k(a, b, c) -> (c)
a i8 [6, 4] heap
b i8 [4, 5] heap
c i32 [6, 5] heap
u i32 [6, 5, 4] stack
s i32 [6, 5, 4] stack

6 5 4
| u[{0},{1},{2}] = cast(a[{0},{2}])
| s[{0},{1},{2}] = cast(b[{2},{1}])
| c[{0},{1}] += u[{0},{1},{2}] * s[{0},{1},{2}]
"""


@pytest.mark.parametrize("backend", ["c", "llvm"])
def test_instructions(backend: str, tmp_path: Path) -> None:
    """A nest that an intrinsic computes is a call of its template; without one it is refused."""
    dot = Intrinsic("dot4", MEANING, {backend: TEMPLATE}, strides={"b": ("*",)})
    described = replace(machine("toy"), intrinsics=(dot,))
    game = Game(kernel(DOTS), described)
    game.apply_all(["tensorize@c:2{intrinsic=dot4}"])
    if backend == "llvm":
        with pytest.raises(LoweringError, match="mapped to 'dot4', whose description has no template for c"):
            c_text(game.kernel, machine=described)
        return
    require()
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), 0)
    found = run_c(game.kernel, inputs, tmp_path, machine=described)
    assert np.array_equal(found["c"], interpret(kernel(DOTS), inputs)["c"])
    assert "dot4(&a[i0*4], &b[i1], &c[i0*5+i1], 5);" in c_text(game.kernel, machine=described)


@pytest.mark.parametrize("name", ["matmul_i8", "matmul_bf16"])
def test_dot_products_of_the_host(name: str, tmp_path: Path) -> None:
    """What the pass gives to instructions for narrow numbers is in C, too."""
    require()
    plain = workload(f"{name}:21x24x40").instantiate()
    game = Game(plain, host())
    run_pass("heuristic", game)
    if not any(scope.mapping is Mapping.TENSOR for scope in game.program.nest.scopes):
        pytest.skip(f"{host().name} has no instruction for {name}")
    if "amx-tile" in host().features:
        pytest.skip("tiles have no template for C")
    inputs = random_inputs(parameters_of(nest_of(plain)), 0)
    found, wanted = run_c(game.kernel, inputs, tmp_path, machine=host())["c"], interpret(plain, inputs)["c"]
    if name == "matmul_i8":
        assert np.array_equal(found, wanted)
    else:
        assert np.allclose(found, wanted, rtol=1e-5, atol=1e-4)


def test_a_target_spells_what_it_says_otherwise() -> None:
    class Other(CSpelling):
        restrict = "__restrict__"

        def helper(self, text: str) -> str:
            return text.replace("static inline", "__device__")

        def parallel(self) -> str:
            return "#pragma other"

    program = kernel("kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8:p y[{0}] = max(x[{0}], 0)\n")
    usual, other = c_text(program), c_text(program, spelling=Other())
    assert "#pragma omp parallel for" in usual
    assert other.count("#pragma other") == 1
    assert "#pragma omp" not in other
    assert other.count("__restrict__") == usual.count("restrict") == 3
    assert other.count("__device__") == usual.count("static inline") > 0
