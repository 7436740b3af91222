"""Functions of statements as operations of the arith and math dialects, which have the names that they denote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from pdojo.dialect.functions import DTYPES
from pdojo.dialect.view.nest import Constant
from pdojo.errors import LoweringError
from pdojo.math.functions import FUNCTIONS, Signature


@lru_cache(maxsize=1)
def standard_operations() -> dict[str, type[Operation]]:
    """The operations of arith and math, keyed by name."""
    return {op.name: op for dialect in (arith.Arith, math.Math) for op in dialect.operations}


def function_op(function: str, operands: Sequence[SSAValue], dtype: str) -> Operation:
    """The operation of a statement's function, not of a shorter form; its only result has element type `dtype`.

    Raises LoweringError if xDSL has no such operation.
    """
    signature = FUNCTIONS[function].signature
    name, predicate = FUNCTIONS[function].denotes, None
    if signature in (Signature.COMPARE_FLOAT, Signature.COMPARE_INTEGER):
        name, predicate = function.rsplit(".", 1)
    operation = cast(Callable[..., Operation] | None, standard_operations().get(name))
    if operation is None:
        raise LoweringError(f"'{function}' has no operation in xDSL's arith and math dialects, so no loop form")
    if predicate is not None:
        return operation(*operands, predicate)
    if signature is Signature.CAST:
        return operation(*operands, DTYPES[dtype])
    return operation(*operands)


def constant_op(constant: Constant) -> arith.ConstantOp:
    """The operation of a typed constant."""
    element = DTYPES[constant.dtype]
    if isinstance(element, IntegerType):
        return arith.ConstantOp(IntegerAttr(int(constant.value), element, truncate_bits=True))
    return arith.ConstantOp(FloatAttr(float(constant.value), cast(AnyFloat, element)))
