"""Reading programs: MLIR or notation, with errors that point into the text."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ComplexType, IndexType, IntegerType, ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import AttrParser, Parser, ParserState
from xdsl.universe import Universe
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind

from pdojo.dialect.exception import KernelVerifyException
from pdojo.dialect.notation.sizes import KEYWORDS
from pdojo.dialect.notation.source import Source, Span
from pdojo.dialect.ops import PDOJO
from pdojo.dialect.plugins import lazy
from pdojo.dialect.text_limits import MOST_DIGITS
from pdojo.errors import ConversionError, InvalidKernel, NotationError, PdojoError, UsageError
from pdojo.files import decode, read_bytes

_SEPARATOR = re.compile(r"^(?://|#) -----.*$", re.MULTILINE)
_COMMENT = ("#", "//")
_MLIR = re.compile(r"""[A-Za-z_]\w*\.[A-Za-z_]|module\b|["%!^{]""")
"""The beginning of a program in MLIR: an operation, its results, an alias, a block or file metadata."""


@dataclass(frozen=True)
class Chunk:
    """A piece of the input, with the number of lines before it."""

    text: str
    name: str
    first_line: int = 0
    is_library: bool = False
    """Whether the text is a library kernel, which does not record the alignment of its callers' arrays."""

    @property
    def padded(self) -> str:
        """The text after as many empty lines as precede it, so that positions are those in the whole input."""
        return "\n" * self.first_line + self.text

    def format(self, wanted: str | None) -> str:
        """`mlir` or `notation`: `wanted`, or else the form that the text and the file's name suggest."""
        if wanted is not None:
            return wanted
        lines = (line.strip() for line in self.text.splitlines())
        first = next((line for line in lines if line and not line.startswith(_COMMENT)), "")
        if self.name.endswith(".pdojo") or re.match(rf"kernel\b|({'|'.join(KEYWORDS)}) +\w+ *=", first):
            return "notation"
        return "mlir" if self.name.endswith(".mlir") or _MLIR.match(first) else "notation"


def read_file(path: Path) -> Chunk:
    """The whole text of a file. Raises UsageError if there is no readable text."""
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        there = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = get_close_matches(path.name, there, 1)
        hint = f"; did you mean '{path.parent / close[0]}'?" if close else ""
        raise UsageError(f"there is no file '{path}'{hint}") from None
    except IsADirectoryError:
        raise UsageError(f"'{path}' is a directory; give a file in it") from None
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    return decoded(data, str(path))


def given(text: str, name: str) -> Chunk:
    """A text given by a program. Raises the errors of `decoded`, also for unpaired surrogates."""
    try:
        return decoded(text.encode(), name)
    except UnicodeEncodeError as error:
        raise UsageError(f"{name} is no text: character {error.start} is half of one") from None


def decoded(data: bytes, name: str) -> Chunk:
    """Bytes decoded as text. Raises UsageError for bytes that are not text; messages call them `name`."""
    try:
        text = decode(data)
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is no text: byte {error.start} is not UTF-8; give an MLIR or .pdojo file") from None
    if "\0" in text:
        raise UsageError(f"{name} is no text: byte {data.index(0)} is zero; give an MLIR or .pdojo file")
    if not text.strip():
        raise UsageError(f"{name} is empty; give a program in MLIR or in the notation")
    return Chunk(text, name)


def split(chunk: Chunk) -> Iterator[Chunk]:
    """The pieces between lines `// -----` (or `# -----`)."""
    line = 0
    for text in _SEPARATOR.split(chunk.text):
        yield Chunk(text, chunk.name, line, chunk.is_library)
        line += text.count("\n")


@dataclass
class SourceModule:
    """A parsed module and the positions of its operations in the text."""

    module: ModuleOp
    chunk: Chunk
    spans: dict[Operation, tuple[int, int]]
    """The known positions of operations in the chunk."""

    def verify(self) -> None:
        """Raise InvalidKernel with the position for the first operation that does not verify."""
        try:
            self.module.verify()
        except VerifyException as error:
            raise self._located(error) from None
        except RecursionError:
            raise InvalidKernel("the program does not verify: it is nested too deeply") from None
        except Exception as error:
            if not raised_by_xdsl(error):
                raise
            raise InvalidKernel(f"xDSL cannot verify the program: {type(error).__name__}: {error}") from error

    def _located(self, error: VerifyException) -> PdojoError:
        operation = error.operation if isinstance(error, KernelVerifyException) else _broken(self.module)
        hint = error.hint if isinstance(error, KernelVerifyException) else ""
        text = self._at(operation, str(error), hint)
        return InvalidKernel(f"the program does not verify: {error}" if text is None else text)

    def located(self, error: ConversionError) -> ConversionError:
        """The error with the place of its operation in the text, if that is known."""
        text = self._at(error.operation, str(error))
        return error if text is None else ConversionError(text, error.operation)

    def _at(self, operation: object, message: str, hint: str = "") -> str | None:
        """A message with the place of an operation in the text; None if that is unknown."""
        span = None
        # Bodies of named operations are not in the text.
        while span is None and isinstance(operation, Operation):
            span = self.spans.get(operation)
            operation = operation.parent_op()
        if span is None:
            return None
        return str(Source(self.chunk.padded, self.chunk.name).error(_span(self.chunk, *span), message, hint))


def _broken(module: ModuleOp) -> Operation | None:
    """The last innermost operation that does not verify although all of its parts do."""
    for operation in reversed(list(module.walk())):
        try:
            operation.verify(verify_nested_ops=False)
        except VerifyException:
            return operation
    return None


def parse(chunk: Chunk, ctx: Context, wanted: str | None, *, implicit_module: bool = True) -> SourceModule:
    """Parse a chunk. Raises NotationError with the position for text that does not parse, in either form."""
    if chunk.format(wanted) == "notation":
        from pdojo.dialect.notation import parse_module

        ctx.get_dialect("pdojo")
        return SourceModule(parse_module(chunk.padded, chunk.name), chunk, {})
    try:
        # The constructor reads the first token.
        parser = _Parser(ctx, chunk.text, chunk.name)
    except ParseError as error:
        raise _parse_error(error, chunk) from None
    try:
        module = parser.parse_module(implicit_module)
    except ParseError as error:
        raise _parse_error(error, chunk) from None
    except VerifyException as error:
        raise parser.source_error(chunk, str(error)) from None
    except RecursionError:
        raise parser.source_error(chunk, "brackets or operators are nested too deeply here") from None
    except Exception as error:
        if not raised_by_xdsl(error):
            raise
        raise parser.source_error(chunk, f"xDSL cannot read this: {type(error).__name__}: {error}") from error
    return SourceModule(module, chunk, parser.starts)


def raised_by_xdsl(error: Exception) -> bool:
    """Whether an error comes from xDSL's code, whose messages for unexpected tokens are terse."""
    frames = [Path(frame.filename).parts for frame in traceback.extract_tb(error.__traceback__)]
    standard = Path(traceback.__file__).parent.parts
    # Python's own library, which xDSL calls, lies around the packages of others.
    own = [f for f in frames if f[: len(standard)] != standard or {"site-packages", "dist-packages"} & {*f}]
    return any("xdsl" in parts for parts in own[-1:])


class _Lexer(MLIRLexer):
    """xDSL's lexer, with errors for texts that take it exponential time and for numbers too long for Python."""

    # Possessive quantifier: no backtracking into an unterminated string.
    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        """The next token. Raises ParseError."""
        token = super().lex()
        if token.kind in _OF_TEXT:
            return token
        if not token.span.text.isascii():
            raise ParseError(token.span, "names and numbers are ASCII here")
        if token.kind in _NUMBERS and len(token.span.text) > MOST_DIGITS:
            raise ParseError(token.span, f"a number has at most {MOST_DIGITS} digits")
        return token


_OF_TEXT = (MLIRTokenKind.STRING_LIT, MLIRTokenKind.BYTES_LIT)
_NUMBERS = (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.FLOAT_LIT)


@cache
def universe() -> Universe:
    """The dialects, passes and targets of all installed packages, whose entry points are read once."""
    return Universe.get_multiverse()


class TextContext(Context):
    """A context of programs that `parse` reads: in dense constants, `0xFF800000` is a float's bits, as in MLIR.

    xDSL 0.74 reads it as the number 4286578688. It knows all dialects, those completed that xDSL has in part.
    """

    def __init__(self, *, allow_unregistered: bool = False) -> None:
        super().__init__(allow_unregistered=allow_unregistered)
        for name, factory in (universe().all_dialects | _COMPLETED).items():
            self.register_dialect(name, factory)


_COMPLETED = {
    "gpu": lazy("pdojo.backends.gpu.ir.dialect:GPU_COMPLETE"),
    "linalg": lazy("pdojo.frontends.linalg.dialect:LINALG_COMPLETE"),
}
"""Dialects of xDSL with operations that it lacks. A tool registers them itself: a universe cannot extend a dialect."""


class _Bits(AttrParser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]  # xDSL has no hook for it
    """A hexadecimal number in a dense constant."""

    def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType) -> Any:
        """The number; for a floating-point type the one with these bits."""
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        assert isinstance(self.value, int)
        if self.value.bit_length() > 8 * type.compile_time_size:
            parser.raise_error(f"{self.span.text} has more bits than {type}", self.span.start, self.span.end)
        return next(type.iter_unpack(self.value.to_bytes(type.compile_time_size, "little")))


_PERMISSIONS = frozenset(("overflowFlags", "fastmath", "nonNeg", "isExact"))
"""Properties that permit a compiler to assume more; xDSL 0.74 does not know them on all operations that have them."""


class _Parser(Parser):
    """xDSL's parser, which also records the positions of operations.

    It reads dense constants as MLIR does, and leaves out permissions that xDSL does not know.
    """

    def __init__(self, ctx: Context, text: str, name: str) -> None:
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(_Lexer(Input(text, name)))
        self.starts: dict[Operation, tuple[int, int]] = {}

    def parse_operation(self) -> Operation:
        """Parse one operation and record its position."""
        start = self.pos
        operation = super().parse_operation()
        self.starts[operation] = start, self.pos
        if isinstance(operation, IRDLOperation):
            defined = operation.get_irdl_definition().properties
            for name in _PERMISSIONS.difference(defined).intersection(operation.properties):
                del operation.properties[name]
        return operation

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:  # pyright: ignore[reportPrivateUsage]
        element = super()._parse_tensor_literal_element()
        if element.span.text[:2].lower() != "0x":
            return element
        return _Bits(element.is_negative, element.value, element.span)

    def source_error(self, chunk: Chunk, message: str) -> NotationError:
        """An error at the current position."""
        return Source(chunk.padded, chunk.name).error(_span(chunk, self.pos, self.pos + 1), message)


def _parse_error(error: ParseError, chunk: Chunk) -> NotationError:
    """xDSL's parse error with its position, and with a clearer message for some errors."""
    source = Source(chunk.padded, chunk.name)
    text, start, end = error.msg.strip(), error.span.start, error.span.end
    unregistered = re.fullmatch(r"Operation (\S+) is not registered", text)
    if unregistered is not None:
        # xDSL's position is after the name.
        name = unregistered[1]
        start = chunk.text.rfind(name, 0, start)
        return source.error(
            _span(chunk, start, start + len(name)), f"unknown operation '{name}'", _operation_hint(name)
        )
    if text == "Could not parse entire input!":
        text = "expected an operation"
    elif text == "in block definition":
        text = "expected an operation, a block label or '}'"
    return source.error(_span(chunk, start, end), text)


def _operation_hint(name: str) -> str:
    if name == "kernel":
        return "this looks like the notation; give --input-format=notation"
    close = get_close_matches(name, [op.name for op in PDOJO.operations], 1)
    return f"did you mean '{close[0]}'?" if close else ""


def _span(chunk: Chunk, start: int, end: int) -> Span:
    """The piece of text from `start` to `end`, cut at the end of its first line."""
    start = min(start, len(chunk.text))
    line_start = chunk.text.rfind("\n", 0, start) + 1
    line_end = chunk.text.find("\n", start)
    line_end = len(chunk.text) if line_end < 0 else line_end
    line = chunk.first_line + chunk.text.count("\n", 0, start)
    return Span(line, start - line_start, max(1, min(end, line_end) - start))
