"""Parsing of a kernel's header: the interface, kernel facts and buffer declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DictionaryAttr, MemRefType
from xdsl.ir import Attribute

from pdojo.dialect.affine import Expr, IndexArray, Size
from pdojo.dialect.attributes import Intent, Memory, Numerics
from pdojo.dialect.functions import DTYPES, byte_width
from pdojo.dialect.index_maps import memref_of, shape_map
from pdojo.dialect.notation.expressions import Expressions
from pdojo.dialect.notation.hints import parse_hints
from pdojo.dialect.notation.lexer import Cursor, Token, TokenKind
from pdojo.dialect.notation.source import Span, did_you_mean, element_type_hint
from pdojo.dialect.notation.statements import parse_extent
from pdojo.dialect.notation.values import ArrayName, Named
from pdojo.dialect.ops import BufferOp, KernelOp, Swizzle, slots_in
from pdojo.dialect.sizes import range_problem, size_problem
from pdojo.dialect.strides import Strides, strides_problem
from pdojo.dialect.table import MOST_ENTRIES, Outside, Table

FACTS = ("arguments", "numerics", "machine", "size")
"""First words of header lines that state a fact about the kernel."""


@dataclass
class Declaration:
    """`x f32 [24576, 512:N, 8:N4, 32^0*4] heap !persistent const align 64 -> a, b`."""

    arrays: list[Token]
    dtype: str
    shape: list[Expr]
    """The extents as expressions of sizes."""
    reuse: list[int]
    swizzles: dict[int, Swizzle]
    memory: Memory
    alignment: int | None
    span: Span
    hints: DictionaryAttr
    constant: bool
    indices: IndexArray | None = None
    """The range, if its entries are indices."""
    strides: Strides = ()
    """The strides of an interface array that is not dense."""

    @property
    def type(self) -> MemRefType[Attribute]:
        """The logical type of each array."""
        return memref_of(self.dtype, self.shape, self.strides)

    @property
    def box(self) -> tuple[int, ...]:
        """The greatest extents."""
        return tuple(extent.bounds(())[1] for extent in self.shape)


@dataclass
class Header:
    """The part of a kernel's text above the tree."""

    name: str
    span: Span
    inputs: list[Token]
    outputs: list[Token]
    order: list[str] | None = None
    """The order of the arguments, if the line `arguments` gives it."""
    numerics: list[Numerics] | None = None
    machine: str | None = None
    declarations: list[Declaration] = field(default_factory=list[Declaration])
    tables: list[tuple[Table, Span]] = field(default_factory=list[tuple[Table, Span]])
    sizes: dict[str, Size] = field(default_factory=dict[str, Size])
    """The sizes that callers give."""
    is_part: bool = False
    """Whether the kernel is read for a part of the range of a size."""

    @property
    def interface(self) -> list[str]:
        """The interface arrays in the order of the two lists."""
        return list(dict.fromkeys(t.text for t in (*self.inputs, *self.outputs)))

    def intent(self, name: str) -> Intent:
        """The intent of an array; an array in both lists is read and written."""
        read = any(t.text == name for t in self.inputs)
        written = any(t.text == name for t in self.outputs)
        return Intent.INOUT if read and written else Intent.IN if read else Intent.OUT


def parse_kernel_line(cursor: Cursor) -> Header:
    """`kernel NAME(in, inout...) -> (out, inout...)`."""
    cursor.advance()
    if cursor.token.kind not in (TokenKind.WORD, TokenKind.STRING):
        raise cursor.error("expected the name of the kernel")
    name = cursor.advance()
    inputs = _names(cursor, "the list of inputs")
    cursor.expect("->", "and the list of outputs: kernel name(x) -> (y)")
    outputs = _names(cursor, "the list of outputs")
    cursor.expect_end("after the interface")
    return Header(name.text, cursor.tokens[0].span.to(cursor.previous.span), inputs, outputs)


def _names(cursor: Cursor, what: str) -> list[Token]:
    cursor.expect("(", f"before {what}")
    names: list[Token] = []
    while not cursor.accept(")"):
        if names:
            cursor.expect(",", f"or ')' in {what}")
        name = cursor.expect_kind(TokenKind.WORD, f"an array name in {what}")
        if any(n.text == name.text for n in names):
            raise cursor.error(f"array '{name.text}' is listed twice in {what}", span=name.span)
        names.append(name)
    return names


def parse_fact(cursor: Cursor, header: Header) -> None:
    """`numerics exact`, `machine NAME` or `arguments y, x`."""
    word = cursor.advance()
    match word.text:
        case "numerics":
            _once(cursor, word, known=header.numerics is not None)
            header.numerics = list(_numerics(cursor))
        case "machine":
            _once(cursor, word, known=header.machine is not None)
            header.machine = _machine(cursor)
        case _:
            _once(cursor, word, known=header.order is not None)
            header.order = _order(cursor, header)
    cursor.expect_end(f"after '{word.text}'")


def parse_size(cursor: Cursor, header: Header) -> Size:
    """`size N in 1..4096 multiple 8`."""
    cursor.advance()
    name = cursor.expect_kind(TokenKind.WORD, "the name of a size")
    if not cursor.at_word("in"):
        raise cursor.error("expected 'in' and the range of the size: size N in 1..4096")
    cursor.advance()
    first = cursor.expect_kind(TokenKind.INTEGER, "the least value of the size")
    cursor.expect("..", "between the least and the greatest value: size N in 1..4096")
    last = cursor.expect_kind(TokenKind.INTEGER, "the greatest value of the size")
    step = None
    if cursor.at_word("multiple"):
        cursor.advance()
        step = cursor.expect_kind(TokenKind.INTEGER, "the number that divides the size")
    cursor.expect_end("after a size")
    size = Size(
        name.text, _bounded(cursor, first), _bounded(cursor, last), 1 if step is None else _bounded(cursor, step)
    )
    if name.text in header.sizes:
        raise cursor.error(f"the size '{name.text}' is declared twice", span=name.span)
    if (problem := size_problem(size)) is not None:
        raise cursor.error(problem, span=first.span.to(cursor.previous.span))
    return size


def _once(cursor: Cursor, word: Token, *, known: bool) -> None:
    if known:
        raise cursor.error(f"'{word.text}' is stated twice", span=word.span)


def _numerics(cursor: Cursor) -> Iterator[Numerics]:
    classes = [n.value for n in Numerics]
    if cursor.at_word("none") and cursor.peek(1).kind is TokenKind.END:
        cursor.advance()
        return
    while True:
        word = cursor.expect_kind(TokenKind.WORD, f"a numerics class: {', '.join(classes)}")
        if word.text not in classes:
            raise cursor.error(f"unknown numerics class '{word.text}'", did_you_mean(word.text, classes), word.span)
        yield Numerics(word.text)
        if cursor.at_end:
            return


def _machine(cursor: Cursor) -> str:
    """A quoted name, or the text up to the next blank (a name such as x86-64-avx512 is several tokens)."""
    first = cursor.token
    if cursor.at_end:
        raise cursor.error("expected the name of a machine description")
    if first.kind is TokenKind.STRING:
        return cursor.advance().text
    last = cursor.advance()
    while not cursor.at_end and cursor.token.span.column == last.span.column + last.span.width:
        last = cursor.advance()
    line = cursor.source.lines[first.span.line]
    return line[first.span.column : last.span.column + last.span.width]


def _order(cursor: Cursor, header: Header) -> list[str]:
    names: list[str] = []
    while not names or cursor.accept(","):
        name = cursor.expect_kind(TokenKind.WORD, "an interface array")
        if name.text not in header.interface:
            hint = did_you_mean(name.text, header.interface)
            raise cursor.error(f"'{name.text}' is no interface array", hint, name.span)
        names.append(name.text)
    if sorted(names) != sorted(header.interface):
        raise cursor.error(f"'arguments' lists every interface array once: {', '.join(header.interface)}")
    return names


def parse_declaration(cursor: Cursor, header: Header) -> None:
    """`name dtype [d0, d1:N] location [!hint] [const] [strided] [align bytes] [in first..last] [-> a, b]`, or
    `name i64 [n] table e0, e1, ...`.
    """
    name = cursor.advance()
    dtype = cursor.expect_kind(TokenKind.WORD, f"the element type of '{name.text}'")
    if dtype.text not in DTYPES:
        raise cursor.error(f"unknown element type '{dtype.text}'", element_type_hint(dtype.text), dtype.span)
    shape, reuse, swizzles = _shape(cursor, header, name)
    if cursor.at_word("table"):
        cursor.advance()
        header.tables.append(_table(cursor, header, name, dtype, [extent.constant for extent in shape]))
        return
    locations = [m.value for m in Memory]
    location = cursor.expect_kind(TokenKind.WORD, f"a location, one of {', '.join(locations)}")
    if location.text not in locations:
        hint = did_you_mean(location.text, locations)
        raise cursor.error(f"unknown location '{location.text}'", hint, location.span)
    hints = parse_hints(cursor)
    constant = cursor.at_word("const")
    if constant:
        cursor.advance()
    strides = _strides(cursor, len(shape)) if cursor.at_word("strided") else ()
    alignment = _alignment(cursor, dtype.text) if cursor.at_word("align") else None
    indices = _indices(cursor, header, (name.text, dtype.text, tuple(shape))) if cursor.at_word("in") else None
    arrays = [name]
    if cursor.accept("->"):
        arrays = [cursor.expect_kind(TokenKind.WORD, "an array name after '->'")]
        while cursor.accept(","):
            arrays.append(cursor.expect_kind(TokenKind.WORD, "an array name"))
    cursor.expect_end("after a declaration")
    span = name.span.to(cursor.previous.span)
    memory = Memory(location.text)
    row = Declaration(arrays, dtype.text, shape, reuse, swizzles, memory, alignment, span, hints, constant, indices)
    row.strides = strides
    _check_declaration(cursor, header, row)
    header.declarations.append(row)


def _strides(cursor: Cursor, rank: int) -> Strides:
    """`strided`, or the strides of all dimensions but the last one, `?` for one that callers give: `strided ?, 8`."""
    word = cursor.advance()
    found: list[int | None] = []
    while cursor.token.kind is TokenKind.INTEGER or cursor.token.text == "?":
        token = cursor.advance()
        found.append(None if token.text == "?" else _bounded(cursor, token))
        if not cursor.accept(","):
            break
    strides = tuple(found) or (None,) * (rank - 1)
    if (problem := strides_problem((1,) * rank, strides)) is not None:
        raise cursor.error(problem, span=word.span.to(cursor.previous.span))
    return strides


def _indices(cursor: Cursor, header: Header, array: tuple[str, str, tuple[Expr, ...]]) -> IndexArray:
    """`in 0..N-1`, `in 0..9 clamp` or `in 0..9 wrap`."""
    cursor.advance()
    first = cursor.expect_kind(TokenKind.INTEGER, "the least index, at least 0: in 0..9")
    cursor.expect("..", "between the least and the greatest index: in 0..9")
    last = Expressions(cursor, header.sizes, ()).index_side()
    known = [each.value for each in Outside if each.value]
    word = cursor.token
    outside = Outside(cursor.advance().text) if word.text in known else Outside.REFUSED
    found = IndexArray(*array, _bounded(cursor, first), last, outside)
    if (problem := range_problem(found)) is not None:
        raise cursor.error(problem, span=first.span.to(cursor.previous.span))
    return found


def _table(cursor: Cursor, header: Header, name: Token, dtype: Token, shape: Sequence[int]) -> tuple[Table, Span]:
    """The entries of a table, to the end of the line."""
    known = "a table has one dimension, of type i64"
    if dtype.text != "i64" or len(shape) != 1:
        raise cursor.error(f"{known}: {name.text} i64 [3] table 7, 0, 7", span=name.span.to(cursor.previous.span))
    entries = [_entry(cursor)]
    while cursor.accept(","):
        entries.append(_entry(cursor))
    cursor.expect_end("after the entries of a table")
    span = name.span.to(cursor.previous.span)
    if len(entries) != shape[0]:
        raise cursor.error(f"table '{name.text}' of extent {shape[0]} has {len(entries)} entries", span=span)
    if len(entries) > MOST_ENTRIES:
        raise cursor.error(
            f"table '{name.text}' has {len(entries)} entries; at most {MOST_ENTRIES} are analysed", span=span
        )
    _check_name(cursor, header, name)
    if name.text in header.interface:
        raise cursor.error(f"interface array '{name.text}' cannot be a table", span=name.span)
    return Table(name.text, tuple(entries)), span


def _entry(cursor: Cursor) -> int:
    return _bounded(cursor, cursor.expect_kind(TokenKind.INTEGER, "an entry of a table, an integer of at least 0"))


def _shape(cursor: Cursor, header: Header, name: Token) -> tuple[list[Expr], list[int], dict[int, Swizzle]]:
    cursor.expect("[", f"and the extents of '{name.text}'")
    shape: list[Expr] = []
    reuse: list[int] = []
    swizzles: dict[int, Swizzle] = {}
    while not cursor.accept("]"):
        if shape:
            cursor.expect(",", "or ']' in a shape")
        span, extent = cursor.token.span, parse_extent(cursor, header.sizes, "an extent, an integer")
        if extent.bounds(())[0] < 1:
            raise cursor.error("an extent is at least 1", span=span.to(cursor.previous.span))
        shape.append(extent)
        if cursor.accept("^"):
            by = cursor.expect_kind(TokenKind.INTEGER, "the number of a dimension after '^'")
            granule = cursor.expect_kind(TokenKind.INTEGER, "a number of elements") if cursor.accept("*") else None
            swizzles[len(reuse)] = Swizzle(_bounded(cursor, by), 1 if granule is None else _bounded(cursor, granule))
        slots = _slots(cursor) if cursor.accept(":") else 0
        # In a part of a range, a circular buffer may have a slot for each index.
        reuse.append(0 if header.is_part and 1 < slots >= shape[-1].bounds(())[1] else slots)
    return shape, reuse, swizzles


def _bounded(cursor: Cursor, number: Token) -> int:
    """The value of a number that fits attributes of 64 bits."""
    if int(number.text) >= 1 << 62:
        raise cursor.error(f"{number.text} is too large here: numbers stay below 2^62", span=number.span)
    return int(number.text)


def _slots(cursor: Cursor) -> int:
    slots = slots_in(cursor.token.text) if cursor.token.kind is TokenKind.WORD else None
    if slots is None:
        raise cursor.error("expected 'N' after ':': a reused dimension is written 512:N, a circular buffer 512:N4")
    cursor.advance()
    return slots


def _alignment(cursor: Cursor, dtype: str) -> int:
    cursor.advance()
    number = cursor.expect_kind(TokenKind.INTEGER, "an alignment in bytes")
    value = _bounded(cursor, number)
    if value & (value - 1) or value < byte_width(dtype):
        message = f"an alignment is a power of two of at least {byte_width(dtype)} bytes, the size of {dtype}"
        raise cursor.error(message, span=number.span)
    return value


def _check_name(cursor: Cursor, header: Header, name: Token, beside: Sequence[Token] = ()) -> None:
    """Check that a declared name is new; `beside` has the names on the same line."""
    declared = {t.text: t.span for t in (*(t for d in header.declarations for t in d.arrays), *beside)}
    declared |= {table.name: span for table, span in header.tables}
    before = declared.get(name.text)
    if before is not None:
        message = f"array '{name.text}' is declared twice, first on line {before.line + 1}"
        raise cursor.error(message, span=name.span)
    if name.text in header.sizes:
        raise cursor.error(f"'{name.text}' is a size and cannot be declared twice", span=name.span)
    if "." in name.text:
        raise cursor.error(f"'{name.text}' is no array name: names have letters, digits and _", span=name.span)


def _check_declaration(cursor: Cursor, header: Header, row: Declaration) -> None:
    interface = header.interface
    for position, array in enumerate(row.arrays):
        _check_name(cursor, header, array, row.arrays[:position])
    shared = [t.text for t in row.arrays if t.text in interface]
    if row.indices is not None and (not shared or header.intent(shared[0]) is not Intent.IN):
        hint = "compute the indices before the call, and give them as an input"
        raise cursor.error(f"only an input has a range of indices, and '{row.arrays[0].text}' is none", hint, row.span)
    if not shared:
        _check_temporary(cursor, row)
        return
    name = shared[0]
    if row.strides:
        _check_strides(cursor, header, row, name)
    if row.hints.data:
        raise cursor.error(f"the memory of interface array '{name}' is the caller's: it has no hints", span=row.span)
    if len(shared) > 1:
        raise cursor.error(f"interface arrays '{name}' and '{shared[1]}' cannot share memory", span=row.span)
    if len(row.arrays) > 1 and header.intent(name) is Intent.IN:
        message = f"the memory of input '{name}' is the caller's, who may still need it: no other array lives in it"
        raise cursor.error(message, span=row.span)
    # The interface array comes first; the other arrays are temporaries in its memory.
    row.arrays.sort(key=lambda t: t.text != name)
    if row.memory is not Memory.HEAP or any(row.reuse) or row.swizzles:
        message = f"the memory of interface array '{name}' is the caller's: it is on the heap, not reused, not swizzled"
        raise cursor.error(message, span=row.span)


def _check_temporary(cursor: Cursor, row: Declaration) -> None:
    if row.alignment is not None:
        raise cursor.error("only interface arrays have an alignment: it is what callers guarantee", span=row.span)
    if row.strides:
        raise cursor.error("only interface arrays are strided: temporaries are dense", span=row.span)


def _check_strides(cursor: Cursor, header: Header, row: Declaration, name: str) -> None:
    kind = "constant" if row.constant else "an array of indices" if row.indices is not None else ""
    written = header.intent(name) is not Intent.IN
    if (problem := strides_problem(row.box, row.strides, written=written, kind=kind)) is not None:
        raise cursor.error(f"strided array '{name}': {problem}", span=row.span)


def build_kernel(cursor: Cursor, header: Header) -> tuple[KernelOp, dict[str, Named], list[tuple[BufferOp, Span]]]:
    """The kernel with its buffers; arrays and tables, keyed by name; the position of each buffer's declaration."""
    rows = {d.arrays[0].text: d for d in header.declarations}
    for token in (*header.inputs, *header.outputs):
        if token.text not in rows:
            hint = f"add a line such as: {token.text} f32 [512] heap"
            raise cursor.error(f"interface array '{token.text}' is not declared", hint, token.span)
    order = header.order or header.interface
    alignments = None
    if any(rows[n].alignment is not None for n in order):
        alignments = [rows[n].alignment or byte_width(rows[n].dtype) for n in order]
    arguments = [(n, header.intent(n), rows[n].type) for n in order]
    tables = [table for table, _ in header.tables]
    constants = [n for n in order if rows[n].constant]
    sizes = [*header.sizes.values()]
    extents = [shape_map(rows[n].shape, sizes) for n in order]
    indices = [given for n in order if (given := rows[n].indices) is not None]
    facts = header.numerics, header.machine, alignments, tables, constants, sizes, extents, indices
    kernel = KernelOp(header.name, arguments, None, *facts)
    values = dict(zip(order, kernel.body.block.args, strict=True))
    arrays: dict[str, Named] = {
        n: ArrayName(n, rows[n].dtype, rows[n].box, v, rows[n].indices) for n, v in values.items()
    }
    arrays |= {table.name: table for table in tables} | header.sizes
    buffers: list[tuple[BufferOp, Span]] = []
    hosted = [(rows[n], rows[n].arrays[1:], values[n]) for n in order if len(rows[n].arrays) > 1]
    own = [(row, row.arrays, None) for row in header.declarations if row.arrays[0].text not in order]
    for row, tokens, host in (*hosted, *own):
        names = [t.text for t in tokens]
        constant = row.constant and host is None
        facts = row.memory, row.reuse, host, row.hints, row.swizzles
        buffer = BufferOp.of(names, row.dtype, row.shape, *facts, constant=constant)
        kernel.body.block.add_op(buffer)
        buffers.append((buffer, row.span))
        for name, value in zip(names, buffer.arrays, strict=True):
            arrays[name] = ArrayName(name, row.dtype, row.box, value)
    return kernel, arrays, buffers
