"""New buffers: names for them, declarations as moves carry them, their place among the others."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from pdojo.dialect.ops import BufferOp, KernelOp


def fresh_name(taken: Mapping[str, object], base: str) -> str:
    """`base`, with underscores until no array has the name."""
    while base in taken:
        base += "_"
    return base


def place_buffer(kernel: KernelOp, op: BufferOp, position: int, rewriter: PatternRewriter) -> None:
    """Insert a declaration at a position among the others; -1 is the end."""
    existing = list(kernel.buffers())
    if position in (-1, len(existing)):
        anchor = next(o for o in kernel.body.block.ops if not isinstance(o, BufferOp))
    else:
        anchor = existing[position]
    rewriter.insert(op, InsertPoint.before(anchor))
