"""Compilation of CUDA C++ to machine code by NVRTC, without a GPU, a driver or an installation of CUDA."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from pdojo.backends.gpu.resources import MissingTool, Resources, refusal
from pdojo.errors import LoweringError
from pdojo.files import write_file

REMEDY = "pip install nvidia-cuda-nvrtc cuda-bindings"
OPTIONS = ("--fmad=false", "-std=c++17", "--ptxas-options=-v")
"""Products and sums are contracted only where the text says so (fmaf)."""
CUDA_HEAD = """\
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define INT32_C(c) c
#define INT64_C(c) c##LL
#define UINT32_C(c) c##u
#define UINT64_C(c) c##ull
#define FP_FAST_FMA 1
"""
"""Declarations of `stdint.h` and `math.h` that NVRTC lacks. NVRTC has `size_t`, `memcpy` and the rest of `math.h`.

`FP_FAST_FMA` makes `pdojo.backends.c.math` use pdojo's elementary functions, which give the bits of its CPU code."""

_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads\s+"
    r"ptxas info\s*: Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass(frozen=True)
class CudaImage:
    """Compiled CUDA C++."""

    cubin: bytes
    """An ELF file for one architecture, for the driver."""
    log: str
    """The messages of NVRTC and ptxas."""
    kernels: dict[str, Resources]
    """The resources of each kernel, keyed by its symbol."""


def compile_cuda(text: str, *, processor: str = "sm_90") -> CudaImage:
    """Compile CUDA C++ for a processor, for instance sm_90 or sm_90a.

    The text begins with CUDA_HEAD and includes no header, because NVRTC has none. Raises MissingTool if NVRTC is not
    installed, and LoweringError with the first error and its line if NVRTC or ptxas rejects the text.
    """
    nvrtc = _bindings()
    program = _call(nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], []))
    try:
        options = [option.encode() for option in (f"-arch={processor}", *OPTIONS)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _log(nvrtc, program)
        if status.value:
            raise refusal("NVRTC", log or status.name, text)
        cubin = bytes(_call(nvrtc.nvrtcGetCUBINSize(program)))
        _call(nvrtc.nvrtcGetCUBIN(program, cubin))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return CudaImage(cubin, log, parse_report(log))


@cache
def toolkit() -> tuple[int, int]:
    """The version of CUDA that NVRTC belongs to. Raises MissingTool if it is not installed."""
    major, minor = _call(_bindings().nvrtcVersion(), 2)
    return major, minor


@cache
def version() -> str:
    """The version of NVRTC. Raises MissingTool if it is not installed."""
    major, minor = toolkit()
    try:
        # The library does not report its build number.
        return f"NVRTC {major}.{minor} ({installed('nvidia-cuda-nvrtc')})"
    except PackageNotFoundError:
        return f"NVRTC {major}.{minor}"


def disassembler() -> str | None:
    """The path of `nvdisasm`; None if it is not installed."""
    try:
        return import_module("cuda.pathfinder").find_nvidia_binary_utility("nvdisasm")
    except ImportError:
        return shutil.which("nvdisasm")


def disassemble(cubin: bytes) -> str:
    """The machine code as text. Raises MissingTool if `nvdisasm` is not installed."""
    path = disassembler()
    if path is None:
        raise MissingTool("nvdisasm, the disassembler, is not installed: pip install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory(prefix="pdojo-cuda-") as folder:
        place = Path(folder) / "kernel.cubin"
        write_file(place, cubin)
        done = subprocess.run([path, "-c", str(place)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoweringError(f"nvdisasm cannot read the code: {done.stderr.strip()}")
    return done.stdout


def parse_report(log: str) -> dict[str, Resources]:
    """The resources of each kernel, from the output of `ptxas -v`."""
    return {found["name"]: _resources(found) for found in _KERNEL.finditer(log)}


def _resources(found: re.Match[str]) -> Resources:
    shared = _SHARED.search(found["rest"])
    return Resources(
        registers=int(found["registers"]),
        spill_stores=int(found["stores"]),
        spill_loads=int(found["loads"]),
        shared=0 if shared is None else int(shared[1]),
        stack=int(found["stack"]),
    )


def _bindings() -> Any:
    """The module `cuda.bindings.nvrtc` with its library loaded. Raises MissingTool without the library."""
    try:
        nvrtc = import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise MissingTool(f"NVRTC, the compiler of CUDA C++, is not installed ({error}): {REMEDY}") from None
    return nvrtc


def _log(nvrtc: Any, program: Any) -> str:
    log = bytes(_call(nvrtc.nvrtcGetProgramLogSize(program)))
    _call(nvrtc.nvrtcGetProgramLog(program, log))
    return log.rstrip(b"\0").decode(errors="replace")


def _call(answer: tuple[Any, ...], count: int = 1) -> Any:
    """The value, or the `count` values, or None, of an NVRTC call that fails only for a bug in pdojo."""
    status, *values = answer
    if status.value:
        raise RuntimeError(f"NVRTC: {status.name}")
    return (values[0] if values else None) if count == 1 else values[:count]
