"""Parsing and printing of the common parts of operations' MLIR forms: index expressions and inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from pdojo.dialect.attributes import LookupAttr
from pdojo.dialect.narrowing import is_float_constant, is_integer_constant, is_integer_type
from pdojo.dialect.text_limits import MOST_NESTED, MOST_PARTS

Looked: TypeAlias = tuple[str, tuple[AffineExpr, ...]]
"""An entry of a table or of an array of indices, by its name and place."""

Dimension: TypeAlias = SSAValue | Looked
"""The meaning of a map's dimension: an induction variable, or an entry."""


@dataclass
class IndexNames:
    """The induction variables in the expressions of one operation; dimension k is `operands[k]`.

    `own` names a variable that is not an operand (a scope's own variable); it gets the last dimension.
    """

    parser: Parser
    own: str | None = None
    lookups: list[Looked] = field(default_factory=list[Looked])
    """The entries that are looked up, inner ones first."""
    sizes: list[str] = field(default_factory=list[str])
    """The sizes that are named; symbol k is `sizes[k]`."""
    operands: list[SSAValue] = field(default_factory=list)
    parts: int = 0
    """Variables and numbers read since the expression began."""
    depth: int = 0
    """Number of open parentheses and signs."""

    def dimension(self, name: UnresolvedOperand) -> AffineExpr:
        """The dimension of the named variable; `own` is the dimension `_OWN` until `finish`."""
        if name.operand_name == self.own:
            return AffineExpr.dimension(_OWN)
        if name.operand_name not in self.parser.ssa_values:
            self.parser.raise_error(f"unknown induction variable '%{name.operand_name}'", name.span)
        value = self.parser.resolve_operand(name, IndexType())
        if value not in self.operands:
            self.operands.append(value)
        return AffineExpr.dimension(self.operands.index(value))

    def lookup(self, table: str) -> AffineExpr:
        """The dimension of an entry, whose place follows `[`; lookup k is -1 - k until `finish`."""
        self.depth += 1
        place: list[AffineExpr] = []
        while self.parser.parse_optional_punctuation("]") is None:
            if place:
                self.parser.parse_punctuation(",")
            place.append(_parse_sum(self.parser, self))
        found = table, tuple(place)
        self.depth -= 1
        if found not in self.lookups:
            self.lookups.append(found)
        return AffineExpr.dimension(-1 - self.lookups.index(found))

    def size(self, name: str) -> AffineExpr:
        """The symbol of a size."""
        if name not in self.sizes:
            self.sizes.append(name)
        return AffineExpr.symbol(self.sizes.index(name))

    def finish(self, expression: AffineExpr) -> AffineExpr:
        """Renumber the own variable, and then the lookups, as the dimensions after the operands."""
        if self.own is None and not self.lookups:
            return expression
        return _renumbered(expression, len(self.operands), self.own is not None)

    def lookup_attrs(self) -> list[LookupAttr]:
        """The attributes of the lookups, inner ones first."""
        dims = len(self.operands) + (self.own is not None) + len(self.lookups)
        return [
            LookupAttr(
                StringAttr(table), AffineMapAttr(AffineMap(dims, len(self.sizes), tuple(map(self.finish, place))))
            )
            for table, place in self.lookups
        ]


_OWN = -1 << 30
"""The dimension of a scope's own variable while its guard is read."""


def _renumbered(expression: AffineExpr, operands: int, own: int) -> AffineExpr:
    match expression:
        case AffineDimExpr(position) if position == _OWN:
            return AffineExpr.dimension(operands)
        case AffineDimExpr(position) if position < 0:
            return AffineExpr.dimension(operands + own - 1 - position)
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return AffineBinaryOpExpr(kind, _renumbered(lhs, operands, own), _renumbered(rhs, operands, own))
        case _:
            return expression


def parse_index_expression(parser: Parser, names: IndexNames) -> AffineExpr:
    """Parse a quasi-affine expression over induction variables: `%i * 16 + %j floordiv 4`."""
    names.parts = names.depth = 0
    return _parse_sum(parser, names)


def _parse_sum(parser: Parser, names: IndexNames) -> AffineExpr:
    result = _parse_term(parser, names)
    while True:
        if parser.parse_optional_punctuation("+"):
            result = result + _parse_term(parser, names)
        elif parser.parse_optional_punctuation("-"):
            result = result - _parse_term(parser, names)
        else:
            return result


def _parse_term(parser: Parser, names: IndexNames) -> AffineExpr:
    result = _parse_factor(parser, names)
    while True:
        start = parser.pos
        if parser.parse_optional_punctuation("*"):
            factor = _parse_factor(parser, names)
            if isinstance(result, AffineConstantExpr):
                result, factor = factor, result
            if not isinstance(factor, AffineConstantExpr):
                parser.raise_error(
                    "index expressions are quasi-affine: one side of '*' must be a constant", start, parser.pos
                )
            result = result * factor
            continue
        keyword = parser.parse_optional_keyword_in(("floordiv", "ceildiv", "mod"))
        if keyword is None:
            return result
        divisor = _parse_factor(parser, names)
        if not isinstance(divisor, AffineConstantExpr) or divisor.value <= 0:
            parser.raise_error(f"'{keyword}' needs a positive constant divisor", start, parser.pos)
        kinds = {
            "floordiv": AffineBinaryOpKind.FloorDiv,
            "ceildiv": AffineBinaryOpKind.CeilDiv,
            "mod": AffineBinaryOpKind.Mod,
        }
        result = AffineBinaryOpExpr(kinds[keyword], result, divisor)


def _parse_factor(parser: Parser, names: IndexNames) -> AffineExpr:
    names.parts += 1
    if names.parts > MOST_PARTS or names.depth > MOST_NESTED:
        parser.raise_error(
            f"an index expression has at most {MOST_PARTS} parts, {MOST_NESTED} parentheses and signs deep"
        )
    if parser.parse_optional_punctuation("("):
        names.depth += 1
        inner = _parse_sum(parser, names)
        parser.parse_punctuation(")")
        names.depth -= 1
        return inner
    if parser.parse_optional_punctuation("-"):
        names.depth += 1
        negated = _parse_factor(parser, names) * -1
        names.depth -= 1
        return negated
    if (name := parser.parse_optional_unresolved_operand()) is not None:
        return names.dimension(name)
    if (name := parser.parse_optional_identifier()) is not None:
        is_entry = parser.parse_optional_punctuation("[") is not None
        return names.lookup(name) if is_entry else names.size(name)
    if (value := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
        return AffineExpr.constant(value)
    parser.raise_error("expected an index expression: an induction variable, a size, an integer or '('")


def print_index_expression(
    printer: Printer, expression: AffineExpr, dims: Sequence[Dimension], sizes: Sequence[str] = ()
) -> None:
    """Print a quasi-affine expression over the given induction variables and lookups; sizes are symbols."""
    _print_expression(printer, expression, (dims, sizes), 0)


_OPERATORS = {
    AffineBinaryOpKind.Add: (" + ", 1),
    AffineBinaryOpKind.Mul: (" * ", 2),
    AffineBinaryOpKind.FloorDiv: (" floordiv ", 2),
    AffineBinaryOpKind.CeilDiv: (" ceildiv ", 2),
    AffineBinaryOpKind.Mod: (" mod ", 2),
}


_Names: TypeAlias = tuple[Sequence[Dimension], Sequence[str]]


def _print_expression(printer: Printer, expression: AffineExpr, names: _Names, level: int) -> None:
    match expression:
        case AffineConstantExpr(value):
            printer.print_string(str(value))
        case AffineDimExpr(position):
            _print_dimension(printer, names[0][position], names)
        case AffineSymExpr(position):
            printer.print_string(names[1][position])
        case AffineBinaryOpExpr(kind, lhs, rhs):
            text, own = _OPERATORS[kind]
            with printer.in_parens() if own < level else _Nothing():
                _print_expression(printer, lhs, names, own)
                _print_right(printer, text, rhs, names, own)
        case _:
            raise ValueError(f"'{expression}' is no index expression")


def _print_dimension(printer: Printer, dimension: Dimension, names: _Names) -> None:
    if isinstance(dimension, SSAValue):
        printer.print_ssa_value(dimension)
        return
    table, place = dimension
    printer.print_string(table)
    with printer.in_square_brackets():
        printer.print_list(place, lambda e: _print_expression(printer, e, names, 0))


def _print_right(printer: Printer, text: str, rhs: AffineExpr, names: _Names, own: int) -> None:
    """Print `+ rhs`, or `- |rhs|` if the right side is a negative constant or multiple."""
    match rhs:
        case AffineConstantExpr(value) if text == " + " and value < 0:
            printer.print_string(f" - {-value}")
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, factor, AffineConstantExpr(value)) if (
            text == " + " and value < 0
        ):
            printer.print_string(" - ")
            _print_expression(printer, factor if value == -1 else factor * -value, names, own + 1)
        case _:
            printer.print_string(text)
            _print_expression(printer, rhs, names, own + 1)


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def parse_list(parser: Parser, element: Callable[[], AffineExpr]) -> tuple[AffineExpr, ...]:
    """Parse `[a, b, ...]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, element))


def parse_constant(parser: Parser, word: str | None) -> IntegerAttr[IntegerType] | FloatAttr[AnyFloat] | None:
    """Parse a typed constant `1.5 : f32`, `-inf : f32`, `nan : f32`, `3 : i32`, if there is one.

    `word` is a leading `inf`, `nan`, `true` or `false` that was read already.
    """
    start = parser.pos
    negative = word is None and parser.parse_optional_punctuation("-") is not None
    if negative:
        word = parser.parse_optional_keyword_in(("inf", "nan"))
    number: float | int | None
    if word is None:
        number = parser.parse_optional_number()
        if number is None:
            if negative:
                parser.raise_error("expected a number after '-'")
            return None
    else:
        number = {"inf": math.inf, "nan": math.nan, "true": -1, "false": 0}[word]
    parser.parse_punctuation(":")
    element = parser.parse_type()
    number = -number if negative else number
    if is_integer_type(element) and isinstance(number, int):
        bits = element.width.data
        if not -(1 << bits) <= 2 * number < 2 << bits:
            parser.raise_error(f"{number} does not fit {element}", start, parser.pos)
        return IntegerAttr(number, element, truncate_bits=True)
    if isinstance(element, AnyFloat):
        try:
            return FloatAttr(float(number), element)
        except OverflowError:
            parser.raise_error(f"{number} does not fit {element}", start, parser.pos)
    parser.raise_error(f"{number} is no constant of type {element}")


def print_constant(printer: Printer, constant: Attribute) -> None:
    """Print a typed constant so that `parse_constant` reads it back."""
    if is_float_constant(constant) and not math.isfinite(constant.value.data):
        text = "nan" if math.isnan(constant.value.data) else "inf" if constant.value.data > 0 else "-inf"
        printer.print_string(f"{text} : ")
        printer.print_attribute(constant.type)
        return
    if is_integer_constant(constant):
        printer.print_string(f"{constant.value.data} : ")
        printer.print_attribute(constant.type)
        return
    printer.print_attribute(constant)


def parse_hints(parser: Parser) -> DictionaryAttr:
    """Parse `hints {name = value, ...}`, if it is present."""
    if parser.parse_optional_keyword("hints") is None:
        return DictionaryAttr({})
    return DictionaryAttr(parser.parse_optional_attr_dict())


def print_hints(printer: Printer, hints: DictionaryAttr | None) -> None:
    """Print hints, after a blank, in the form that `parse_hints` reads."""
    if hints is not None and hints.data:
        printer.print_string(" hints")
        printer.print_attr_dict(hints.data)


def names_of(attribute: ArrayAttr[StringAttr]) -> tuple[str, ...]:
    """The strings of an array of string attributes."""
    return tuple(a.data for a in attribute.data)
