"""Familiar spelling of functions: the function that a sign or a short name means for given element types.

The records of functions have their spelling. A spelling names candidates; the types of the operands and of the result
choose among them. Operands of open type (constants, index values) take the type that the function wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from pdojo.dialect.functions import byte_width, check_types, is_float
from pdojo.math.functions import FUNCTIONS, Function, Signature


def _named(name: Callable[[Function], str | None]) -> dict[str, tuple[str, ...]]:
    """The functions that share each name, in the order of their records."""
    found: dict[str, tuple[str, ...]] = {}
    for function in FUNCTIONS.values():
        if (text := name(function)) is not None:
            found[text] = (*found.get(text, ()), function.name)
    return found


INFIX = _named(lambda function: function.sign if function.arity == 2 else None)
"""Signs between two operands; `!=` on floats is true for NaN, all other comparisons are false."""

PREFIX = _named(lambda function: function.sign if function.arity == 1 else None)
"""Signs before one operand."""

CALLS = _named(lambda function: function.call)
"""Short names. `u` is unsigned on integers and "unordered or" in a comparison of floats; `max` and `min` keep NaN."""

PRECEDENCE: dict[str, int] = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 1),
    "|": 2,
    "^": 3,
    "&": 4,
    **dict.fromkeys(("<<", ">>"), 5),
    **dict.fromkeys(("+", "-"), 6),
    **dict.fromkeys(("*", "/", "//", "%"), 7),
}
"""Precedence of signs, as in Python; `//` and `%` belong to index expressions only."""

_BOOLEAN_CASTS = ("arith.uitofp", "arith.fptoui", "arith.extui", "arith.trunci")
"""The functions of a `cast` from or to i1: true is 1, not -1."""


def call_names() -> tuple[str, ...]:
    """Every name that may stand before a parenthesis, short ones first."""
    return (*CALLS, *FUNCTIONS)


def call_candidates(name: str) -> tuple[str, ...] | None:
    """The functions that a name before a parenthesis may mean; None if there are none."""
    return CALLS.get(name) or ((name,) if name in FUNCTIONS else None)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The chosen function, and the types of its operands; None is a copy."""

    function: str | None
    operands: tuple[str, ...]


class ResolutionError(Exception):
    """The error if no candidate fits; the message gives the reason, `hint` the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UndeterminedTypeError(ResolutionError):
    """The error if nothing determines the type of the operands."""


def resolve(spelling: str, candidates: Sequence[str | None], operands: Sequence[str | None], result: str) -> Resolution:
    """Choose the candidate that takes dtypes `operands` (None for an open one) to `result`.

    A cast to the type that the operand already has is a copy: texts for several types need it.
    Raises ResolutionError, whose message cites `spelling`, the user's text.
    """
    if spelling == "cast" and tuple(operands) == (result,):
        return Resolution(None, (result,))
    if spelling == "cast" and "i1" in (*operands, result):
        candidates = _BOOLEAN_CASTS
    undetermined = False
    for function in candidates:
        types = _complete(function, operands, result)
        if types is None:
            undetermined = True
        elif check_types(function, types, result) is None:
            return Resolution(function, types)
    if undetermined:
        raise UndeterminedTypeError(f"the operand type of '{spelling}' is not determined")
    raise _mismatch(spelling, candidates, operands, result)


def _complete(function: str | None, operands: Sequence[str | None], result: str) -> tuple[str, ...] | None:
    """Give open operands the type that the function wants; None if nothing determines it."""
    signature = None if function is None else FUNCTIONS[function].signature
    known = [t for t in operands if t is not None]
    match signature:
        case Signature.COMPARE_FLOAT | Signature.COMPARE_INTEGER | Signature.CAST:
            if not known:
                return None
            default = known[0]
        case Signature.SELECT:
            condition = "i1" if operands and operands[0] is None else None
            rest = [t for t in operands[1:] if t is not None]
            default = rest[0] if rest else result
            return tuple(t or (condition if k == 0 and condition else default) for k, t in enumerate(operands))
        case _:
            default = known[0] if known else result
    return tuple(t or default for t in operands)


def _mismatch(
    spelling: str, candidates: Sequence[str | None], operands: Sequence[str | None], result: str
) -> ResolutionError:
    arity = 1 if candidates[0] is None else FUNCTIONS[candidates[0]].arity
    if len(operands) != arity:
        return ResolutionError(f"'{spelling}' takes {arity} operand{'s' * (arity != 1)}, not {len(operands)}")
    if candidates[0] is None:
        return ResolutionError(f"a copy cannot turn {operands[0]} into {result}", "convert with cast(...)")
    types = _complete(candidates[0], operands, result)
    assert types is not None
    hint = _conversion(FUNCTIONS[candidates[0]].signature, types, result)
    return ResolutionError(f"'{spelling}' cannot take ({', '.join(types)}) to {result}", hint)


def _conversion(signature: Signature, operands: Sequence[str], result: str) -> str:
    """The hint for wrong types of operands and result; empty if no conversion helps."""
    if signature is Signature.CAST:
        (source,) = operands
        if source != result and byte_width(source) == byte_width(result) and is_float(source) and is_float(result):
            return "go through f32: cast(...) to f32 in a statement of its own, and cast(...) of that"
        return "cast(...) converts the value"
    if signature in (Signature.COMPARE_FLOAT, Signature.COMPARE_INTEGER) and result != "i1":
        return "a comparison is of type i1, which select(...) and cast(...) take"
    return "convert with cast(...) in a statement of its own" if len({*operands, result}) > 1 else ""


class ApplicationStyle(Enum):
    """Form of a function application."""

    COPY = auto()
    PREFIX = auto()
    INFIX = auto()
    CALL = auto()


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way to write a function application so that the parser reads it back unchanged."""

    style: ApplicationStyle
    text: str
    typed: bool
    """Whether constants and index values carry their types."""


@lru_cache(maxsize=4096)
def spell(function: str | None, operands: tuple[str, ...], arrays: tuple[bool, ...], result: str) -> Spelling:
    """The most familiar spelling that resolves back to `function` with these operand types.

    `arrays` tells which operands are array accesses. Signs need at least one, because arithmetic on iterations and
    integers alone is an index expression.
    """
    if function is None:
        typed = not _resolves("", (None,), function, operands, arrays, result, typed=False)
        return Spelling(ApplicationStyle.COPY, "", typed)
    if any(arrays):
        for style, table in ((ApplicationStyle.PREFIX, PREFIX), (ApplicationStyle.INFIX, INFIX)):
            for text, candidates in table.items():
                if function in candidates and len(operands) == (1 if style is ApplicationStyle.PREFIX else 2):
                    typed = not _resolves(text, candidates, function, operands, arrays, result, typed=False)
                    if not typed:
                        return Spelling(style, text, typed=False)
    names = [*((n, c) for n, c in CALLS.items() if function in (*c, *_also(n))), (function, (function,))]
    for typed in (False, True):
        for name, candidates in names:
            if _resolves(name, candidates, function, operands, arrays, result, typed=typed):
                return Spelling(ApplicationStyle.CALL, name, typed)
    return Spelling(ApplicationStyle.CALL, function, typed=True)


def _also(name: str) -> tuple[str, ...]:
    return _BOOLEAN_CASTS if name == "cast" else ()


def _resolves(
    name: str,
    candidates: tuple[str | None, ...],
    function: str | None,
    operands: tuple[str, ...],
    arrays: tuple[bool, ...],
    result: str,
    *,
    typed: bool,
) -> bool:
    given = tuple(t if typed or known else None for t, known in zip(operands, arrays, strict=True))
    try:
        return resolve(name, candidates, given, result) == Resolution(function, operands)
    except ResolutionError:
        return False
