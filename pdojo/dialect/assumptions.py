"""Assumptions of a kernel: alignment of the caller's arrays, and moves' effects on rounding that are permitted."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64

from pdojo.dialect.alignment import LARGEST
from pdojo.dialect.attributes import Numerics, NumericsAttr
from pdojo.dialect.functions import byte_width
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError


def with_alignment(kernel: KernelOp, *alignments: int) -> KernelOp:
    """A copy whose callers align the interface arrays to at least `alignments` bytes.

    One number is for all dense arrays; several are in the order of the kernel's arguments. Raises UsageError for a
    number that is no power of two, and for a wrong count of numbers.
    """
    wrong = next((number for number in alignments if not 1 <= number <= LARGEST or number & (number - 1)), None)
    if wrong is not None:
        most = f" up to {LARGEST}" * (wrong > LARGEST)
        raise UsageError(f"an alignment is a power of two{most}, not {wrong}")
    aligned = kernel.clone()
    interface = [buffer for buffer in nest_of(kernel).buffers if buffer.op is None]
    each = alignments
    if len(alignments) == 1:
        each = tuple(1 if buffer.strides else alignments[0] for buffer in interface)
    if len(each) != len(interface):
        name = kernel.sym_name.data
        raise UsageError(f"kernel '{name}' has {len(interface)} arguments, and there are {len(each)} alignments")
    facts = [max(number, b.alignment, byte_width(b.dtype)) for b, number in zip(interface, each, strict=True)]
    if facts == [buffer.alignment for buffer in interface]:
        # The kernel already states all of it.
        return aligned
    aligned.properties["arg_alignments"] = ArrayAttr(IntegerAttr(fact, i64) for fact in facts)
    return aligned


def with_permission(kernel: KernelOp, *classes: Numerics) -> KernelOp:
    """A copy that also permits these numerics classes (docs/numerics.md)."""
    found = kernel.clone()
    found.properties["numerics"] = ArrayAttr(NumericsAttr(n) for n in dict.fromkeys((*kernel.permitted, *classes)))
    return found
