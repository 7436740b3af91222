"""Numbers as unevaluated sums of two, with about twice the precision of their format."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.math.values import Real


@dataclass(frozen=True, slots=True)
class Pair:
    """The number `high + low`; low is at most about a rounding error of high."""

    high: Real
    low: Real

    @staticmethod
    def sum(a: Real, b: Real) -> Pair:
        """a + b, exactly."""
        total = a + b
        of_b = total - a
        return Pair(total, (a - (total - of_b)) + (b - of_b))

    @staticmethod
    def sum_ordered(a: Real, b: Real) -> Pair:
        """a + b, exactly if |a| >= |b| or a = 0."""
        total = a + b
        return Pair(total, b - (total - a))

    @staticmethod
    def product(a: Real, b: Real | float) -> Pair:
        """a * b, exactly unless it underflows."""
        product = a * b
        return Pair(product, a.times_plus(b, -product))

    def plus(self, addend: Real) -> Pair:
        """The sum with a number, not normalised; low includes the rounding error."""
        total = Pair.sum(self.high, addend)
        return Pair(total.high, self.low + total.low)

    def times(self, high: Real | float, low: Real | float) -> Pair:
        """The product with `high + low`, not normalised."""
        leading = Pair.product(self.high, high)
        rest = self.low.times_plus(high, leading.low)
        return Pair(leading.high, self.high.times_plus(low, rest))

    def normalised(self) -> Pair:
        """The same number, with `high` rounded to nearest."""
        return Pair.sum_ordered(self.high, self.low)
