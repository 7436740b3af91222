"""Device code to machine code without a GPU: handwritten kernels, their resource reports, errors, occupancy."""

from __future__ import annotations

import ctypes
import re
import subprocess
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from differential.math_harness import BOUNDS
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.gpu import hip, nvrtc
from pdojo.backends.gpu.hip import HipImage, Toolchain, compile_hip, parse_metadata
from pdojo.backends.gpu.nvrtc import CUDA_HEAD, CudaImage, compile_cuda, disassemble, parse_report
from pdojo.backends.gpu.resources import GFX942, SM_90, MissingTool, Occupancy, Resources, occupancy
from pdojo.errors import LoweringError
from toolchain import hip_toolchain

ADD = """
struct __align__(16) V { float at[4]; };
extern "C" __global__ void __launch_bounds__(256)
add(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  const int i = 4 * (blockIdx.x * 256 + threadIdx.x);
  const V x = *(const V *)(a + i), y = *(const V *)(b + i);
  V z;
#pragma unroll
  for (int k = 0; k < 4; ++k) z.at[k] = x.at[k] + y.at[k];
  *(V *)(c + i) = z;
}
"""
SOFTMAX = """
extern "C" __global__ void __launch_bounds__(128) softmax(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ float most[4], total[4];
  const int t = threadIdx.x;
  float v[4], m = -INFINITY, s = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = x[blockIdx.x * 512 + k * 128 + t];
    m = v[k] > m ? v[k] : m;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const float other = XOR(m, d);
    m = other > m ? other : m;
  }
  if (t % 32 == 0) most[t / 32] = m;
  __syncthreads();
  for (int k = 0; k < 4; ++k) m = most[k] > m ? most[k] : m;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = pd_exp_f32(v[k] - m);
    s += v[k];
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) s += XOR(s, d);
  if (t % 32 == 0) total[t / 32] = s;
  __syncthreads();
  s = total[0] + total[1] + total[2] + total[3];
#pragma unroll
  for (int k = 0; k < 4; ++k) y[blockIdx.x * 512 + k * 128 + t] = v[k] / s;
}
"""
COPY = """
extern "C" __global__ void __launch_bounds__(64) reversed(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ __align__(16) float tile[256];
  const int t = threadIdx.x;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * t);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(x + blockIdx.x * 256 + 4 * t) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  for (int k = 0; k < 4; ++k) y[blockIdx.x * 256 + 64 * k + t] = tile[255 - 64 * k - t];
}
"""
CROWDED = """
extern "C" __global__ void __launch_bounds__(1024) crowded(const float *x, float *y, int n) {
  float sums[150];
#pragma unroll
  for (int k = 0; k < 150; ++k) sums[k] = 0;
  for (int i = 0; i < n; ++i) {
    const float v = x[i * 1024 + threadIdx.x];
#pragma unroll
    for (int k = 0; k < 150; ++k) sums[k] += v * x[i * 150 + k];
  }
#pragma unroll
  for (int k = 0; k < 150; ++k) y[k * 1024 + threadIdx.x] = sums[k];
}
"""
PROBE = """
extern "C" __global__ void __launch_bounds__(64) probe(const float *x, double *y, uint32_t *z) {
  const int t = threadIdx.x;
  const size_t at = blockIdx.x * (size_t)64 + t;
  const float a = x[3 * at], b = x[3 * at + 1], c = x[3 * at + 2];
  const double d = a, e = b, f = c;
  float s = fmaf(a, b, c) + sqrtf(a) + fabsf(b) + floorf(a) + ceilf(b) + truncf(c) + rintf(a) + copysignf(a, b);
  s += fmodf(a, b) + (a > 0 ? INFINITY : NAN);
  y[at] = s + fma(d, e, f) + sqrt(d) + fabs(e) + floor(d) + ceil(e) + trunc(f) + rint(d) + copysign(d, e) + fmod(d, e);
  uint64_t wide;
  memcpy(&wide, &d, sizeof wide);
  uint16_t half = (uint16_t)(wide >> 48);
  uint8_t flags = (uint8_t)((signbit(a) != 0) << 1 | (isnan(c) != 0) << 2);
  flags |= (uint8_t)((signbit(d) != 0) << 4);
  int64_t least = INT32_MIN + (int64_t)INT16_MIN + INT8_MIN + INT64_C(5) + (INT64_MIN >> 8);
  uint64_t most = UINT32_MAX + (uint64_t)UINT16_MAX + UINT8_MAX + (UINT64_MAX >> 8) + INT64_MAX;
  int32_t low = INT32_MAX;
  int16_t small = INT16_MAX;
  int8_t tiny = INT8_MAX;
  z[at] = half + flags + (uint32_t)least + (uint32_t)most + low + small + tiny;
}
"""
MAPPINGS = {
    "CUDA": "#define XOR(value, mask) __shfl_xor_sync(0xffffffff, value, mask)\n",
    "HIP": "#define XOR(value, mask) __shfl_xor(value, mask, 32)\n#define FP_FAST_FMA 1\n",
}


def functions(*names: str) -> str:
    """The elementary functions of the C backend as functions of the device."""
    prelude = Prelude()
    for name in names:
        prelude.use(name)
    text = prelude.text().removeprefix(prelude.spelling.head(threads=False, streams=False))
    return text.replace("static inline", "static __device__ inline")


def cuda(text: str, processor: str = "sm_90") -> CudaImage:
    try:
        return compile_cuda(CUDA_HEAD + MAPPINGS["CUDA"] + text, processor=processor)
    except MissingTool as error:
        pytest.skip(str(error))


def amd(text: str, which: str = "") -> HipImage:
    return compile_hip(MAPPINGS["HIP"] + text, tools=hip_toolchain(which))


def sass(image: CudaImage) -> str:
    try:
        return disassemble(image.cubin)
    except MissingTool as error:
        pytest.skip(str(error))


def test_cuda_add_moves_16_bytes() -> None:
    image = cuda(ADD)
    assert image.cubin.startswith(b"\x7fELF")
    found = image.kernels["add"]
    assert 12 <= found.registers <= 40, "two vectors and three addresses"
    assert not found.spills
    assert (found.shared, found.stack) == (0, 0)
    code = sass(image)
    assert code.count("LDG.E.128") == 2
    assert code.count("STG.E.128") == 1


@pytest.mark.parametrize("processor", ["sm_90", "sm_90a"])
def test_cuda_kernels(processor: str) -> None:
    image = cuda(functions("pd_exp_f32") + SOFTMAX + ADD + COPY, processor)
    assert set(image.kernels) == {"add", "softmax", "reversed"}
    for found in image.kernels.values():
        assert not found.spills
        assert found.stack == 0
        assert 8 <= found.registers <= 48
    assert image.kernels["softmax"].shared == 32
    assert image.kernels["reversed"].shared == 1024


def test_cuda_instructions() -> None:
    code = sass(cuda(functions("pd_exp_f32") + SOFTMAX + COPY))
    assert code.count("SHFL.BFLY") == 10
    assert "LDGSTS.E.BYPASS.128" in code
    assert "FFMA" not in sass(cuda("__global__ void f(float *x) { x[0] = x[1] * x[2] + x[3]; }")), "nothing is fused"


def test_cuda_spills_are_reported() -> None:
    found = cuda(CROWDED).kernels["crowded"]
    assert found.registers <= 64, "1024 threads of 65536 registers"
    assert found.spills
    assert found.spill_stores > 0
    assert found.spill_loads > 0
    assert found.stack > 0


def test_cuda_head_has_what_generated_text_uses() -> None:
    assert not cuda(PROBE).kernels["probe"].spills


@pytest.mark.parametrize("language", ["CUDA", "HIP"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_elementary_functions_compile(language: str, dtype: str) -> None:
    names = [function.removeprefix("math.") for function in BOUNDS]
    kind = {"f32": "float", "f64": "double"}[dtype]
    lines = [f"  x[threadIdx.x + {64 * k}] = {call(n, dtype, k)};" for k, n in enumerate(names)]
    kernel = f'extern "C" __global__ void all({kind} *x) {{\n' + "\n".join(lines) + "\n}\n"
    text = functions(*(f"pd_{name}_{dtype}" for name in names)) + kernel
    image = cuda(text) if language == "CUDA" else amd(text)
    assert image.kernels["all"].registers <= 128


def call(name: str, dtype: str, number: int) -> str:
    arguments = [f"x[threadIdx.x + {64 * number + k}]" for k in range(2 if name == "powf" else 1)]
    return f"pd_{name}_{dtype}({', '.join(arguments)})"


def test_cuda_is_deterministic() -> None:
    assert cuda(ADD).cubin == cuda(ADD).cubin


CUDA_ERRORS = {
    "undefined": (
        "__global__ void f(float *x) {\n  x[0] = foo(1);\n}",
        r'identifier "foo" is undefined\n  x\[0\] = foo',
    ),
    "include": ("#include <math.h>\n", r"could not open source file.*\n  #include <math.h>"),
    "shared": (
        "__global__ void f(float *x) {\n  __shared__ float s[12289];\n  s[threadIdx.x] = x[0];\n  __syncthreads();\n"
        "  x[0] = s[threadIdx.x + 1];\n}",
        "uses too much shared data",
    ),
    "assembly": ('__global__ void f() {\n  asm("nonsense.f32;");\n}', "nonsense"),
    "link": ("__device__ float foo(float);\n__global__ void f(float *x) { x[0] = foo(x[1]); }", "foo"),
    "unfinished": ("__global__ void f() {\n", "expected a"),
    "tensor": (
        '__global__ void f() {\n  asm volatile("wgmma.fence.sync.aligned;");\n}',
        "wgmma",  # needs sm_90a
    ),
}


@pytest.mark.parametrize("case", CUDA_ERRORS)
def test_cuda_errors(case: str) -> None:
    text, message = CUDA_ERRORS[case]
    with pytest.raises(LoweringError, match=message) as caught:
        cuda(text)
    assert str(caught.value).startswith("NVRTC refuses ")


def test_cuda_error_names_the_line_of_the_text() -> None:
    lines = (CUDA_HEAD + MAPPINGS["CUDA"]).count("\n")
    with pytest.raises(LoweringError, match=f"refuses line {lines + 2}: "):
        cuda("__global__ void f(float *x) {\n  x[0] = foo(1);\n}")


def test_cuda_unknown_processor() -> None:
    with pytest.raises(LoweringError, match="arch"):
        cuda(ADD, "sm_9")


def test_missing_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ModuleType:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(nvrtc, "import_module", absent)
    with pytest.raises(MissingTool, match="pip install nvidia-cuda-nvrtc cuda-bindings"):
        compile_cuda(ADD)


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bindings are installed without the compiler."""

    class Bindings(ModuleType):
        def nvrtcVersion(self) -> None:  # noqa: N802 - NVRTC's name
            raise RuntimeError("no libnvrtc")

    def found(name: str) -> ModuleType:
        return Bindings(name)

    monkeypatch.setattr(nvrtc, "import_module", found)
    with pytest.raises(MissingTool, match=r"no libnvrtc.*pip install"):
        compile_cuda(ADD)


def test_missing_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ModuleType:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(nvrtc, "import_module", absent)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingTool, match="pip install nvidia-cuda-nvdisasm"):
        disassemble(b"")


def test_report_of_ptxas() -> None:
    log = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 8 bytes cumulative stack size, 2048 bytes smem, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
"""
    assert parse_report(log) == {
        "a": Resources(registers=255, spill_stores=4, spill_loads=12, shared=2048, stack=8),
        "b": Resources(registers=8),
    }


@pytest.mark.parametrize("which", ["zig", "clang"])
def test_hip_kernels(which: str) -> None:
    image = amd(functions("pd_exp_f32") + SOFTMAX + ADD, which)
    assert image.code_object.startswith(b"\x7fELF")
    assert set(image.kernels) == {"add", "softmax"}
    for found in image.kernels.values():
        assert not found.spills
        assert found.stack == 0
        assert 8 <= found.registers <= 48
        assert 8 <= found.scalar_registers <= 48
    assert image.kernels["softmax"].shared == 32
    code = image.assembly
    assert code.count("global_load_dwordx4") == 2
    assert code.count("global_store_dwordx4") == 1
    assert len(re.findall(r"\bds_bpermute_b32|ds_swizzle_b32|_dpp\b", code)) >= 10, "an exchange of lanes a step"
    assert "s_barrier" in code


@pytest.mark.parametrize("which", ["zig", "clang"])
def test_hip_header_has_what_generated_text_uses(which: str) -> None:
    image = amd(PROBE, which)
    assert not image.kernels["probe"].spills
    assert "s_swappc" not in image.assembly, "nothing is called"


def test_hip_nothing_is_fused() -> None:
    code = amd('extern "C" __global__ void f(float *x) { x[0] = x[1] * x[2] + x[3]; }').assembly
    assert not re.search(r"v_(pk_)?(fma|mad|mac|fmac)_", code)


def test_hip_spills_are_reported() -> None:
    found = amd(CROWDED.replace("150", "200")).kernels["crowded"]
    assert found.registers == 128, "16 waves of 4 SIMDs with 512 registers"
    assert found.spills
    assert found.spill_stores == found.spill_loads > 0
    assert found.stack > 0


def test_hip_launch_bounds_limit_registers() -> None:
    few, many = (amd(CROWDED.replace("1024)", f"{bounds})", 1)).kernels["crowded"] for bounds in ("256", "256, 4"))
    assert not few.spills
    assert many.registers <= 128 < few.registers


def test_hip_grid_and_wide_lanes() -> None:
    text = """
extern __shared__ __align__(16) unsigned char pd_shared[];
extern "C" __global__ void f(double *x) {
  double *tile = (double *)pd_shared;
  const unsigned at = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + threadIdx.y * blockDim.x;
  tile[threadIdx.x] = __shfl_down(x[at + threadIdx.x], 1) + __shfl(x[at + 64 - threadIdx.x], 3);
  __syncthreads();
  x[at] = tile[threadIdx.x + warpSize];
}
"""
    image = amd(text)
    assert image.kernels["f"].shared == 0, "a launch gives it"
    assert image.assembly.count("ds_bpermute_b32") == 4, "the halves of two doubles"


def test_hip_text_may_launch_its_kernels() -> None:
    text = """
extern "C" void run(const float *a, const float *b, float *c, hipStream_t stream) {
  add<<<16, dim3(256), 0, stream>>>(a, b, c);
}
"""
    assert set(amd(ADD + text).kernels) == {"add"}


def test_hip_is_deterministic() -> None:
    assert amd(ADD).code_object == amd(ADD).code_object


HIP_ERRORS = {
    "undefined": (
        "__global__ void f(float *x) {\n  x[0] = foo(1);\n}",
        r"refuses line 4: .*'foo'\n  x\[0\] = foo\(1\);",
    ),
    "include": ("#include <math.h>\n", r"refuses line 3: 'math.h' file not found"),
    "shared": (
        "__global__ void f(float *x) {\n  __shared__ float s[16385];\n  s[threadIdx.x] = x[0];\n  __syncthreads();\n"
        "  x[0] = s[threadIdx.x + 1];\n}",
        r"local memory \(65540\) exceeds limit \(65536\)",
    ),
    "library": ("__global__ void f(float *x) { x[0] = __builtin_erff(x[0]); }", "undefined .*symbol: erff"),
}


@pytest.mark.parametrize("case", HIP_ERRORS)
def test_hip_errors(case: str) -> None:
    text, message = HIP_ERRORS[case]
    with pytest.raises(LoweringError, match=message):
        amd(text)


def test_hip_unknown_processor() -> None:
    with pytest.raises(LoweringError, match="gfx000"):
        compile_hip(ADD, processor="gfx000", tools=hip_toolchain())


def test_missing_clang(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> None:
        return None

    monkeypatch.setattr(hip, "find_spec", absent)
    monkeypatch.setattr(hip.shutil, "which", absent)
    with pytest.raises(MissingTool, match="pip install ziglang"):
        compile_hip(ADD)


def test_clang_that_does_not_start() -> None:
    with pytest.raises(LoweringError, match="cannot start 'no-such-clang'"):
        compile_hip(ADD, tools=Toolchain("absent", ("no-such-clang",), ("no-such-lld",)))


def test_metadata_of_no_kernel() -> None:
    assert parse_metadata("; nothing") == {}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fmod_of_the_header_is_exact(dtype: str, tmp_path: Path) -> None:
    """The function is compiled for the processor of the tests too, and compared with the C library's."""
    kind, size = {"f32": ("float", 4), "f64": ("double", 8)}[dtype]
    host_text = f"""extern "C" __host__ void mod(const {kind} *x, const {kind} *y, {kind} *z, int n) {{
  for (int i = 0; i < n; ++i) z[i] = {"fmodf" if size == 4 else "fmod"}(x[i], y[i]);
}}
"""
    tools = hip_toolchain()
    (tmp_path / "host.hip").write_text(host_text)
    (tmp_path / hip.HEADER).write_text(hip.header_text())
    options = [option.replace("device-only", "host-only") for option in hip.OPTIONS]
    files = ("-include", hip.HEADER, "-fPIC", "-c", "host.hip", "-o", "host.o")
    subprocess.run([*tools.clang, *options, "--offload-arch=gfx942", *files], cwd=tmp_path, check=True)
    subprocess.run([*tools.linker, "-shared", "host.o", "-o", "host.so"], cwd=tmp_path, check=True)
    mod = ctypes.CDLL(str(tmp_path / "host.so")).mod
    for x, y in remainders(dtype):
        z = np.empty_like(x)
        mod(*(ctypes.c_void_p(v.ctypes.data) for v in (x, y, z)), len(x))
        with np.errstate(invalid="ignore"):
            expected = np.fmod(x, y)
        same = z.view(f"u{size}") == expected.view(f"u{size}")
        assert (same | (np.isnan(z) & np.isnan(expected))).all()


Floats: TypeAlias = npt.NDArray[np.floating]


def remainders(dtype: str) -> list[tuple[Floats, Floats]]:
    """Operands: random bits, denormal numbers, special values and ordinary numbers."""
    rng = np.random.default_rng(1)
    kind: type[np.float32 | np.float64] = np.float32 if dtype == "f32" else np.float64
    word = np.uint32 if dtype == "f32" else np.uint64
    limits = np.finfo(kind)
    wild = [rng.integers(0, np.iinfo(word).max, 5000, dtype=word, endpoint=True).view(kind) for _ in range(2)]
    tiny = [rng.integers(0, 8 << limits.nmant, 5000, dtype=word).view(kind) for _ in range(2)]
    special = [0.0, -0.0, 1.0, -3.0, 0.1, np.inf, -np.inf, np.nan, limits.tiny, limits.smallest_subnormal, limits.max]
    pairs = np.array(list(product(special, special)), dtype=kind).T.copy()
    normal = [rng.normal(0, scale, 5000).astype(kind) for scale in (100, 1)]
    return [*product(wild, tiny), *product(tiny, wild), (wild[0], wild[1]), (tiny[0], tiny[1]), (pairs[0], pairs[1]),
            (normal[0], normal[1])]  # fmt: skip


def test_occupancy_of_nvidia() -> None:
    """The numbers of NVIDIA's occupancy calculator for compute capability 9.0."""
    cases: dict[tuple[int, int, int, int], Occupancy] = {
        (32, 256, 0, 0): Occupancy(8, 1.0, "threads"),
        (33, 256, 0, 0): Occupancy(6, 0.75, "registers"),
        (64, 128, 0, 0): Occupancy(8, 0.5, "registers"),
        (255, 256, 0, 0): Occupancy(1, 0.125, "registers"),
        (255, 288, 0, 0): Occupancy(0, 0.0, "registers"),
        (16, 32, 0, 0): Occupancy(32, 0.5, "blocks"),
        (16, 33, 0, 0): Occupancy(32, 1.0, "blocks"),
        (16, 128, 48 * 1024, 0): Occupancy(4, 0.25, "shared memory"),
        (16, 128, 0, 227 * 1024): Occupancy(1, 0.0625, "shared memory"),
        (16, 128, 0, 227 * 1024 + 1): Occupancy(0, 0.0, "shared memory"),
        (16, 1025, 0, 0): Occupancy(0, 0.0, "threads"),
        (256, 32, 0, 0): Occupancy(0, 0.0, "registers"),
    }
    for (registers, threads, static, dynamic), expected in cases.items():
        assert occupancy(Resources(registers, shared=static), threads, SM_90, dynamic) == expected, registers


def test_occupancy_of_amd() -> None:
    """LLVM's tests of gfx90a: 8 waves up to 64 registers, then 512 divided by the registers in groups of 8."""
    for registers, waves in {24: 8, 64: 8, 65: 7, 72: 7, 73: 6, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 257: 1}.items():
        assert occupancy(Resources(registers), 256, GFX942).blocks == waves
    assert occupancy(Resources(512), 512, GFX942) == Occupancy(0, 0.0, "registers")
    assert occupancy(Resources(24, scalar_registers=100), 256, GFX942).blocks == 8
    assert occupancy(Resources(24, scalar_registers=102), 256, GFX942).blocks == 7
    assert occupancy(Resources(24), 64, GFX942) == Occupancy(32, 1.0, "blocks")
    assert occupancy(Resources(24), 128, GFX942) == Occupancy(16, 1.0, "blocks")
    assert occupancy(Resources(24, shared=33000), 256, GFX942) == Occupancy(1, 0.125, "shared memory")


@pytest.mark.parametrize("count", [20, 60, 100, 150, 220])
def test_occupancy_is_that_of_clang(count: int) -> None:
    image = amd(CROWDED.replace("150", str(count)).replace("__launch_bounds__(1024)", "__launch_bounds__(256)"))
    (waves,) = re.findall(r"^; Occupancy: (\d+)", image.assembly, re.MULTILINE)
    assert occupancy(image.kernels["crowded"], 256, GFX942).blocks == int(waves)
