"""A C header for the object files of compiled kernels: prototypes, array layouts, workspace sizes."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.backends.c.names import Identifiers, comment
from pdojo.backends.c.spelling import CSpelling
from pdojo.backends.common.placement import ALIGNMENT, plan_memory
from pdojo.dialect.view.nest import Nest

_OPENING = f"""\
/* Kernels compiled by pdojo. Arrays are dense, in row-major order, and do not overlap; alignments are in bytes.
   f16 and bf16 are passed as their bits. `workspace` is scratch memory of kernel_WORKSPACE(threads) bytes, aligned to
   {ALIGNMENT} (NULL where that is 0); each call that runs at the same time needs its own. `threads` is at least 1. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define restrict __restrict
extern "C" {{
#endif
"""
_CLOSING = """
#ifdef __cplusplus
}
#undef restrict
#endif
"""
_SPELLING = CSpelling()


def header_text(nests: Sequence[Nest]) -> str:
    """The header of an object file with these kernels."""
    return _OPENING + "".join(map(_declaration, nests)) + _CLOSING


def _declaration(nest: Nest) -> str:
    name = nest.symbol
    interface = [b for b in nest.buffers if b.intent is not None]
    local = Identifiers()
    named = [(b, local.fresh(b.names[0])) for b in interface]
    lines = [f"/* {nest.name}", *(f"   {comment(buffer, own)}" for buffer, own in named)]
    lines[-1] += " */"
    pointers = [_SPELLING.parameter(buffer, own) for buffer, own in named]
    sizes = [f"int64_t {local.fresh(size)}" for size in nest.sizes]
    parameters = [*pointers, *sizes, "void *restrict workspace", "int32_t threads"]
    plan = plan_memory(nest)
    size = f"((size_t){plan.shared_bytes} + (size_t){plan.thread_bytes} * (size_t)(threads))"
    return "\n".join(
        [
            "",
            *lines,
            f"#define {name}_WORKSPACE(threads) {size}",
            f"void {name}({', '.join(parameters)});",
            "",
        ]
    )
