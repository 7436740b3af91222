"""sin and cos, over the full range of their formats.

|x| * 2/pi = 4*j + k + t with a quadrant k and |t| <= 1/2, then a polynomial of t * pi/2. The number of bits of 2/pi
that the product needs depends on the exponent of x and on the worst cancellation (Payne and Hanek); 2/pi is cut into
words whose products with x are exact. Multiples of 4 are subtracted from each product exactly; the remainder is split
at fixed powers of two, so that sums of leading parts are exact in any order and cancellation amplifies no rounding
error.

f32: products in f64 with seven words of 29 bits (29 + 24 = 53).
f64: six words of 53 bits, with products as pairs by fma. The six words omit the leading bits, which contribute only
multiples of 4: x is scaled by 2**(-128*q), and the words are taken from frac(2**(128*q) * 2/pi).
"""

from __future__ import annotations

from pdojo.math.recipes.coefficients import COS, SIN, TWO_OVER_PI, TWO_OVER_PI_BITS
from pdojo.math.recipes.pair import Pair
from pdojo.math.values import Int, Real, polynomial

_HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
_STEP = 128
"""Distance in bits between possible beginnings of the words in 2/pi."""
_STEPS_FROM = 54
"""From 2**54 on, x is a multiple of 4, and so is its product with the integer part of 2**(128*q) * 2/pi."""
_WORDS = 6
"""Words of 53 bits: 54 + 128 bits for the scaled x, 119 after the point for worst-case cancellation and result."""


def _words(first: int, width: int, count: int) -> list[float]:
    """`count` words of `width` bits each, with their weights, of the fraction of 2**first * 2/pi."""
    shift = TWO_OVER_PI_BITS - first
    fraction = TWO_OVER_PI & ((1 << shift) - 1)
    words: list[float] = []
    for _ in range(count):
        shift -= width
        words.append(float(fraction >> shift) * 2.0 ** (shift - TWO_OVER_PI_BITS + first))
        fraction &= (1 << shift) - 1
    return words


def _modulo_4(x: Real) -> Real:
    """x minus the nearest multiple of 4, exactly."""
    return (x * 0.25).rint().times_plus(-4.0, x)


class _Sum:
    """An exact sum of numbers up to 2, split into a number of quadrants and a fraction."""

    def __init__(self, zero: Real, levels: int) -> None:
        """`levels` leading parts of each number are summed exactly; the remainder is below 2**-44 or 2**-88."""
        self._parts = [zero] * (levels + 1)

    def add(self, number: Real, largest: float = 2.0) -> None:
        """Add a number whose magnitude is at most `largest`."""
        for level in range(len(self._parts) - 1):
            grid = 2.0 ** (-44 * (level + 1))
            if largest > grid:
                cutter = 1.5 * 2.0**52 * grid
                leading = (number + cutter) - cutter
                self._parts[level] = self._parts[level] + leading
                number = number - leading
                largest = grid
        self._parts[-1] = self._parts[-1] + number

    def turn(self) -> tuple[Int, Pair]:
        """(k, t) with `k` in the low bits; with two levels, t has twice the precision."""
        whole = self._parts[0].rint()
        fraction = Pair(self._parts[0] - whole, whole.like(0.0))
        for part in self._parts[1:]:
            fraction = fraction.plus(part)
        return (whole + whole.format.rounder).bits(), fraction.normalised()


def _window(x: Real) -> tuple[Real, list[Real]]:
    """(x scaled, words of 2/pi) whose product is x * 2/pi modulo 4."""
    fmt = x.format
    exponent = (x.bits() >> fmt.mantissa) - (fmt.bias + _STEPS_FROM)
    steps = (exponent > 0).choose_int(exponent, 0) >> (_STEP.bit_length() - 1)
    scale = (fmt.one - (steps << (fmt.mantissa + _STEP.bit_length() - 1))).real()
    count = (fmt.bias - _STEPS_FROM) // _STEP + 1
    tables = [[x.like(word) for word in _words(_STEP * q, 53, _WORDS)] for q in range(count)]
    bit = 1
    while len(tables) > 1:
        odd = (steps & bit).differs(0)
        tables = [
            [odd.choose(b, a) for a, b in zip(even, other, strict=True)]
            for even, other in zip(tables[::2], tables[1::2], strict=True)
        ]
        bit *= 2
    return x * scale, tables[0]


def _turn(x: Real, words: list[Real], top: int, width: int, levels: int) -> tuple[Int, Pair]:
    """(k, t) of x * sum(words), where x < 2**top and word j < 2**(-width*j); for width 53, products are pairs."""
    total = _Sum(x.like(0.0), levels)
    for number, word in enumerate(words):
        largest = 2.0 ** (top - width * number)
        if width == 53:
            product = Pair.product(x, word)
            parts = [(product.high, largest), (product.low, largest * 2.0**-53)]
        else:
            parts = [(x * word, largest)]
        for part, bound in parts:
            if bound > 2.0:
                total.add(_modulo_4(part))
            elif bound > 2.0**-130:
                total.add(part, bound)
    return total.turn()


def _sin_cos(angle: Pair, name: str) -> tuple[Real, Real]:
    """(sin, cos) of |angle| <= pi/4; the angle's `low` is used to first order."""
    high, low = angle.high, angle.low
    square = high * high
    odd = (square * high) * polynomial(square, SIN[name])
    half = square * 0.5
    sine = high + (odd + half.times_plus(-low, low))
    leading = 1.0 - half
    lost = (1.0 - leading) - half
    even = (square * square).times_plus(polynomial(square, COS[name]), lost)
    return sine, leading + high.times_plus(-low, even)


def _quadrant(k: Int, sine: Real, cosine: Real, first: int) -> Real:
    """The sine of an angle that is `first + k` quadrants further, from its sine and cosine."""
    if first:
        k = k + first
    value = (k & 1).equals(0).choose(sine, cosine)
    return (value.bits() ^ ((k & 2) << (k.format.width - 2))).real()


def _evaluate(x: Real, first: int) -> Real:
    """sin(|x| + first * pi/2)."""
    magnitude = x.abs()
    if x.format.name == "f32":
        wide = magnitude.widen()
        k, turn = _turn(wide, [wide.like(w) for w in _words(0, 29, 7)], 128, 29, 1)
        angle = turn.high * _HALF_PI[0]
        square = angle * angle
        sine = (square * angle).times_plus(polynomial(square, SIN["f32"]), angle)
        cosine = (square * square).times_plus(polynomial(square, COS["f32"]), square.times_plus(-0.5, 1.0))
        return _quadrant(k, sine, cosine, first).narrow()
    scaled, words = _window(magnitude)
    k, turn = _turn(scaled, words, _STEPS_FROM + _STEP, 53, 2)
    sine, cosine = _sin_cos(turn.times(*_HALF_PI).normalised(), "f64")
    return _quadrant(k, sine, cosine, first)


def sin(x: Real) -> Real:
    """The sine of an angle in radians; NaN for infinite angles."""
    sine = (_evaluate(x, 0).bits() ^ (x.bits() & ~x.format.magnitude)).real()
    # Below 2**-27 (2**-13) sin(x) rounds to x; products with the words of 2/pi would underflow.
    tiny = 2.0**-27 if x.format.name == "f64" else 2.0**-13
    return (x.abs().bits() < x.format.bits_of(tiny)).choose(x, sine)


def cos(x: Real) -> Real:
    """The cosine of an angle in radians; NaN for infinite angles."""
    return _evaluate(x, 1)
