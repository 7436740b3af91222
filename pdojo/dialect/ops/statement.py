"""Scalar statements: one output access, a function, inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
)

from pdojo.dialect.attributes import (
    IndexValueAttr,
    LookupAttr,
)
from pdojo.dialect.functions import ACCUMULATIONS, accumulation_function, dtype_name, is_element_type
from pdojo.dialect.narrowing import is_memref, operands_of
from pdojo.dialect.syntax import (
    Dimension,
    IndexNames,
    names_of,
    parse_constant,
    parse_index_expression,
    parse_list,
    print_constant,
    print_index_expression,
)
from pdojo.math.functions import FUNCTIONS


class OpEffects(MemoryEffect):
    """A statement reads its input arrays, reads its output if it accumulates, and writes its output."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """The reads and the write, each on the memref it concerns."""
        assert isinstance(op, StatementOp)
        effects = {EffectInstance(MemoryEffectKind.READ, array) for array in op.arrays}
        if op.accumulate is not None:
            effects.add(EffectInstance(MemoryEffectKind.READ, op.output))
        return effects | {EffectInstance(MemoryEffectKind.WRITE, op.output)}


@irdl_op_definition
class StatementOp(IRDLOperation):
    """One scalar statement: `output accumulation= function(inputs)`."""

    name = "pdojo.op"

    output = operand_def(MemRefType)
    """The array written (also read, if the statement accumulates)."""
    arrays = var_operand_def(MemRefType)
    """The arrays read, one per access among the inputs, in order."""
    ivs = var_operand_def(IndexType)
    """The induction variables that the accesses use, outermost first: the first dimensions of all maps."""
    function = opt_prop_def(StringAttr)
    """The function, named by a standard operation; absent for a copy."""
    accumulate = opt_prop_def(StringAttr)
    """The function that combines the old value of the output with the new one; absent for a plain write."""
    contracted = opt_prop_def(UnitAttr)
    """Present if `z += x * y` rounds once; both syntaxes write `z fma= x * y`."""
    asynchronous = opt_prop_def(UnitAttr)
    """Present on an asynchronous copy from heap to shared memory; both syntaxes write `t async= x`."""
    output_map = prop_def(AffineMapAttr)
    """Index of the output access, one result per dimension of the array."""
    inputs = prop_def(ArrayAttr)
    """One attribute per input: an affine map (access of the next array), a constant, or an index value."""
    lookups = opt_prop_def(ArrayAttr[LookupAttr])
    """The lookups in tables and arrays of indices that the maps use: the dimensions after the induction variables. A
    lookup may use those before it. Absent if there are none."""
    hints = opt_prop_def(ArrayAttr[DictionaryAttr])
    """Hints per access, output first; they never change meaning. Absent if there are none."""
    sizes = opt_prop_def(ArrayAttr[StringAttr])
    """The names of the sizes that symbols stand for; absent if there are none."""
    id = opt_prop_def(StringAttr)
    """Stable identifier, kept by moves; not printed in the pretty form."""

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OpEffects())

    def __init__(
        self,
        output: SSAValue,
        output_map: AffineMapAttr,
        inputs: Sequence[Attribute],
        arrays: Sequence[SSAValue],
        ivs: Sequence[SSAValue],
        function: str | None = None,
        accumulate: str | None = None,
        hints: Sequence[DictionaryAttr] | None = None,
        id: str | None = None,  # the IR's own word for it
        contracted: bool = False,
        asynchronous: bool = False,
        lookups: Sequence[LookupAttr] = (),
        sizes: Sequence[StringAttr] = (),
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "function": None if function is None else StringAttr(function),
            "accumulate": None if accumulate is None else StringAttr(accumulate),
            "contracted": UnitAttr() if contracted else None,
            "asynchronous": UnitAttr() if asynchronous else None,
            "output_map": output_map,
            "inputs": ArrayAttr(inputs),
            "lookups": ArrayAttr(lookups) if lookups else None,
            "sizes": ArrayAttr(sizes) if sizes else None,
            "hints": hints_attr(hints),
            "id": None if id is None else StringAttr(id),
            "operandSegmentSizes": _segments(len(arrays), len(ivs)),
        }
        # IRDLOperation's constructor, which sorts its arguments by the definition, takes several times as long.
        present = {name: value for name, value in properties.items() if value is not None}
        Operation.__init__(self, operands=(output, *arrays, *ivs), properties=present)

    @property
    def operand_groups(self) -> tuple[SSAValue, Sequence[SSAValue], Sequence[SSAValue]]:
        """`output`, `arrays` and `ivs` in one pass, which is several times as fast as the three properties."""
        operands = operands_of(self)
        sizes = self.properties["operandSegmentSizes"]
        assert isinstance(sizes, DenseArrayBase)
        end = 1 + int.from_bytes(sizes.data.data[4:8], "little")
        return operands[0], operands[1:end], operands[end:]

    @property
    def access_hints(self) -> tuple[DictionaryAttr, ...]:
        """Hints per access, output first."""
        hints = self.hints
        return (DictionaryAttr({}),) * (1 + len(self.arrays)) if hints is None else hints.data

    @classmethod
    def parse(cls, parser: Parser) -> StatementOp:
        """Parse `%y[%i] += arith.mulf(%x[%i], 2.0 : f32)`."""
        return _OpParser(parser).parse()

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        hints = iter(self.access_hints)
        printer.print_string(" ")
        self._print_access(printer, self.output, self.output_map.data, next(hints))
        accumulation = "" if self.accumulate is None else ACCUMULATIONS[self.accumulate.data].spelling
        accumulation = accumulation if self.contracted is None else "fma"
        accumulation = accumulation if self.asynchronous is None else "async"
        printer.print_string(f" {accumulation}= ")
        arrays, dims = iter(self.arrays), self._dimensions()

        def argument(value: Attribute) -> None:
            match value:
                case AffineMapAttr():
                    self._print_access(printer, next(arrays), value.data, next(hints))
                case IndexValueAttr():
                    printer.print_string("index(")
                    print_index_expression(printer, value.map.data.results[0], dims, self._size_names())
                    printer.print_string(") : ")
                    printer.print_attribute(value.type)
                case _:
                    print_constant(printer, value)

        if self.function is None:
            argument(self.inputs.data[0])
            return
        printer.print_string(self.function.data)
        with printer.in_parens():
            printer.print_list(self.inputs.data, argument)

    def _print_access(self, printer: Printer, array: SSAValue, index: AffineMap, hints: DictionaryAttr) -> None:
        printer.print_ssa_value(array)
        with printer.in_square_brackets():
            dims, sizes = self._dimensions(), self._size_names()
            printer.print_list(index.results, lambda e: print_index_expression(printer, e, dims, sizes))
        if hints.data:
            printer.print_attr_dict(hints.data)

    def _size_names(self) -> tuple[str, ...]:
        """The names of the sizes that the symbols of the maps stand for."""
        return () if self.sizes is None else names_of(self.sizes)

    def _dimensions(self) -> list[Dimension]:
        """The induction variables and lookups that the dimensions of the maps stand for."""
        lookups = () if self.lookups is None else self.lookups.data
        return [*self.ivs, *((each.table.data, each.map.data.results) for each in lookups)]


@lru_cache(maxsize=1 << 10)
def _segments(arrays: int, variables: int) -> DenseArrayBase[IntegerType]:
    """The property for the numbers of operands: one output, arrays, induction variables."""
    return DenseArrayBase.from_list(i32, [1, arrays, variables])


def hints_attr(hints: Sequence[DictionaryAttr] | None) -> ArrayAttr[DictionaryAttr] | None:
    """The property for per-access hints; None if there are none."""
    if hints is None or not any(h.data for h in hints):
        return None
    return ArrayAttr(hints)


class _OpParser:
    """Collects the parts of one `pdojo.op`."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.names = IndexNames(parser)
        self.arrays: list[SSAValue] = []
        self.hints: list[DictionaryAttr] = []
        self.inputs: list[tuple[AffineExpr, ...] | IndexValueAttr | Attribute] = []

    def parse(self) -> StatementOp:
        output, output_index = self._access(self._array("the array to write"))
        accumulate, word = self._accumulation(output)
        function = self._function()
        inputs = [self._close(i) for i in self.inputs]
        return StatementOp(
            output,
            AffineMapAttr(self._map(output_index)),
            inputs,
            self.arrays,
            self.names.operands,
            function,
            accumulate,
            self.hints,
            contracted=word == "fma",
            asynchronous=word == "async",
            lookups=self.names.lookup_attrs(),
            sizes=[StringAttr(name) for name in self.names.sizes],
        )

    def _accumulation(self, output: SSAValue) -> tuple[str | None, str]:
        """The accumulation's function, and the word before the equals sign."""
        parser = self.parser
        if parser.parse_optional_punctuation("="):
            return None, ""
        start = parser.pos
        spelling = parser.parse_optional_punctuation("+") or parser.parse_optional_punctuation("*")
        word = spelling or parser.parse_identifier("an accumulation: += *= max= min= umax= umin= and= or= fma= async=")
        parser.parse_punctuation("=")
        if word == "async":
            return None, word
        element = output.type.element_type if is_memref(output.type) else None
        sum_of = "+" if word == "fma" else word
        function = None
        if element is not None and is_element_type(element):
            function = accumulation_function(sum_of, dtype_name(element))
        if function is None:
            parser.raise_error(f"'{word}=' does not accumulate into {output.type}", start, parser.pos)
        return function, word

    def _function(self) -> str | None:
        start = self.parser.pos
        word = self.parser.parse_optional_identifier()
        if word is None or word in ("index", "inf", "nan", "true", "false"):
            self._input(word)
            return None
        if word not in FUNCTIONS:
            self.parser.raise_error(f"unknown function '{word}'", start, self.parser.pos)
        self.parser.parse_comma_separated_list(self.parser.Delimiter.PAREN, lambda: self._input(None))
        return word

    def _input(self, word: str | None) -> None:
        parser = self.parser
        if word is None:
            word = parser.parse_optional_keyword_in(("index", "inf", "nan", "true", "false"))
        if word == "index":
            parser.parse_punctuation("(")
            expression = parse_index_expression(parser, self.names)
            parser.parse_punctuation(")")
            parser.parse_punctuation(":")
            self.inputs.append(IndexValueAttr(AffineMapAttr(AffineMap(0, 0, (expression,))), self._value_type()))
            return
        constant = parse_constant(parser, word)
        if constant is not None:
            self.inputs.append(constant)
            return
        array, index = self._access(self._array("an array access, a constant or index(...)"))
        self.arrays.append(array)
        self.inputs.append(index)

    def _value_type(self) -> FixedBitwidthType:
        start = self.parser.pos
        element = self.parser.parse_type()
        if not isinstance(element, FixedBitwidthType):
            self.parser.raise_error(f"an index has no value of type {element}", start, self.parser.pos)
        return element

    def _array(self, what: str) -> SSAValue:
        """An array defined above, whose type it has."""
        name = self.parser.parse_unresolved_operand(f"expected {what}")
        values = self.parser.ssa_values.get(name.operand_name, ())
        if name.index >= len(values):
            self.parser.raise_error(f"unknown array '%{name.operand_name}'", name.span)
        return values[name.index]

    def _access(self, array: SSAValue) -> tuple[SSAValue, tuple[AffineExpr, ...]]:
        index = parse_list(self.parser, lambda: parse_index_expression(self.parser, self.names))
        self.hints.append(DictionaryAttr(self.parser.parse_optional_attr_dict()))
        return array, index

    def _map(self, index: tuple[AffineExpr, ...]) -> AffineMap:
        dims = len(self.names.operands) + len(self.names.lookups)
        return AffineMap(dims, len(self.names.sizes), tuple(self.names.finish(expression) for expression in index))

    def _close(self, value: tuple[AffineExpr, ...] | Attribute) -> Attribute:
        """The attribute of a value; maps get their dimensions here, after all variables of the statement are known."""
        match value:
            case tuple():
                return AffineMapAttr(self._map(value))
            case IndexValueAttr():
                return IndexValueAttr(AffineMapAttr(self._map(value.map.data.results)), value.type)
            case _:
                return value
