"""Recipes of functions on both f32 of a register, without integer registers.

A recipe can be packed if it has no operations on bits. The exponent of a power of two is placed by an f64 sum for each
lane: its low half is the f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from pdojo.backends.snitch.code import Register
from pdojo.backends.snitch.saturation import Result
from pdojo.dialect.rules.streams import DIVISIONS, EXTREMA, FPU_FUNCTIONS
from pdojo.math.functions import FUNCTIONS, Deferred
from pdojo.math.values import F32, F64, Real, Values

if TYPE_CHECKING:
    from pdojo.backends.snitch.functions import Functions

_LANES = 3
"""The bits of both lanes in the result of a packed comparison."""


class _OnBitsError(Exception):
    """A recipe operates on bits."""


class _Lanes(Values[Register]):
    """Values in both lanes; operations on bits raise `_OnBitsError`."""

    def has_signs(self, dtype: str) -> bool:
        """True: one instruction each."""
        return True

    def places_exponents(self, dtype: str) -> bool:
        """True: by f64 sums."""
        return True

    def shift(self, function: str, value: Register, count: int, dtype: str) -> Register:
        """Refused."""
        raise _OnBitsError


class _Probe(_Lanes):
    """Finds out whether a recipe operates on bits."""

    def new_constant(self, number: float, dtype: str) -> Register:
        return Register("f")

    def apply(self, function: str, operands: Sequence[Register], dtypes: Sequence[str], result: str) -> Register:
        """Any register for an instruction of the floating-point unit."""
        if function not in FPU_FUNCTIONS:
            raise _OnBitsError
        return Register("f")

    def with_exponent(self, value: Register, offset: float, dtype: str) -> Register:
        return Register("f")


@cache
def has_packed_recipe(function: str) -> bool:
    """Whether a function of one f32 has a recipe without operations on bits."""
    record = FUNCTIONS.get(function)
    if record is None or record.recipe is None or record.arity != 1:
        return False
    try:
        record.recipe()(Real(_Probe(), F32, Register("f")))
    except _OnBitsError:
        return False
    return True


def emit_packed_function(functions: Functions, function: str, operand: Register) -> Register:
    """A function of both f32 of a register. Requires a divider, which restores the NaN of an argument."""
    record = FUNCTIONS[function]
    assert record.recipe is not None
    whole = partial(_by_recipe, functions, function, operand, record.recipe)
    if record.moderate is None:
        return whole()
    result = _by_recipe(functions, function, operand, record.moderate.recipe)
    functions.outliers.add(Result(operand, result, whole, "f32", record.moderate, packed=True))
    return result


def _by_recipe(functions: Functions, function: str, operand: Register, recipe: Deferred) -> Register:
    """The value of a function by one of its recipes."""
    code = _Recipe(functions, function, operand)
    return code.finished(recipe()(Real(code, F32, operand)).value)


class _Recipe(_Lanes):
    """Emits the packed instructions of one function."""

    def __init__(self, functions: Functions, function: str, argument: Register) -> None:
        super().__init__()
        self.functions = functions
        self.function = function
        self.argument = argument
        self.ordered: Register | None = None
        """The lanes of the argument that are numbers, if a maximum or minimum may have lost NaN."""

    def new_constant(self, number: float, dtype: str) -> Register:
        """A register with the constant in both lanes."""
        return self.functions.numbers.splat(number, dtype)

    def apply(self, function: str, operands: Sequence[Register], dtypes: Sequence[str], result: str) -> Register:
        """The value of an instruction in both lanes."""
        from pdojo.backends.snitch.functions import instruction_operands

        code = self.functions.code
        if function == "math.fma":
            total = Register("f")
            self.functions.numbers.copy(operands[2], total)
            code.emit("vfmac.s", (total,), (total, *operands[:2]))
            return total
        if function in DIVISIONS:
            self.functions.need_divider(self.function)
        if function in EXTREMA and self.ordered is None:
            self.ordered = code.x("vfeq.s", self.argument, self.argument)
        return code.f(f"v{FUNCTIONS[function].snitch}.s", *instruction_operands(function, operands))

    def with_exponent(self, value: Register, offset: float, dtype: str) -> Register:
        """Place the exponents of both lanes by f64 sums, whose low halves are the powers.

        With R = 1.5 * 2**23, the bits of a lane R + k are those of R plus k: the register is a large f64 whose fraction
        is k of the upper lane * 2**32 + the bits of the lower lane. Adding a number with a last place of 2**9 rounds
        the lower lane away, and has the upper k at bit 23. The same lower lane below other upper bits is a number to
        which one with a last place of 2**-23 is added.
        """
        code, numbers = self.functions.code, self.functions.numbers
        if offset != -F32.rounder:
            value = code.f("vfadd.s", value, self.constant(F32.rounder + offset, dtype))
        rounder = F32.bits_of(F32.rounder)
        unit = 2.0 ** ((rounder >> 20) - F64.bias - F64.mantissa)
        upper = code.f("fadd.d", value, numbers.real((F64.rounder - (rounder >> 9)) * (unit * 2.0**9), "f64"))
        # The low half of this number is the upper half that makes the lower lane a number of its size.
        below = rounder - 3 * 2**28
        last = 2.0 ** ((below >> 20) - F64.bias - F64.mantissa)
        places = numbers.real(-(2.0**F64.mantissa + below) * last, "f64")
        lower = code.f("fadd.d", code.f("vfcpka.s.s", value, places), places)
        return code.f("vfcpka.s.s", lower, upper)

    def finished(self, result: Register) -> Register:
        """The function's result: NaN in the lanes whose argument is."""
        if self.ordered is None:
            return result
        code, numbers, x = self.functions.code, self.functions.numbers, self.argument
        # Made before the branch, because other results may use the same registers.
        lanes, one, zero = code.li(_LANES), numbers.splat(1.0, "f32"), numbers.splat(-0.0, "f32")
        restored, done = Register("f"), code.label("ordered")
        code.move(result, restored)
        code.emit("beq", (), (self.ordered, lanes), done)
        # -0 divided by a number is -0, which changes no result.
        nothing = code.f("vfdiv.s", zero, code.f("vfadd.s", code.f("vfsgnjx.s", x, x), one))
        code.f("vfadd.s", restored, nothing, to=restored)
        code.emit("label", immediate=done)
        return restored
