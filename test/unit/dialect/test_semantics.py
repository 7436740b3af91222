"""The meaning of leaf functions: rounding, special values, wrap-around, and the types they come out in."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pdojo.dialect.functions import ACCUMULATIONS, DTYPES, accumulates, check_types, identity_value, is_float
from pdojo.dialect.semantics.accumulate import Accumulator
from pdojo.dialect.semantics.functions import apply, constant
from pdojo.dialect.semantics.rounding import CARRIERS, Values, fma, from_interface, round_float64, to_interface
from pdojo.math.functions import FUNCTIONS

INF, NAN = math.inf, math.nan


def samples(dtype: str) -> Values:
    if dtype == "i1":
        return np.array([True, False, True, False])
    if is_float(dtype):
        return round_float64(np.array([1.5, -0.0, -2.25, 0.75]), dtype)
    return np.array([3, 0, -2, 5], CARRIERS[dtype])


def typed() -> list[tuple[str, tuple[str, ...], str]]:
    """Every function with every types that it takes."""
    found: list[tuple[str, tuple[str, ...], str]] = []
    for name, spec in FUNCTIONS.items():
        for operand in DTYPES:
            operands = ("i1", operand, operand) if name == "arith.select" else (operand,) * spec.arity
            found += [(name, operands, r) for r in DTYPES if check_types(name, operands, r) is None]
    return found


@pytest.mark.parametrize(("name", "operands", "result"), typed())
def test_every_function_has_a_meaning_for_all_its_types(name: str, operands: tuple[str, ...], result: str) -> None:
    values = apply(name, [samples(d) for d in operands], operands, result)
    assert values.dtype == CARRIERS[result]
    assert values.shape == (4,)
    if result == "bf16":
        again = from_interface(to_interface(values, "bf16"), "bf16")
        np.testing.assert_array_equal(again, values)
    one = apply(name, [samples(d)[1:2] for d in operands], operands, result)
    np.testing.assert_array_equal(one, values[1:2])


def scalar(name: str, result: str, *operands: float, dtype: str | None = None) -> float | int | bool:
    kind = dtype or result
    return apply(name, [constant(o, kind).reshape(1) for o in operands], [kind] * len(operands), result)[0].item()


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_maximum_and_minimum_propagate_nan_and_order_zeros(dtype: str) -> None:
    assert math.isnan(scalar("arith.maximumf", dtype, NAN, 1))
    assert math.isnan(scalar("arith.minimumf", dtype, 1, NAN))
    assert scalar("arith.maxnumf", dtype, NAN, 1) == 1
    assert scalar("arith.minnumf", dtype, 1, NAN) == 1
    assert math.isnan(scalar("arith.maxnumf", dtype, NAN, NAN))
    for a, b in ((0.0, -0.0), (-0.0, 0.0)):
        for kind in ("imum", "num"):
            assert math.copysign(1, scalar(f"arith.max{kind}f", dtype, a, b)) == 1
            assert math.copysign(1, scalar(f"arith.min{kind}f", dtype, a, b)) == -1
    assert math.copysign(1, scalar("arith.maximumf", dtype, -0.0, -5)) == -1
    assert math.copysign(1, scalar("arith.minimumf", dtype, 0.0, 5)) == 1


def test_integers_wrap_around() -> None:
    assert scalar("arith.addi", "i8", 127, 1) == -128
    assert scalar("arith.muli", "i32", 1 << 20, 1 << 20) == 0
    assert scalar("arith.subi", "i64", -(1 << 63), 1) == (1 << 63) - 1
    assert scalar("math.absi", "i16", -(1 << 15)) == -(1 << 15)
    assert scalar("arith.addi", "i1", 1, 1) is False


def test_unsigned_functions_look_at_the_bits() -> None:
    assert scalar("arith.maxui", "i8", -1, 1) == -1
    assert scalar("arith.minui", "i8", -1, 1) == 1
    assert scalar("arith.divui", "i8", -1, 2) == 127
    assert scalar("arith.shrui", "i8", -1, 7) == 1
    assert scalar("arith.shrsi", "i8", -128, 7) == -1
    assert scalar("arith.cmpi.ult", "i1", 1, -1, dtype="i8") is True
    assert scalar("arith.cmpi.slt", "i1", 1, -1, dtype="i8") is False
    assert scalar("arith.uitofp", "f32", -1, dtype="i8") == 255
    assert scalar("arith.uitofp", "f64", -1, dtype="i1") == 1
    assert scalar("arith.sitofp", "f64", -1, dtype="i1") == -1
    assert scalar("arith.extui", "i32", -1, dtype="i1") == 1
    assert scalar("arith.extsi", "i32", -1, dtype="i1") == -1


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)])
def test_division_rounds_as_named(a: int, b: int) -> None:
    assert scalar("arith.divsi", "i32", a, b) == int(a / b)
    assert scalar("arith.remsi", "i32", a, b) == a - b * int(a / b)
    assert scalar("arith.floordivsi", "i32", a, b) == a // b


def test_undefined_results_are_fixed() -> None:
    for name in ("divsi", "divui", "floordivsi"):
        assert scalar(f"arith.{name}", "i32", 5, 0) == 0
    assert scalar("arith.remsi", "i32", 5, 0) == 5
    assert scalar("arith.divsi", "i32", -(1 << 31), -1) == -(1 << 31)
    assert scalar("arith.remsi", "i32", -(1 << 31), -1) == 0
    assert scalar("arith.shli", "i32", 1, 32) == 0
    assert scalar("arith.shrsi", "i32", -5, 40) == -1
    assert scalar("arith.fptosi", "i8", 300.0, dtype="f32") == 127
    assert scalar("arith.fptosi", "i64", -INF, dtype="f32") == -(1 << 63)
    assert scalar("arith.fptosi", "i32", NAN, dtype="f32") == 0
    assert scalar("arith.fptoui", "i8", -3.0, dtype="f32") == 0
    assert scalar("arith.fptoui", "i8", 255.9, dtype="f32") == -1


def test_comparisons_with_nan() -> None:
    for predicate in ("oeq", "ogt", "oge", "olt", "ole", "one", "ord"):
        assert scalar(f"arith.cmpf.{predicate}", "i1", NAN, 1, dtype="f32") is False
    for predicate in ("ueq", "ugt", "uge", "ult", "ule", "une", "uno"):
        assert scalar(f"arith.cmpf.{predicate}", "i1", NAN, 1, dtype="f32") is True
    assert scalar("arith.cmpf.one", "i1", 2, 1, dtype="f32") is True
    assert scalar("arith.cmpf.ueq", "i1", 2, 1, dtype="f32") is False


def nearest(value: Fraction, digits: int) -> Fraction:
    """`value` rounded to that many binary digits, ties to even; the range of exponents is unbounded."""
    if not value:
        return value
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - digits + 1)
    return round(value / unit) * unit


DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


@pytest.mark.parametrize("dtype", DIGITS)
def test_fma_rounds_once(dtype: str) -> None:
    random = np.random.default_rng(7)
    for _ in range(300):
        a, b = (round_float64(random.standard_normal(1), dtype) for _ in range(2))
        scale = 2.0 ** random.integers(-30 if dtype != "f16" else -8, 4)
        # Near the negated product, everything cancels but the rounding error.
        near = -(a.astype(np.float64) * b) if random.random() < 0.5 else scale * random.standard_normal(1)
        c = round_float64(near, dtype)
        exact = Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(c[0]))
        if abs(exact) >= 2.0**-14 or dtype not in ("f16",):
            assert Fraction(float(fma(a, b, c, dtype)[0])) == nearest(exact, DIGITS[dtype])


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
def test_special_values_of_fma(dtype: str) -> None:
    assert scalar("math.fma", dtype, INF, 1, 1) == INF
    assert math.isnan(scalar("math.fma", dtype, INF, 0, 1))
    assert math.isnan(scalar("math.fma", dtype, INF, 1, -INF))
    assert math.copysign(1, scalar("math.fma", dtype, -0.0, 1, -0.0)) == -1
    assert scalar("math.fma", dtype, 1, 2, 0) == 2


@pytest.mark.parametrize("dtype", DIGITS)
def test_fused_differences_round_once(dtype: str) -> None:
    random = np.random.default_rng(8)
    for _ in range(100):
        a, b, c = (float(round_float64(random.standard_normal(1), dtype)[0]) for _ in range(3))
        assert scalar("math.fms", dtype, a, b, c) == scalar("math.fma", dtype, a, b, -c)
        assert scalar("math.fnma", dtype, a, b, c) == scalar("math.fma", dtype, -a, b, c)
    # What is subtracted from itself is +0; a zero minus +0 has the zero's sign.
    assert math.copysign(1, scalar("math.fnma", dtype, 1, 0, -0.0)) == -1
    assert math.copysign(1, scalar("math.fnma", dtype, 1, 2, 2)) == 1
    assert math.isnan(scalar("math.fms", dtype, INF, 1, INF))


def test_bfloat16_rounds_to_nearest_even_and_once() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate(
        [random.standard_normal(500) * 10.0 ** random.integers(-30, 30, 500), [1 + 2**-8 + 2.0**-40]]
    )
    for value, rounded in zip(values, round_float64(values, "bf16"), strict=True):
        assert Fraction(float(rounded)) == nearest(Fraction(value), 8)
    assert round_float64(np.array([3.4e38, 1e300, -INF, NAN]), "bf16")[:3].tolist() == [INF, INF, -INF]
    for integer in ((1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 54), -(1 << 62) - (1 << 54) - 1):
        got = apply("arith.sitofp", [np.array([integer])], ["i64"], "bf16")[0]
        assert Fraction(float(got)) == nearest(Fraction(integer), 8)


def test_a_bfloat16_nan_stays_one() -> None:
    quiet = np.array([0x7FC0, 0xFF80, 0x7F81], np.uint16)
    back = from_interface(quiet, "bf16")
    assert np.isnan(back).tolist() == [True, False, True]
    assert np.isnan(from_interface(to_interface(back, "bf16"), "bf16")).tolist() == [True, False, True]


def test_bitcasts_keep_the_bits() -> None:
    assert scalar("arith.bitcast", "i32", 1.0, dtype="f32") == 0x3F800000
    assert scalar("arith.bitcast", "i16", 1.0, dtype="bf16") == 0x3F80
    assert scalar("arith.bitcast", "bf16", 0x3F80, dtype="i16") == 1.0
    assert scalar("arith.bitcast", "f16", 0x3C00, dtype="i16") == 1.0
    assert scalar("arith.bitcast", "f16", 1.0, dtype="bf16") == np.array([0x3F80], np.uint16).view(np.float16)[0]


@pytest.mark.parametrize(("function", "dtype"), [(f, d) for f in ACCUMULATIONS for d in DTYPES if accumulates(f, d)])
def test_reductions_scatters_and_steps_agree(function: str, dtype: str) -> None:
    random = np.random.default_rng(5)
    integers = random.integers(-2, 3, (4, 6))
    values = integers.astype(bool) if dtype == "i1" else integers.astype(CARRIERS[dtype])
    accumulator = Accumulator(function, dtype)
    stepwise = constant(identity_value(function, dtype), dtype).reshape(1)
    for value in values.ravel():
        stepwise = accumulator.combine(stepwise, (value.reshape(1),))
    start = constant(identity_value(function, dtype), dtype).reshape(1)
    whole = accumulator.accumulate(start[0], (values,), (0, 1))
    rows = accumulator.accumulate(start, (accumulator.accumulate(np.repeat(start, 4), (values,), (1,)),), (0,))
    flat = np.repeat(start, 3)
    accumulator.scatter(flat, np.ones(24, np.int64), (values.ravel(),))
    assert whole == stepwise[0]
    assert rows == stepwise[0]
    assert flat[1] == stepwise[0]
    np.testing.assert_array_equal(flat[[0, 2]], start.repeat(2))


def test_an_extremum_of_zeros_has_the_right_sign() -> None:
    zeros = np.array([[-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]])
    low, high = np.full(3, -INF), np.full(3, INF)
    assert np.signbit(Accumulator("arith.maximumf", "f64").accumulate(low, (zeros,), (1,))).tolist() == [
        False,
        True,
        False,
    ]
    assert np.signbit(Accumulator("arith.minimumf", "f64").accumulate(high, (zeros,), (1,))).tolist() == [
        True,
        True,
        False,
    ]
