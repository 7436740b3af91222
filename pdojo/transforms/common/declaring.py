"""New arrays: names for them, and their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.transforms.api import (
    Array,
    Buffer,
    BufferOp,
    InsertPoint,
    KernelOp,
    Memory,
    PatternRewriter,
    Program,
    Reason,
    byte_width,
    const,
)


def fresh_name(taken: Mapping[str, object], base: str) -> str:
    """`base`, with underscores appended until no array has the name."""
    while base in taken:
        base += "_"
    return base


def name_reason(program: Program, wanted: str) -> Reason | None:
    """The reason why a new array cannot have the name; None if it can, or for '' (a fresh name)."""
    if wanted in program.nest.arrays:
        return Reason(f"an array '{wanted}' exists already")
    if wanted and not (wanted.isidentifier() and wanted.isascii()):
        return Reason(f"'{wanted}' is no name of an array")
    return None


def declare(
    program: Program,
    name: str,
    dtype: str,
    shape: Sequence[int],
    slots: Sequence[int],
    memory: Memory,
    rewriter: PatternRewriter,
) -> Array:
    """Declare an array in a buffer of its own, after the other buffers. A slot count of 0 keeps a dimension whole."""
    op = BufferOp.of([name], dtype, [const(extent) for extent in shape], memory, slots)
    add_buffer(program.kernel, op, rewriter)
    buffer = Buffer((name,), dtype, tuple(shape), tuple(slots), memory, None, op, byte_width(dtype))
    return Array(name, buffer, op.arrays[0])


def add_buffer(kernel: KernelOp, op: BufferOp, rewriter: PatternRewriter) -> None:
    """Insert a declaration after the others."""
    first = next(o for o in kernel.body.block.ops if not isinstance(o, BufferOp))
    rewriter.insert(op, InsertPoint.before(first))
