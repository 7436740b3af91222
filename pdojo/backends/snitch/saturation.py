"""Results of single arguments that may be no moderate ones: zero or infinity far out, and the whole recipe between.

Most of these arguments are so far from zero that the result is 0 or +inf (a masked element of softmax). A result of
the short recipe that is right stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from pdojo.backends.snitch.code import ZERO, Register, SnitchCode
from pdojo.backends.snitch.numbers import SUFFIX, Numbers, bits_of
from pdojo.math.functions import Moderate
from pdojo.math.values import FORMATS

LANES = 3
"""The bits of both lanes in the result of a packed comparison."""
_Branch: TypeAlias = tuple[str, tuple[Register, ...]]
"""Name and operands of a branch."""
_IN_TURNS = 2
"""Number of results whose instructions alternate, so that they do not wait for each other; more take registers that the
surrounding code needs."""


@dataclass(frozen=True)
class Result:
    """A result that is right if the argument is moderate."""

    argument: Register
    result: Register
    again: Callable[[], Register]
    """Appends the whole recipe."""
    dtype: str
    moderate: Moderate
    packed: bool = False
    """Whether the argument is two f32 in a register."""

    @property
    def bound(self) -> float:
        """The greatest magnitude of a moderate argument."""
        return self.moderate.bound(self.dtype)

    @property
    def far(self) -> float:
        """The magnitude from which results are 0 and +inf."""
        return self.moderate.far(self.dtype)


def emit_again(code: SnitchCode, numbers: Numbers, results: Sequence[Result]) -> None:
    """Append code that makes all results right where their arguments are not moderate."""
    repairs = [(_Lanes if each.packed else _Scalar)(code, numbers, each) for each in results]
    for start in range(0, len(repairs), _IN_TURNS):
        group = repairs[start : start + _IN_TURNS]
        for _ in zip_longest(*(repair.steps() for repair in group)):
            pass
        for repair in group:
            repair.finish()


class _Scalar:
    """One argument. Comparisons are those that do not wait until the floating-point unit is idle."""

    def __init__(self, code: SnitchCode, numbers: Numbers, result: Result) -> None:
        self.code, self.numbers, self.result = code, numbers, result
        self.is_moderate: _Branch = "bne", ()
        """The branch that is taken if the argument is moderate."""
        self.is_known: _Branch = "bne", ()
        """The branch that is taken if the result is 0 or +inf."""
        self.huge = self.zero = ZERO

    def steps(self) -> Generator[None]:
        """Append the comparisons, an instruction at a time."""
        code, numbers, dtype, x = self.code, self.numbers, self.result.dtype, self.result.argument
        self.huge, self.zero = (numbers.real(number, dtype) for number in (_huge(dtype), 0.0))
        if dtype == "f64":
            bound, far = (numbers.real(limit, dtype) for limit in (self.result.bound, self.result.far))
            size = code.f("fsgnjx.d", x, x)
            yield
            self.is_moderate = "bne", (code.x("flt.d", size, bound), ZERO)
            yield
            self.is_known = "bne", (code.x("flt.d", far, size), ZERO)
            return
        # Twice the bits have no sign; they are in the order of the magnitudes, and NaN is greater than infinity.
        limit, first = (2 * bits_of(number, dtype) for number in (self.result.bound, self.result.far))
        below, least, count = (code.li(k) for k in (limit, first, 2 * FORMATS[dtype].infinity + 1 - first))
        bits = code.x("fmv.x.w", x)
        yield
        doubled = code.x("slli", bits, immediate=1)
        self.is_moderate = "bltu", (doubled, below)
        self.is_known = "bltu", (code.x("sub", doubled, least), count)

    def finish(self) -> None:
        """Append the branches, and the result of an argument far out: the product is -inf or +inf."""
        code, letter, result = self.code, SUFFIX[self.result.dtype], self.result.result
        right = code.label("right")
        _branch(code, self.is_moderate, right)
        code.f(f"fmul.{letter}", self.result.argument, self.huge, to=result)
        code.f(f"fmax.{letter}", result, self.zero, to=result)
        self.whole()
        code.emit("label", immediate=right)

    def whole(self) -> None:
        """Append the whole recipe for arguments that are neither moderate nor far out."""
        with self.code.rarely("known", lambda label: _branch(self.code, self.is_known, label)):
            self.code.move(self.result.again(), self.result.result)


class _Lanes(_Scalar):
    """Two arguments, either of which may be moderate."""

    def steps(self) -> Generator[None]:
        """Append comparisons, and a product by 1 in moderate lanes, by 0 or infinity in lanes far out.

        Moderate lanes differ by nothing from their limits. Results of other lanes become finite numbers before.
        """
        code, splat, x, result = self.code, self.numbers.splat, self.result.argument, self.result.result
        low, high, far = (splat(limit, "f32") for limit in (-self.result.bound, self.result.bound, self.result.far))
        huge, zero, one, least = (splat(number, "f32") for number in (_huge("f32"), 0.0, 1.0, 2 / _huge("f32")))
        lanes, factor = code.li(LANES), Register("f")
        size = code.f("vfsgnjx.s", x, x)
        yield
        within = code.f("vfmax.s", x, low)
        yield
        within = code.f("vfmin.s", within, high)
        yield
        self.numbers.copy(one, factor)
        yield
        beyond = code.f("vfsub.s", x, within)
        yield
        finite = code.f("vfmax.s", result, least)
        yield
        code.emit("vfmac.s", (factor,), (factor, beyond, huge))
        yield
        finite = code.f("vfmin.s", finite, huge)
        yield
        factor = code.f("vfmax.s", factor, zero)
        yield
        code.f("vfmul.s", finite, factor, to=result)
        yield
        moderate = code.x("vflt.s", size, high)
        yield
        known = code.x("or", moderate, code.x("vflt.s", far, size))
        self.is_known = "beq", (known, lanes)

    def finish(self) -> None:
        """Append the whole recipe."""
        self.whole()


def _branch(code: SnitchCode, branch: _Branch, label: str) -> None:
    name, registers = branch
    code.emit(name, (), registers, label)


def _huge(dtype: str) -> float:
    """A power of two whose product with a number far out is infinite."""
    return 2.0 ** FORMATS[dtype].bias
