"""A C header for the object files of compiled kernels: prototypes, array layouts, workspace sizes."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.backends.c.dispatch import parameters_of
from pdojo.backends.c.names import comment
from pdojo.backends.c.spelling import CSpelling
from pdojo.backends.common.placement import ALIGNMENT, plan_memory
from pdojo.dialect.view.nest import Nest
from pdojo.dialect.view.versions import Versions

_OPENING = f"""\
/* Kernels compiled by pdojo. Arrays are in row-major order, dense unless strided, and do not overlap; strides are in
   elements, alignments in bytes.
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


def header_text(nests: Sequence[Nest], versions: Sequence[Versions] = ()) -> str:
    """The header of an object file with these kernels."""
    own = [_declaration(nest.name, nest.symbol, [nest]) for nest in nests]
    listed = [_declaration(each.name, each.symbol, each.nests) for each in versions]
    return _OPENING + "".join([*own, *listed]) + _CLOSING


def _declaration(name: str, symbol: str, nests: Sequence[Nest]) -> str:
    """The declaration of a kernel; several nests are its versions, of which the last has the widest ranges."""
    parameters, names = parameters_of(nests[-1], _SPELLING)
    interface = [b for b in nests[-1].buffers if b.intent is not None]
    lines = [f"/* {name}", *(f"   {comment(buffer, names[buffer.names[0]])}" for buffer in interface)]
    lines[-1] += " */"
    plans = [plan_memory(nest) for nest in nests]
    shared, own = max(plan.shared_bytes for plan in plans), max(plan.thread_bytes for plan in plans)
    size = f"((size_t){shared} + (size_t){own} * (size_t)(threads))"
    return "\n".join(
        [
            "",
            *lines,
            f"#define {symbol}_WORKSPACE(threads) {size}",
            f"void {symbol}({', '.join(parameters)});",
            "",
        ]
    )
