"""Constant tensors: one number everywhere, numbers in arithmetic progression, or a few numbers one by one."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr

from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.element_types import is_float
from pdojo.dialect.view.nest import Constant, Index
from pdojo.frontends.linalg.elements import Elements
from pdojo.frontends.linalg.kernel_writer import KernelWriter
from pdojo.frontends.linalg.refusal import dtype_of, refused, shape_of

MOST_WRITTEN = 256
"""Most numbers of a constant that are written one by one: each is a statement."""


def elements_of(op: arith.ConstantOp, value: DenseIntOrFPElementsAttr, writer: KernelWriter) -> Elements:
    """The elements of a constant tensor. Raises ConversionError if there are too many different ones."""
    dtype, shape = dtype_of(op, op.result.type), shape_of(op, op.result.type)
    # xDSL gives i1 as 0 and 1 or -1; the dialect's signed values are 0 and -1.
    values = cast("Sequence[float]", value.get_values())
    numbers = [-bool(n) if dtype == "i1" else float(n) if is_float(dtype) else int(n) for n in values]
    if len({repr(number) for number in numbers}) == 1:
        return Elements(dtype, shape, Constant(numbers[0], dtype))
    expression = None if is_float(dtype) else _progression([int(number) for number in numbers], shape)
    if expression is not None:
        return Elements(dtype, shape, Index(expression, dtype))
    if len(numbers) > MOST_WRITTEN:
        raise refused(op, f"has {len(numbers)} numbers; kernels have no constant arrays: make it an argument")
    array = writer.declare(op.result.name_hint or "c", dtype, shape)
    at = writer.iterations()
    for position, number in enumerate(numbers):
        writer.write(at, (array, _index(position, shape)), [Constant(number, dtype)])
    return Elements.of(array)


def check_bits(op: arith.ConstantOp) -> None:
    """Raise ConversionError for a number that xDSL 0.74 also reads for the bits of an infinity or a NaN.

    For programs that pdojo did not read itself: `dense<0xFF800000> : tensor<f32>` is 4286578688 there, not -inf.
    """
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(kind := value.get_element_type(), AnyFloat):
        return
    for special in (inf, -inf, nan, -nan):
        raw = int.from_bytes(kind.pack([special]), "little")
        (read,) = kind.iter_unpack(kind.pack([float(raw)]))
        if read in value.get_values():
            raise refused(
                op,
                f"has the number {read}, as which xDSL 0.74 also reads {hex(raw)}, the bits of {special}: let "
                "pdojo-opt read the program, which tells the two apart",
            )


def _index(position: int, shape: Sequence[int]) -> tuple[Expr, ...]:
    """The index of the element at a position in row-major order."""
    found: list[Expr] = []
    for extent in reversed(shape):
        found.append(const(position % extent))
        position //= extent
    return tuple(reversed(found))


def _progression(numbers: Sequence[int], shape: Sequence[int]) -> Expr | None:
    """The numbers as a linear function of the index; None if they are none."""
    expression, stride = const(numbers[0]), len(numbers)
    for d, extent in enumerate(shape):
        stride //= extent
        if extent > 1:
            expression += var(d) * (numbers[stride] - numbers[0])
    for position, number in enumerate(numbers):
        if expression.evaluate([e.constant for e in _index(position, shape)]) != number:
            return None
    return expression
