"""Operations of linalg with bodies of their own: `generic`, `map`, `reduce`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    ShapedType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.linalg.ops import GenericOp, YieldOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from pdojo.frontends.linalg.named import parse_operands, parse_results, print_operands


class CompletedGenericOp(GenericOp):
    """`linalg.generic`, also with an alias for its attributes, and with result types in parentheses."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the short form. Raises ParseError."""
        start = parser.pos
        attributes: dict[str, Attribute] = {}
        while isinstance(given := parser.parse_optional_attribute(), DictionaryAttr):
            attributes |= given.data
        maps, kinds = attributes.pop("indexing_maps", None), attributes.pop("iterator_types", None)
        if not isa(maps, ArrayAttr[AffineMapAttr]) or not isa(kinds, ArrayAttr[Attribute]):
            parser.raise_error("'linalg.generic' needs indexing_maps and iterator_types", start, parser.pos)
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        if parser.parse_optional_keyword("attrs") is not None:
            parser.parse_punctuation("=")
            attributes |= parser.parse_optional_attr_dict()
        body = parser.parse_region()
        iterators = [_iterator(parser, kind, start) for kind in kinds]
        names = {
            key: attributes.pop(key) for key in ("doc", "library_call") if isinstance(attributes.get(key), StringAttr)
        }
        found = cls(inputs, outputs, body, maps, iterators, parse_results(parser))
        found.properties |= names
        found.attributes |= attributes
        return found


def _iterator(parser: Parser, kind: Attribute, start: int) -> Attribute:
    if isinstance(kind, IteratorTypeAttr):
        return kind
    words = {str(each): each for each in IteratorType}
    if not isinstance(kind, StringAttr) or kind.data not in words:
        parser.raise_error(f"{kind} is no iterator type: {', '.join(words)}", start, parser.pos)
    return IteratorTypeAttr(words[kind.data])


def _head(parser: Parser, *, output_first: bool) -> tuple[Region | None, Sequence[SSAValue], Sequence[SSAValue]]:
    """`ins(..) outs(..)`, or `{function} ins(..) outs(..)`: the body if it is one function, and the operands.

    The function takes the elements of the inputs, with `output_first` behind the previous element of the output.
    Raises ParseError.
    """
    start, name, attributes = parser.pos, "", dict[str, Attribute]()
    if parser.parse_optional_punctuation("{") is not None:
        name = parser.parse_identifier()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation("}")
    inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
    if not outputs:
        parser.raise_error("expected outs(...)")
    if not name:
        return None, inputs, outputs
    function = parser.ctx.get_optional_op(name)
    if function is None:
        parser.raise_error(f"unknown operation '{name}'", start, parser.pos)
    block = Block(arg_types=NamedOperation.body_arg_types((*inputs, *outputs)))
    elements, previous = block.args[: len(inputs)], block.args[len(inputs) :]
    computed = function.create(
        operands=[*(previous if output_first else ()), *elements],
        result_types=[each.type for each in previous],
        properties=attributes,
    )
    block.add_ops([computed, YieldOp(*computed.results)])
    return Region(block), inputs, outputs


def _body(parser: Parser) -> Region:
    """The arguments in parentheses, and the region. Raises ParseError."""
    return parser.parse_region(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument))


def _print_body(printer: Printer, body: Region) -> None:
    printer.print_string("\n")
    with printer.in_parens():
        printer.print_list(body.block.args, printer.print_block_argument)
    printer.print_string(" ")
    printer.print_region(body, print_entry_block_args=False)


def _results(outputs: Sequence[SSAValue]) -> list[Attribute]:
    return [each.type for each in outputs if isa(each.type, TensorType[Attribute])]


def _rank(value: SSAValue) -> int:
    return len(value.type.get_shape()) if isinstance(value.type, ShapedType) else 0


@irdl_op_definition
class CompletedReduceOp(LinalgStructuredOperation):
    """`linalg.reduce`: all dimensions of the inputs index the iterations, the outputs lack some."""

    name = "linalg.reduce"

    dimensions = prop_def(DenseArrayBase.constr(i64))
    """The dimensions of the inputs that are reduced."""

    irdl_options = (SameVariadicOperandSize(), ParsePropInAttrDict())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the short form. Raises ParseError."""
        body, inputs, outputs = _head(parser, output_first=True)
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        return cls.build(
            operands=(inputs, outputs),
            result_types=(_results(outputs),),
            properties={"dimensions": DenseArrayBase.from_list(i64, numbers)},
            attributes=attributes,
            regions=(body or _body(parser),),
        )

    def print(self, printer: Printer) -> None:
        """Print the short form."""
        print_operands(printer, self.inputs, self.outputs)
        printer.print_string(" dimensions = ")
        with printer.in_square_brackets():
            printer.print_list(self.dimensions.get_values(), printer.print_int)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        _print_body(printer, self.body)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """The identity for inputs; for outputs without the reduced dimensions."""
        rank, reduced = _rank(self.inputs[0]), self.dimensions.get_values()
        kept = AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in range(rank) if d not in reduced))
        maps = [AffineMap.identity(rank)] * len(self.inputs) + [kept] * len(self.outputs)
        return ArrayAttr([AffineMapAttr(each) for each in maps])

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Reduced and other dimensions."""
        reduced = self.dimensions.get_values()
        parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
        return ArrayAttr(reduction if d in reduced else parallel for d in range(_rank(self.inputs[0])))

    def verify_(self) -> None:
        """Raise VerifyException for dimensions that the inputs lack, and for sizes that do not agree."""
        rank, reduced = _rank(self.inputs[0]), self.dimensions.get_values()
        for d in reduced:
            if not 0 <= d < rank:
                raise VerifyException(f"dimension {d} is reduced, and the inputs have {rank}")
        if len(set(reduced)) < len(reduced):
            raise VerifyException("a dimension is reduced twice")
        super().verify_()


@irdl_op_definition
class MapOp(IRDLOperation):
    """`linalg.map`: a function of the elements of the inputs at the same index.

    The body in former versions of MLIR lacks the previous element of the output; the short form adds it.
    """

    name = "linalg.map"

    inputs = var_operand_def(ShapedType)
    init = operand_def(ShapedType)
    """The array whose elements are replaced."""
    result = var_result_def(TensorType)
    body = region_def("single_block")

    irdl_options = (ParsePropInAttrDict(),)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the short form. Raises ParseError."""
        body, inputs, outputs = _head(parser, output_first=False)
        attributes = parser.parse_optional_attr_dict()
        if body is None:
            body = _body(parser)
            if len(body.block.args) == len(inputs):
                body.block.insert_arg(NamedOperation.body_arg_types(outputs[:1])[0], len(inputs))
        return cls.build(
            operands=(inputs, outputs[0]),
            result_types=(_results(outputs),),
            attributes=attributes,
            regions=(body,),
        )

    def print(self, printer: Printer) -> None:
        """Print the short form."""
        print_operands(printer, self.inputs, [self.init])
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        _print_body(printer, self.body)

    def verify_(self) -> None:
        """Raise VerifyException for operands of different shapes, or a body that does not take their elements."""
        shapes = {each.type.get_shape() for each in self.operands if isinstance(each.type, ShapedType)}
        if len(shapes) > 1:
            listed = ", ".join(str(list(shape)) for shape in sorted(shapes))
            raise VerifyException(f"the operands have different shapes: {listed}")
        wanted = NamedOperation.body_arg_types(self.operands)
        if list(self.body.block.arg_types) != list(wanted):
            raise VerifyException(f"the body takes ({', '.join(map(str, wanted))}), the elements of the operands")
