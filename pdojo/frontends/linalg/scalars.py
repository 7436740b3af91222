"""Operations on scalars, in bodies and between tensors, as statements of the innermost scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, linalg, memref, scf, tensor
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from pdojo.dialect.affine import Expr, const, floordiv, modulo
from pdojo.dialect.functions import DTYPES, check_types
from pdojo.dialect.view.nest import Constant, Index, Input
from pdojo.frontends.linalg.elements import Elements, Iterations
from pdojo.frontends.linalg.formulas import OPERATIONS, ScalarElement
from pdojo.frontends.linalg.kernel_writer import KernelWriter
from pdojo.frontends.linalg.refusal import INDEX, dtype_of, name_of, refused, shape_of
from pdojo.math.functions import FUNCTIONS

Surroundings: TypeAlias = Callable[[SSAValue], Elements]
"""The elements of an SSA value that is defined outside of a body."""


class StatementNeeded(Exception):
    """A value needs a statement, and none may be written."""


class Scalars:
    """The scalar values of a body, keyed by SSA value; those of operations are computed when they are needed."""

    def __init__(
        self,
        writer: KernelWriter | None,
        at: Iterations,
        outside: Surroundings,
        inside: Operation | None = None,
        iterations: Sequence[Expr] = (),
    ) -> None:
        self.writer = writer
        """None: values that need a statement raise StatementNeeded."""
        self.at = at
        self.outside = outside
        self.inside = inside
        """The operation with the body; None between tensors, where operations are computed in their order."""
        self.iterations = iterations
        """The meaning of `linalg.index`, by dimension."""
        self.values: dict[SSAValue, Input] = {}

    def value(self, operand: SSAValue) -> Input:
        """The value of an operand."""
        operand = root(operand)
        owner = operand.owner
        if operand in self.values:
            return self.values[operand]
        if self.inside is None or not isinstance(owner, Operation) or not self.inside.is_ancestor(owner):
            return self.at.at(self.outside(operand), ())
        self.compute(owner)
        return self.values[operand]

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
            case scf.IfOp():
                return None, [self._branch(op)]
            case tensor.DimOp() | memref.DimOp():
                return None, [self._extent(op)]
            case tensor.ExtractOp():
                return None, [self._element(op, op.tensor, op.indices)]
            case memref.LoadOp():
                return None, [self._element(op, op.memref, op.indices)]
            case _ if name_of(op) in OPERATIONS:
                return self._composite(op, OPERATIONS[name_of(op)])
            case _:
                return self._function(op)

    def compute(self, op: Operation) -> None:
        """Make the value of an operation known, by a statement if it is one of a function."""
        if len(op.results) != 1:
            raise refused(op, "is no function of scalars")
        if root(op.results[0]) is not op.results[0]:
            return
        function, inputs = self.inputs(op)
        # Later operations may write the memref: the value is kept.
        kept = self.inside is None and isinstance(op, memref.LoadOp)
        if function is not None or kept:
            if self.writer is None:
                raise StatementNeeded
            inputs = [self.writer.computed(self.at, dtype_of(op, op.results[0].type), inputs, function)]
        self.values[op.results[0]] = inputs[0]

    def _composite(self, op: Operation, name: str) -> tuple[str | None, list[Input]]:
        """The last function of a composite, after statements for the others."""
        dtype = dtype_of(op, op.results[0].type)
        operands = [ScalarElement(dtype, None, [self.value(operand)], self._statement) for operand in op.operands]
        found = operands[0].mapped(name, operands, {})
        return found.function, found.inputs

    def _statement(self, dtype: str, inputs: Sequence[Input], function: str) -> Input:
        if self.writer is None:
            raise StatementNeeded
        return self.writer.computed(self.at, dtype, inputs, function)

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

    def _branch(self, op: scf.IfOp) -> Input:
        """The value of the branch that all iterations take."""
        truth = self.truth(op.cond)
        if truth is None:
            raise refused(op, "chooses by a condition that depends on data; kernels have no branches")
        block = (op.true_region if truth else op.false_region).block
        assert block.last_op is not None
        return self.value(block.last_op.operands[0])

    def truth(self, condition: SSAValue) -> bool | None:
        """Whether a condition on indices holds in all iterations or in none; None if neither is known."""
        match root(condition).owner:
            case arith.AndIOp() | arith.OrIOp() as op:
                known = {self.truth(operand) for operand in op.operands}
                decisive = isinstance(op, arith.OrIOp)
                return decisive if decisive in known else None if None in known else not decisive
            case arith.CmpiOp() as op:
                return self._compared(op)
            case _:
                return None

    def _compared(self, op: arith.CmpiOp) -> bool | None:
        difference = self.difference(op)
        if difference is None:
            return None
        low, high = difference.bounds(self.at.extents)
        predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        # The difference is linear in one iteration, so that it takes its bounds, and an equality is an interval.
        if predicate in ("eq", "ne"):
            holds = {low <= 0 <= high} if low == high or not low <= 0 <= high else set[bool]()
            holds = {each is (predicate == "eq") for each in holds}
        else:
            holds = {HOLDS[predicate[1:]](each) for each in (low, high)}
        return holds.pop() if len(holds) == 1 else None

    def difference(self, op: arith.CmpiOp) -> Expr | None:
        """The left side minus the right side of a comparison of indices; None if it depends on data."""
        sides = [as_expression(self.value(operand)) for operand in op.operands]
        predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        found = [side for side in sides if side is not None]
        if len(found) < 2 or (predicate[0] == "u" and min(side.bounds(self.at.extents)[0] for side in found) < 0):
            return None
        return found[0] - found[1]

    def _extent(self, op: tensor.DimOp | memref.DimOp) -> Input:
        source, axis = op.operands
        position = as_expression(self.value(axis))
        shape = shape_of(op, source.type)
        if position is None or not position.is_constant or not 0 <= position.constant < len(shape):
            raise refused(op, "asks for a dimension that is no constant")
        return Index(const(shape[position.constant]), INDEX)

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


HOLDS: dict[str, Callable[[int], bool]] = {
    "lt": lambda difference: difference < 0,
    "le": lambda difference: difference <= 0,
    "gt": lambda difference: difference > 0,
    "ge": lambda difference: difference >= 0,
    "eq": lambda difference: difference == 0,
    "ne": lambda difference: difference != 0,
}
"""Comparisons of the difference of two sides with 0."""


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
    # Division rounds down; for numbers that are never negative this is the same as rounding toward zero.
    divisor = right.constant if right.is_constant else 0
    if divisor <= 0 or (left.bounds(extents)[0] < 0 and op.name != "arith.floordivsi"):
        return None
    if op.name in ("arith.divui", "arith.divsi", "arith.floordivsi"):
        return floordiv(left, divisor, extents)
    return modulo(left, divisor, extents) if op.name in ("arith.remui", "arith.remsi") else None
