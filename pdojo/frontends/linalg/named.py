"""Named operations of linalg: the maps of their operands, one body on scalars, and their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Self, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseIntElementsAttr
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from pdojo.frontends.linalg.kinds import ElementwiseKindAttr, TypeFnAttr

Maps: TypeAlias = Callable[[NamedOperation], Sequence[AffineMap]]
Body: TypeAlias = Callable[..., SSAValue | Operation]
"""The new element of the output, computed from the elements of the inputs and the previous element."""
BodyOf: TypeAlias = Callable[[Mapping[str, Attribute]], tuple[Body, int]]
"""The body that properties choose, and its number of inputs. Raises ValueError if they choose none."""

Check: TypeAlias = Callable[[NamedOperation, Sequence[AffineMap]], None]
"""Raises VerifyException for given maps that the operation does not allow."""


class CompletedOp(NamedOperation):
    """A named operation with its maps and its body; the body is written only in the generic form.

    The short form is `NAME kind = .. indexing_maps = [..] {..} ins(..) outs(..) -> ..`, as MLIR prints it.
    """

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True
    MAPS: ClassVar[Maps]
    BODY: ClassVar[BodyOf]
    CHECK: ClassVar[Check]
    LEADING: ClassVar[Sequence[str]] = ()
    """Properties that are written before the attributes."""
    TAKEN: ClassVar[Sequence[str]] = ()
    """Properties that the operation has, of `cast` and `LEADING`."""

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)
    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])
    cast = opt_prop_def(TypeFnAttr)
    kind = opt_prop_def(ElementwiseKindAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the short form. Raises ParseError with the position."""
        start = parser.pos
        named: dict[str, Attribute] = {}
        for key in ("kind", "indexing_maps"):
            if parser.parse_optional_keyword(key) is not None:
                if key not in cls.LEADING:
                    parser.raise_error(f"'{cls.name}' has no '{key}'", start, parser.pos)
                parser.parse_punctuation("=")
                named[key] = parser.parse_attribute()
        named |= parser.parse_optional_attr_dict()
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        results = parse_results(parser)
        known = cls.get_irdl_definition().properties
        properties = {key: value for key, value in named.items() if key in known}
        try:
            return cls.build(
                operands=(inputs, outputs),
                result_types=(results,),
                properties=properties,
                attributes={key: value for key, value in named.items() if key not in known},
                regions=(cls.get_hidden_region(inputs, outputs, properties),),
            )
        except ValueError as error:
            parser.raise_error(str(error), start, parser.pos)

    def print(self, printer: Printer) -> None:
        """Print the short form."""
        for key in type(self).LEADING:
            if key in self.properties:
                printer.print_string(f" {key} = ")
                printer.print_attribute(self.properties[key])
        kept = {key: value for key, value in self.properties.items() if key not in type(self).LEADING}
        extra = {
            key: value
            for key, value in (*self.attributes.items(), *kept.items())
            if key not in ("operandSegmentSizes", "linalg.memoized_indexing_maps")
        }
        if extra:
            printer.print_op_attributes(extra)
        print_operands(printer, self.inputs, self.outputs)
        if self.res:
            printer.print_string(" -> ")
            printer.print_attribute(self.res[0].type)

    @classmethod
    def get_hidden_region(
        cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], properties: Mapping[str, Attribute] | None = None
    ) -> Region:
        """The body of an operation without one in its text. Raises ValueError for operands that it does not take."""
        combine, count = cls.BODY(properties or {})
        if (len(inputs), len(outputs)) != (count, 1):
            raise ValueError(f"'{cls.name}' takes {count} inputs and 1 output, not {len(inputs)} and {len(outputs)}")

        @Builder.implicit_region(cls.body_arg_types((*inputs, *outputs)))
        def hidden_region(args: tuple[BlockArgument, ...]) -> None:
            YieldOp(SSAValue.get(combine(*args)))

        return hidden_region

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """The index of an element of each operand over the iterations: as given, or the operation's own."""
        if self.indexing_maps is not None:
            return [attribute.data for attribute in self.indexing_maps.data]
        return type(self).MAPS(self)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Parallel dimensions index the output; the others are reduced."""
        *_, output = self.get_default_indexing_maps()
        parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
        return ArrayAttr(parallel if d in output.used_dims() else reduction for d in range(output.num_dims))

    def verify_(self) -> None:
        """Raise VerifyException for a property that the operation lacks, and for maps that it does not allow."""
        for key in ("cast", "kind", "indexing_maps"):
            if key in self.properties and key not in type(self).TAKEN:
                raise VerifyException(f"'{self.name}' has no '{key}'")
        if self.indexing_maps is not None:
            self._verify_maps([attribute.data for attribute in self.indexing_maps.data])
        super().verify_()

    def _verify_maps(self, maps: Sequence[AffineMap]) -> None:
        """Each index of an operand is an iteration, and each iteration indexes one of its dimensions at most."""
        if len(maps) != len(self.operands):
            raise VerifyException(f"there are {len(maps)} indexing maps for {len(self.operands)} operands")
        for position, found in enumerate(maps):
            dims = [e.position for e in found.results if isinstance(e, AffineDimExpr)]
            if len(dims) < len(found.results) or len(set(dims)) < len(dims):
                raise VerifyException(
                    f"indexing map {position}, {found}: an index is one iteration, and no two indices are the same"
                )
        type(self).CHECK(self, maps)


def within_own(op: NamedOperation, maps: Sequence[AffineMap]) -> None:
    """Dimensions of an operand may be left out and permuted; it has no others than in the operation's own maps."""
    assert isinstance(op, CompletedOp)
    for position, (found, own) in enumerate(zip(maps, type(op).MAPS(op), strict=True)):
        extra = found.used_dims() - own.used_dims()
        if extra:
            raise VerifyException(
                f"indexing map {position}, {found}: operand {position} of '{op.name}' has no dimension d{min(extra)}"
            )


def operation(
    name: str,
    maps: Maps,
    body: BodyOf,
    *,
    check: Check = within_own,
    leading: Sequence[str] = (),
    taken: Sequence[str] = (),
) -> type[CompletedOp]:
    """A named operation; `leading` are properties written before the attributes, `taken` others."""
    members = {
        "name": f"linalg.{name}",
        "LEADING": tuple(leading),
        "TAKEN": (*leading, *taken),
        # xDSL takes constants with annotations only.
        "__annotations__": {"LEADING": ClassVar[Sequence[str]], "TAKEN": ClassVar[Sequence[str]]},
        "MAPS": staticmethod(maps),
        "BODY": staticmethod(body),
        "CHECK": staticmethod(check),
    }
    return irdl_op_definition(type(name, (CompletedOp,), members))


def parse_operands(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    """`ins(%a, %b : type, type)`; no operands if the keyword is missing. Raises ParseError."""
    start = parser.pos
    if parser.parse_optional_characters(keyword) is None:
        return ()
    parser.parse_punctuation("(")
    names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(names, types, start)


def print_operands(printer: Printer, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
    """Print ` ins(..) outs(..)`."""
    for keyword, operands in (("ins", inputs), ("outs", outputs)):
        if operands:
            printer.print_string(f" {keyword}(")
            printer.print_list(operands, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list([each.type for each in operands], printer.print_attribute)
            printer.print_string(")")


def parse_results(parser: Parser) -> Sequence[Attribute]:
    """`-> type`, `-> (type, type)`, xDSL's `-> type, type`, or nothing. Raises ParseError."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    several = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    if several is not None:
        return several
    return parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
