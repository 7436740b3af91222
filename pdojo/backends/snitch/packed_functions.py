"""Recipes of functions on both f32 of a register, without integer registers.

A recipe can be packed if it has no operations on bits. The exponent of a power of two is placed by an f64 sum in each
lane: its low half is the f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from pdojo.backends.snitch.code import Register
from pdojo.backends.snitch.memory import Accesses
from pdojo.dialect.rules.streams import DIVISIONS, EXTREMA, FPU_FUNCTIONS
from pdojo.math.functions import FUNCTIONS
from pdojo.math.values import F32, Real, Values

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
        """Any register."""
        return Register("f")

    def apply(self, function: str, operands: Sequence[Register], dtypes: Sequence[str], result: str) -> Register:
        """Any register for an instruction of the floating-point unit."""
        if function not in FPU_FUNCTIONS:
            raise _OnBitsError
        return Register("f")

    def with_exponent(self, value: Register, offset: float, dtype: str) -> Register:
        """Any register."""
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
    recipe = FUNCTIONS[function].recipe
    assert recipe is not None
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
            code.move(operands[2], total)
            code.emit("vfmac.s", (total,), (total, *operands[:2]))
            return total
        if function in DIVISIONS:
            self.functions.need_divider(self.function)
        if function in EXTREMA and self.ordered is None:
            self.ordered = code.x("vfeq.s", self.argument, self.argument)
        return code.f(f"v{FUNCTIONS[function].snitch}.s", *instruction_operands(function, operands))

    def with_exponent(self, value: Register, offset: float, dtype: str) -> Register:
        """The f64 sum has its last place at 2**-23, so that the exponent is in its place of an f32 in the low half."""
        functions = self.functions
        places = functions.numbers.real(offset + 1.5 * 2.0**29, "f64")
        accesses = Accesses(functions.code)
        lanes = [
            functions.code.f("fadd.d", functions.code.f("fcvt.d.s", lane), places)
            for lane in accesses.split(value, dtype)
        ]
        return accesses.join(lanes, dtype)

    def finished(self, result: Register) -> Register:
        """The function's result: NaN in the lanes whose argument is."""
        if self.ordered is None:
            return result
        code, numbers, x = self.functions.code, self.functions.numbers, self.argument
        restored, done = Register("f"), code.label("ordered")
        code.move(result, restored)
        code.emit("beq", (), (self.ordered, code.li(_LANES)), done)
        # -0 divided by a number is -0, which changes no result.
        above = code.f("vfadd.s", code.f("vfsgnjx.s", x, x), numbers.splat(1.0, "f32"))
        nothing = code.f("vfdiv.s", numbers.splat(-0.0, "f32"), above)
        code.f("vfadd.s", restored, nothing, to=restored)
        code.emit("label", immediate=done)
        return restored
