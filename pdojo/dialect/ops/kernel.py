"""Kernels and their buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    MemoryAllocEffect,
    NoTerminator,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from pdojo.dialect.affine import Expr, IndexArray, Size
from pdojo.dialect.attributes import (
    Intent,
    IntentAttr,
    Memory,
    MemoryAttr,
    Numerics,
    NumericsAttr,
)
from pdojo.dialect.index_maps import dense, memref_of, shape_map
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.names import name_problem
from pdojo.dialect.narrowing import is_memref
from pdojo.dialect.ops.facts import index_array_of, indices_attr, size_of, sizes_attr, table_of, tables_attr
from pdojo.dialect.syntax import (
    IndexNames,
    names_of,
    parse_hints,
    parse_index_expression,
    print_hints,
    print_index_expression,
)
from pdojo.dialect.table import Table
from pdojo.dialect.verifier import verify

DEFAULT_NUMERICS = (Numerics.REASSOCIATES, Numerics.CONTRACTS)
"""Permitted classes of a kernel without `numerics`: accumulations are unordered by definition (docs/numerics.md).

FLUSHES is not among them: no program means that denormal numbers are flushed to zero.
"""

_FACTS = ("numerics", "machine", "arg_alignments", "tables", "sizes", "arg_extents", "indices")
"""Properties that stand in the attribute dictionary of the printed form."""


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A numerical kernel: interface arrays as arguments, buffers, and a sequence of scopes and statements."""

    name = "pdojo.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    """The kernel's symbol."""
    arg_names = prop_def(ArrayAttr[StringAttr])
    """Names of the interface arrays, one per argument."""
    arg_intents = prop_def(ArrayAttr[IntentAttr])
    """Whether each argument is read (in), read and written (inout) or only written (out)."""
    arg_alignments = opt_prop_def(ArrayAttr[IntegerAttr])
    """Alignment in bytes that callers guarantee for each argument; the element size if absent."""
    constants = opt_prop_def(ArrayAttr[StringAttr])
    """Names of the constant inputs: callers bind them once, and their bytes are then the same at every call."""
    numerics = opt_prop_def(ArrayAttr[NumericsAttr])
    """Numerics classes that moves may use; `DEFAULT_NUMERICS` if absent."""
    machine = opt_prop_def(StringAttr)
    """Name of the machine description that the kernel is mapped for."""
    tables = opt_prop_def(DictionaryAttr)
    """The entries of each table, keyed by its name; absent if there are no tables."""
    sizes = opt_prop_def(DictionaryAttr)
    """Least value, greatest value and step of each size that callers give, keyed by its name, in order; absent if there
    are none."""
    arg_extents = opt_prop_def(ArrayAttr[AffineMapAttr])
    """The extents of each argument as maps of all sizes, which are symbols; absent if there are no sizes."""
    indices = opt_prop_def(DictionaryAttr)
    """The range of each array of indices, keyed by its name: its least index, its greatest index as a map of all sizes,
    and what an index outside of it means; absent if there are none."""
    body = region_def("single_block")
    """Buffers first, then scopes and statements in order of execution."""

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        name: str,
        arguments: Sequence[tuple[str, Intent, Attribute]],
        body: Region | None = None,
        numerics: Sequence[Numerics] | None = None,
        machine: str | None = None,
        alignments: Sequence[int] | None = None,
        tables: Sequence[Table] = (),
        constants: Sequence[str] = (),
        sizes: Sequence[Size] = (),
        extents: Sequence[AffineMapAttr] = (),
        indices: Sequence[IndexArray] = (),
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "arg_names": ArrayAttr(StringAttr(n) for n, _, _ in arguments),
                "arg_intents": ArrayAttr(IntentAttr(i) for _, i, _ in arguments),
                "arg_alignments": None if alignments is None else ArrayAttr(IntegerAttr(a, i64) for a in alignments),
                "constants": ArrayAttr(StringAttr(n) for n in constants) if constants else None,
                "numerics": None if numerics is None else ArrayAttr(NumericsAttr(n) for n in numerics),
                "machine": None if machine is None else StringAttr(machine),
                "tables": tables_attr(tables),
                "sizes": sizes_attr(sizes),
                "arg_extents": ArrayAttr(extents) if sizes else None,
                "indices": indices_attr(indices, sizes),
            },
            regions=[body or Region(Block(arg_types=[t for _, _, t in arguments]))],
        )
        if body is None:
            for argument, (argument_name, _, _) in zip(self.body.block.args, arguments, strict=True):
                _hint(argument, argument_name)

    @property
    def permitted(self) -> tuple[Numerics, ...]:
        """The numerics classes that moves may use on this kernel, besides EXACT."""
        return DEFAULT_NUMERICS if self.numerics is None else tuple(a.data for a in self.numerics.data)

    def known_tables(self) -> dict[str, Table]:
        """The tables, keyed by name, in order of declaration."""
        if "tables" not in self.properties or self.tables is None:
            return {}
        return {name: table_of(name, each) for name, each in self.tables.data.items()}

    def known_sizes(self) -> dict[str, Size]:
        """The sizes by name, in order of declaration."""
        if "sizes" not in self.properties or self.sizes is None:
            return {}
        return {name: size_of(name, each) for name, each in self.sizes.data.items()}

    def index_arrays(self) -> dict[str, IndexArray]:
        """The arrays of indices by name, in the order of the arguments."""
        if "indices" not in self.properties or self.indices is None:
            return {}
        sizes, ranges = (*self.known_sizes().values(),), self.indices.data
        maps = [None] * len(self.body.block.args) if self.arg_extents is None else self.arg_extents.data
        rows = zip(names_of(self.arg_names), self.body.block.args, maps, strict=True)
        return {n: index_array_of(n, array.type, said, ranges[n], sizes) for n, array, said in rows if n in ranges}

    @property
    def constant_names(self) -> tuple[str, ...]:
        """Names of the constant inputs."""
        return () if self.constants is None else names_of(self.constants)

    def buffers(self) -> Iterator[BufferOp]:
        """The declarations of buffers with memory of their own, in order."""
        return (op for op in self.body.block.ops if isinstance(op, BufferOp) and op.host is None)

    def guests(self) -> Iterator[BufferOp]:
        """The declarations of temporaries that live in interface arrays, in the order of those arrays."""
        return (op for op in self.body.block.ops if isinstance(op, BufferOp) and op.host is not None)

    def verify_(self) -> None:
        """Check structure, names, types and bounds; see `pdojo.dialect.verification`."""
        verify(self)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        """Parse `@name(in x %x : memref<..>, const w %w : memref<..>, ...) attributes {...} { ... }`."""
        name = parser.parse_symbol_name()
        names: list[str] = []
        intents: list[Intent] = []
        constants: list[str] = []

        def argument() -> Parser.Argument:
            is_constant = parser.parse_optional_keyword("const") is not None
            intents.append(Intent.IN if is_constant else parser.parse_str_enum(Intent))
            names.append(parser.parse_identifier_or_str_literal("the name of the array"))
            constants.extend(names[-1:] if is_constant else ())
            return parser.parse_argument()

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        attributes = parser.parse_optional_attr_dict_with_keyword(("sym_name", "arg_names", "arg_intents"))
        region = parser.parse_region(arguments)
        types = [a.type for a in arguments]
        kernel = cls(name.data, list(zip(names, intents, types, strict=True)), region, constants=constants)
        for key, value in attributes.data.items() if attributes else ():
            target = kernel.properties if key in _FACTS else kernel.attributes
            target[key] = value
        return kernel

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        names, constants = names_of(self.arg_names), self.constant_names
        rows = list(zip(self.arg_intents.data, names, self.body.block.args, strict=True))

        def argument(row: tuple[IntentAttr, str, BlockArgument]) -> None:
            printer.print_string(f"{'const' if row[1] in constants else row[0].data.value} {row[1]} ")
            printer.print_block_argument(row[2])

        with printer.in_parens():
            printer.print_list(rows, argument)
        facts = {k: v for k, v in self.properties.items() if k in _FACTS}
        facts.update(self.attributes)
        if facts:
            printer.print_string(" attributes")
            printer.print_attr_dict(facts)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


class Swizzle(NamedTuple):
    """A permutation of positions in a dimension: granule number q goes to q xor (the index in dimension `by`).

    A granule is `granule` neighbouring elements. Their number is a power of two; the index is taken modulo that number.
    """

    by: int
    granule: int = 1


@irdl_op_definition
class BufferOp(IRDLOperation):
    """One memory buffer and the arrays that live in it, one result per array; dimensions are in row-major order.

    With a `host`, an argument of the kernel, the arrays live in the caller's memory.
    """

    name = "pdojo.buffer"

    host = opt_operand_def(MemRefType)
    """The interface array that provides the memory; absent if the buffer has its own memory."""
    array_names = prop_def(ArrayAttr[StringAttr])
    """Names of the arrays, unique in the kernel."""
    reuse = opt_prop_def(ArrayAttr[IntegerAttr])
    """Slots of each dimension: 0 for one per index, 1 for a single one (the paper's `:N`), k >= 2 for a circular buffer
    (`:Nk`); absent if every dimension has one per index."""
    swizzle = opt_prop_def(ArrayAttr[ArrayAttr[IntegerAttr]])
    """Per swizzled dimension: its number, the number of the swizzling dimension, the size of a granule."""
    memory = prop_def(MemoryAttr)
    """The location of the buffer."""
    constant = opt_prop_def(UnitAttr)
    """Present if the array is computed once, when a caller binds the constant inputs, and kept from call to call."""
    extents = opt_prop_def(AffineMapAttr)
    """The extents as a map of sizes, which are symbols; absent if they are constant."""
    sizes = opt_prop_def(ArrayAttr[StringAttr])
    """The names of the sizes that the symbols stand for; absent if there are none."""
    hints = opt_prop_def(DictionaryAttr)
    """Facts that generated code may use; they never change meaning. Absent if there are none."""
    arrays = var_result_def(MemRefType)
    """The arrays, each with the buffer's logical extents and element type."""

    traits = traits_def(HasParent(KernelOp), MemoryAllocEffect())

    def __init__(
        self,
        names: Sequence[str],
        array_type: MemRefType[Attribute],
        memory: Memory = Memory.HEAP,
        reuse: Sequence[int] | None = None,
        host: SSAValue | None = None,
        hints: DictionaryAttr | None = None,
        swizzles: Mapping[int, Swizzle] | None = None,
        *,
        constant: bool = False,
    ) -> None:
        super().__init__(
            operands=[host],
            properties={
                "array_names": ArrayAttr(StringAttr(n) for n in names),
                "reuse": reuse_attr(reuse),
                "swizzle": swizzle_attr(swizzles or {}),
                "memory": MemoryAttr(memory),
                "constant": UnitAttr() if constant else None,
                "hints": hints if hints is not None and hints.data else None,
            },
            result_types=[[array_type] * len(names)],
        )
        for result, name in zip(self.arrays, names, strict=True):
            _hint(result, name)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        dtype: str,
        extents: Sequence[Expr],
        memory: Memory = Memory.HEAP,
        reuse: Sequence[int] | None = None,
        host: SSAValue | None = None,
        hints: DictionaryAttr | None = None,
        swizzles: Mapping[int, Swizzle] | None = None,
        *,
        constant: bool = False,
    ) -> BufferOp:
        """The declaration of arrays whose extents are expressions of sizes."""
        sizes, kind = sizes_in(extents), memref_of(dtype, extents)
        made = cls(names, kind, memory, reuse, host, hints, swizzles, constant=constant)
        if sizes:
            made.extents, made.sizes = shape_map(extents, sizes), ArrayAttr(StringAttr(s.name) for s in sizes)
        return made

    @property
    def array_type(self) -> MemRefType[Attribute]:
        """The logical type of each array."""
        first = self.arrays[0].type
        assert is_memref(first)
        return first

    @property
    def slots(self) -> tuple[int, ...]:
        """Slots of each dimension; 0 for one per index."""
        if self.reuse is None:
            return (0,) * len(self.array_type.get_shape())
        return tuple(count.value.data for count in self.reuse.data)

    @property
    def swizzles(self) -> dict[int, Swizzle]:
        """The swizzled dimensions."""
        rows = [[n.value.data for n in row.data] for row in self.swizzle.data] if self.swizzle is not None else []
        return {dimension: Swizzle(by, granule) for dimension, by, granule in rows}

    @classmethod
    def parse(cls, parser: Parser) -> BufferOp:
        """Parse `a, b : f32[24576:N, 512:N4, 8] heap`, `e : f32[8] in %y`, `t : f32[8, 32 xor 0 * 4] heap const`."""
        names = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: parser.parse_identifier_or_str_literal("the name of an array")
        )
        parser.parse_punctuation(":")
        element = parser.parse_type()
        reuse: list[int] = []
        swizzles: dict[int, Swizzle] = {}
        known = IndexNames(parser)

        def extent() -> AffineExpr:
            value = parse_index_expression(parser, known)
            if parser.parse_optional_keyword("xor") is not None:
                swizzles[len(reuse)] = _parse_swizzle(parser)
            reuse.append(_parse_slots(parser) if parser.parse_optional_punctuation(":") is not None else 0)
            return value

        extents = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, extent)
        shape = [each.value if isinstance(each, AffineConstantExpr) else DYNAMIC_INDEX for each in extents]
        array_type = MemRefType(element, shape)
        dynamic = AffineMapAttr(AffineMap(0, len(known.sizes), tuple(extents))), [StringAttr(n) for n in known.sizes]
        if parser.parse_optional_keyword("in") is None:
            memory, hints = parser.parse_str_enum(Memory), parse_hints(parser)
            constant = parser.parse_optional_keyword("const") is not None
            buffer = cls(names, array_type, memory, reuse, None, hints, swizzles, constant=constant)
        else:
            host = _parse_host(parser, array_type)
            buffer = cls(names, array_type, Memory.HEAP, reuse, host, swizzles=swizzles)
        if known.sizes:
            buffer.extents, buffer.sizes = dynamic[0], ArrayAttr(dynamic[1])
        return buffer

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_list(names_of(self.array_names), printer.print_string)
        printer.print_string(" : ")
        printer.print_attribute(self.array_type.element_type)
        swizzles = {d: f" xor {s.by}" + f" * {s.granule}" * (s.granule != 1) for d, s in self.swizzles.items()}
        names = () if self.sizes is None else names_of(self.sizes)
        static = [AffineExpr.constant(n) for n in self.array_type.get_shape()]
        extents = static if self.extents is None else self.extents.data.results

        def extent(row: tuple[int, AffineExpr]) -> None:
            print_index_expression(printer, row[1], (), names)
            printer.print_string(f"{swizzles.get(row[0], '')}{spell_slots(self.slots[row[0]])}")

        with printer.in_square_brackets():
            printer.print_list(list(enumerate(extents)), extent)
        if self.host is None:
            printer.print_string(f" {self.memory.data.value}")
            print_hints(printer, self.hints)
            printer.print_string(" const" if self.constant is not None else "")
            return
        printer.print_string(" in ")
        printer.print_ssa_value(self.host)


def _parse_host(parser: Parser, guests: MemRefType[Attribute]) -> SSAValue:
    """Parse the interface array in which arrays of a type live; its strides may be any."""
    operand = parser.parse_unresolved_operand()
    known = parser.ssa_values.get(operand.operand_name, ())
    found = next((value.type for value in known[operand.index :] if dense(value.type) == guests), guests)
    return parser.resolve_operand(operand, found)


def _hint(value: SSAValue, name: str) -> None:
    """Name a value like its array; the verifier reports names that no array can have."""
    if name_problem(name) is None:
        value.name_hint = name


def reuse_attr(reuse: Sequence[int] | None) -> ArrayAttr[IntegerAttr] | None:
    """The property for the slots of each dimension; None if every dimension has one per index."""
    if reuse is None or not any(reuse):
        return None
    return ArrayAttr(IntegerAttr(slots, i64) for slots in reuse)


def swizzle_attr(swizzles: Mapping[int, Swizzle]) -> ArrayAttr[ArrayAttr[IntegerAttr]] | None:
    """The property for swizzled dimensions; None if there are none."""
    if not swizzles:
        return None
    rows = ((dimension, *swizzle) for dimension, swizzle in sorted(swizzles.items()))
    return ArrayAttr(ArrayAttr(IntegerAttr(number, i64) for number in row) for row in rows)


def _parse_swizzle(parser: Parser) -> Swizzle:
    by = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if parser.parse_optional_punctuation("*") is None:
        return Swizzle(by)
    return Swizzle(by, parser.parse_integer(allow_boolean=False, allow_negative=False))


def spell_slots(slots: int) -> str:
    """The text after an extent in both syntaxes: nothing, `:N` or `:N4`."""
    return "" if slots == 0 else ":N" if slots == 1 else f":N{slots}"


def slots_in(word: str) -> int | None:
    """The number of slots that `N` or `N4` stands for; None for any other word."""
    if word == "N":
        return 1
    if re.fullmatch("N0*[1-9][0-9]{0,17}", word) is None:
        return None
    return int(word[1:])


def _parse_slots(parser: Parser) -> int:
    word = parser.parse_identifier("'N', or 'N' and a number of slots")
    slots = slots_in(word)
    if slots is None:
        parser.raise_error("expected 'N', or 'N' and a number of slots")
    return slots
