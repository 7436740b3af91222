"""Functions of statements as instructions, with the reference interpreter's rounding and definitions.

Branches stay inside the code of the statement. `to` is the register for the result; the last instruction writes it, so
it may also be an operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from pdojo.backends.snitch.casts import Casts
from pdojo.backends.snitch.code import ZERO, Register, SnitchCode
from pdojo.backends.snitch.integers import Integers
from pdojo.backends.snitch.numbers import SUFFIX, Numbers
from pdojo.backends.snitch.outliers import Outliers
from pdojo.backends.snitch.values import RegisterPair, Value, fresh, move
from pdojo.dialect.functions import is_float
from pdojo.dialect.rules.streams import DIVISIONS, EXTREMA, FPU_FUNCTIONS
from pdojo.errors import LoweringError
from pdojo.math.functions import FUNCTIONS, FUSED

_SIGNS = ("arith.negf", "math.absf")
_RELATIONS = {"oeq": ("feq", False), "olt": ("flt", False), "ole": ("fle", False), "ogt": ("flt", True)} | {
    "oge": ("fle", True)
}
"""The instruction of a comparison, and whether its operands are swapped."""
_NEGATED = {"une": "oeq", "uge": "olt", "ugt": "ole", "ule": "ogt", "ult": "oge", "ueq": "one", "uno": "ord"}


def has_instruction(function: str, *, loses_nan: bool) -> bool:
    """Whether one instruction computes a function of floats; extrema lose NaN, if the kernel permits it."""
    return function in FPU_FUNCTIONS and (loses_nan or function not in EXTREMA)


def instruction_operands(function: str, operands: Sequence[Register]) -> tuple[Register, ...]:
    """The operands of a function's instruction; instructions of signs read the only operand twice."""
    return (operands[0], operands[0]) if function in _SIGNS else tuple(operands)


@dataclass(frozen=True)
class Functions:
    """Emits code for the functions that statements apply to their operands."""

    code: SnitchCode
    numbers: Numbers
    features: frozenset[str]
    """Features of the machine."""
    machine: str
    """The machine's name, for messages."""
    outliers: Outliers
    """Tests the arguments of functions."""
    loses_nan: bool = False
    """Whether the kernel permits a maximum or minimum of a number and NaN to be the number."""

    def apply(
        self, function: str, operands: Sequence[Value], dtypes: Sequence[str], result: str, to: Value | None = None
    ) -> Value:
        """The value of `function` in the element type `result`."""
        name = function.partition(".")[2]
        if name == "select":
            return self._select(operands, result)
        if name.startswith("cmpf."):
            return self._compare(name[5:], cast("list[Register]", list(operands)), dtypes[0])
        if name.startswith("cmpi."):
            return Integers(self.code).compare(name[5:], operands[0], operands[1], dtypes[0])
        casts = Casts(self.code, self.numbers)
        if casts.has(name):
            return casts.apply(name, operands[0], dtypes[0], result)
        if not is_float(result):
            return Integers(self.code).apply(function, operands, result)
        registers = cast("list[Register]", list(operands))
        target = cast("Register | None", to)
        if result == "bf16":
            return casts.round_to_bf16(self._wide(function, registers))
        return self._real(function, registers, result, target)

    def _real(self, function: str, operands: list[Register], dtype: str, to: Register | None) -> Register:
        code, letter, name = self.code, SUFFIX[dtype], FUNCTIONS[function].snitch
        if name is None:
            return self._inlined(function, operands, dtype)
        if function in EXTREMA:
            return self._extremum(name, operands, letter, to)
        if function in DIVISIONS:
            self.need_divider(function)
        return code.f(f"{name}.{letter}", *instruction_operands(function, operands), to=to)

    def _wide(self, function: str, operands: list[Register]) -> Register:
        """A function of bf16 as f32, such that rounding it to bf16 gives the result rounded once."""
        if function not in FUSED:
            return self._real(function, operands, "f32", None)
        wide = [self.code.f("fcvt.d.s", o) for o in operands]
        signed = [self.code.f("fsgnjn.d", o, o) if k == FUSED[function] else o for k, o in enumerate(wide)]
        return Casts(self.code, self.numbers).fused_to_odd(*signed)

    def _inlined(self, function: str, operands: list[Register], dtype: str) -> Register:
        """The recipe of a function; f16 is computed in f32."""
        from pdojo.backends.snitch.math import emit_function

        # Maxima inside functions must keep NaN even if the kernel permits its own to lose it.
        exact, code = replace(self, loses_nan=False), self.code
        if dtype != "f16":
            return emit_function(exact, function, operands, dtype)
        widened = [code.f("fcvt.s.h", o) for o in operands]
        return code.f("fcvt.h.s", emit_function(exact, function, widened, "f32"))

    def need_divider(self, function: str) -> None:
        """Raise LoweringError if the machine has no divider."""
        if "xdiv_sqrt" not in self.features:
            raise LoweringError(
                f"'{function}' needs a divider, the feature xdiv_sqrt, which {self.machine} does not have; "
                "use the machine snitch-xdiv"
            )

    def _extremum(self, name: str, operands: list[Register], letter: str, to: Register | None) -> Register:
        code = self.code
        if self.loses_nan:
            return code.f(f"{name}.{letter}", *operands, to=to)
        result = Register("f")
        code.f(f"{name}.{letter}", *operands, to=result)
        a, b = operands
        # Constants need no test for NaN; if both operands are constants, one is tested, as there must be an
        # instruction.
        tested = [r for r in dict.fromkeys((a, b)) if r not in self.numbers.ordered] or [a]
        ordered = code.x(f"feq.{letter}", tested[0], tested[0])
        if len(tested) > 1:
            ordered = code.x("and", ordered, code.x(f"feq.{letter}", b, b))
        done = code.label("ordered")
        code.emit("bne", (), (ordered, ZERO), done)
        # One operand is NaN, and therefore the sum, too.
        code.f(f"fadd.{letter}", a, b, to=result)
        code.emit("label", immediate=done)
        return result

    def _select(self, operands: Sequence[Value], dtype: str) -> Value:
        condition, then, otherwise = operands
        assert isinstance(condition, Register)
        return self.choose(condition, then, otherwise, dtype)

    def choose(self, condition: Register, then: Value, otherwise: Value, dtype: str) -> Value:
        """`then` if the condition is not 0, else `otherwise`."""
        code, result, done = self.code, fresh(dtype), self.code.label("chosen")
        move(code, then, result)
        code.emit("bne", (), (condition, ZERO), done)
        move(code, otherwise, result)
        code.emit("label", immediate=done)
        return result

    def _compare(self, predicate: str, operands: list[Register], dtype: str) -> Register:
        code, letter = self.code, SUFFIX[dtype]
        if predicate in _NEGATED:
            return code.x("xori", self._compare(_NEGATED[predicate], operands, dtype), immediate=1)
        a, b = operands
        if predicate == "one":
            return code.x("or", code.x(f"flt.{letter}", a, b), code.x(f"flt.{letter}", b, a))
        if predicate == "ord":
            return code.x("and", code.x(f"feq.{letter}", a, a), code.x(f"feq.{letter}", b, b))
        name, swapped = _RELATIONS[predicate]
        return code.x(f"{name}.{letter}", *((b, a) if swapped else (a, b)))


def from_index(functions: Functions, number: Register, dtype: str) -> Value:
    """An index (32 bits) as a value of `dtype`."""
    code = functions.code
    if is_float(dtype):
        return Casts(code, functions.numbers).from_integer(number, dtype, signed=True)
    if dtype == "i64":
        return RegisterPair(number, ZERO if number is ZERO else code.x("srai", number, immediate=31))
    return Integers(code).wrapped(number, dtype)
