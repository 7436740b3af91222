"""Kernels as Snitch assembly on the simulator, against the reference interpreter."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np
import pytest

from differential.compiled import Arrays, kernel, random_inputs, same
from differential.library import close
from differential.math_harness import BOUNDS
from differential.snitch import DIVIDES, SNITCH, run_snitch
from differential.test_llvm_functions import COUNT, FUNCTIONS, agrees, signatures, special_values
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.snitch.executable import load
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError, NotationError
from pdojo.kernels import Workload, kernel_names, workload
from pdojo.kernels.random_kernels import features_for, random_text
from pdojo.transforms.game import Game
from qa.walks import Counts, draw
from sample import SAMPLE

ITERATIONS = 20_000
"""Most iterations of all statements of a small kernel; the simulator takes about 0.1 ms for each."""
REASSOCIATED = frozenset(("split_reduction", "merge_reduction", "swap_scopes", "vectorize", "contract", "reciprocal"))


def tiny(name: str, dtype: str | None) -> KernelOp:
    """A library kernel at sizes of a few elements."""
    own = workload(name).sizes
    for most in (4, 5, 3, 6, 7, 8):
        given = {n: min(most, default) for n, default in own.items()}
        try:
            program = Workload(name, tuple(given.items()), dtype).instantiate()
        except NotationError:
            continue
        if sum(prod(leaf.extents) for leaf in nest_of(program).leaves) <= ITERATIONS:
            return program
    raise AssertionError(name)


def agree(program: KernelOp, found: Arrays, wanted: Arrays, *, exact: bool = True) -> None:
    """The same bits, or close where functions are approximated or sums have another order."""
    if not exact:
        close(found, wanted, program)
        return
    for parameter in parameters_of(nest_of(program)):
        if parameter.written:
            assert same(found[parameter.name], wanted[parameter.name], parameter.dtype), parameter.name


def is_exact(program: KernelOp) -> bool:
    """Whether no function of a kernel is approximated."""
    return not any(leaf.function in BOUNDS for leaf in nest_of(program).leaves)


def inputs_for(program: KernelOp, seed: int = 0) -> Arrays:
    """Random inputs; logarithms are of positive numbers."""
    inputs = random_inputs(parameters_of(nest_of(program)), seed)
    positive = any(leaf.function == "math.log" for leaf in nest_of(program).leaves) and len(inputs) == 1
    return {name: np.abs(values) for name, values in inputs.items()} if positive else inputs


def cases(*, whole: bool = False) -> list[object]:
    """Library kernels in their types; those outside the sample are slow unless `whole` is set."""
    found: list[object] = []
    for name in kernel_names(long=False):
        typed = "T" in workload(name).names.parameters
        marks = [] if whole or name in SAMPLE else [pytest.mark.slow]
        found += [pytest.param(name, dtype, marks=marks) for dtype in (("f64", "f32") if typed else (None,))]
    return found


@pytest.mark.parametrize(("name", "dtype"), cases(whole=True))
def test_library(name: str, dtype: str | None) -> None:
    program = tiny(name, dtype)
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs), exact=is_exact(program))


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", ["relu", "maxpool", "softmax", "argmax", "tanh", "exp"])
def test_nan_and_infinity(name: str, dtype: str) -> None:
    """Outside of hardware loops a maximum keeps NaN."""
    program = tiny(name, dtype)
    inputs = inputs_for(program)
    for values in inputs.values():
        flat = values.reshape(-1)
        flat[:6] = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e300 if dtype == "f64" else 1e38]
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs), exact=is_exact(program))


def function_text(function: str, operands: tuple[str, ...], result: str) -> str:
    """A kernel that applies a function to arrays, scalar by scalar."""
    names = "abc"[: len(operands)]
    declared = "\n".join(f"{n} {d} [{COUNT}] heap" for n, d in zip(names, operands, strict=True))
    listed = ", ".join(f"{n}[{{0}}]" for n in names)
    head = f"kernel k({', '.join(names)}) -> (y)\n{declared}\ny {result} [{COUNT}] heap\n"
    return f"{head}\n{COUNT} y[{{0}}] = {function}({listed})\n"


def without_code(function: str, operands: tuple[str, ...], result: str) -> bool:
    """Whether there is no code for a function of these types."""
    name = function.partition(".")[2]
    if name in ("remf",):
        return True
    if result == "i64" and name in ("divsi", "divui", "remsi", "remui", "floordivsi", "shli", "shrsi", "shrui", "absi"):
        return True
    if name in ("fptosi", "fptoui"):
        return result == "i64"
    if name in ("sitofp", "uitofp"):
        return result == "bf16" or (operands[0] == "i64" and result != "f64")
    return name == "truncf" and operands[0] == "f64" and result == "bf16"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function(function: str) -> None:
    """Every function of every type that there is code for; the others say so."""
    for operands, result in signatures(function):
        program = kernel(function_text(function, operands, result))
        if without_code(function, operands, result):
            with pytest.raises(LoweringError, match="for Snitch cores"):
                load(program, DIVIDES)
            continue
        loaded = load(program, DIVIDES)
        # A turn pairs the special values of several operands in another way.
        for turn in range(min(2, len(operands))):
            arrays = {n: special_values(d, "abc".index(n) * turn) for n, d in zip("abc", operands, strict=False)}
            found, wanted = loaded.run(arrays).outputs, interpret(program, arrays)
            assert agrees(found["y"], wanted["y"], result, function), (operands, result)


def played(text: KernelOp, described: Machine, seed: int, length: int) -> tuple[KernelOp, bool]:
    """A kernel after random legal moves, most of them those of the machine; whether no sum was reordered."""
    game, random, counts = Game(text, described), Random(seed), Counts()
    exact = True
    for _ in range(length):
        move = draw(
            game.program, random, counts, ("stream", "frep", "unroll", "set_location", "vectorize", "tile_scope")
        )
        if move is None:
            break
        if move.name == "parallelize":
            continue
        exact = exact and move.name not in REASSOCIATED
        game.apply(move)
    return game.program.kernel, exact


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4))])
@pytest.mark.parametrize("name", ["add", "matmul", "layernorm", "relu", "conv", "reducemean", "transpose", "softmax"])
def test_library_after_moves(name: str, seed: int) -> None:
    program, exact = played(tiny(name, "f64" if seed % 2 else "f32"), DIVIDES, seed, 14)
    inputs = inputs_for(program, seed)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs), exact=exact and is_exact(program))


@pytest.mark.parametrize("seed", range(24))
def test_random_kernels(seed: int) -> None:
    program = kernel(random_text(seed, features_for(DIVIDES)))
    program, _ = played(program, DIVIDES, seed, 8)
    inputs = inputs_for(program, seed)
    try:
        found, _ = run_snitch(program, inputs)
    except LoweringError as error:
        assert "Snitch core" in str(error), error  # noqa: PT017
        return
    agree(program, found, interpret_stepwise(program, inputs), exact=False)


BY_HAND = {
    "dot": """\
kernel dot(x, y) -> (z)
x f64 [256] heap
y f64 [256] heap
z f64 [1] heap
p f64 [1, 4] register

4:u p[0,{0}] = 0
1:s 64:f 4:u p[0,{2}] fma= x[{1}*4+{2}] * y[{1}*4+{2}]
1
| z[0] = 0
| 4:u z[0] += p[0,{1}]
""",
    "axpy": """\
kernel axpy(a, x, y) -> (y)
a f64 [] heap
x f64 [256] heap
y f64 [256] heap
s f64 [] register

s[] = a[]
1:s 256:f y[{1}] = fma(x[{1}], s[], y[{1}])
""",
    "sum": """\
kernel sum(x) -> (z)
x f64 [128] heap
z f64 [1] heap
p f64 [4] register

4:u p[{0}] = 0
1:s 32:f 4:u p[{2}] += x[{1}*4+{2}]
2:u p[{0}] += p[{0}+2]
1
| z[0] = p[0]
| z[0] += p[1]
""",
    "gemv": """\
kernel gemv(a, x) -> (y)
a f64 [16, 32] heap
x f64 [32] heap
y f64 [16] heap
s f64 [4:N, 4] register

1:s 4
| 4:u s[{1},{2}] = 0
| 32:f 4:u s[{1},{3}] fma= a[{1}*4+{3},{2}] * x[{2}]
| 4:u y[{1}*4+{2}] = s[{1},{2}]
""",
    "gemm": """\
kernel gemm(a, b) -> (c)
a f64 [16, 16] heap
b f64 [16, 16] heap
c f64 [16, 16] heap
s f64 [16:N, 2:N, 8] register

1:s 16
| 2
| | 8:u s[{1},{2},{3}] = 0
| | 16:f 8:u s[{1},{2},{4}] fma= a[{1},{3}] * b[{3},{2}*8+{4}]
| | 8:u c[{1},{2}*8+{3}] = s[{1},{2},{3}]
""",
    "gemm, packed": """\
kernel gemm(a, b) -> (c)
a f32 [16, 16] heap align 8
b f32 [16, 16] heap align 8
c f32 [16, 16] heap align 8
s f32 [16:N, 2:N, 8] register
w f32 [16:N, 2:N, 16:N, 2] register

1 16
| 2
| | 4:u 2:v s[{1},{2},{3}*2+{4}] = 0
| | 16
| | | 2:v w[{1},{2},{3},{4}] = a[{1},{3}]
| | | 4:u 2:v s[{1},{2},{4}*2+{5}] fma= w[{1},{2},{3},{5}] * b[{3},{2}*8+{4}*2+{5}]
| | 4:u 2:v c[{1},{2}*8+{3}*2+{4}] = s[{1},{2},{3}*2+{4}]
""",
    "transpose": """\
kernel transpose(x) -> (y)
x f64 [16, 16] heap
y f64 [16, 16] heap

1:s 16 16:f y[{2},{1}] = x[{1},{2}]
""",
    "conv3x3": """\
kernel conv(x, k) -> (y)
x f64 [10, 10] heap
k f64 [3, 3] heap
y f64 [8, 8] heap
s f64 [8:N, 8] register

8 1:s
| 8:u s[{0},{2}] = 0
| 3 3:f 8:u s[{0},{4}] fma= x[{0}+{2},{4}+{3}] * k[{2},{3}]
| 8:u y[{0},{2}] = s[{0},{2}]
""",
    "relu": """\
kernel relu(x) -> (y)
numerics numbers
x f64 [16, 16] heap
y f64 [16, 16] heap

1:s 16 16:f y[{1},{2}] = max(x[{1},{2}], 0)
""",
    "relu, packed": """\
kernel relu(x) -> (y)
numerics numbers
x f32 [16, 16] heap align 8
y f32 [16, 16] heap align 8

1:s 16 8:f 2:v y[{1},{2}*2+{3}] = max(x[{1},{2}*2+{3}], 0)
""",
    "half precision": """\
kernel halves(x, w) -> (y)
x f16 [16, 16] heap align 8
w f16 [16] heap align 8
y f16 [16, 16] heap align 8

1:s 16 4:f 4:v y[{1},{2}*4+{3}] = x[{1},{2}*4+{3}] * w[{2}*4+{3}]
16 4 4:v y[{0},{1}*4+{2}] += 1.5
16 4 4:v y[{0},{1}*4+{2}] = y[{0},{1}*4+{2}] * w[{0}]
""",
    "lanes summed up": """\
kernel sums(x) -> (z)
x f32 [16, 16] heap align 8
z f32 [16] heap
t f32 [16:N, 2] register

16
| z[{0}] = 0
| 2:v t[{0},{1}] = 0
| 8 2:v t[{0},{2}] += x[{0},{1}*2+{2}]
| 2:v z[{0}] += t[{0},{1}]
""",
    "one region after another": """\
kernel chain(x) -> (y)
x f64 [16, 16] heap
y f64 [16, 16] heap
t f64 [16, 16] heap
u f64 [16, 16] heap

1:s 16 16:f t[{1},{2}] = x[{1},{2}] * 2
16 16 u[{0},{1}] = t[{1},{0}] + 1
1:s 16 16:f y[{1},{2}] = t[{2},{1}] + u[{1},{2}]
""",
    "regions in a loop": """\
kernel rows(x) -> (y)
x f64 [8, 16] heap
y f64 [8, 16] heap
t f64 [8:N, 16] heap
a f64 [8] heap

8
| a[{0}] = x[{0},0] * 0.25
| 16:s t[{0},{1}] = x[{0},{1}] + a[{0}]
| 16 t[{0},{1}] = t[{0},{1}] * 2
| 16:s y[{0},{1}] = t[{0},15-{1}]
""",
    "repeats of many kinds": """\
kernel repeats(x) -> (y, z)
x f64 [8] heap
y f64 [8, 16] heap
z f64 [8, 40] heap

8:s 16 y[{0},{1}] = x[{0}]
8:s 40:f z[{0},{1}] = x[{0}]
4
| 1:s 4:f y[{0},{2}] = x[{0}]
| 1:s 2:f z[{0},{2}] = x[{0}]
""",
    "a function of a stream": """\
kernel functions(x) -> (y)
x f64 [32] heap
y f64 [32] heap

32:s y[{0}] = max(x[{0}], 1)
""",
    "left to loads": """\
kernel four(x, w, b) -> (y)
x f64 [32] heap
w f64 [32] heap
b f64 [32] heap
y f64 [32] heap

32:s y[{0}] = fma(x[{0}], w[{0}], b[{0}]!ordinary)
""",
}
"""Programs with streams and hardware loops."""


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    program = kernel(BY_HAND[name])
    inputs = inputs_for(program)
    found, result = run_snitch(program, inputs, SNITCH)
    agree(program, found, interpret_stepwise(program, inputs))
    assert result.cycles > 0


CYCLES = {"dot": 330, "axpy": 290, "sum": 175, "gemm": 4800, "gemv": 620, "transpose": 300, "relu": 300}
"""Most cycles that some of them may take: streams and hardware loops are at work."""


@pytest.mark.parametrize("name", CYCLES)
def test_cycles(name: str) -> None:
    program = kernel(BY_HAND[name])
    _, result = run_snitch(program, inputs_for(program), SNITCH)
    assert result.cycles <= CYCLES[name]


def test_many_arguments() -> None:
    """What does not fit in a0 to a7 comes on the stack, also where the frame is large."""
    names = [f"x{k}" for k in range(10)]
    declared = "\n".join(f"{n} f64 [4] heap" for n in names)
    total = " + ".join(f"{n}[{{0}}]" for n in names[:2])
    steps = "\n".join(f"4 y[{{0}}] += {n}[{{0}}]" for n in names[2:])
    text = f"kernel many({', '.join(names)}) -> (y)\n{declared}\ny f64 [4] heap\nt f64 [600] stack\nu f64 [4] heap\n\n"
    text += f"600 t[{{0}}] = 1\n4 u[{{0}}] = t[{{0}}*199]\n4 y[{{0}}] = {total}\n{steps}\n4 y[{{0}}] += u[{{0}}]\n"
    program = kernel(text)
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs))


def test_more_values_than_registers() -> None:
    """Values that do not fit go to the stack, and come back right."""
    text = "kernel full(x) -> (y)\nx f64 [48] heap\ny f64 [48] heap\nt f64 [48] register\nk i32 [48] stack\n\n"
    text += (
        "48:u t[{0}] = x[{0}]\n48:u k[{0}] = {0}\n48:u y[{0}] = t[{0}] * t[47-{0}]\n48:u y[{0}] += t[(7*{0}+3)%48]\n"
    )
    program = kernel(text)
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs))


def test_too_many_registers_in_a_hardware_loop() -> None:
    text = "kernel full(x) -> (y)\nx f64 [8, 31] heap\ny f64 [31] heap\nt f64 [31] register\n\n"
    text += "31:u t[{0}] = 0\n1:s 8:f 31:u t[{2}] += x[{1},{2}]\n31:u y[{0}] = t[{0}]\n"
    program = kernel(text)
    with pytest.raises(LoweringError, match="not enough floating-point registers for a hardware loop"):
        run_snitch(program, inputs_for(program), SNITCH)


def test_values_that_guards_write() -> None:
    """A register that is written under a guard and read under the same one is written on no other way."""
    text = (
        "kernel guarded(x) -> (y)\nx f64 [8, 2] heap\ny f64 [8] heap\nt f64 [8:N] register\n\n8\n"
        "| 2 where ({0}+{1} < 5, {1} < 1) t[{0}] = x[{0},{1}]\n| 1 where ({0} < 5) y[{0}] = t[{0}] * 2\n"
        "| 1 where ({0} >= 5) y[{0}] = 1\n"
    )
    program = kernel(text)
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs))
