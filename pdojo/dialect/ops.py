"""The operations of the pdojo dialect: kernel, buffer, scope, op and call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    HasParent,
    IsolatedFromAbove,
    MemoryAllocEffect,
    MemoryEffect,
    MemoryEffectKind,
    NoTerminator,
    RecursiveMemoryEffect,
    SymbolOpInterface,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.attributes import (
    IndexValueAttr,
    Intent,
    IntentAttr,
    Mapping,
    MappingAttr,
    Memory,
    MemoryAttr,
    Numerics,
    NumericsAttr,
)
from pdojo.dialect.functions import ACCUMULATIONS, FUNCTIONS, accumulation_function, dtype_name
from pdojo.dialect.syntax import (
    IndexNames,
    names_of,
    parse_constant,
    parse_index_expression,
    parse_list,
    print_constant,
    print_index_expression,
)

DEFAULT_NUMERICS = (Numerics.REASSOCIATES, Numerics.CONTRACTS)
"""What a kernel permits when it says nothing: accumulations are unordered by definition (docs/numerics.md)."""


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A numerical kernel: interface arrays as arguments, buffers, and a sequence of scopes and ops."""

    name = "pdojo.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    """The kernel's symbol."""
    arg_names = prop_def(ArrayAttr[StringAttr])
    """Names of the interface arrays, one per argument."""
    arg_intents = prop_def(ArrayAttr[IntentAttr])
    """Whether each argument is read (in), read and written (inout) or only written (out)."""
    arg_alignments = opt_prop_def(ArrayAttr[IntegerAttr])
    """Alignment in bytes that callers guarantee for each argument; the element size where absent."""
    numerics = opt_prop_def(ArrayAttr[NumericsAttr])
    """Numerics classes that moves may use; `DEFAULT_NUMERICS` where absent."""
    machine = opt_prop_def(StringAttr)
    """Name of the machine description that the kernel is mapped for."""
    body = region_def("single_block")
    """Buffers first, then scopes and ops in order of execution."""

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        name: str,
        arguments: Sequence[tuple[str, Intent, MemRefType]],
        body: Region | None = None,
        numerics: Sequence[Numerics] | None = None,
        machine: str | None = None,
        alignments: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "arg_names": ArrayAttr(StringAttr(n) for n, _, _ in arguments),
                "arg_intents": ArrayAttr(IntentAttr(i) for _, i, _ in arguments),
                "arg_alignments": None if alignments is None else ArrayAttr(IntegerAttr(a, i64) for a in alignments),
                "numerics": None if numerics is None else ArrayAttr(NumericsAttr(n) for n in numerics),
                "machine": None if machine is None else StringAttr(machine),
            },
            regions=[body or Region(Block(arg_types=[t for _, _, t in arguments]))],
        )
        if body is None:
            for argument, (argument_name, _, _) in zip(self.body.block.args, arguments, strict=True):
                argument.name_hint = argument_name

    @property
    def permitted(self) -> tuple[Numerics, ...]:
        """The numerics classes that moves may use on this kernel, besides exact ones."""
        return DEFAULT_NUMERICS if self.numerics is None else tuple(a.data for a in self.numerics.data)

    def buffers(self) -> Iterator[BufferOp]:
        """The buffer declarations, in order."""
        return (op for op in self.body.block.ops if isinstance(op, BufferOp))

    def verify_(self) -> None:
        """Check structure, names, types and bounds; see `pdojo.dialect.verify`."""
        from pdojo.dialect.verify import verify_kernel

        verify_kernel(self)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        """Parse `@name(in x %x : memref<..>, ...) attributes {...} { ... }`."""
        name = parser.parse_symbol_name()
        names: list[str] = []
        intents: list[Intent] = []

        def argument() -> Parser.Argument:
            intents.append(parser.parse_str_enum(Intent))
            names.append(parser.parse_identifier_or_str_literal("the name of the array"))
            return parser.parse_argument()

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        attributes = parser.parse_optional_attr_dict_with_keyword(("sym_name", "arg_names", "arg_intents"))
        region = parser.parse_region(arguments)
        types = [cast(MemRefType, a.type) for a in arguments]
        kernel = cls(name.data, list(zip(names, intents, types, strict=True)), region)
        for key, value in (attributes.data if attributes else {}).items():
            target = kernel.properties if key in ("numerics", "machine", "arg_alignments") else kernel.attributes
            target[key] = value
        return kernel

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        names = names_of(self.arg_names)
        rows = list(zip(self.arg_intents.data, names, self.body.block.args, strict=True))

        def argument(row: tuple[IntentAttr, str, BlockArgument]) -> None:
            printer.print_string(f"{row[0].data.value} {row[1]} ")
            printer.print_block_argument(row[2])

        with printer.in_parens():
            printer.print_list(rows, argument)
        facts = {k: v for k, v in self.properties.items() if k in ("numerics", "machine", "arg_alignments")}
        facts.update(self.attributes)
        if facts:
            printer.print_string(" attributes")
            printer.print_attr_dict(facts)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


@irdl_op_definition
class BufferOp(IRDLOperation):
    """One memory buffer and the arrays that live in it, one result per array; dimensions are in row-major order."""

    name = "pdojo.buffer"

    array_names = prop_def(ArrayAttr[StringAttr])
    """Names of the arrays, unique in the kernel."""
    reuse = opt_prop_def(ArrayAttr[BoolAttr])
    """Per dimension, whether it takes one slot only (the paper's `:N`); absent where no dimension does."""
    memory = prop_def(MemoryAttr)
    """Where the buffer lives."""
    arrays = var_result_def(MemRefType)
    """The arrays, all of the buffer's logical extents and element type."""

    traits = traits_def(HasParent(KernelOp), MemoryAllocEffect())

    def __init__(
        self,
        names: Sequence[str],
        array_type: MemRefType,
        memory: Memory = Memory.HEAP,
        reuse: Sequence[bool] | None = None,
    ) -> None:
        super().__init__(
            properties={
                "array_names": ArrayAttr(StringAttr(n) for n in names),
                "reuse": reuse_attr(reuse),
                "memory": MemoryAttr(memory),
            },
            result_types=[[array_type] * len(names)],
        )
        for result, name in zip(self.arrays, names, strict=True):
            result.name_hint = name

    @property
    def array_type(self) -> MemRefType:
        """The logical type of each array."""
        return cast(MemRefType, self.arrays[0].type)

    @property
    def reuse_flags(self) -> tuple[bool, ...]:
        """Per dimension, whether it is reused."""
        if self.reuse is None:
            return (False,) * len(self.array_type.get_shape())
        return tuple(bool(flag) for flag in self.reuse.data)

    @classmethod
    def parse(cls, parser: Parser) -> BufferOp:
        """Parse `a, b : f32[24576:N, 512] heap`."""
        names = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: parser.parse_identifier_or_str_literal("the name of an array")
        )
        parser.parse_punctuation(":")
        element = parser.parse_type()
        reuse: list[bool] = []

        def extent() -> int:
            value = parser.parse_integer(allow_boolean=False, allow_negative=False)
            reuse.append(parser.parse_optional_punctuation(":") is not None)
            if reuse[-1]:
                parser.parse_characters("N")
            return value

        shape = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, extent)
        memory = parser.parse_str_enum(Memory)
        return cls(names, MemRefType(element, shape), memory, reuse)

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_list(names_of(self.array_names), printer.print_string)
        printer.print_string(" : ")
        printer.print_attribute(self.array_type.element_type)
        extents = zip(self.array_type.get_shape(), self.reuse_flags, strict=True)
        text = ", ".join(f"{n}:N" if reused else str(n) for n, reused in extents)
        printer.print_string(f"[{text}] {self.memory.data.value}")


def reuse_attr(reuse: Sequence[bool] | None) -> ArrayAttr[BoolAttr] | None:
    """The property for per-dimension reuse flags; None where no dimension is reused."""
    if reuse is None or not any(reuse):
        return None
    return ArrayAttr(BoolAttr.from_bool(flag) for flag in reuse)


@irdl_op_definition
class ScopeOp(IRDLOperation):
    """A one-dimensional iteration scope of static extent; its children run in order for each iteration."""

    name = "pdojo.scope"

    guard_ivs = var_operand_def(IndexType)
    """Induction variables of enclosing scopes that the guard uses: its dimensions, before the own variable."""
    extent = prop_def(IntegerAttr)
    """Number of iterations, at least 1."""
    mapping = prop_def(MappingAttr)
    """How the iterations are instantiated."""
    guard = opt_prop_def(AffineSetAttr)
    """Conjunction of `e >= 0`; an iteration runs only where all hold. The last dimension is the own variable."""
    id = opt_prop_def(StringAttr)
    """Stable identifier, kept by moves; not printed in the pretty form."""
    body = region_def("single_block")
    """The children; the block argument is the induction variable."""

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        extent: int,
        body: Region | Block | None = None,
        mapping: Mapping = Mapping.SEQUENTIAL,
        guard: Sequence[AffineExpr] = (),
        guard_ivs: Sequence[SSAValue] = (),
        id: str | None = None,  # the IR's own word for it
    ) -> None:
        if not isinstance(body, Region):
            body = Region(body or Block(arg_types=[IndexType()]))
        super().__init__(
            operands=[guard_ivs],
            properties={
                "extent": IntegerAttr(extent, IndexType()),
                "mapping": MappingAttr(mapping),
                "guard": guard_attr(guard, len(guard_ivs)),
                "id": None if id is None else StringAttr(id),
            },
            regions=[body],
        )

    @property
    def iv(self) -> BlockArgument:
        """The induction variable."""
        return self.body.block.args[0]

    @property
    def count(self) -> int:
        """Number of iterations."""
        return self.extent.value.data

    @property
    def guard_exprs(self) -> tuple[AffineExpr, ...]:
        """The left sides of `e >= 0`, over `(*guard_ivs, iv)`."""
        return () if self.guard is None else tuple(c.lhs for c in self.guard.data.constraints)

    @classmethod
    def parse(cls, parser: Parser) -> ScopeOp:
        """Parse `%i = 512 : v where (%i < 500, ...) { ... }`."""
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        mapping = Mapping.SEQUENTIAL
        if parser.parse_optional_punctuation(":"):
            mapping = parser.parse_str_enum(Mapping)
        names = IndexNames(parser, own=variable.name.text[1:])
        guard: list[AffineExpr] = []
        if parser.parse_optional_keyword("where"):
            parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: guard.extend(_parse_constraint(parser, names))
            )
        region = parser.parse_region([variable.resolve(IndexType())])
        return cls(extent, region, mapping, [names.finish(g) for g in guard], names.operands)

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.iv)
        printer.print_string(f" = {self.count}")
        if self.mapping.data is not Mapping.SEQUENTIAL:
            printer.print_string(f" : {self.mapping.data.value}")
        if self.guard is not None:
            printer.print_string(" where ")
            dims = (*self.guard_ivs, self.iv)
            with printer.in_parens():
                printer.print_list(self.guard_exprs, lambda e: _print_constraint(printer, e, dims))
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


def guard_attr(guard: Sequence[AffineExpr], operands: int) -> AffineSetAttr | None:
    """The guard property for left sides of `e >= 0` over `operands` outer variables and the own one."""
    if not guard:
        return None
    zero = AffineExpr.constant(0)
    constraints = tuple(AffineConstraintExpr(AffineConstraintKind.ge, e, zero, canonicalize=False) for e in guard)
    return AffineSetAttr(AffineSet(operands + 1, 0, constraints))


def _parse_constraint(parser: Parser, names: IndexNames) -> list[AffineExpr]:
    """One comparison, as left sides of `e >= 0`."""
    left = parse_index_expression(parser, names)
    relation = _parse_relation(parser)
    right = parse_index_expression(parser, names)
    return {
        "<": [right - left - 1],
        "<=": [right - left],
        ">": [left - right - 1],
        ">=": [left - right],
        "==": [left - right, right - left],
    }[relation]


def _parse_relation(parser: Parser) -> str:
    equals = "=" if parser.parse_optional_punctuation("=") else ""
    if equals:
        parser.parse_punctuation("=", " in '=='")
        return "=="
    for sign in ("<", ">"):
        if parser.parse_optional_punctuation(sign):
            return sign + ("=" if parser.parse_optional_punctuation("=") else "")
    parser.raise_error("expected one of < <= > >= ==")


def _print_constraint(printer: Printer, expression: AffineExpr, dims: Sequence[SSAValue]) -> None:
    """`c - e >= 0` is printed `e <= c`."""
    from pdojo.dialect.affine import from_affine, to_affine, var

    count = len(dims)
    # Outermost variables first, so that the text depends on the program only and not on the order of the operands.
    outermost = sorted(dims, key=_nesting)
    # The extents are not needed: no division is simplified away by printing.
    plain = from_affine(expression, [var(outermost.index(d)) for d in dims], [1 << 40] * count)
    negative = all(c < 0 for _, c in plain.terms)
    side = -(plain - plain.constant) if negative else plain - plain.constant
    print_index_expression(printer, to_affine(side, {d: d for d in range(count)}), outermost)
    printer.print_string(f" <= {plain.constant}" if negative else f" >= {-plain.constant}")


def _nesting(variable: SSAValue) -> int:
    """How many operations are around the body of the scope whose induction variable this is."""
    depth = 0
    around = variable.owner.parent_op() if isinstance(variable.owner, Block) else None
    while around is not None:
        depth, around = depth + 1, around.parent_op()
    return depth


class OpEffects(MemoryEffect):
    """An op reads the arrays among its inputs, reads its output when it accumulates, and writes its output."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """The reads and the write, each on the memref it concerns."""
        assert isinstance(op, OpOp)
        effects = {EffectInstance(MemoryEffectKind.READ, array) for array in op.arrays}
        if op.accumulate is not None:
            effects.add(EffectInstance(MemoryEffectKind.READ, op.output))
        return effects | {EffectInstance(MemoryEffectKind.WRITE, op.output)}


@irdl_op_definition
class OpOp(IRDLOperation):
    """One scalar statement: `output accumulation= function(inputs)`."""

    name = "pdojo.op"

    output = operand_def(MemRefType)
    """The array written (and read, when accumulating)."""
    arrays = var_operand_def(MemRefType)
    """The arrays read, one per access among the inputs, in order."""
    ivs = var_operand_def(IndexType)
    """The induction variables that the accesses use, outermost first: the dimensions of all maps."""
    function = opt_prop_def(StringAttr)
    """The leaf function, by the name of a standard operation; absent for a copy."""
    accumulate = opt_prop_def(StringAttr)
    """The function that combines the old value of the output with the new one; absent for a plain write."""
    contracted = opt_prop_def(UnitAttr)
    """Present where `z += x * y` rounds once; both syntaxes write `z fma= x * y`."""
    output_map = prop_def(AffineMapAttr)
    """Index of the output access, one result per dimension of the array."""
    inputs = prop_def(ArrayAttr)
    """One attribute per input: an affine map (access of the next array), a constant, or an index value."""
    hints = opt_prop_def(ArrayAttr[DictionaryAttr])
    """Hints per access, output first; they never change meaning. Absent where there are none."""
    id = opt_prop_def(StringAttr)
    """Stable identifier, kept by moves; not printed in the pretty form."""

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OpEffects())

    def __init__(
        self,
        output: SSAValue,
        output_map: AffineMap,
        inputs: Sequence[Attribute],
        arrays: Sequence[SSAValue],
        ivs: Sequence[SSAValue],
        function: str | None = None,
        accumulate: str | None = None,
        hints: Sequence[DictionaryAttr] | None = None,
        id: str | None = None,  # the IR's own word for it
        contracted: bool = False,
    ) -> None:
        super().__init__(
            operands=[output, arrays, ivs],
            properties={
                "function": None if function is None else StringAttr(function),
                "accumulate": None if accumulate is None else StringAttr(accumulate),
                "contracted": UnitAttr() if contracted else None,
                "output_map": AffineMapAttr(output_map),
                "inputs": ArrayAttr(inputs),
                "hints": hints_attr(hints),
                "id": None if id is None else StringAttr(id),
            },
        )

    @property
    def access_hints(self) -> tuple[DictionaryAttr, ...]:
        """Hints per access, output first."""
        if self.hints is not None:
            return self.hints.data
        return (DictionaryAttr({}),) * (1 + len(self.arrays))

    @classmethod
    def parse(cls, parser: Parser) -> OpOp:
        """Parse `%y[%i] += arith.mulf(%x[%i], 2.0 : f32)`."""
        return _OpParser(parser).parse()

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        hints = iter(self.access_hints)
        printer.print_string(" ")
        self._print_access(printer, self.output, self.output_map.data, next(hints))
        accumulation = "" if self.accumulate is None else ACCUMULATIONS[self.accumulate.data].spelling
        accumulation = accumulation if self.contracted is None else "fma"
        printer.print_string(f" {accumulation}= ")
        arrays = iter(self.arrays)

        def argument(value: Attribute) -> None:
            match value:
                case AffineMapAttr():
                    self._print_access(printer, next(arrays), value.data, next(hints))
                case IndexValueAttr():
                    printer.print_string("index(")
                    print_index_expression(printer, value.map.data.results[0], self.ivs)
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
            printer.print_list(index.results, lambda e: print_index_expression(printer, e, self.ivs))
        if hints.data:
            printer.print_attr_dict(hints.data)


def hints_attr(hints: Sequence[DictionaryAttr] | None) -> ArrayAttr[DictionaryAttr] | None:
    """The property for per-access hints; None where there are none."""
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

    def parse(self) -> OpOp:
        output, output_index = self._access(self._array("the array to write"))
        accumulate, contracted = self._accumulation(output)
        function = self._function()
        inputs = [self._close(i) for i in self.inputs]
        return OpOp(
            output,
            self._map(output_index),
            inputs,
            self.arrays,
            self.names.operands,
            function,
            accumulate,
            self.hints,
            contracted=contracted,
        )

    def _accumulation(self, output: SSAValue) -> tuple[str | None, bool]:
        parser = self.parser
        if parser.parse_optional_punctuation("="):
            return None, False
        start = parser.pos
        spelling = parser.parse_optional_punctuation("+") or parser.parse_optional_punctuation("*")
        word = spelling or parser.parse_identifier("an accumulation: += *= max= min= umax= umin= and= or= fma=")
        parser.parse_punctuation("=")
        element = output.type.element_type if isinstance(output.type, MemRefType) else None
        sum_of = "+" if word == "fma" else word
        function = None if element is None else accumulation_function(sum_of, dtype_name(element))
        if function is None:
            parser.raise_error(f"'{word}=' does not accumulate into {output.type}", start, parser.pos)
        return function, word == "fma"

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
            value = IndexValueAttr(AffineMapAttr(AffineMap(0, 0, (expression,))), parser.parse_type())
            self.inputs.append(value)
            return
        constant = parse_constant(parser, word)
        if constant is not None:
            self.inputs.append(constant)
            return
        array, index = self._access(self._array("an array access, a constant or index(...)"))
        self.arrays.append(array)
        self.inputs.append(index)

    def _array(self, what: str) -> SSAValue:
        """An array defined above; its type is known from there."""
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
        return AffineMap(len(self.names.operands), 0, index)

    def _close(self, value: tuple[AffineExpr, ...] | Attribute) -> Attribute:
        """Maps get their dimensions once all variables of the statement are known."""
        match value:
            case tuple():
                return AffineMapAttr(self._map(value))
            case IndexValueAttr():
                return IndexValueAttr(AffineMapAttr(self._map(value.map.data.results)), value.type)
            case _:
                return value


class KernelCallSymbols(SymbolUserOpInterface):
    """A call's symbol is a kernel whose arguments have the types of the operands."""

    def verify(self, op: Operation) -> None:
        """Raise VerifyException where they differ."""
        assert isinstance(op, CallOp)
        kernel = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(kernel, KernelOp):
            raise VerifyException(f"'{op.callee.string_value()}' is no pdojo.kernel of this module")
        wanted = kernel.body.block.arg_types
        given = [a.type for a in op.arguments]
        if len(wanted) != len(given):
            raise VerifyException(f"the kernel takes {len(wanted)} arrays, not {len(given)}")
        for name, want, have in zip(names_of(kernel.arg_names), wanted, given, strict=True):
            if want != have:
                raise VerifyException(f"array '{name}' has type {want}, not {have}")


class CallEffects(MemoryEffect):
    """A call reads and writes its arrays."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Reads and writes of every argument (the intents are the kernel's, which may lie elsewhere)."""
        kinds = (MemoryEffectKind.READ, MemoryEffectKind.WRITE)
        return {EffectInstance(kind, array) for kind in kinds for array in op.operands}


@irdl_op_definition
class CallOp(IRDLOperation):
    """Invoke a kernel from host IR: `pdojo.call @softmax(%x, %y) : memref<..>, memref<..>`."""

    name = "pdojo.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    """Symbol of the kernel."""
    arguments = var_operand_def(MemRefType)
    """The interface arrays, in the kernel's order; they must not overlap."""

    traits = traits_def(KernelCallSymbols(), CallEffects())

    def __init__(self, callee: str, arguments: Sequence[SSAValue]) -> None:
        super().__init__(operands=[arguments], properties={"callee": SymbolRefAttr(callee)})

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        """Parse `@name(%a, %b) : type, type`."""
        callee = parser.parse_symbol_name()
        start = parser.pos
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(callee.data, parser.resolve_operands(names, types, start))

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.string_value())
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([a.type for a in self.arguments], printer.print_attribute)


PDOJO = Dialect(
    "pdojo",
    [KernelOp, BufferOp, ScopeOp, OpOp, CallOp],
    [MappingAttr, MemoryAttr, IntentAttr, NumericsAttr, IndexValueAttr],
)
"""The dialect, as registered with xDSL."""
