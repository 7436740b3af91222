"""Parsing of one line of the tree: extents, mappings and guards, and the statement after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from xdsl.dialects.builtin import DictionaryAttr, IndexType
from xdsl.ir import Attribute, Block

from pdojo.dialect.affine import Expr, Size, const, var
from pdojo.dialect.attributes import IndexValueAttr
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.functions import ACCUMULATIONS, DTYPES, accumulation_function
from pdojo.dialect.index_maps import GuardMaps, IndexMaps
from pdojo.dialect.notation.expressions import Expressions
from pdojo.dialect.notation.hints import parse_hints
from pdojo.dialect.notation.lexer import Cursor, TokenKind
from pdojo.dialect.notation.literals import constant_attr
from pdojo.dialect.notation.source import Span
from pdojo.dialect.notation.spelling import Resolution, ResolutionError, UndeterminedTypeError, resolve
from pdojo.dialect.notation.values import (
    AccessValue,
    Application,
    ConstantValue,
    IndexValue,
    InputValue,
    Named,
    Value,
)
from pdojo.dialect.ops import ScopeOp, StatementOp

_SUFFIXES = [m.value for m in ScopeMapping if m is not ScopeMapping.SEQUENTIAL]
_ACCUMULATIONS = list(dict.fromkeys([*(a.spelling for a in ACCUMULATIONS.values()), "fma"]))
_RELATIONS = ("<", "<=", ">", ">=", "==")


def parse_scope(cursor: Cursor, arrays: Mapping[str, Named], chain: Sequence[ScopeOp]) -> ScopeOp:
    """`512`, `N:p`, `512:g!launch_bounds(2)`, `16:v where ({0}*16+{1} < 500)`: a scope, still without children."""
    span, extent = cursor.token.span, parse_extent(cursor, arrays, "the extent of a scope, an integer")
    low, count = extent.bounds(())
    if low < 1:
        raise cursor.error("a scope needs at least one iteration", span=span.to(cursor.previous.span))
    mapping = _mapping(cursor)
    intrinsic = _intrinsic(cursor) if mapping is ScopeMapping.TENSOR else None
    hints = parse_hints(cursor)
    extents = [*(s.count for s in chain), count]
    guard: list[Expr] = [] if extent.is_constant else [extent - var(len(chain)) - 1]
    if cursor.at_word("where") and cursor.at("(", 1):
        cursor.advance()
        cursor.advance()
        reader = Expressions(cursor, arrays, extents)
        guard += parse_constraint(cursor, reader)
        while cursor.accept(","):
            guard += parse_constraint(cursor, reader)
        cursor.expect(")", "after a guard")
    depth = len(chain)
    maps = GuardMaps.of(guard, depth)
    block = Block(arg_types=[IndexType()])
    block.args[0].name_hint = f"i{depth}"
    facts = [chain[d].iv for d in maps.used], None, hints, intrinsic, maps.sizes, maps.lookups
    return ScopeOp(count, block, mapping, maps.constraints, *facts)


def parse_extent(cursor: Cursor, names: Mapping[str, Named], what: str) -> Expr:
    """An integer, a size, or an expression of sizes in parentheses: `512`, `N`, `(2*N+1)`."""
    token = cursor.token
    size = names.get(token.text) if token.kind is TokenKind.WORD else None
    if isinstance(size, Size):
        cursor.advance()
        return size.expression
    if cursor.at("("):
        cursor.advance()
        found = Expressions(cursor, names, ()).index_side()
        cursor.expect(")", "after an extent")
        return found
    return const(int(cursor.expect_kind(TokenKind.INTEGER, what).text))


def _mapping(cursor: Cursor) -> ScopeMapping:
    if not cursor.accept(":"):
        return ScopeMapping.SEQUENTIAL
    suffix = cursor.expect_kind(TokenKind.WORD, f"a mapping after ':', one of {' '.join(_SUFFIXES)}")
    if suffix.text == "N":
        hint = "reuse is a property of a declared dimension: t f32 [512:N] heap"
        raise cursor.error("':N' does not belong to a scope", hint, suffix.span)
    if suffix.text not in _SUFFIXES:
        raise cursor.error(f"unknown mapping '{suffix.text}'", f"known: {', '.join(_SUFFIXES)}", suffix.span)
    return ScopeMapping(suffix.text)


def _intrinsic(cursor: Cursor) -> str:
    """The name after `:m`, in parentheses."""
    hint = "and the name of the instruction that computes the scope: 16:m(vpdpbusd_512)"
    cursor.expect("(", hint)
    name = cursor.expect_kind(TokenKind.WORD, hint)
    cursor.expect(")", "after the name of an instruction")
    return name.text


def parse_constraint(cursor: Cursor, reader: Expressions) -> list[Expr]:
    """One comparison, as left sides of `e >= 0`."""
    left = reader.guard_side()
    relation = cursor.token.text
    if cursor.token.kind is not TokenKind.SIGN or relation not in _RELATIONS:
        raise cursor.error(f"expected a comparison in a guard, one of {' '.join(_RELATIONS)}")
    cursor.advance()
    right = reader.guard_side()
    match relation:
        case "<":
            return [right - left - 1]
        case "<=":
            return [right - left]
        case ">":
            return [left - right - 1]
        case ">=":
            return [left - right]
        case _:
            return [left - right, right - left]


def parse_statement(
    cursor: Cursor, arrays: Mapping[str, Named], chain: Sequence[ScopeOp]
) -> tuple[StatementOp, list[Span]]:
    """`y[{0}] += exp(x[{0}])` inside `chain`, to the end of the line; also returns the spans of its accesses."""
    extents = [s.count for s in chain]
    reader = Expressions(cursor, arrays, extents)
    output = reader.access()
    accumulate, word = _accumulation(cursor, output)
    value = reader.value()
    cursor.expect_end("after a statement")
    inputs = value.inputs if isinstance(value, Application) else (value,)
    resolution = _resolve(cursor, value, inputs, output)
    op = _build(cursor, chain, output, inputs, resolution, accumulate, word)
    return op, [output.span, *(i.span for i in inputs if isinstance(i, AccessValue))]


def _accumulation(cursor: Cursor, output: AccessValue) -> tuple[str | None, str]:
    """`=`, `async=` or an accumulation: the function, and the word before the equals sign."""
    if cursor.accept("="):
        return None, ""
    word = cursor.token
    if word.kind is TokenKind.END or not cursor.at("=", 1):
        raise cursor.error(f"expected '=' or an accumulation: {_accumulation_list()}")
    cursor.advance()
    cursor.advance()
    span = word.span.to(cursor.previous.span)
    if word.text == "async":
        return None, word.text
    if word.text not in _ACCUMULATIONS:
        raise cursor.error(f"'{word.text}=' is no accumulation", f"known: {_accumulation_list()}", span)
    spelling = "+" if word.text == "fma" else word.text
    function = accumulation_function(spelling, output.dtype)
    if function is None:
        message = f"'{word.text}=' does not accumulate into {output.dtype} array '{output.array.name}'"
        raise cursor.error(message, span=span)
    return function, word.text


def _accumulation_list() -> str:
    return " ".join(f"{a}=" for a in (*_ACCUMULATIONS, "async"))


def _resolve(cursor: Cursor, value: Value, inputs: Sequence[InputValue], output: AccessValue) -> Resolution:
    spelling, candidates = (value.spelling, value.candidates) if isinstance(value, Application) else ("", (None,))
    try:
        return resolve(spelling, candidates, [i.dtype for i in inputs], output.dtype)
    except UndeterminedTypeError as error:
        hint = f"give an operand its type: {_typed(cursor, inputs[0])}"
        raise cursor.error(str(error), hint, value.span) from None
    except ResolutionError as error:
        raise cursor.error(str(error), error.hint, value.span) from None


def _typed(cursor: Cursor, value: InputValue) -> str:
    """The text of an untyped input, with a type appended."""
    text = cursor.source.piece(value.span)
    dtype = "f32" if isinstance(value, ConstantValue) and isinstance(value.value, float) else "i32"
    has_signs = any(sign in text[1:] for sign in "+-*/%")
    return f"({text}):{dtype}" if has_signs else f"{text}:{dtype}"


def _build(
    cursor: Cursor,
    chain: Sequence[ScopeOp],
    output: AccessValue,
    inputs: Sequence[InputValue],
    resolution: Resolution,
    accumulate: str | None,
    word: str,
) -> StatementOp:
    accesses = [i for i in inputs if isinstance(i, AccessValue)]
    expressions = [e for a in (output, *accesses) for e in a.index]
    expressions += [i.expression for i in inputs if isinstance(i, IndexValue)]
    maps = IndexMaps(expressions)
    attributes: list[Attribute] = []
    for value, dtype in zip(inputs, resolution.operands, strict=True):
        match value:
            case AccessValue():
                attributes.append(maps.of(value.index))
            case IndexValue():
                attributes.append(IndexValueAttr(maps.of((value.expression,)), DTYPES[dtype]))
            case ConstantValue():
                attributes.append(_constant(cursor, value, dtype))
            case _:
                assert_never(value)
    hints: list[DictionaryAttr] = [a.hints for a in (output, *accesses)]
    return StatementOp(
        output.array.value,
        maps.of(output.index),
        attributes,
        [a.array.value for a in accesses],
        [chain[d].iv for d in maps.used],
        resolution.function,
        accumulate,
        hints,
        contracted=word == "fma",
        asynchronous=word == "async",
        lookups=maps.lookups,
        sizes=maps.sizes,
    )


def _constant(cursor: Cursor, value: ConstantValue, dtype: str) -> Attribute:
    try:
        return constant_attr(value.value, dtype)
    except ValueError as error:
        raise cursor.error(str(error), span=value.span) from None
