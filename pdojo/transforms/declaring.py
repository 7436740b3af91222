"""New buffers: names for them, and their declarations."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from pdojo.dialect.ops import BufferOp, KernelOp


def fresh_name(taken: Mapping[str, object], base: str) -> str:
    """`base`, with underscores appended until no array has the name."""
    while base in taken:
        base += "_"
    return base


def add_buffer(kernel: KernelOp, op: BufferOp, rewriter: PatternRewriter) -> None:
    """Insert a declaration after the others."""
    first = next(o for o in kernel.body.block.ops if not isinstance(o, BufferOp))
    rewriter.insert(op, InsertPoint.before(first))
