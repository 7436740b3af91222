"""CUDA and HIP text as others compile it: by the defaults of nvcc and hipcc, without warnings, called from C++."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pdojo.backends.gpu import hip
from pdojo.backends.gpu.spelling import CudaSpelling, DeviceSpelling, HipSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.notation import parse_notation
from pdojo.kernels import workload
from toolchain import hip_toolchain, require_tool

HEAD = "x f32 [64] heap\nz f32 [64] heap\ny f32 [64] heap\n"
EXACT = f"""
kernel exact(x, z) -> (y)
numerics exact
{HEAD}t f32 [64:N] register

64:g
| t[{{0}}] = x[{{0}}] * x[{{0}}]
| y[{{0}}] = t[{{0}}] + z[{{0}}]

kernel products(x, z) -> (y)
{HEAD}
64:g
| y[{{0}}] = z[{{0}}]
| y[{{0}}] += x[{{0}}] * z[{{0}}]
| y[{{0}}] *= x[{{0}}]
| y[{{0}}] = y[{{0}}] - x[{{0}}]

kernel doubles(x) -> (y)
x f64 [64] heap
y f64 [64] heap

64:g y[{{0}}] = x[{{0}}] * x[{{0}}]
64:g y[{{0}}] += x[{{0}}]

kernel halves(x) -> (y)
x f16 [64] heap
y f16 [64] heap

64:g y[{{0}}] = x[{{0}}] * x[{{0}}]
64:g y[{{0}}] += x[{{0}}]
"""
"""Products beside sums, which compilers may fuse."""
COMPARISONS = """
kernel comparisons(x, z) -> (y)
x f64 [64] heap
z f64 [64] heap
y i1 [64] heap

64:g 1:b
| y[{0}] = arith.cmpf.uno(x[{0}], z[{0}])
| y[{0}] = arith.cmpf.one(x[{0}], z[{0}])

kernel most(x) -> (y)
x f64 [64] heap
y f64 [2] heap

2:g
| y[{0}] = -inf
| 32:w y[{0}] max= x[{0}*32+{1}]

kernel scratch(x) -> (y)
x f32 [64] heap align 16
y f32 [1] heap
t f32 [64] heap

64:g t[{0}] = x[{0}] * 2
2:g 32:w where ({0} < 1) y[0] = t[{1}]
"""
NVCC = ("nvcc", "-arch=sm_90")


def text_of(text: str, spelling: DeviceSpelling) -> str:
    return device_text(*parse_notation(text, "<test>"), spelling=spelling).text


def nvcc(folder: Path, text: str, *options: str) -> None:
    """Compile by nvcc's defaults; a warning fails."""
    require_tool(*NVCC, "-x", "cu", "-ptx", "/dev/null", "-o", "/dev/null")
    source = folder / "kernel.cu"
    source.write_text(text)
    command = [*NVCC, *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_cuda_text_rounds_each_product() -> None:
    text = text_of(EXACT, CudaSpelling())
    body = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("//", "/*")))
    lines = [line for line in body.splitlines() if re.search(r"[\])] \*=? ", line)]
    assert lines == [], "no product of numbers is left to the compiler"
    assert "t = __fmul_rn(x[i0], x[i0]);" in text
    assert "y[i0] += __fmul_rn(x[i0], z[i0]);" in text
    assert "y[i0] = __fmul_rn(x[i0], y[i0]);" in text
    assert "y[i0] = __dmul_rn(x[i0], x[i0]);" in text
    assert "pd_f32_to_f16(__fmul_rn(pd_f16_to_f32(x[i0]), pd_f16_to_f32(x[i0])))" in text


def test_nvcc_fuses_nothing_by_default(tmp_path: Path) -> None:
    nvcc(tmp_path, text_of(EXACT, CudaSpelling()), "-ptx", "-o", str(tmp_path / "kernel.ptx"))
    code = (tmp_path / "kernel.ptx").read_text()
    assert "fma" not in code
    # ptxas may fuse a product without '.rn'; those by 2^112, of numbers made of bits, are exact.
    assert all("0f77800000" in line for line in code.splitlines() if "mul.f32" in line)
    assert "mul.rn.f32" in code
    assert "mul.rn.f64" in code


def test_hip_text_forbids_contraction() -> None:
    text = text_of(EXACT, HipSpelling())
    assert text.index("#pragma clang fp contract(off)") < text.index("__global__")


def test_clang_fuses_nothing_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    hip_toolchain()
    monkeypatch.setattr(hip, "OPTIONS", tuple(o for o in hip.OPTIONS if not o.startswith("-ffp-contract")))
    text = text_of(EXACT, HipSpelling())
    fused = re.compile(r"\bv_(fma|fmac|mac|mad|pk_fma)_")
    assert not fused.search(hip.compile_hip(text).assembly)
    without = text.replace("#pragma clang fp contract(off)", "")
    assert fused.search(hip.compile_hip(without).assembly), "the pragma is what forbids it"


@pytest.mark.parametrize("spelling", [CudaSpelling(), HipSpelling()], ids=["CUDA", "HIP"])
def test_comparisons_call_no_function_of_the_host(spelling: DeviceSpelling) -> None:
    kernels = [workload(f"{name}:8x64").instantiate() for name in ("argmax", "argmin")]
    text = text_of(COMPARISONS, spelling) + device_text(*kernels, spelling=spelling).text
    assert "isunordered" not in text
    assert "islessgreater" not in text


@pytest.mark.parametrize("spelling", [CudaSpelling(), HipSpelling()], ids=["CUDA", "HIP"])
def test_variables_of_the_device_are_used(spelling: DeviceSpelling) -> None:
    text = device_text(workload("softmax:8x64").instantiate(), spelling=spelling).text + text_of(COMPARISONS, spelling)
    for function in re.findall(r'extern "C" __global__ .*?^}', text, re.DOTALL | re.MULTILINE):
        for name in re.findall(r"const int (\w+) = ", function):
            assert len(re.findall(rf"\b{name}\b", function)) > 1, function


def test_nvcc_takes_all_without_a_warning(tmp_path: Path) -> None:
    parsed = [k for text in (EXACT, COMPARISONS) for k in parse_notation(text, "<test>")]
    kernels = [workload(f"{name}:8x64").instantiate() for name in ("argmax", "argmin", "softmax")]
    text = device_text(*parsed, *kernels, spelling=CudaSpelling()).text
    nvcc(tmp_path, text, "-Xcompiler=-Wall,-Wextra", "-c", "-o", str(tmp_path / "kernel.o"))


_MAIN = """
#include <cstdio>
int main() {
  float *good = (float *)256, *odd = (float *)260;
  int codes[] = {scratch(0, good, good, 0), scratch(odd, good, good, 0), scratch(good, good, 0, 0),
                 scratch(good, good, (char *)good + 32, 0)};
  printf("%zu %zu", scratch_workspace_bytes(), most_workspace_bytes());
  for (int code : codes) printf(" %d", code);
  printf(" %d\\n", scratch(good, good, good, 0) != cudaErrorInvalidValue);
}
"""


def test_the_function_of_the_host_answers_with_errors(tmp_path: Path) -> None:
    """Without a device, too: pointers are looked at before the first launch, whose error comes out."""
    program = tmp_path / "program"
    nvcc(tmp_path, text_of(COMPARISONS, CudaSpelling()) + _MAIN, "-o", str(program))
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["256", "0", "1", "1", "1", "1", "1"]


def test_alignments_of_the_interface_are_checked() -> None:
    kernel = with_alignment(workload("add:64x64").instantiate(), 64)
    for spelling, api in ((CudaSpelling(), "cuda"), (HipSpelling(), "hip")):
        text = device_text(kernel, spelling=spelling).text
        assert f'extern "C" {api}Error_t add(' in text
        assert re.search(rf"if \(!x \|\| \(size_t\)x % 64 \|\| .*\) return {api}ErrorInvalidValue;", text)
        assert f"if ({api}Error_t error = {api}GetLastError()) return error;" in text
