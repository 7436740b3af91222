"""Parsing of a `.pdojo` text: kernels, line by line, into the dialect."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.affine import Size
from pdojo.dialect.exception import KernelVerifyException
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.notation import features
from pdojo.dialect.notation.header import (
    FACTS,
    Header,
    build_kernel,
    parse_declaration,
    parse_fact,
    parse_kernel_line,
    parse_size,
)
from pdojo.dialect.notation.lexer import Cursor, TokenKind, tokenize
from pdojo.dialect.notation.sizes import Given, Names
from pdojo.dialect.notation.source import Source, Span, did_you_mean
from pdojo.dialect.notation.statements import parse_scope, parse_statement
from pdojo.dialect.notation.values import Named
from pdojo.dialect.ops import MOST_SCOPES, KernelOp, ScopeOp, VersionsOp
from pdojo.dialect.view.build import assign_ids
from pdojo.errors import NotationError


def parse_notation(text: str, source: str = "<notation>", given: Given | None = None) -> list[KernelOp]:
    """The kernels of a text, verified and with fresh ids; `source` names the text in errors.

    `given` replaces values of the text's named sizes, numbers and types. Raises NotationError for a text that is not a
    valid program, and UsageError for a given name that the text does not define.
    """
    return _KernelParser(Source(text, source), Names(given or {})).parse().kernels


def parse_module(text: str, source: str = "<notation>") -> ModuleOp:
    """The kernels and versions of a text; raises NotationError as `parse_notation` does."""
    parser = _KernelParser(Source(text, source), Names()).parse()
    module = ModuleOp([*parser.kernels, *parser.versions])
    for versions, span in parser.versions.items():
        try:
            versions.verify()
        except VerifyException as error:
            raise parser.source.error(span, str(error)) from None
    return module


_BEGINNING = "a kernel begins with: kernel name(x) -> (y)"


class _KernelParser:
    def __init__(self, source: Source, names: Names) -> None:
        self.source = source
        self.names = names
        self.kernels: list[KernelOp] = []
        self.versions: dict[VersionsOp, Span] = {}
        """The lines that list versions."""
        self.header: Header | None = None
        self.tree: _Tree | None = None

    def parse(self) -> _KernelParser:
        for line in range(len(self.source.lines)):
            cursor = Cursor(self.source, tokenize(self.source, line))
            if self.names.is_definition(cursor):
                self._define(cursor)
            elif not cursor.at_end:
                self._line(self.names.put(cursor))
        self._finish()
        self.names.check_given()
        if not self.kernels:
            raise self.source.error(Span(0, 0, 1), "the text has no kernel", _BEGINNING)
        return self

    def _define(self, cursor: Cursor) -> None:
        if self.header is not None and self.tree is None:
            raise cursor.error("names are defined above a kernel")
        self.names.define(cursor)

    def _line(self, cursor: Cursor) -> None:
        if cursor.at_word("kernel") and cursor.peek(1).kind in (TokenKind.WORD, TokenKind.STRING) and cursor.at("(", 2):
            self._finish()
            self.header = parse_kernel_line(cursor)
            self.header.sizes.update(self.names.ranges)
            self._check_name(cursor, self.header.name, self.header.span)
        elif cursor.at_word("versions") and cursor.at("=", 2):
            self._finish()
            self._versions(cursor)
        elif self.header is None:
            raise cursor.error("expected the header of a kernel", _BEGINNING)
        elif _is_declaration(cursor, self.header):
            if self.tree is not None:
                raise cursor.error("declarations stand above the first scope or statement")
            if cursor.token.text == "size" and cursor.peek(1).kind is TokenKind.WORD and not cursor.at("[", 2):
                self._size(cursor, self.header)
            elif cursor.token.text in FACTS and not cursor.at("[", 2):
                parse_fact(cursor, self.header)
            else:
                parse_declaration(cursor, self.header)
        else:
            if self.tree is None:
                self.tree = _Tree(cursor, self.header)
            self.tree.line(cursor)

    def _check_name(self, cursor: Cursor, name: str, span: Span) -> None:
        if any(each.sym_name.data == name for each in (*self.kernels, *self.versions)):
            raise cursor.error(f"kernel '{name}' is defined twice", span=span)

    def _versions(self, cursor: Cursor) -> None:
        """`versions f = f_1, f_2`."""
        first = cursor.advance()
        name = cursor.expect_kind(TokenKind.WORD, "the name of the kernel with versions")
        self._check_name(cursor, name.text, name.span)
        cursor.advance()
        kernels = [cursor.expect_kind(TokenKind.WORD, "the name of a version").text]
        while cursor.accept(","):
            kernels.append(cursor.expect_kind(TokenKind.WORD, "the name of a version").text)
        cursor.expect_end("after the versions")
        self.versions[VersionsOp(name.text, kernels)] = first.span.to(cursor.previous.span)

    def _size(self, cursor: Cursor, header: Header) -> None:
        """Declare a size of the present kernel; a given one is a constant until the kernel ends."""
        if header.declarations:
            raise cursor.error("sizes are declared above the arrays")
        declared = parse_size(cursor, header)
        size = self.names.narrowed(declared)
        header.is_part |= size != declared
        if size is not None:
            header.sizes[size.name] = size

    def _finish(self) -> None:
        """End the present kernel, if any."""
        self.names.end_kernel()
        if self.header is None:
            return
        if self.tree is None:
            raise self.source.error(self.header.span, f"kernel '{self.header.name}' has no statements")
        self.kernels.append(self.tree.finish())
        self.header = self.tree = None


def _is_declaration(cursor: Cursor, header: Header) -> bool:
    """Whether a fact, or `name dtype` or `name word [` starts the line; not `while z[{0}++] ...`."""
    first, second = cursor.token, cursor.peek(1)
    if first.kind is not TokenKind.WORD or cursor.at("[", 1) or cursor.at("=", 1):
        return False
    if first.text in FACTS or (second.kind is TokenKind.WORD and second.text in DTYPES):
        return True
    begins_tree = first.text in header.sizes or first.text in features.CONTROL_FLOW
    return second.kind is TokenKind.WORD and not begins_tree and cursor.at("[", 2)


class _Tree:
    """The scopes and statements of one kernel while they are read."""

    def __init__(self, cursor: Cursor, header: Header) -> None:
        self.source = cursor.source
        self.kernel: KernelOp
        self.arrays: dict[str, Named]
        self.kernel, self.arrays, buffers = build_kernel(cursor, header)
        self.places: dict[Operation, Span] = {self.kernel: header.span, **dict(buffers)}
        self.accesses: dict[Operation, list[Span]] = {}
        """Spans of each statement's accesses: the output, then the reads."""
        self.parents: list[list[ScopeOp] | None] = [[]]
        """`parents[b]` encloses lines with b bars: the scopes, outermost first; None below a statement."""

    def line(self, cursor: Cursor) -> None:
        """Add one line: bars, extents, perhaps a statement."""
        start = cursor.token.span
        bars = 0
        while cursor.accept("|"):
            bars += 1
        if bars >= len(self.parents):
            most = len(self.parents) - 1
            message = f"this line has {bars} bar{'s' * (bars != 1)}, but the line above it allows at most {most}"
            raise cursor.error(message, "a bar means: child of the nearest line above without that bar", start)
        enclosing = self.parents[bars]
        if enclosing is None:
            raise cursor.error("a statement has no children: one bar less", span=start)
        chain = list(enclosing)
        while not cursor.at_end:
            is_size = isinstance(self.arrays.get(cursor.token.text), Size) or cursor.at("(")
            if not is_size:
                self._check_start(cursor)
            if not is_size and cursor.token.kind is TokenKind.WORD:
                self._statement(cursor, chain)
                self.parents[bars + 1 :] = [None]
                return
            first = cursor.token.span
            if len(chain) == MOST_SCOPES:
                raise cursor.error(f"scopes are nested more than {MOST_SCOPES} deep", span=first)
            scope = parse_scope(cursor, self.arrays, chain)
            self._block(chain).add_op(scope)
            self.places[scope] = first.to(cursor.previous.span)
            chain.append(scope)
        if len(chain) == len(enclosing):
            raise cursor.error("expected a scope or a statement after the bars")
        self.parents[bars + 1 :] = [chain]

    def _block(self, chain: list[ScopeOp]) -> Block:
        return chain[-1].body.block if chain else self.kernel.body.block

    def _statement(self, cursor: Cursor, chain: list[ScopeOp]) -> None:
        first = cursor.token.span
        op, self.accesses[op] = parse_statement(cursor, self.arrays, chain)
        self._block(chain).add_op(op)
        self.places[op] = first.to(cursor.previous.span)

    def _check_start(self, cursor: Cursor) -> None:
        """Check that an extent or an output access comes next; the error names the token found instead."""
        token = cursor.token
        if token.kind is TokenKind.INTEGER:
            return
        if token.kind is not TokenKind.WORD:
            raise cursor.error("expected the extent of a scope or a statement")
        access = features.access_instead_of_extent(cursor)
        if access is not None:
            raise features.data_dependent_range(cursor, access, token.text)
        if cursor.at("[", 1):
            return
        if token.text in features.CONTROL_FLOW:
            raise features.control_flow(cursor, token.span, f"'{token.text}' is no part of the notation")
        if token.text in self.arrays:
            raise cursor.error(f"array '{token.text}' needs an index: {token.text}[...]")
        hint = did_you_mean(token.text, self.arrays) if cursor.at("=", 1) else "extents are integers"
        raise cursor.error(f"'{token.text}' is neither an extent nor an array access", hint)

    def finish(self) -> KernelOp:
        """The kernel, verified, with ids."""
        assign_ids(self.kernel)
        try:
            self.kernel.verify()
        except VerifyException as error:
            raise self._located(error) from None
        return self.kernel

    def _located(self, error: VerifyException) -> NotationError:
        if not isinstance(error, KernelVerifyException):
            return self.source.error(self.places[self.kernel], str(error))
        span = self.places.get(error.operation, self.places[self.kernel])
        if error.access is not None:
            span = self.accesses[error.operation][error.access]
        return self.source.error(span, str(error), error.hint)
