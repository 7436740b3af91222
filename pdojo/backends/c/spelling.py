"""The spelling of constructs that C does not standardise: types, qualifiers, threads, vectors, fences.

The base is C11 with vectors of GNU C and threads of OpenMP. Other targets with C text override the differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.view.nest import Buffer

_MOST_UNROLLED = 65534
"""Largest unroll factor that compilers accept."""
C_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "i64": "int64_t",
    "i32": "int32_t",
    "i16": "int16_t",
    "i8": "int8_t",
    "i1": "uint8_t",
}
"""Element types in memory, keyed by dtype: f16 and bf16 are stored as their bits, an i1 is 0 or 1."""
HEAD = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Products and sums are fused where the program says so (fma), and nowhere else. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
/* A loop that clang does not unroll is right, too. */
#pragma clang diagnostic ignored "-Wpass-failed"
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-math-errno", "no-trapping-math")
#endif
"""
OPENMP = """
#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_thread_num(void) { return 0; }
#endif
"""
STREAMS = """
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
"""


class CSpelling:
    """C11 with vectors of GNU C and threads of OpenMP."""

    types: Mapping[str, str] = C_TYPES
    """Element types in memory, keyed by dtype."""
    helpers: Mapping[str, str] = {}
    """Helper functions that replace those of `prelude.py`, by name."""
    products: Mapping[str, str] = {}
    """Functions that replace `*`, keyed by dtype: compilers do not fuse their products with a sum."""
    index = "int64_t"
    """Type of loop variables."""
    library = False
    """Whether elementary functions come from the target's library; otherwise they are printed before the kernels."""
    restrict = "restrict"
    """Qualifier of pointers to memory that no other pointer reaches."""
    thread = "(size_t)omp_get_thread_num()"
    """The number of the running thread."""
    fence = "pd_stream_end();"
    """A statement that orders non-temporal stores before later accesses."""

    def head(self, *, threads: bool, streams: bool) -> str:
        """The beginning of a file, with headers for kernels with several threads or with non-temporal stores."""
        return HEAD + OPENMP * threads + STREAMS * streams

    def helper(self, text: str) -> str:
        """The target's text of a helper function that is given in C11."""
        return text

    def function(self, name: str, parameters: Sequence[str]) -> str:
        """The head of a kernel's function."""
        return f"void {name}({', '.join(parameters)})"

    def parameter(self, buffer: Buffer, name: str) -> str:
        """The parameter that points to an interface array."""
        const = "const " if buffer.intent is Intent.IN else ""
        return f"{const}{self.types[buffer.dtype]} *{self.restrict} {name}"

    def array(self, dtype: str, name: str, size: int, alignment: int | None) -> str:
        """The declaration of an array on the stack."""
        aligned = "" if alignment is None else f" __attribute__((aligned({alignment})))"
        return f"{self.types[dtype]} {name}[{size}]{aligned};"

    def pointer(self, dtype: str, name: str, place: str) -> str:
        """The declaration of a pointer to an array in the caller's memory."""
        kind = self.types[dtype]
        return f"{kind} *{self.restrict} {name} = ({kind} *){place};"

    def parallel(self) -> str:
        """A line that lets several threads run the next loop."""
        return "#pragma omp parallel for num_threads(threads) schedule(static)"

    def unroll(self, extent: int) -> str | None:
        """A line that lets the compiler unroll the next loop; None if it cannot."""
        return f"#pragma GCC unroll {extent}" if extent <= _MOST_UNROLLED else None

    def simd(self) -> str:
        """A line that lets the compiler vectorise the next loop."""
        return "#pragma omp simd"

    def prefetch(self, address: str) -> str:
        """A statement that prefetches the cache line at an address, given as an integer."""
        return f"__builtin_prefetch((const void *)({address}));"

    def vector(self, dtype: str, lanes: int) -> tuple[str, str]:
        """Name and definition of a vector type in memory, unaligned; integers are unsigned, so that sums wrap."""
        bits = 8 * byte_width(dtype)
        element = {"f32": "float", "f64": "double"}.get(dtype, f"uint{bits}_t")
        name = f"{'f' if is_float(dtype) else 'u'}{bits}x{lanes}"
        attributes = f"vector_size({lanes * bits // 8}), aligned({bits // 8}), may_alias"
        return name, f"typedef {element} {name} __attribute__(({attributes}));"
