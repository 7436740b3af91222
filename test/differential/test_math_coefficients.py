"""The coefficients of the inlined math functions, derived once more: this is how they were made."""

from __future__ import annotations

from typing import Any

import pytest

from differential.math_fit import PRECISION, Fit, round_to, rounded_denominator, rounded_minimax
from pdojo.math.recipes import coefficients

mpmath: Any = pytest.importorskip("mpmath", reason="the derivation of coefficients needs mpmath")
mp: Any = mpmath.mp.clone()
mp.prec = PRECISION


def fits(dtype: str) -> dict[str, Fit]:
    """What the tables of one format approximate."""
    mantissa = 24 if dtype == "f32" else 53
    ln2, half_pi = mp.log(2), mp.pi / 2
    # A little more than the reduction leaves.
    r = ln2 / 2 * mp.mpf("1.0005")
    f = mp.sqrt(2) / 2 - 1 - mp.mpf("1e-7"), mp.sqrt(2) - 1 + mp.mpf("1e-7")
    angles = mp.mpf("1e-12"), (half_pi / 2 * mp.mpf("1.0001")) ** 2
    slopes = mp.mpf("1e-12"), (mp.tan(mp.pi / 8) * mp.mpf("1.0001")) ** 2
    log2_e = round_to(1 / ln2, mantissa, mp)
    log2_e += round_to(1 / ln2 - log2_e, mantissa, mp)
    log2_e_f64 = round_to(1 / ln2, 53, mp)
    split = mp.mpf(coefficients.ERF_SPLIT[dtype])
    end = mp.mpf("3.95") if dtype == "f32" else mp.mpf("5.95")

    def exp_rest(x: Any) -> Any:
        return (mp.expm1(x) - x) / x**2

    def exp2_rest(x: Any) -> Any:
        return mp.expm1(x * ln2) / x

    def exp2_weight(x: Any) -> Any:
        return abs(x) / mp.exp(x * ln2)

    def log2_weight(x: Any) -> Any:
        return x**2 * ln2 / abs(mp.log1p(x))

    def odd(function: Any) -> Any:
        def rest(t: Any) -> Any:
            return function(mp.sqrt(t)) / mp.sqrt(t) - 1

        return rest

    def erf_weight(t: Any) -> Any:
        return mp.sqrt(t) / mp.erf(mp.sqrt(t))

    common = {
        "EXP": Fit(exp_rest, lambda x: x**2 / mp.exp(x), -r, r, (), mantissa),
        "EXPM1": Fit(exp_rest, lambda x: x**2 / abs(mp.expm1(x)), -r, r, (), mantissa),
        "EXP2": Fit(exp2_rest, exp2_weight, -0.5, 0.5, (), mantissa),
        "LOG": Fit(lambda x: (mp.log1p(x) - x) / x**2, lambda x: x**2 / abs(mp.log1p(x)), *f, (-0.5,), mantissa),
        "LOG2": Fit(lambda x: (mp.log1p(x) / ln2 - log2_e * x) / x**2, log2_weight, *f, (), mantissa),
        "ATAN": Fit(
            lambda t: odd(mp.atan)(t) / t, lambda t: t * mp.sqrt(t) / mp.atan(mp.sqrt(t)), *slopes, (), mantissa
        ),
        "ERF_SMALL": Fit(odd(mp.erf), erf_weight, mp.mpf("1e-12"), split**2, (), mantissa),
        "ERF_LARGE": Fit(
            lambda x: mp.log(mp.erfc(x + split)),
            lambda x: mp.erfc(x + split) / mp.erf(x + split),
            mp.mpf(0),
            end - split,
            (),
            mantissa,
        ),
        # The f32 sine and cosine are computed in f64.
        "SIN": Fit(lambda t: odd(mp.sin)(t) / t, lambda t: t * mp.sqrt(t) / mp.sin(mp.sqrt(t)), *angles),
        "COS": Fit(lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, lambda t: t**2 / mp.cos(mp.sqrt(t)), *angles),
    }
    if dtype == "f32":
        return (
            common
            | quotients()
            | {
                "EXP_APPROX": Fit(lambda x: mp.expm1(x) / x, lambda x: abs(x) / mp.exp(x), -r, r, (), mantissa),
                "POW_LOG2": Fit(lambda x: (mp.log1p(x) / ln2 - log2_e_f64 * x) / x**2, log2_weight, *f),
                "POW_EXP2": Fit(exp2_rest, exp2_weight, -0.5, 0.5),
            }
        )
    s = (3 - 2 * mp.sqrt(2)) * mp.mpf("1.0001")
    return common | {
        "POW_ATANH": Fit(lambda t: (odd(mp.atanh)(t) - t / 3) / t**2, lambda t: t**2, mp.mpf("1e-10"), s**2)
    }


def quotients() -> dict[str, Fit]:
    """The approximations of quotients by two polynomials; a fit of a numerator takes the denominator from its table."""

    def half_tanh(x: Any) -> Any:
        return mp.tanh(x / 2)

    def half_erf(x: Any) -> Any:
        y = mp.erf(x)
        return y / (1 + mp.sqrt(mp.erfc(x) * (1 + y)))

    def fits_of(name: str, half: Any, end: str, first: float) -> dict[str, Fit]:
        below: tuple[float, ...] = getattr(coefficients, f"{name}_DENOMINATOR")["f32"]

        def function(t: Any) -> Any:
            return half(mp.sqrt(t)) / mp.sqrt(t)

        def weight(t: Any) -> Any:
            y = half(mp.sqrt(t))
            return (1 - y**2) / (1 + y**2) / function(t)

        def denominator(t: Any) -> Any:
            return sum(mp.mpf(c) * t**k for k, c in enumerate(below))

        low, high = mp.mpf("1e-12"), mp.mpf(end) ** 2
        return {
            f"{name}_DENOMINATOR": Fit(function, weight, low, high, (first,), 24),
            f"{name}_NUMERATOR": Fit(
                lambda t: function(t) * denominator(t), lambda t: weight(t) / denominator(t), low, high, (), 24
            ),
        }

    return fits_of("TANH", half_tanh, "8.8", 1.834) | fits_of("ERF", half_erf, "3.8", 1.69)


TABLES = [
    (name, dtype)
    for name, tables in vars(coefficients).items()
    if isinstance(tables, dict) and name.isupper() and name != "ERF_SPLIT"
    for dtype in ("f32", "f64")
    if dtype in tables
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), TABLES)
def test_derivation(name: str, dtype: str) -> None:
    table: tuple[float, ...] = getattr(coefficients, name)[dtype]
    assert tuple(derived(name, dtype, len(table) - 1)) == table


def derived(name: str, dtype: str, degree: int) -> list[float]:
    """The coefficients of a table."""
    fit = fits(dtype)[name]
    if not name.endswith("_DENOMINATOR"):
        return rounded_minimax(fit, degree, mp)
    numerator: tuple[float, ...] = getattr(coefficients, name.replace("DENOMINATOR", "NUMERATOR"))[dtype]
    return rounded_denominator(fit, len(numerator) - 1, degree, mp)


def test_two_over_pi() -> None:
    with mp.workprec(2000):
        exact = mp.floor(mp.ldexp(2 / mp.pi, coefficients.TWO_OVER_PI_BITS))
        assert int(exact) == coefficients.TWO_OVER_PI
