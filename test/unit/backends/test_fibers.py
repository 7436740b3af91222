"""Kernels of GPUs on a CPU: right ones give what NumPy gives in every way to run them, broken ones are noticed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from pdojo.backends.gpu import fibers
from pdojo.backends.gpu.fibers import HEAD, WAYS, FiberError, Fibers, Order, compile_fibers, compilers
from pdojo.backends.gpu.resources import MissingTool
from pdojo.errors import LoweringError, SimulationError
from toolchain import require_fibers

pytestmark = pytest.mark.usefixtures("fibers")
Array: TypeAlias = npt.NDArray[Any]

ADD = """
struct __align__(16) V { float at[4]; };
extern "C" __global__ void __launch_bounds__(64)
add_0(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  const V x = *pd_vector<const V>(a + i), y = *pd_vector<const V>(b + i);
  V z;
  for (int k = 0; k < 4; ++k) z.at[k] = x.at[k] + y.at[k];
  *pd_vector<V>(c + i) = z;
}
extern "C" void add(const float *a, const float *b, float *c) { pd_launch(add_0, 5, 64, 0, a, b, c); }
"""
SOFTMAX = """
extern "C" __global__ void softmax_0(const float *__restrict__ x, float *__restrict__ y) {
  constexpr int W = PD_WARP, N = 128 / W;
  float (&most)[N] = pd_shared<float, N>(0);
  float (&total)[N] = pd_shared<float, N>(16);
  const int t = threadIdx.x;
  float v[4], m = -INFINITY, s = 0;
  for (int k = 0; k < 4; ++k) {
    v[k] = x[blockIdx.x * 512 + k * 128 + t];
    m = v[k] > m ? v[k] : m;
  }
  for (int d = W / 2; d > 0; d /= 2) {
    const float other = pd_shfl_xor(m, d, W);
    m = other > m ? other : m;
  }
  if (t % W == 0) most[t / W] = m;
  __syncthreads(); // most
  for (int k = 0; k < N; ++k) m = most[k] > m ? most[k] : m;
  for (int k = 0; k < 4; ++k) {
    v[k] = expf(v[k] - m);
    s += v[k];
  }
  for (int d = W / 2; d > 0; d /= 2) s += pd_shfl_xor(s, d, W);
  if (t % W == 0) total[t / W] = s;
  __syncthreads(); // total
  s = 0;
  for (int k = 0; k < N; ++k) s += total[k];
  for (int k = 0; k < 4; ++k) y[blockIdx.x * 512 + k * 128 + t] = v[k] / s;
}
extern "C" void softmax(const float *x, float *y) { pd_launch(softmax_0, 7, 128, 32, x, y); }
"""
STAGED = """
extern "C" __global__ void staged_0(const float *x, float *y) {
  float (&tile)[512] = pd_shared<float, 512>(0);
  const int t = threadIdx.x;
  const float *own = x + blockIdx.x * 6 * 256;
  float s = 0;
  pd_copy_async<16>(&tile[4 * t], own + 4 * t);
  pd_copy_commit();
  for (int k = 0; k < 6; ++k) {
    if (k < 5) pd_copy_async<16>(&tile[(k + 1) % 2 * 256 + 4 * t], own + (k + 1) * 256 + 4 * t);
    pd_copy_commit();
    pd_copy_wait<1>();
    __syncthreads(); // landed
    for (int j = 0; j < 4; ++j) s += tile[k % 2 * 256 + (4 * t + j + 100) % 256];
    __syncthreads(); // read
  }
  y[blockIdx.x * 64 + t] = s;
}
extern "C" void staged(const float *x, float *y) { pd_launch(staged_0, 3, 64, 2048, x, y); }
"""
SHIFT = """
extern "C" __global__ void shift_0(const float *x, float *y) {
  float (&cell)[64] = pd_shared<float, 64>(0);
  const int lane = threadIdx.x % PD_WARP, first = threadIdx.x - lane;
  cell[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncwarp();
  y[blockIdx.x * 64 + threadIdx.x] = cell[first + (lane + 1) % PD_WARP] + (float)(threadIdx.x / PD_WARP);
}
extern "C" void shift(const float *x, float *y) { pd_launch(shift_0, 4, 64, 256, x, y); }
"""
DIFFERENCE = """
extern "C" __global__ void difference_0(const float *x, float *y) {
  float (&cell)[64] = pd_shared<float, 64>(0);
  const int t = threadIdx.x;
  cell[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  y[blockIdx.x * 64 + t] = cell[t] - cell[t ? t - 1 : 0];
}
extern "C" void difference(const float *x, float *y) { pd_launch(difference_0, 4, 64, 256, x, y); }
"""


def add_numbers(a: Array, b: Array) -> Array:
    """What `add` computes."""
    return a + b


def softmax_rows(x: Array) -> Array:
    """What `softmax` computes."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def staged_sums(x: Array) -> Array:
    """What `staged` computes: thread t sums four elements of each tile, 100 further on."""
    return np.roll(x, -100, axis=2).reshape(3, 6, 64, 4).sum(axis=(1, 3))


def shifted(warp: int) -> Callable[[Array], Array]:
    """What `shift` computes."""

    def shift(x: Array) -> Array:
        return (np.roll(x.reshape(4, -1, warp), -1, axis=2) + np.arange(64 // warp)[:, None]).reshape(4, 64)

    return shift


def differences(x: Array) -> Array:
    """What `difference` computes."""
    return x - np.concatenate([x[:, :1], x[:, :-1]], axis=1)


@dataclass(frozen=True)
class Program:
    """A text, and what it computes."""

    text: str
    symbol: str
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., Array]

    def run(self, compiled: Fibers, way: tuple[bool, Order], seed: int) -> tuple[Array, Array]:
        """What it gives for random inputs, and what it should give."""
        rng = np.random.default_rng(seed)
        inputs = [rng.standard_normal(shape).astype(np.float32) for shape in self.shapes]
        right = self.expected(*inputs)
        result = np.full(right.shape, np.nan, np.float32)
        for array in inputs:
            array.flags.writeable = False
        compiled.run(self.symbol, [*inputs, result], late=way[0], order=way[1])
        return result, right


ADDING = Program(ADD, "add", ((5, 256), (5, 256)), add_numbers)
NORMALISING = Program(SOFTMAX, "softmax", ((7, 512),), softmax_rows)
STAGING = Program(STAGED, "staged", ((3, 6, 256),), staged_sums)
SHIFTING = Program(SHIFT, "shift", ((4, 64),), shifted(32))
SUBTRACTING = Program(DIFFERENCE, "difference", ((4, 64),), differences)
SHIFTING_64 = Program(SHIFT, "shift", ((4, 64),), shifted(64))


@cache
def compiled_text(text: str, warp: int = 32, compiler: str | None = None) -> Fibers:
    """A text that follows the runtime, compiled once."""
    return compile_fibers(HEAD + text, warp=warp, compiler=compiler)


@pytest.mark.parametrize(
    ("program", "warp"),
    [
        (ADDING, 32),
        (NORMALISING, 32),
        (NORMALISING, 64),
        (STAGING, 32),
        (SHIFTING, 32),
        (SHIFTING_64, 64),
        (SUBTRACTING, 32),
    ],
    ids=lambda value: value.symbol if isinstance(value, Program) else str(value),
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_right_kernels_give_what_numpy_gives(program: Program, warp: int, way: tuple[bool, Order]) -> None:
    for seed in range(2):
        result, right = program.run(compiled_text(program.text, warp), way, seed)
        np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("compiler", list(compilers()))
@pytest.mark.parametrize("prefix", ["", "#define PD_UCONTEXT\n"], ids=["own switch", "ucontext"])
def test_every_compiler_and_both_ways_to_switch(compiler: str, prefix: str) -> None:
    require_fibers(compiler)
    compiled = compile_fibers(prefix + HEAD + SOFTMAX, warp=32, compiler=compiler)
    result, right = NORMALISING.run(compiled, (True, 3), 5)
    np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-7)


BOTH = frozenset(WAYS)
LATE = frozenset(way for way in WAYS if way[0])
EARLY = BOTH - LATE


@dataclass(frozen=True)
class Defect:
    """A change that breaks a program, and how that shows."""

    program: Program
    change: tuple[str, str]
    ways: frozenset[tuple[bool, Order]]
    """The ways in which it is noticed."""
    message: str | None = None
    """A pattern of the error; None: the result is wrong."""


def by_order(*orders: Order) -> frozenset[tuple[bool, Order]]:
    """The ways with one of the orders."""
    return frozenset(way for way in WAYS if way[1] in orders)


RECURSION = "struct R { static int f(volatile int n) { volatile int a[99]; a[n % 99] = n; return f(n + 1) + a[5]; } };"
DEFECTS = {
    "no barrier before reading": Defect(NORMALISING, ("__syncthreads(); // most", ""), BOTH),
    "no barrier before reading the total": Defect(NORMALISING, ("__syncthreads(); // total", ""), BOTH),
    "no barrier before reading from the thread before": Defect(
        SUBTRACTING, ("__syncthreads();", ""), by_order("descending", 1)
    ),
    "no barrier of a warp": Defect(SHIFTING, ("__syncwarp();", ""), BOTH),
    "no barrier after a wait": Defect(STAGING, ("__syncthreads(); // landed", ""), BOTH),
    "no wait": Defect(STAGING, ("pd_copy_wait<1>();", ""), LATE),
    "a wait for too little": Defect(STAGING, ("wait<1>", "wait<2>"), LATE),
    "no commit": Defect(STAGING, ("pd_copy_commit();\n    pd_copy_wait", "pd_copy_wait"), LATE),
    "no barrier before writing again": Defect(STAGING, ("__syncthreads(); // read", ""), EARLY),
    "a barrier that some threads skip": Defect(
        NORMALISING,
        ("__syncthreads(); // most", "if (t != 77) __syncthreads();"),
        BOTH,
        r"thread 77: it waits in pd_shfl_xor at line 24 for thread 64, which waits in __syncthreads at line 18",
    ),
    "two barriers instead of one": Defect(
        NORMALISING,
        ("__syncthreads(); // most", "if (t < 64)\n __syncthreads();\n else\n __syncthreads();"),
        BOTH,
        r"it is in __syncthreads at line (19|21), but thread \d+ waits in __syncthreads at line (19|21)",
    ),
    "a barrier that one thread never reaches": Defect(
        NORMALISING,
        ("__syncthreads(); // total", "if (t == 77) return;\n __syncthreads();"),
        BOTH,
        r"thread \d+: it waits in __syncthreads at line 27 for thread 77, which has ended",
    ),
    "an exchange that one lane skips": Defect(
        NORMALISING,
        ("s += pd_shfl_xor(s, d, W)", "if (t != 40) s += pd_shfl_xor(s, d, W)"),
        BOTH,
        r"thread 32: it waits in pd_shfl_xor at line 24 for thread 40, which waits in __syncthreads",
    ),
    "an exchange in a branch": Defect(
        NORMALISING,
        ("s += pd_shfl_xor(s, d, W)", "if (t == 40)\n s += pd_shfl_xor(s, d, W);\n else s += pd_shfl_xor(s, d, W)"),
        BOTH,
        r"it waits in pd_shfl_xor at line \d\d for thread \d+, which waits in pd_shfl_xor at line \d\d",
    ),
    "exchanges of two widths": Defect(
        NORMALISING,
        ("pd_shfl_xor(s, d, W)", "pd_shfl_xor(s, d, t == 40 && d == 4 ? 16 : W)"),
        BOTH,
        r"which waits in pd_shfl_xor at line 24 for other lanes",
    ),
    "exchanges with two offsets": Defect(
        NORMALISING,
        ("pd_shfl_xor(s, d, W)", "pd_shfl_xor(s, t == 40 ? 1 : d, W)"),
        BOTH,
        r"it exchanges at line 24 with offset \d+, thread \d+ with offset \d+",
    ),
    "an exchange past its lanes": Defect(
        NORMALISING,
        ("d = W / 2; d > 0; d /= 2) s", "d = W; d > 0; d /= 2) s"),
        BOTH,
        r"pd_shfl_xor at line 24 with offset 32 among 32 lanes",
    ),
    "an exchange with threads that the block lacks": Defect(
        NORMALISING, ("7, 128, 32,", "7, 120, 32,"), BOTH, r"for thread 127, but the block has 120 threads"
    ),
    "a barrier of a warp that a lane skips": Defect(
        SHIFTING,
        ("__syncwarp();", "if (lane != 3) __syncwarp();"),
        BOTH,
        r"it waits in __syncwarp at line 7 for thread (3|35), which has ended",
    ),
    "an index past a shared array": Defect(
        STAGING,
        ("(4 * t + j + 100) % 256", "(4 * t + j + 100)"),
        BOTH,
        r"kernel 'staged_0', block \d+, thread \d+: index [56]\d\d at line 15 is out of the bounds of 'float\[512\]'",
    ),
    "a negative index into a shared array": Defect(
        STAGING, ("(4 * t + j + 100) % 256", "(4 * t + j + 100) % 256 - 256"), BOTH, r"index -\d+ at line 15 is out"
    ),
    "shared arrays past the shared memory": Defect(
        NORMALISING, ("128, 32,", "128, 28,"), BOTH, r"an array of 16 bytes at offset 16 of 28 bytes of shared memory"
    ),
    "an index past an array": Defect(
        NORMALISING,
        ("x[blockIdx.x * 512", "x[(blockIdx.x + 1) * 512"),
        BOTH,
        r"block 6, thread \d+: it accesses byte \d+ of array 0, which has 14336 bytes( at line 10\b|$)",
    ),
    "an index far past an array": Defect(
        ADDING, ("(a + i)", "(a + 100000 + i)"), BOTH, r"it accesses byte 40\d\d\d\d of array 0, which has 5120 bytes"
    ),
    "an index before an array, in its page": Defect(
        NORMALISING, ("y[blockIdx.x * 512", "y[-4 + (int)blockIdx.x * 512"), BOTH, r"wrote byte -16 of array 1"
    ),
    "an index before an array": Defect(
        NORMALISING, ("y[blockIdx.x", "y[-8192 + (int)blockIdx.x"), BOTH, r"it accesses byte -\d+ of array 1, which"
    ),
    "a write to an input": Defect(
        NORMALISING, ("y[blockIdx.x", "((float *)x)[blockIdx.x"), BOTH, r"it writes to array 0, which is read-only"
    ),
    "a misaligned vector": Defect(
        ADDING,
        ("(b + i)", "(b + 1 + i)"),
        BOTH,
        r"accesses a vector at line 7 that is not aligned to 16 bytes",
    ),
    "a misaligned copy": Defect(
        STAGING,
        ("(k + 1) * 256 + 4 * t)", "(k + 1) * 256 + 2 * t)"),
        BOTH,
        r"copy of 16 bytes at line 11 is misaligned",
    ),
    "a copy past shared memory": Defect(
        STAGING, ("&tile[(k + 1) % 2 * 256 + 4 * t]", "&tile[0] + 4 * t + 2 * 256"), BOTH, r"outside of shared memory"
    ),
    "shared memory that nothing wrote": Defect(NORMALISING, ("if (t % W == 0) total[t / W] = s;", ""), BOTH),
    "registers that nothing wrote": Defect(NORMALISING, ("-INFINITY, s = 0;", "-INFINITY, s;"), BOTH),
    "an infinite recursion": Defect(
        ADDING,
        ("const int i =", f"{RECURSION} const int i = R::f(0) +"),
        BOTH,
        r"thread \d+: its stack overflows",
    ),
    "a division by zero": Defect(
        ADDING, ("int i = 4", "int i = 4 / *(volatile unsigned *)&threadIdx.y"), BOTH, r"divides an integer by zero"
    ),
    "too many threads": Defect(ADDING, ("5, 64, 0", "5, 1025, 0"), BOTH, r"'add_0': a block cannot have 1025 threads"),
}
"""Broken programs. Where `ways` are few, the defect shows in no other way."""


def _is_noticed(defect: Defect, compiled: Fibers, way: tuple[bool, Order]) -> bool:
    if defect.message is not None:
        with pytest.raises(FiberError) as caught:
            defect.program.run(compiled, way, 1)
        assert re.search(defect.message, str(caught.value)), str(caught.value)
        return True
    result, right = defect.program.run(compiled, way, 1)
    return not np.allclose(result, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_are_noticed(name: str) -> None:
    defect = DEFECTS[name]
    before, after = defect.change
    assert defect.program.text.count(before) == 1
    compiled = compiled_text(defect.program.text.replace(before, after))
    # An error is found by one check in every way; whether a result is wrong depends on the way.
    ways = WAYS if defect.message is None else (WAYS[0], WAYS[-1])
    noticed = {way for way in ways if _is_noticed(defect, compiled, way)}
    assert noticed == defect.ways & {*ways}


def test_messages_quote_the_lines_that_they_name() -> None:
    with pytest.raises(SimulationError) as caught:
        NORMALISING.run(compiled_text(SOFTMAX.replace("total[t / W]", "total[t]")), WAYS[0], 0)
    assert str(caught.value) == (
        "kernel 'softmax_0', block 0, thread 32: index 32 at line 25 is out of the bounds of 'float[4]'\n"
        "  25: if (t % W == 0) total[t] = s;"
    )


def test_kernels_have_limited_time() -> None:
    compiled = compiled_text(ADD.replace("V z;", "V z; for (volatile int k = 0; blockIdx.x == 2;) ++k;"))
    arrays = [np.zeros((5, 256), np.float32) for _ in range(3)]
    with pytest.raises(
        FiberError, match=r"kernel 'add_0', block 2, thread 63: it still runs after 0.5 s( at line 8\b|$)"
    ):
        compiled.run("add", arrays, late=True, order="descending", seconds=0.5)


def test_arrays_are_as_before_after_an_error() -> None:
    x, y = np.zeros((7, 512), np.float32), np.ones((7, 512), np.float32)
    with pytest.raises(FiberError):
        compiled_text(SOFTMAX.replace("7, 128", "8, 128")).run("softmax", [x, y], late=True)
    assert np.all(y == 1)


def test_arrays_need_not_be_contiguous_and_may_be_empty() -> None:
    text = ADD + 'extern "C" void ignore(void *, float *y) { y[0] = 7; }'
    a, b = np.random.default_rng(0).standard_normal((2, 256, 5)).astype(np.float32)
    c = np.zeros((256, 5), np.float32)
    compiled_text(text).run("add", [a.T, b.T, c.T], late=False)
    assert np.array_equal(c, a + b)
    compiled_text(text).run("ignore", [np.zeros(0, np.int8), c[:1]], late=False)
    assert c[0, 0] == 7


def test_shared_memory_is_not_kept_from_block_to_block() -> None:
    text = """
extern "C" __global__ void keep_0(float *y) {
  float (&cell)[1] = pd_shared<float, 1>(0);
  if (blockIdx.x == 0) cell[0] = 1;
  y[blockIdx.x] = cell[0];
}
extern "C" void keep(float *y) { pd_launch(keep_0, 3, 1, 4, y); }
"""
    y = np.zeros(3, np.float32)
    compiled_text(text).run("keep", [y], late=False)
    assert y[0] == 1
    assert np.all(np.isnan(y[1:]))


def test_many_threads_with_values_of_16_bytes() -> None:
    text = """
struct P { double a, b; };
extern "C" __global__ void swap_0(double *y) {
  const int t = threadIdx.x;
  P p{(double)t, (double)-t};
  p = pd_shfl_xor(p, 2, 4);
  __syncthreads();
  y[2 * t] = p.a, y[2 * t + 1] = p.b;
}
extern "C" void swap(double *y) { pd_launch(swap_0, 1, 1024, 0, y); }
"""
    y = np.zeros((1024, 2))
    compiled_text(text, 64).run("swap", [y], late=False, order=4)
    partner = np.arange(1024) ^ 2
    assert np.array_equal(y, np.stack([partner, -partner], axis=1))


def test_refused_texts_and_missing_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LoweringError, match=r"refuses line 3: .*nothing.*\n  int a = nothing;"):
        compile_fibers(HEAD + "\nint a = nothing;", warp=32)
    with pytest.raises(MissingTool, match="there is no icc to run kernels on a CPU: install"):
        compile_fibers(HEAD, warp=32, compiler="icc")
    monkeypatch.setattr(fibers, "compilers", dict[str, list[str]])
    with pytest.raises(MissingTool, match="there is no C\\+\\+ compiler"):
        compile_fibers(HEAD, warp=32)
