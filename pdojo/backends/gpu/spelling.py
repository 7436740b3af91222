"""The spelling of device code in CUDA C++, HIP C++ and C++ for fibers on a CPU, as variants of C text."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from pdojo.backends.c.spelling import CSpelling
from pdojo.backends.common.placement import ALIGNMENT
from pdojo.backends.gpu.atomic_text import cuda_helper, hip_helper
from pdojo.backends.gpu.nvrtc import CUDA_HEAD
from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Buffer

STATIC_SHARED = 48 * 1024
"""Most bytes of statically declared shared memory in CUDA (CUDA C++ Programming Guide, "Shared
Memory"); more must be dynamic."""
_CUDA_HEAD = f"""\
#if defined(__CUDACC_RTC__)
{CUDA_HEAD}#else
#include <cmath>
#include <cstdint>
#include <cstring>
#define FP_FAST_FMA 1
#endif
"""
_HIP_HEAD = """\
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstring>
#else
#include "hip_minimal.h"
#endif
#define FP_FAST_FMA 1
/* Products and sums are fused where the program says so (fma), and nowhere else. */
#pragma clang fp contract(off)
"""
_COPY = """
/* Copy {bytes} bytes to shared memory without waiting (PTX ISA, cp.async). */
static __device__ __forceinline__ void pd_copy_async{bytes}(void *to, const void *from) {{
  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {bytes};"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}}
"""
_COPIES = """
/* End a group of copies; wait until at most N of the thread's groups run. */
static __device__ __forceinline__ void pd_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> static __device__ __forceinline__ void pd_copy_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
"""
_CUDA_SHUFFLE = """
/* The value of the thread `offset` away, among `width` neighbours of a warp, all of which call this. */
template <typename T> static __device__ __forceinline__ T pd_shfl_xor(T value, int offset, int width) {
  unsigned lane = threadIdx.x % 32, group = lane & ~(unsigned)(width - 1);
  unsigned mask = width == 32 ? 0xffffffffu : ((1u << width) - 1) << group;
  return __shfl_xor_sync(mask, value, offset);
}
"""
_CUDA_EXTREME = """\
/* NaN wins, and -0 is below +0 (PTX ISA, max.NaN). */
static inline float pd_%simum_f32(float a, float b) {
  float result;
  asm("%s.NaN.f32 %%0, %%1, %%2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}"""
_HIP_SHUFFLE = """
/* The value of the thread `offset` away, among `width` neighbours of a wave, all of which call this. */
template <typename T> static __device__ __forceinline__ T pd_shfl_xor(T value, int offset, int) {
  return __shfl_xor(value, offset);
}
"""
_WORDS = """
/* An integer type of so many bytes. */
template <int BYTES> struct pd_word;
template <> struct pd_word<1> { typedef uint8_t type; };
template <> struct pd_word<2> { typedef uint16_t type; };
template <> struct pd_word<4> { typedef uint32_t type; };
template <> struct pd_word<8> { typedef %s type; };
template <> struct pd_word<16> { typedef %s type; };
"""
_ACCESSES = {
    "pd_load_streaming": """
/* Load data that is used once. */
template <typename T> static __device__ __forceinline__ T pd_load_streaming(const T *from) {{
  const typename pd_word<sizeof(T)>::type bits = {load}((const typename pd_word<sizeof(T)>::type *)from);
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}}
""",
    "pd_load_readonly": """
/* Load data that nobody writes while the kernel runs. */
template <typename T> static __device__ __forceinline__ T pd_load_readonly(const T *from) {{
  const typename pd_word<sizeof(T)>::type bits = {readonly}((const typename pd_word<sizeof(T)>::type *)from);
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}}
""",
    "pd_store_streaming": """
/* Store data that is not used again soon. */
template <typename T> static __device__ __forceinline__ void pd_store_streaming(T *to, T value) {{
  typename pd_word<sizeof(T)>::type bits;
  memcpy(&bits, &value, sizeof value);
  {store};
}}
""",
}
_CUDA_GROUP = """
/* Groups of N neighbouring threads of a warp wait for each other. */
template <int N> static __device__ __forceinline__ void pd_sync_group() {
  __syncwarp(N == 32 ? 0xffffffffu : ((1u << N % 32) - 1) << (threadIdx.x % 32 & ~(N - 1)));
}
"""
_HIP_GROUP = """
/* Groups of N neighbouring threads of a wave, which run in lock step: accesses stay before or behind. */
template <int N> static __device__ __forceinline__ void pd_sync_group() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
"""
_CUDA_UNITS = """
/* Instructions of tensor units that run while their threads go on (PTX ISA, wgmma): order the registers before them,
   end a group of them, wait until at most N groups run. */
static __device__ __forceinline__ void pd_unit_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void pd_unit_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> static __device__ __forceinline__ void pd_unit_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}
/* Keep accesses to accumulators before or behind this place. */
template <int N> static __device__ __forceinline__ void pd_unit_hold(float (&x)[N]) {
#pragma unroll
  for (int k = 0; k < N; k++) asm volatile("" : "+f"(x[k]) :: "memory");
}
/* Show the units what this thread has written to shared memory (PTX ISA, fence.proxy.async). */
static __device__ __forceinline__ void pd_unit_show() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
"""
UNITS = "pd_unit"
"""Beginning of the names of the functions for asynchronous instructions."""
GROUP = "pd_sync_group"
"""Name of the barrier of a group of threads."""
MATRICES = "pd_mma"
"""Name of the function that emulates a warp's instructions for fibers."""

_BOUNDS = tuple(f"static inline int64_t {name}(" for name in ("pd_min", "pd_max"))
"""Beginnings of the helpers for loop bounds."""


@dataclass(frozen=True)
class Uses:
    """Helpers, atomic operations and copies that the kernels of a file need."""

    shuffles: bool = False
    copies: frozenset[int] = frozenset()
    """Sizes of the asynchronous copies in bytes."""
    helpers: frozenset[str] = frozenset()
    """Names of helpers: for accesses with hints, instructions of a warp, barriers of a group of threads."""
    atomics: frozenset[str] = frozenset()
    """Atomic operations, such as `add.f32`."""

    def __add__(self, other: Uses) -> Uses:
        return Uses(
            self.shuffles or other.shuffles,
            self.copies | other.copies,
            self.helpers | other.helpers,
            self.atomics | other.atomics,
        )


class DeviceSpelling(CSpelling, ABC):
    """The common part of CUDA, HIP and fibers."""

    name: str
    """The language's name in messages."""
    language: ClassVar[str]
    """The language whose instruction templates are used."""
    index = "int"
    restrict = "__restrict__"
    library = True
    has_copies = True
    """Whether asynchronous copies to shared memory exist."""
    machine = "nvidia-sm90"
    """The machine of kernels that name no machine."""
    stream: str | None = None
    """The type of the stream that launches take; None without streams."""
    api: str = ""
    """The prefix of the runtime's names (`cuda`) if its launches can fail."""
    host_only: tuple[str, ...] = ()
    """Lines before and after host code, which hide it from a compiler of device code."""
    dynamic_shared: str | None = "extern __shared__ __align__({}) unsigned char pd_shared[];"
    """The declaration of dynamic shared memory, with a place for its alignment; None if there is none."""

    def head(self, *, threads: bool, streams: bool) -> str:
        """Empty: `device_head` begins the file."""
        return ""

    @abstractmethod
    def device_head(self, uses: Uses) -> str:
        """The beginning of a file."""

    def helper(self, text: str) -> str:
        """The head of a helper function on the device; loop bounds of the host use some helpers, too."""
        where = "__host__ __device__" if text.startswith(_BOUNDS) else "__device__"
        return text.replace("static inline", f"static {where} __forceinline__").replace("restrict", "__restrict__")

    def kernel(self, name: str, parameters: Sequence[str], threads: int, blocks: int | None) -> str:
        """The head of a device function for blocks of `threads` threads; at least `blocks` are resident."""
        bounds = str(threads) if blocks is None else f"{threads}, {blocks}"
        return f'extern "C" __global__ void __launch_bounds__({bounds})\n{name}({", ".join(parameters)})'

    def shared(self, dtype: str, name: str, size: int, place: tuple[int, int], *, dynamic: bool) -> str:
        """The declaration of an array in shared memory; `place` is its offset in dynamic memory, and its alignment."""
        offset, alignment = place
        kind = self.types[dtype]
        if dynamic:
            return f"{kind} *{self.restrict} {name} = ({kind} *)(pd_shared + {offset});"
        return f"__shared__ __align__({alignment}) {kind} {name}[{size}];"

    def own(self, dtype: str, name: str, size: int) -> str:
        """The declaration of a thread's variable or array."""
        return f"{self.types[dtype]} {name};" if size == 1 else f"{self.types[dtype]} {name}[{size}];"

    def unroll(self, extent: int) -> str | None:
        """A line that lets the compiler unroll the next loop."""
        return "#pragma unroll"

    def host(self, name: str, parameters: Sequence[str], lines: Sequence[str], aligned: Mapping[str, int]) -> str:
        """The host function, whose body `lines` launches a kernel's device functions.

        It returns an error of the runtime for a pointer in `aligned` that is null or not a multiple of its alignment.
        """
        wrong = " || ".join(f"!{p} || (size_t){p} % {n}" if n > 1 else f"!{p}" for p, n in aligned.items())
        check = [f"  if ({wrong}) return {self.api}ErrorInvalidValue;"] if wrong else []
        head = f'extern "C" {self.api}Error_t {name}({", ".join([*parameters, f"{self.stream} stream"])}) {{'
        return "\n".join([head, *check, *lines, f"  return {self.api}Success;", "}"])

    def workspace(self, name: str, size: int) -> list[str]:
        """A function that returns the bytes of a kernel's workspace, for its callers."""
        comment = [f"// Bytes of the workspace, which is aligned to {ALIGNMENT}."] if size else []
        return [*comment, f'extern "C" size_t {name}_workspace_bytes() {{ return {size}; }}']

    def launch(self, name: str, blocks: str, threads: int, shared: int, arguments: Sequence[str]) -> list[str]:
        """Lines that launch a device function with `shared` bytes of dynamic shared memory, 0 if it has none."""
        launched = f"{name}<<<{blocks}, {threads}, {shared}, stream>>>({', '.join(arguments)});"
        return [launched, self.failing(f"{self.api}GetLastError()")]

    def failing(self, call: str) -> str:
        """A call of the runtime whose error the host function returns."""
        return f"if ({self.api}Error_t error = {call}) return error;"

    def host_parameter(self, buffer: Buffer, name: str) -> str:
        """The parameter that points to an interface array."""
        const = "const " if buffer.intent is Intent.IN else ""
        return f"{const}{self.types[buffer.dtype]} *{name}"

    def vector_at(self, kind: str, place: str) -> str:
        """A pointer to the vector that begins at `place`."""
        return f"({kind} *)&{place}"

    def vector(self, dtype: str, lanes: int) -> tuple[str, str]:
        """Name and definition of a vector type in memory, aligned to its size."""
        bits = 8 * byte_width(dtype)
        name = f"{dtype}x{lanes}"
        size = lanes * bits // 8
        return name, f"struct __align__({size}) {name} {{ {self.types[dtype]} at[{lanes}]; }}; /* {size} bytes */"


class CudaSpelling(DeviceSpelling):
    """CUDA C++."""

    name = "CUDA"
    language = "cuda"
    helpers = MappingProxyType({f"pd_{name}imum_f32": _CUDA_EXTREME % (name, name) for name in ("max", "min")})
    stream = "cudaStream_t"
    api = "cuda"
    products = MappingProxyType({"f32": "__fmul_rn", "f64": "__dmul_rn"})
    host_only = ("#if !defined(__CUDACC_RTC__)", "#endif")

    def device_head(self, uses: Uses) -> str:
        """Types that NVRTC lacks, and the helpers for shuffles and copies."""
        text = _CUDA_HEAD + _CUDA_SHUFFLE * uses.shuffles + _CUDA_GROUP * (GROUP in uses.helpers)
        text += _CUDA_UNITS * (UNITS in uses.helpers)
        text += _accesses(
            uses, ("uint2", "uint4"), load="__ldcs", readonly="__ldg", store="__stcs((decltype(bits) *)to, bits)"
        )
        for size in sorted(uses.copies):
            text += _COPY.format(bytes=size, cache="cg" if size == 16 else "ca")
        text += "".join(cuda_helper(operation, self.types) for operation in sorted(uses.atomics))
        return text + _COPIES * bool(uses.copies)

    def launch(self, name: str, blocks: str, threads: int, shared: int, arguments: Sequence[str]) -> list[str]:
        """Lines of a launch, after a call that raises the limit of shared memory where necessary."""
        lines: list[str] = []
        if shared > STATIC_SHARED:
            most = f"cudaFuncSetAttribute({name}, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared})"
            lines.append(self.failing(most))
        return [*lines, *super().launch(name, blocks, threads, shared, arguments)]


class HipSpelling(DeviceSpelling):
    """HIP C++."""

    name = "HIP"
    language = "hip"
    machine = "amd-gfx942"
    library = False
    has_copies = False
    stream = "hipStream_t"
    api = "hip"
    host_only = ("#if !defined(__HIPCC_RTC__)", "#endif")

    def device_head(self, uses: Uses) -> str:
        """HIP's headers, or a substitute for compilers without them."""
        words = ("uint64_t", "uint32_t __attribute__((ext_vector_type(4)))")
        store = "__builtin_nontemporal_store(bits, (decltype(bits) *)to)"
        text = _HIP_HEAD + _HIP_SHUFFLE * uses.shuffles + _HIP_GROUP * (GROUP in uses.helpers)
        text += "".join(hip_helper(operation, self.types) for operation in sorted(uses.atomics))
        return text + _accesses(uses, words, load="__builtin_nontemporal_load", readonly="*", store=store)


class FiberSpelling(DeviceSpelling):
    """C++ for the fibers of `fibers.h`, with checked arrays in shared memory."""

    name = "fibers"
    language = "fibers"

    def __init__(self, *, library: bool = True) -> None:
        """`library` selects the C library's elementary functions; False selects pdojo's."""
        self.library = library

    dynamic_shared = None

    def device_head(self, uses: Uses) -> str:
        """The runtime with all files that it includes: the text needs no include."""
        files = ["fibers.h", *["fibers_matrices.h"] * (MATRICES in uses.helpers)]
        files += ["fibers_units.h"] * (UNITS in uses.helpers)
        taken = set[str]()
        return "".join(_with_includes(name, taken) for name in files)

    def shared(self, dtype: str, name: str, size: int, place: tuple[int, int], *, dynamic: bool) -> str:
        """A reference to an array in the block's memory with checked bounds."""
        kind = self.types[dtype]
        return f"{kind} (&{name})[{size}] = pd_shared<{kind}, {size}>({place[0]});"

    def own(self, dtype: str, name: str, size: int) -> str:
        """Variables of a thread, filled with NaN so that reads before the first write are visible."""
        return f"{super().own(dtype, name, size)} pd_poison({name});"

    def unroll(self, extent: int) -> str | None:
        """No line: the code stays small for debugging."""
        return None

    def host(self, name: str, parameters: Sequence[str], lines: Sequence[str], aligned: Mapping[str, int]) -> str:
        """The function that runs a kernel; it checks no pointers, as fibers check every access."""
        return "\n".join([f'extern "C" void {name}({", ".join(parameters)}) {{', *lines, "}"])

    def workspace(self, name: str, size: int) -> list[str]:
        """No function: the caller compiles the kernel itself and knows the size."""
        return []

    def vector_at(self, kind: str, place: str) -> str:
        """A pointer with a check of its alignment, which clang's sanitizer does not make for structures."""
        return f"pd_vector<{kind}>(&{place})"

    def launch(self, name: str, blocks: str, threads: int, shared: int, arguments: Sequence[str]) -> list[str]:
        """Lines of a launch, which always states the size of shared memory."""
        listed = ", ".join([name, blocks, str(threads), str(shared), *arguments])
        return [f"pd_launch({listed});"]


def _with_includes(name: str, seen: set[str]) -> str:
    """A file of the runtime, with own files inserted at their first include."""
    seen.add(name)
    lines: list[str] = []
    for line in (Path(__file__).parent / name).read_text().splitlines():
        own = re.fullmatch(r'#include "(fibers_\w+\.h)"', line)
        if own is None:
            lines.append(line)
        elif own[1] not in seen:
            lines.append(_with_includes(own[1], seen).rstrip("\n"))
    return "\n".join(line for line in lines if line != "#pragma once") + "\n"


def _accesses(uses: Uses, words: tuple[str, str], *, load: str, readonly: str, store: str) -> str:
    """Helpers for accesses with hints; `words` has the types of 8 and of 16 bytes."""
    used = sorted(uses.helpers & _ACCESSES.keys())
    helpers = (_ACCESSES[name].format(load=load, readonly=readonly, store=store) for name in used)
    return _WORDS % words * bool(used) + "".join(helpers)
