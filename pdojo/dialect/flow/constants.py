"""Constant propagation: the one constant that a statement computes in some of its instances, exact in every type.

A value is known if it is a constant, or read from an element whose origin is a plain assignment of a known value, or a
function of known values among -1, 0 and 1. On these, `+ - *` and casts round in no type, unless the result is another
number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TypeAlias

from pdojo.dialect.flow.origins import Instances, element_uses, number_of
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import ACCUMULATIONS, identity_value, is_float
from pdojo.dialect.view.nest import Access, Constant, Index, Input, Leaf

MOST_STEPS = 12
"""Most assignments in a chain that leads to a constant: a copy of a copy, and so on."""

Number: TypeAlias = float | int

_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
_CASTS = ("extf", "truncf", "extsi", "sitofp")
_ABSORBING = {"muli": 0, "andi": 0, "ori": -1}
"""Functions of integers whose result is decided by an operand of this value; a float times 0 may be NaN."""


def term_of(program: Program, leaf: Leaf, among: Instances) -> Constant | None:
    """The one constant that a statement's function computes in some of its instances; None if it is not known."""
    return _term(program, leaf, among, MOST_STEPS)


def is_neutral(leaf: Leaf, term: Constant) -> bool:
    """Whether accumulating a term leaves every value unchanged, except perhaps the sign of a zero."""
    assert leaf.accumulate is not None
    return term.value == identity_value(leaf.accumulate, term.dtype)


def keeps_zeros(leaf: Leaf, term: Constant) -> bool:
    """Whether accumulating a neutral term keeps the sign of a zero: -0.0 + 0.0 is 0.0, and x + -0.0 is x."""
    assert leaf.accumulate is not None
    is_sum = is_float(term.dtype) and ACCUMULATIONS[leaf.accumulate].spelling == "+"
    return not is_sum or _is_negative_zero(term.value)


def _is_negative_zero(value: Number) -> bool:
    return value == 0 and str(value).startswith("-")


def _term(program: Program, leaf: Leaf, among: Instances, steps: int) -> Constant | None:
    if not steps:
        return None
    operands = [_operand(program, leaf, value, among, steps) for value in leaf.inputs]
    return _applied(leaf.function, operands, leaf.output.array.dtype)


def _operand(program: Program, leaf: Leaf, value: Input, among: Instances, steps: int) -> Constant | None:
    match value:
        case Constant():
            return _signed(value)
        case Index(expression, dtype):
            known = expression.is_constant and abs(expression.constant) <= 1
            return _signed(Constant(_typed(expression.constant, dtype), dtype)) if known else None
        case Access():
            return _read(program, leaf, value, among, steps)


def _read(program: Program, leaf: Leaf, access: Access, among: Instances, steps: int) -> Constant | None:
    """The one constant that some instances of a read get; None if it is not known."""
    uses = element_uses(program.nest, access.array)
    sources, complete = program.origins.sources(uses, number_of(uses, leaf, access), among)
    if not complete or any(uses[write].leaf.accumulate is not None for write, _ in sources):
        return None
    found = {_key(_term(program, uses[write].leaf, writing, steps - 1)) for write, writing in sources}
    return found.pop()[1] if len(found) == 1 else None


def _key(term: Constant | None) -> tuple[str, Constant | None]:
    """A key that tells the two zeros apart."""
    return ("", None) if term is None else (str(term.value), term)


def _signed(constant: Constant) -> Constant:
    """The constant, with -1 for the truth value of one bit."""
    return Constant(-1 if constant.value else 0, "i1") if constant.dtype == "i1" else constant


def _typed(value: Number, dtype: str) -> Number:
    return float(value) if is_float(dtype) else int(value)


def _applied(function: str | None, operands: Sequence[Constant | None], dtype: str) -> Constant | None:
    """The value of a function if it is known and exact in every type; else None."""
    if function is None:
        return operands[0]
    name = function.partition(".")[2]
    if name in _ABSORBING and any(o is not None and o.value == _ABSORBING[name] for o in operands):
        return Constant(_ABSORBING[name], dtype)
    known = [o.value for o in operands if o is not None]
    small = len(known) == len(operands) and all(isfinite(value) and abs(value) <= 1 for value in known)
    if not small or "i1" in (dtype, *(o.dtype for o in operands if o is not None)):
        return None
    if name in _CASTS:
        return Constant(_typed(known[0], dtype), dtype)
    if name[:-1] not in _ARITHMETIC:
        return None
    result = _ARITHMETIC[name[:-1]](*known)
    return Constant(result, dtype) if abs(result) <= 1 else None
