"""Attributes of linalg that name functions: `#linalg.type_fn<cast_unsigned>`, `#linalg.elementwise_kind<add>`."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.utils import EnumAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class TypeFn(StrEnum):
    """How integers are cast to the type in which an output accumulates."""

    CAST_SIGNED = auto()
    CAST_UNSIGNED = auto()


class ElementwiseKind(StrEnum):
    """The functions of `linalg.elementwise`."""

    ABS = auto()
    ADD = auto()
    CEIL = auto()
    DIV = auto()
    DIV_UNSIGNED = auto()
    ERF = auto()
    EXP = auto()
    FLOOR = auto()
    LOG = auto()
    MAX_SIGNED = auto()
    MAX_UNSIGNED = auto()
    MIN_SIGNED = auto()
    MIN_UNSIGNED = auto()
    MUL = auto()
    NEGF = auto()
    POWF = auto()
    RECIPROCAL = auto()
    ROUND = auto()
    RSQRT = auto()
    SELECT = auto()
    SQRT = auto()
    SQUARE = auto()
    SUB = auto()
    TANH = auto()


@irdl_attr_definition
class TypeFnAttr(EnumAttribute[TypeFn]):
    """`#linalg.type_fn<...>`."""

    name = "linalg.type_fn"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypeFn:
        """The word in angle brackets. Raises ParseError."""
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the word in angle brackets."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)


@irdl_attr_definition
class ElementwiseKindAttr(EnumAttribute[ElementwiseKind]):
    """`#linalg.elementwise_kind<...>`."""

    name = "linalg.elementwise_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ElementwiseKind:
        """The word in angle brackets. Raises ParseError."""
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the word in angle brackets."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)
