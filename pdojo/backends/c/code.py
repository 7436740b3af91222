"""A C function under construction: lines, names, variables of open loops, index expressions."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile

from pdojo.backends.c.indices import MOST, index_text
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.c.spelling import CSpelling
from pdojo.backends.common.addresses import Address, Exchange, Scaled, address_of, bind, is_within, within_table
from pdojo.backends.common.placement import Placement
from pdojo.dialect.affine import Expr, IndexArray, Lookup, Size, const
from pdojo.dialect.table import Outside, Table
from pdojo.dialect.view.nest import Access, Buffer, Leaf


@dataclass(eq=False)
class FunctionText:
    """Lines of a function, with the names and variables in use."""

    prelude: Prelude
    placements: Mapping[Buffer, Placement]
    names: dict[Buffer, str]
    """Names of the pointers to buffers."""
    lines: list[str] = field(default_factory=list[str])
    indent: int = 1
    known: dict[int, int] = field(default_factory=dict[int, int])
    """Values of the induction variables that are constant at this point, keyed by depth."""
    extents: list[int] = field(default_factory=list[int])
    """Extents of the open scopes, keyed by depth."""
    streams: bool = False
    """Whether the code contains non-temporal stores since the last fence."""
    tables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of the arrays that hold the kernel's tables, keyed by table."""
    indices: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of the pointers to arrays of indices, keyed by array."""
    sizes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of the variables that hold sizes (64 bits), keyed by size."""
    looked_up: dict[Table, None] = field(default_factory=dict["Table", None])
    """The tables that the code reads."""

    @property
    def spelling(self) -> CSpelling:
        """The target's spelling of C."""
        return self.prelude.spelling

    @property
    def is_narrow(self) -> bool:
        """Whether loop variables have 32 bits, so that products may need more."""
        return self.spelling.index == "int"

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.indent + text if text else "")

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Append `head` and a block in braces; a block of one line gets no braces."""
        self.line(f"{head} {{".lstrip())
        start = len(self.lines)
        self.indent += 1
        yield
        self.indent -= 1
        body = self.lines[start:]
        if head and len(body) == 1 and not body[0].lstrip().startswith(("const ", "#", "if")):
            self.lines[start - 1] = self.lines[start - 1].removesuffix(" {")
            return
        self.line("}")

    def bind(self, expression: Expr) -> Expr:
        """Substitute the variables with known values."""
        return bind(expression, self.known, self.extents)

    def index(self, expression: Expr) -> str:
        """The text of an index expression. C's division, which rounds to zero, is correct, because numerators in
        canonical form are never negative.
        """
        return self.text(self.bind(expression))

    def text(self, bound: Expr) -> str:
        """The text of an expression whose known variables are substituted; products that may exceed 32 bits have 64."""
        if self.is_narrow:
            return index_text(bound, self.extents, variable, self._entry)
        return bound.render(variable, "%", "/", self._entry)

    def _entry(self, lookup: Lookup | Size, place: Sequence[str]) -> str:
        """A size, or an entry; a place that guards exclude becomes the nearest one."""
        if isinstance(lookup, Size):
            return self.sizes[lookup.name]
        table = lookup.table
        if isinstance(table, IndexArray):
            return self._index_entry(table, lookup.operands, place)
        self.looked_up[table] = None
        (text,) = place
        if not within_table(lookup, self.extents):
            last = len(table.entries) - 1
            text = f"({text}) < 0 ? 0 : ({text}) > {last} ? {last} : ({text})"
        return f"{self.tables[table.name]}[{text}]"

    def _index_entry(self, table: IndexArray, operands: Sequence[Expr], place: Sequence[str]) -> str:
        """An entry of an array of indices, within its range whatever the caller gave."""
        position = ""
        for operand, extent, text in zip(operands, table.extents, place, strict=True):
            if not is_within(operand, extent, self.extents):
                text = self._clamped(f"(int64_t)({text})", "0", self.text(extent - 1))
            position = f"({position})*({self.text(extent)}) + ({text})" if position else f"(int64_t)({text})"
        value, last = f"(int64_t){self.indices[table.name]}[{position or 0}]", self.text(table.last)
        if table.outside is Outside.WRAP:
            value = f"{self.prelude.use('pd_wrap')}({value}, {self.text(table.last + 1)})"
        return self._clamped(value, str(table.low), last)

    def _clamped(self, value: str, low: str, last: str) -> str:
        return f"{self.prelude.use('pd_min')}({self.prelude.use('pd_max')}({value}, {low}), {last})"

    def table_lines(self) -> list[str]:
        """Declarations of the tables that the code reads, for the beginning of the function."""
        lines: list[str] = []
        for table in self.looked_up:
            kind = "int" if self.is_narrow and max(table.entries) <= MOST else "int64_t"
            entries = ", ".join(map(str, table.entries))
            lines.append(f"  static const {kind} {self.tables[table.name]}[{len(table.entries)}] = {{{entries}}};")
        return lines

    def place(self, access: Access, leaf: Leaf) -> Address:
        """The address of an access."""
        return address_of(access, self.placements[access.array.buffer].layout, leaf.chain)

    def element(self, access: Access, leaf: Leaf) -> str:
        """The accessed element: `x[i0*512+i1]`."""
        return f"{self.names[access.array.buffer]}[{self.position(self.place(access, leaf))}]"

    def position(self, address: Address) -> str:
        """The text of a position in a buffer."""
        linear = self.bind(address.linear)
        if address.scaled:
            # Sizes have 64 bits, so that products that begin with one do not overflow.
            indexed = [(each, self.bind(each.index)) for each in address.scaled]
            sized = [f"{self._stride(each)}*({self.text(index)})" for each, index in indexed if index != const(0)]
            return " + ".join([*sized, *[self.text(linear)] * (linear != const(0))]) or "0"
        if not address.exchanges:
            return self.text(linear)
        most = linear.bounds(self.extents)[1] + sum(self._most(e) * e.factor for e in address.exchanges)
        wide = "(int64_t)" if self.is_narrow and most > MOST else ""
        exchanged: list[str] = []
        for exchange in address.exchanges:
            factor = f" * {exchange.factor}" if exchange.factor != 1 else ""
            exchanged.append(f"{wide}(({self.index(exchange.left)}) ^ ({self.index(exchange.right)})){factor}")
        rest = [] if linear == const(0) else [self.text(linear)]
        return " + ".join([*rest, *exchanged])

    def _stride(self, scaled: Scaled) -> str:
        extents = [f"({self.text(extent)})" for extent in scaled.extents]
        return "*".join([*extents, *[str(scaled.factor)] * (scaled.factor != 1)])

    def _most(self, exchange: Exchange) -> int:
        """An upper bound of the granule that an exchange selects: a number with all bits that both sides may have."""
        sides = (self.bind(side).bounds(self.extents)[1] for side in (exchange.left, exchange.right))
        return (1 << max(most.bit_length() for most in sides)) - 1

    def condition(self, constraints: Sequence[Expr]) -> str:
        """The condition that `e >= 0` holds for all constraints, as text."""
        return " && ".join(self._comparison(self.bind(c)) for c in constraints)

    def _comparison(self, constraint: Expr) -> str:
        variable_part = constraint - constraint.constant
        # `c - e >= 0` reads better as `e <= c`.
        if all(factor < 0 for _, factor in variable_part.terms):
            return f"{self.text(-variable_part)} < {constraint.constant + 1}"
        return f"{self.text(variable_part)} >= {-constraint.constant}"


_WORD = re.compile(r"\w+")
_CONSTANT = re.compile(r"( *)const int (\w+) = [^;]*;")


def without_unused(lines: Sequence[str]) -> list[str]:
    """The lines without declarations of integers that no later line of their block uses."""
    kept: list[str] = []
    used: list[tuple[int, set[str]]] = []
    """The indentation and the words of each kept line, in reverse order."""
    for line in reversed(lines):
        declared = _CONSTANT.fullmatch(line)
        if declared is None or _is_used(declared[2], len(declared[1]), used):
            kept.append(line)
            used.append((len(line) - len(line.lstrip()), set(_WORD.findall(line))))
    return kept[::-1]


def _is_used(name: str, indent: int, following: Sequence[tuple[int, set[str]]]) -> bool:
    """Whether a later line of the same block contains a name; `following` has the later lines in reverse order."""
    inside = takewhile(lambda row: row[0] >= indent, reversed(following))
    return any(name in words for _, words in inside)


def variable(depth: int) -> str:
    """The name of the loop variable of the scope at `depth`."""
    return f"i{depth}"


def printable(text: str) -> str:
    """The text without line ends, and without backslashes, which would continue the comment."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in text)
