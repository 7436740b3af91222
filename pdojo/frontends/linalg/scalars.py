"""Operations on scalars, in bodies and between tensors, as statements of the innermost scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, linalg, memref, tensor
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from pdojo.dialect.affine import Expr, const, floordiv, modulo
from pdojo.dialect.functions import DTYPES, check_types
from pdojo.dialect.view.nest import Constant, Index, Input
from pdojo.frontends.linalg.elements import Elements, Iterations
from pdojo.frontends.linalg.kernel_writer import KernelWriter
from pdojo.frontends.linalg.refusal import INDEX, dtype_of, name_of, refused
from pdojo.math.functions import FUNCTIONS

Surroundings: TypeAlias = Callable[[SSAValue], Elements]
"""The elements of an SSA value that is defined outside of a body."""


class Scalars:
    """The scalar values of a body, by SSA value."""

    def __init__(
        self, writer: KernelWriter, at: Iterations, outside: Surroundings, iterations: Sequence[Expr] = ()
    ) -> None:
        self.writer = writer
        self.at = at
        self.outside = outside
        self.iterations = iterations
        """The meaning of `linalg.index`, by dimension."""
        self.values: dict[SSAValue, Input] = {}

    def value(self, operand: SSAValue) -> Input:
        """The value of an operand."""
        operand = root(operand)
        return self.values[operand] if operand in self.values else self.at.at(self.outside(operand), ())

    def inputs(self, op: Operation) -> tuple[str | None, list[Input]]:
        """The function that an operation computes, and its inputs; no function is a copy.

        Raises ConversionError for an operation that is no function of scalars.
        """
        match op:
            case arith.ConstantOp():
                return None, [constant(op)]
            case linalg.ops.IndexOp():
                return None, [Index(self.iterations[op.dim.value.data], INDEX)]
            case arith.IndexCastOp():
                return self._index_cast(op)
            case arith.SIToFPOp() | arith.ExtSIOp() if isinstance(value := self.value(op.input), Index):
                return None, [Index(value.expression, dtype_of(op, op.result.type))]
            case tensor.ExtractOp():
                return None, [self._element(op, op.tensor, op.indices)]
            case memref.LoadOp():
                return None, [self._element(op, op.memref, op.indices)]
            case _:
                return self._function(op)

    def compute(self, op: Operation) -> None:
        """Make the value of an operation known, by a statement if it is one of a function."""
        if len(op.results) != 1:
            raise refused(op, "is no function of scalars")
        if root(op.results[0]) is not op.results[0]:
            return
        function, inputs = self.inputs(op)
        if function is not None:
            inputs = [self.writer.computed(self.at, dtype_of(op, op.results[0].type), inputs, function)]
        self.values[op.results[0]] = inputs[0]

    def _function(self, op: Operation) -> tuple[str | None, list[Input]]:
        name = function_of(op)
        inputs = [self.value(operand) for operand in op.operands]
        if isinstance(op.results[0].type, IndexType):
            expression = _affine(op, inputs, self.at.extents)
            if expression is not None:
                return None, [Index(expression, INDEX)]
        dtypes = [dtype_of(op, operand.type) for operand in op.operands]
        mistake = check_types(name, dtypes, dtype_of(op, op.results[0].type))
        if mistake is not None:
            raise refused(op, f"has no function in kernels: {mistake}")
        return name, inputs

    def _index_cast(self, op: arith.IndexCastOp) -> tuple[str | None, list[Input]]:
        """Between `index`, which is computed as i64, and another type of integers."""
        (value,) = (self.value(op.input),)
        source, target = dtype_of(op, op.input.type), dtype_of(op, op.result.type)
        if source == target:
            return None, [value]
        if isinstance(value, Index):
            low, high = value.expression.bounds(self.at.extents)
            most = 1 << DTYPES[target].bitwidth - 1
            if -most <= low and high < most:
                return None, [Index(value.expression, target)]
        return "arith.trunci" if DTYPES[source].bitwidth > DTYPES[target].bitwidth else "arith.extsi", [value]

    def _element(self, op: Operation, source: SSAValue, indices: Sequence[SSAValue]) -> Input:
        found: list[Expr] = []
        elements = self.outside(source)
        for operand, extent in zip(indices, elements.shape, strict=True):
            expression = as_expression(self.value(operand))
            if expression is None:
                raise refused(op, "reads an element at a position that depends on data; kernels have no indirection")
            low, high = expression.bounds(self.at.extents)
            if low < 0 or high >= extent:
                raise refused(op, f"reads elements {low} to {high} of {extent}")
            found.append(expression)
        if elements.element is None:
            raise refused(op, "reads an unspecified element of a tensor")
        return self.at.at(elements, found)


def root(value: SSAValue) -> SSAValue:
    """The scalar that a value is: the element of a tensor that was just made from this one scalar is the scalar."""
    owner = value.owner
    if isinstance(owner, tensor.FromElementsOp) and len(owner.elements) == 1:
        return root(owner.elements[0])
    if isinstance(owner, tensor.ExtractOp) and (found := root(owner.tensor)) is not owner.tensor:
        return found
    return value


def function_of(op: Operation) -> str:
    """The name of the function that an operation computes. Raises ConversionError if kernels do not have it."""
    name = name_of(op)
    match op:
        case arith.CmpfOp():
            name = f"{name}.{arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]}"
        case arith.CmpiOp():
            name = f"{name}.{arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]}"
        case _:
            pass
    if name not in FUNCTIONS or len(op.results) != 1 or op.regions:
        raise refused(op, "is no operation that kernels have")
    return name


def constant(op: arith.ConstantOp) -> Input:
    """The value of a scalar constant."""
    dtype = dtype_of(op, op.result.type)
    match op.value:
        case IntegerAttr(value=value) if isinstance(op.result.type, IndexType):
            return Index(const(value.data), dtype)
        case IntegerAttr(value=value):
            bits = DTYPES[dtype].bitwidth
            half = 1 << bits - 1
            return Constant((value.data + half) % (1 << bits) - half, dtype)
        case FloatAttr(value=value):
            return Constant(value.data, dtype)
        case other:
            raise refused(op, f"has the value {other}, which is no number")


def as_expression(value: Input) -> Expr | None:
    """The index expression of a value; None if it depends on data."""
    match value:
        case Index(expression):
            return expression
        case Constant(number) if isinstance(number, int):
            return const(number)
        case _:
            return None


def _affine(op: Operation, inputs: Sequence[Input], extents: Sequence[int]) -> Expr | None:
    """The index expression that an operation on indices computes; None if it is not affine."""
    operands = [expression for value in inputs if (expression := as_expression(value)) is not None]
    if len(operands) != 2 or len(inputs) != 2:
        return None
    left, right = operands
    if op.name == "arith.muli":
        if right.is_constant:
            return left * right.constant
        return right * left.constant if left.is_constant else None
    if op.name in ("arith.addi", "arith.subi"):
        return left + right if op.name == "arith.addi" else left - right
    # Division rounds down; for what is never negative, toward zero is the same.
    divisor = right.constant if right.is_constant else 0
    if divisor <= 0 or (left.bounds(extents)[0] < 0 and op.name != "arith.floordivsi"):
        return None
    if op.name in ("arith.divui", "arith.divsi", "arith.floordivsi"):
        return floordiv(left, divisor, extents)
    return modulo(left, divisor, extents) if op.name in ("arith.remui", "arith.remsi") else None
