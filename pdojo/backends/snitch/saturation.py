"""Results of arguments that may be no moderate ones: zero or infinity far out, and the whole recipe between.

Most of these arguments are so far from zero that the result is 0 or +inf (a masked element of softmax). A result of
the short recipe that is right stays as it is. Packed results are all computed again: the short recipe adds both lanes
as one number, so that a lower lane far out makes the upper one wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from pdojo.backends.snitch.code import BRANCHES, ZERO, CodeLine, Register, SnitchCode
from pdojo.backends.snitch.numbers import SUFFIX, Numbers, bits_of
from pdojo.math.functions import Moderate
from pdojo.math.values import FORMATS

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


def emit_again(
    code: SnitchCode, numbers: Numbers, results: Sequence[Result], constants: Mapping[Hashable, Register]
) -> None:
    """Append code that makes all results right where their arguments are not moderate; `constants` grow meanwhile."""
    copies: list[list[CodeLine]] = []
    for each in results:
        if each.packed:
            copies.append([])
            with code.at(copies[-1]):
                code.move(each.again(), each.result)
    code.place.extend(_interleaved(copies, set(constants.values())))
    repairs = [_Repair(code, numbers, each) for each in results if not each.packed]
    for start in range(0, len(repairs), _IN_TURNS):
        group = repairs[start : start + _IN_TURNS]
        for _ in zip_longest(*(repair.steps() for repair in group)):
            pass
        for repair in group:
            repair.finish()


class _Repair:
    """One argument. Only comparisons are used that do not wait until the floating-point unit is idle."""

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
        """Append the branches, the result far out (the product is -inf or +inf), and the whole recipe."""
        code, letter, result = self.code, SUFFIX[self.result.dtype], self.result.result
        right = code.label("right")
        _branch(code, self.is_moderate, right)
        code.f(f"fmul.{letter}", self.result.argument, self.huge, to=result)
        code.f(f"fmax.{letter}", result, self.zero, to=result)
        with code.rarely("known", lambda label: _branch(code, self.is_known, label)):
            code.move(self.result.again(), result)
        code.emit("label", immediate=right)


def _branch(code: SnitchCode, branch: _Branch, label: str) -> None:
    name, registers = branch
    code.emit(name, (), registers, label)


def _huge(dtype: str) -> float:
    """A power of two whose product with a number far out is infinite."""
    return 2.0 ** FORMATS[dtype].bias


def _interleaved(copies: Sequence[Sequence[CodeLine]], constants: Collection[Register]) -> list[CodeLine]:
    """Copies of the same code in turns, so that they do not wait for each other; from the first branch on, in order.

    The first copy computes the constants of all.
    """
    found: list[CodeLine] = []
    rest = [list(copy) for copy in copies]
    while rest and all(rest):
        line = rest[0][0]
        if line.defs and line.defs[0] in constants:
            found.append(rest[0].pop(0))
        elif line.name not in BRANCHES and all(copy[0].name == line.name for copy in rest):
            found += [copy.pop(0) for copy in rest]
        else:
            break
    return found + [line for copy in rest for line in copy]
