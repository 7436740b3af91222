"""Attributes of the pdojo dialect: mappings, memory locations, argument intents, numerics classes, index values,
lookups."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, FixedBitwidthType, StringAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class Mapping(StrEnum):
    """Instantiation of a scope's iterations (paper section 2.1)."""

    SEQUENTIAL = "seq"
    UNROLL = "u"
    PARALLEL = "p"
    VECTOR = "v"
    GRID = "g"
    BLOCK = "b"
    WARP = "w"
    FREP = "f"
    STREAM = "s"
    TENSOR = "m"

    is_concurrent: bool
    """Whether iterations may run at the same time: in any order, or, for vectors, in lock step."""
    is_threaded: bool
    """Whether iterations may run in any order and interleaving (`p g b w`)."""

    @property
    def declares_tree(self) -> bool:
        """True if accumulation of threads into one cell is a reduction tree (`b`, `w`)."""
        return self in (Mapping.BLOCK, Mapping.WARP)

    @property
    def combines(self) -> bool:
        """True if accumulations of several iterations into one cell are combined.

        Threads of a block or a warp combine them by a tree, blocks of a grid by atomic operations (`analysis.atomics`).
        For `p` they are a race.
        """
        return self.declares_tree or self is Mapping.GRID

    @property
    def is_special(self) -> bool:
        """Whether the mapping restricts all scopes and statements inside (`g b w f s m`)."""
        return self in _SPECIAL


_SPECIAL = frozenset((Mapping.GRID, Mapping.BLOCK, Mapping.WARP, Mapping.FREP, Mapping.STREAM, Mapping.TENSOR))
_THREADED = frozenset((Mapping.PARALLEL, Mapping.GRID, Mapping.BLOCK, Mapping.WARP))
for _each in Mapping:
    _each.is_threaded = _each in _THREADED
    _each.is_concurrent = _each.is_threaded or _each is Mapping.VECTOR


class Memory(StrEnum):
    """Location of a buffer."""

    HEAP = "heap"
    STACK = "stack"
    SHARED = "shared"
    REGISTER = "register"


class Intent(StrEnum):
    """A kernel's use of an interface array."""

    IN = "in"
    INOUT = "inout"
    OUT = "out"


class Numerics(StrEnum):
    """A move's effect on rounding; a kernel lists the classes that it permits, EXACT is always permitted."""

    EXACT = "exact"
    REASSOCIATES = "reassociate"
    CONTRACTS = "contract"
    FLUSHES = "flush"
    RECIPROCAL = "reciprocal"
    NUMBERS = "numbers"
    TF32 = "tf32"
    APPROXIMATES = "approximate"


@irdl_attr_definition
class MappingAttr(EnumAttribute[Mapping], SpacedOpaqueSyntaxAttribute):
    """The mapping of a scope."""

    name = "pdojo.mapping"


@irdl_attr_definition
class MemoryAttr(EnumAttribute[Memory], SpacedOpaqueSyntaxAttribute):
    """The memory location of a buffer."""

    name = "pdojo.memory"


@irdl_attr_definition
class IntentAttr(EnumAttribute[Intent], SpacedOpaqueSyntaxAttribute):
    """The intent of a kernel argument."""

    name = "pdojo.intent"


@irdl_attr_definition
class NumericsAttr(EnumAttribute[Numerics], SpacedOpaqueSyntaxAttribute):
    """A numerics class that a kernel permits."""

    name = "pdojo.numerics"


@irdl_attr_definition
class IndexValueAttr(ParametrizedAttribute):
    """An index expression used as a value, converted to the element type `type` (paper Table 2)."""

    name = "pdojo.index"

    map: AffineMapAttr
    type: FixedBitwidthType

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<affine_map<...>, type>`."""
        with parser.in_angle_brackets():
            index_map = parser.parse_attribute()
            parser.parse_punctuation(",")
            element = parser.parse_type()
        return [index_map, element]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<affine_map<...>, type>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.map)
            printer.print_string(", ")
            printer.print_attribute(self.type)


@irdl_attr_definition
class LookupAttr(ParametrizedAttribute):
    """An entry of a table or of an array of indices of the kernel, at the place that the map gives."""

    name = "pdojo.lookup"

    table: StringAttr
    map: AffineMapAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<"name", affine_map<...>>`."""
        with parser.in_angle_brackets():
            table = parser.parse_attribute()
            parser.parse_punctuation(",")
            place = parser.parse_attribute()
        return [table, place]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<"name", affine_map<...>>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.table)
            printer.print_string(", ")
            printer.print_attribute(self.map)
