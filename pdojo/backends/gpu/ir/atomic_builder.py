"""Atomic operations of MLIR's memref dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Leaf
from pdojo.errors import LoweringError

_KINDS = {"arith.addf": 0, "arith.addi": 1}
"""Numbers of `arith::AtomicRMWKind` by accumulation function (MLIR, ArithBase.td). Other kinds have different numbers
in different versions of MLIR."""


def atomic_rmw(leaf: Leaf, value: SSAValue, place: SSAValue, index: Sequence[SSAValue]) -> memref.AtomicRMWOp:
    """An atomic operation that accumulates a value into an element, with the function of a statement.

    Raises LoweringError for functions other than sums.
    """
    assert leaf.accumulate is not None
    if leaf.accumulate not in _KINDS:
        raise LoweringError(
            f"blocks accumulate into {describe_access(leaf.output)}, but of MLIR's atomic operations only sums are "
            f"encoded alike in all versions; "
            f"give each block a partial result (split_reduction)"
        )
    kind = IntegerAttr(_KINDS[leaf.accumulate], i64)
    return memref.AtomicRMWOp(operands=[value, place, index], result_types=[value.type], properties={"kind": kind})
