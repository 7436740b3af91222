"""Arithmetic of the loop form: constants at the function's entry, index expressions, guards, index values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Operation, SSAValue

from pdojo.backends.loops.functions import constant_op
from pdojo.dialect.affine import Div, Expr, Lookup, Size, const, split_remainders
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Constant, Index


def table_symbol(kernel: str, table: Table) -> str:
    """The name of a table's global constant."""
    return f"{kernel}.{table.name}"


def table_type(table: Table) -> MemRefType:
    """The type of a table's global constant."""
    return MemRefType(i64, [len(table.entries)])


def table_op(kernel: str, table: Table) -> memref.GlobalOp:
    """The global constant of a table."""
    entries = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(table.entries)]), table.entries)
    name = StringAttr(table_symbol(kernel, table))
    return memref.GlobalOp.get(name, table_type(table), entries, constant=UnitAttr())


@dataclass
class Constants:
    """The constants of a function, one operation each, in order of first use."""

    ops: list[Operation] = field(default_factory=list[Operation])
    _index: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    _typed: dict[tuple[str, str], SSAValue] = field(default_factory=dict[tuple[str, str], SSAValue])

    def index(self, value: int) -> SSAValue:
        """A constant of type index."""
        if value not in self._index:
            self._index[value] = self._keep(arith.ConstantOp(IntegerAttr(value, IndexType())))
        return self._index[value]

    def typed(self, constant: Constant) -> SSAValue:
        """A constant of an element type."""
        # Keyed by text, because 0.0 equals -0.0, and NaN is not equal to itself.
        key = repr(constant.value), constant.dtype
        if key not in self._typed:
            self._typed[key] = self._keep(constant_op(constant))
        return self._typed[key]

    def _keep(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]


@dataclass
class Indices:
    """Emits index arithmetic at one place, over the enclosing loops' variables by depth."""

    builder: Builder
    constants: Constants
    variables: Sequence[SSAValue]
    kernel: str
    """The kernel's name, with which the names of its tables begin."""
    sizes: Mapping[str, SSAValue]
    """The values of the kernel's sizes, of type index."""

    def value(self, expression: Expr) -> SSAValue:
        """The value of an expression, of type index."""
        rest, remainders = split_remainders(expression)
        # Numerators in canonical form are never negative, so rounding down and rounding to zero agree.
        total: SSAValue | None = None
        for atom, factor in rest.terms:
            if isinstance(atom, Size):
                factor, divisor = atom.multiple(factor)
                total = self._add_multiple(total, self._size(atom, divisor), factor)
            else:
                total = self._add_multiple(total, self._atom(atom), factor)
        for numerator, divisor, factor in remainders:
            remainder = arith.RemSIOp(self.value(numerator), self.constants.index(divisor))
            total = self._add_multiple(total, self._insert(remainder), factor)
        if total is None:
            return self.constants.index(rest.constant)
        return self._add_multiple(total, self.constants.index(rest.constant), 1) if rest.constant else total

    def condition(self, guard: Sequence[Expr]) -> SSAValue:
        """Whether all expressions are at least zero, of type i1."""
        result: SSAValue | None = None
        for expression in guard:
            constant = expression.constant
            variable = expression - constant
            # `e <= c` reads better, and costs less, than `c - e >= 0`.
            falling = all(factor < 0 for _, factor in variable.terms)
            left = self.value(-variable if falling else variable)
            right = self.constants.index(constant if falling else -constant)
            test = self._insert(arith.CmpiOp(left, right, "sle" if falling else "sge"))
            result = test if result is None else self._insert(arith.AndIOp(result, test))
        assert result is not None
        return result

    def exchanged(self, left: Expr, right: Expr, factor: int, rest: Expr) -> SSAValue:
        """`factor * (left xor right) + rest`, of type index."""
        exclusive = self._insert(arith.XOrIOp(self.value(left), self.value(right), IndexType()))
        total = self._add_multiple(None, exclusive, factor)
        return total if rest == const(0) else self._add_multiple(total, self.value(rest), 1)

    def converted(self, index: Index) -> SSAValue:
        """The value of an index expression in its element type."""
        element = DTYPES[index.dtype]
        value = self.value(index.expression)
        if isinstance(element, IntegerType):
            return self._insert(arith.IndexCastOp(value, element))
        return self._insert(arith.SIToFPOp(self._insert(arith.IndexCastOp(value, i64)), element))

    def least(self, values: Sequence[SSAValue]) -> SSAValue:
        """The least of some values of type index."""
        return reduce(lambda one, other: self._insert(arith.MinSIOp(one, other)), values)

    def product(self, factors: Sequence[SSAValue | int]) -> SSAValue:
        """The product of numbers and of values of type index."""
        fixed = prod(factor for factor in factors if isinstance(factor, int))
        total = None
        for factor in factors:
            if not isinstance(factor, int):
                total = factor if total is None else self._insert(arith.MuliOp(total, factor))
        return self.constants.index(fixed) if total is None else self._add_multiple(None, total, fixed)

    def _size(self, size: Size, divisor: int) -> SSAValue:
        value = self.sizes[size.name]
        return value if divisor == 1 else self._insert(arith.DivSIOp(value, self.constants.index(divisor)))

    def _atom(self, atom: int | Div | Lookup) -> SSAValue:
        if isinstance(atom, int):
            return self.variables[atom]
        operand = self.value(atom.operands[0])
        if isinstance(atom, Div):
            return self._insert(arith.DivSIOp(operand, self.constants.index(atom.divisor)))
        table = atom.table.known
        entries = self._insert(memref.GetGlobalOp(table_symbol(self.kernel, table), table_type(table)))
        return self._insert(arith.IndexCastOp(self._insert(memref.LoadOp.get(entries, [operand])), IndexType()))

    def _add_multiple(self, total: SSAValue | None, value: SSAValue, factor: int) -> SSAValue:
        if factor != 1:
            value = self._insert(arith.MuliOp(value, self.constants.index(factor)))
        return value if total is None else self._insert(arith.AddiOp(total, value))

    def _insert(self, op: Operation) -> SSAValue:
        return self.builder.insert(op).results[0]
