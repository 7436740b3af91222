"""Special functions of f16, bf16 and f32, computed in f64 and rounded once.

The polynomials are Chebyshev fits of PyTorch's functions of f64, with relative errors below 2e-10; coefficients are in
the order of powers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.registry import PROMOTION, Call, aten, promoted

_ERFCX = (
    -0.6717940840639,
    0.6726432239565,
    0.04734330801946,
    -0.04689560948546,
    -0.009872721152936,
    0.008824933282054,
    0.001759264913684,
    -0.002345825840683,
    -0.0001479846440087,
    0.0006739603558096,
    -8.858318953727e-05,
    -0.0001755877658366,
    6.234284343912e-05,
    3.469238817793e-05,
    -2.076553128539e-05,
    -3.72515140486e-06,
    3.161069325637e-06,
)
"""Coefficients of log(erfcx(z) / t) with t = 2 / (2 + z), in 2t - 1; z from 0."""
_I0_NEAR = (
    0.2070019212269,
    -0.1130043265345,
    0.09451562784637,
    -0.08904346700054,
    0.08734344375819,
    -0.08496283115363,
    0.079274798649,
    -0.06954659124675,
    0.05678042010549,
    -0.04295691575802,
    0.03016227839738,
    -0.01977620602974,
    0.01200488093776,
    -0.006604619569044,
    0.003535159754974,
    -0.002047345007876,
    0.000951648291946,
    -0.0002057593846004,
    9.498284162359e-05,
    -0.0001360473691487,
    5.072911578421e-05,
)
"""Coefficients of exp(-x) I0(x), in x / 4 - 1; x from 0 to 8."""
_I0_FAR = (
    0.4021765094443,
    0.003360551958229,
    0.0001362161230006,
    1.114359555592e-05,
    1.483304315268e-06,
    2.937246628472e-07,
    9.083411860915e-08,
    4.976335845134e-08,
    1.843801718654e-08,
    -8.063778273545e-09,
    -6.76648075975e-09,
)
"""Coefficients of sqrt(x) exp(-x) I0(x), in 16 / x - 1; x from 8."""
_I1_NEAR = (
    0.04468770987592,
    -0.06112433798914,
    0.06805759983362,
    -0.06848260916186,
    0.06376740673279,
    -0.05527997580014,
    0.04467452582237,
    -0.03367197856197,
    0.02368638835476,
    -0.01556795297615,
    0.009582246683508,
    -0.005545398091448,
    0.003010685246111,
    -0.001517091593305,
    0.0007354891603512,
    -0.000368571936512,
    0.0001589453599905,
    -4.071012498116e-05,
    1.675561750826e-05,
    -1.746793166083e-05,
    6.153143537562e-06,
)
"""Coefficients of exp(-x) I1(x) / x, in x / 4 - 1; x from 0 to 8."""
_I1_FAR = (
    0.3893984590266,
    -0.009749577164822,
    -0.0002192358118926,
    -1.503917115433e-05,
    -1.834377049765e-06,
    -3.443786391052e-07,
    -1.020536741449e-07,
    -5.450935815101e-08,
    -2.050983347544e-08,
    8.326666877075e-09,
    7.232415619849e-09,
)
"""Coefficients of sqrt(x) exp(-x) I1(x), in 16 / x - 1; x from 8."""


def _special(*names: str) -> Callable[[Callable[[Array], Array]], Callable[[Array], Array]]:
    """A decorator that makes a function of f64 the rule of operators with results of f16, bf16 or f32."""

    def register(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def rule(call: Call, x: Array) -> Array:
            if call.dtype == "f64":
                call.refuse("kernels compute it for f16, bf16 and f32 only")
            (u,) = promoted(call, (x,), PROMOTION.INT_TO_FLOAT)
            return build.cast(function(build.cast(u, "f64")), u.dtype)

        aten(*names, pointwise=True)(rule)
        return function

    return register


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """A polynomial by Horner's rule."""
    found = x * coefficients[-1] + coefficients[-2]
    for each in coefficients[-3::-1]:
        found = found * x + each
    return found


def _erfcx_of(size: Array, factor: Array | float) -> Array:
    """`exp(factor) * erfcx(size)` for `size` from 0."""
    t = 2 / (size + 2)
    return build.exp(_polynomial(_ERFCX, t * 2 - 1) + factor) * t


@_special("erfc.default", "special_erfc.default")
def erfc(x: Array) -> Array:
    """`1 - erf(x)`."""
    found = _erfcx_of(abs(x), -(x * x))
    return build.where(x < 0, 2 - found, found)


@_special("special_erfcx.default")
def erfcx(x: Array) -> Array:
    """`exp(x^2) erfc(x)`."""
    found = _erfcx_of(abs(x), 0)
    return build.where(x < 0, build.exp(x * x) * 2 - found, found)


@_special("erfinv.default", "special_erfinv.default")
def erfinv(x: Array) -> Array:
    """The inverse of erf: M. Giles's approximation (2010), and two steps of Newton's method."""
    w = -build.log((1 - x) * (x + 1))
    near = (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
            3.43273939e-07, 2.81022636e-08)  # fmt: skip
    far = (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
           0.000100950558, -0.000200214257)  # fmt: skip
    y = build.where(w < 5, _polynomial(near, w - 2.5), _polynomial(far, build.sqrt(w) - 3)) * x
    for _ in range(2):
        y = y - (build.map("erf", y) - x) * build.exp(y * y) * (math.sqrt(math.pi) / 2)
    return build.where(abs(x) < 1, y, build.where(abs(x) == 1, build.map("copysign", math.inf, x), math.nan))


_SHIFT = 8
"""Numbers below this are shifted up, to where the series of Stirling are exact to f32."""


@_special("lgamma.default", "special_gammaln.default")
def lgamma(x: Array) -> Array:
    """The logarithm of the size of the gamma function: Stirling's series, and the reflection for negative numbers."""
    z = build.where(x < 0.5, 1 - x, x)
    product = z
    for k in range(1, _SHIFT):
        product = product * (z + k)
    is_small = z < _SHIFT
    big = build.where(is_small, z + _SHIFT, z)
    square = 1 / (big * big)
    series = _polynomial((1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156), square) / big
    found = (big - 0.5) * build.log(big) - big + (series + math.log(2 * math.pi) / 2)
    found = found - build.where(is_small, build.log(product), 0)
    found = build.where(z == math.inf, math.inf, build.where((z == 1) | (z == 2), 0, found))
    reflected = math.log(math.pi) - build.log(abs(build.map("sin", _fraction(x) * math.pi))) - found
    reflected = build.where(build.map("floor", x) == x, math.inf, reflected)
    return build.where(x < 0.5, build.where(x == -math.inf, math.inf, reflected), found)


def _fraction(x: Array) -> Array:
    """The distance from the nearest whole number, with which the sine of `pi * x` is exact."""
    return x - build.map("roundeven", x)


@_special("digamma.default", "special_digamma.default", "special_psi.default")
def digamma(x: Array) -> Array:
    """The derivative of the logarithm of the gamma function, by its asymptotic series and reflection."""
    z = build.where(x < 0.5, 1 - x, x)
    total = 1 / z
    for k in range(1, _SHIFT):
        total = total + 1 / (z + k)
    is_small = z < _SHIFT
    big = build.where(is_small, z + _SHIFT, z)
    square = 1 / (big * big)
    series = _polynomial((1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12), square) * square
    found = build.log(big) - 0.5 / big - series - build.where(is_small, total, 0)
    angle = _fraction(x) * math.pi
    reflected = found - build.map("cos", angle) / build.map("sin", angle) * math.pi
    reflected = build.where(build.map("floor", x) == x, math.nan, reflected)
    at_zero = build.map("copysign", math.inf, -x)
    return build.where(x == 0, at_zero, build.where(x < 0.5, reflected, found))


def _scaled_bessel(size: Array, near: Sequence[float], far: Sequence[float], factor: Array | None) -> Array:
    """A modified Bessel function times `exp(-size)`; the polynomial near 0 is multiplied by `factor`."""
    close = _polynomial(near, build.minimum(size, 8) * 0.25 - 1)
    distant = _polynomial(far, 16 / build.maximum(size, 8) - 1) / build.sqrt(size)
    return build.where(size <= 8, close if factor is None else close * factor, distant)


@_special("special_i0e.default")
def i0e(x: Array) -> Array:
    """`exp(-|x|) I0(x)`."""
    return _scaled_bessel(abs(x), _I0_NEAR, _I0_FAR, None)


@_special("i0.default", "special_i0.default", "special_modified_bessel_i0.default")
def i0(x: Array) -> Array:
    """The modified Bessel function of the first kind of order 0."""
    return i0e(x) * build.exp(abs(x))


@_special("special_i1e.default")
def i1e(x: Array) -> Array:
    """`exp(-|x|) I1(x)`."""
    size = abs(x)
    return build.map("copysign", _scaled_bessel(size, _I1_NEAR, _I1_FAR, size), x)


@_special("special_i1.default", "special_modified_bessel_i1.default")
def i1(x: Array) -> Array:
    """The modified Bessel function of the first kind of order 1."""
    return i1e(x) * build.exp(abs(x))
