"""Recipes and roundings to integers as instructions.

Therefore all backends give the same bits. An f64 moves to a pair of integer registers through a slot in the frame, but
signs and the exponents of powers of two need no integers. Maxima and minima inside of a function of one number lose its
NaN, which is restored at the end, so that nothing in between waits for a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from pdojo.backends.snitch import wide
from pdojo.backends.snitch.code import ZERO, Register
from pdojo.backends.snitch.numbers import SUFFIX
from pdojo.backends.snitch.saturation import Result
from pdojo.backends.snitch.values import RegisterPair, Value, integer
from pdojo.dialect.rules.streams import DIVISIONS, EXTREMA
from pdojo.errors import LoweringError
from pdojo.math.functions import FUNCTIONS, Deferred
from pdojo.math.values import FORMATS, Real, Values

if TYPE_CHECKING:
    from pdojo.backends.snitch.functions import Functions

_ROUNDINGS = ("math.floor", "math.ceil", "math.trunc", "math.roundeven")


def emit_function(functions: Functions, function: str, operands: list[Register], dtype: str) -> Register:
    """A function of f32 or f64 that takes several instructions.

    Raises LoweringError for functions without such code.
    """
    if function in _ROUNDINGS:
        return _rounded(functions, function, operands[0], dtype)
    record = FUNCTIONS[function]
    if record.recipe is None:
        raise LoweringError(f"'{function}' has no code for Snitch cores")
    whole = partial(_by_recipe, functions, function, operands, dtype, record.recipe)
    if record.moderate is None:
        return whole()
    result = _by_recipe(functions, function, operands, dtype, record.moderate.recipe)
    functions.outliers.add(Result(operands[0], result, whole, dtype, record.moderate))
    return result


def _by_recipe(
    functions: Functions, function: str, operands: Sequence[Register], dtype: str, recipe: Deferred
) -> Register:
    """The value of a function by one of its recipes."""
    code = _Code(functions, function, operands)
    result = recipe()(*(Real(code, FORMATS[dtype], o) for o in operands))
    return code.finished(cast(Register, result.value), dtype)


def _rounded(functions: Functions, function: str, x: Register, dtype: str) -> Register:
    """The operand rounded to an integer; NaN, and numbers too large to have a fraction, are returned as they are."""
    code, numbers, letter = functions.code, functions.numbers, SUFFIX[dtype]
    limit = numbers.real(2.0**52 if dtype == "f64" else 2.0**23, dtype)
    result, done = Register("f"), code.label("whole")
    code.move(x, result)
    magnitude = code.f(f"fsgnjx.{letter}", x, x)
    small = code.x(f"flt.{letter}", magnitude, limit)
    near = code.f(f"fsub.{letter}", code.f(f"fadd.{letter}", magnitude, limit), limit)
    value = near if function == "math.trunc" else code.f(f"fsgnj.{letter}", near, x)
    if function != "math.roundeven":
        # The correction is 0 or 1; it is subtracted if rounding went up, or for ceil added if rounding went down.
        above = (magnitude, value) if function == "math.trunc" else (x, value)
        pair = (value, x) if function == "math.ceil" else above
        off = code.f(f"fcvt.{letter}.w", code.x(f"flt.{letter}", *pair))
        value = code.f(f"{'fadd' if function == 'math.ceil' else 'fsub'}.{letter}", value, off)
    value = code.f(f"fsgnj.{letter}", value, x)
    code.emit("beq", (), (small, ZERO), done)
    code.move(value, result)
    code.emit("label", immediate=done)
    return result


class _Code(Values[Value]):
    """Emits the instructions of one function."""

    def __init__(self, functions: Functions, function: str, operands: Sequence[Register]) -> None:
        super().__init__()
        is_unary = len(operands) == 1
        self.functions = replace(functions, loses_nan=is_unary)
        self.function = function
        self.argument = operands[0] if is_unary else None
        """The only argument of the function; its NaN makes the result NaN."""
        self.ordered: tuple[str, tuple[Register, ...]] | None = None
        """The branch that is taken if the argument is a number; None if no maximum or minimum may have lost its NaN."""

    def _compared(self, x: Register, dtype: str) -> tuple[str, tuple[Register, ...]]:
        """Compare a number with itself, using instructions that do not wait until the floating-point unit is idle."""
        code, numbers = self.functions.code, self.functions.numbers
        if dtype == "f32":
            doubled = code.x("slli", code.x("fmv.x.w", x), immediate=1)
            return "bgeu", (code.li(2 * FORMATS[dtype].infinity), doubled)
        below = code.x("flt.d", x, numbers.real(1.0, dtype))
        above = code.x("flt.d", numbers.real(0.0, dtype), x)
        return "bne", (code.x("or", below, above), ZERO)

    def finished(self, result: Register, dtype: str) -> Register:
        """The function's result: NaN if the argument is."""
        if self.ordered is None or self.argument is None:
            return result
        code, restored, done = self.functions.code, Register("f"), self.functions.code.label("ordered")
        code.move(result, restored)
        name, registers = self.ordered
        code.emit(name, (), registers, done)
        code.f(f"fadd.{SUFFIX[dtype]}", self.argument, self.argument, to=restored)
        code.emit("label", immediate=done)
        return restored

    def new_constant(self, number: float, dtype: str) -> Value:
        functions = self.functions
        return (
            functions.numbers.real(number, dtype) if dtype in FORMATS else integer(functions.code, int(number), dtype)
        )

    def apply(self, function: str, operands: Sequence[Value], dtypes: Sequence[str], result: str) -> Value:
        """The value of a function that Snitch cores compute by a few instructions."""
        if function in DIVISIONS:
            self.functions.need_divider(self.function)
        if function in EXTREMA and self.argument is not None and self.ordered is None:
            self.ordered = self._compared(self.argument, dtypes[0])
        return self.functions.apply(function, operands, dtypes, result)

    def shift(self, function: str, value: Value, count: int, dtype: str) -> Value:
        code, left = self.functions.code, function == "arith.shli"
        if isinstance(value, RegisterPair):
            return (wide.shift_left if left else wide.shift_right)(code, value, count)
        return code.x("slli" if left else "srai", value, immediate=count)

    def has_signs(self, dtype: str) -> bool:
        """True: one instruction each."""
        return True

    def places_exponents(self, dtype: str) -> bool:
        """True for f64: an instruction moves the low half of a register into the high half."""
        return dtype == "f64"

    def with_exponent(self, value: Value, offset: float, dtype: str) -> Value:
        """The sum has its last place at 2**-20, so that the exponent is in the upper 12 bits of its low half."""
        functions = self.functions
        places = functions.numbers.real(offset + 1.5 * 2.0**32, dtype)
        low = functions.code.f("fadd.d", cast(Register, value), places)
        # The low half of 1 is 0, and recipes need the number anyway.
        return functions.code.f("vfcpka.s.s", functions.numbers.real(1.0, dtype), low)
