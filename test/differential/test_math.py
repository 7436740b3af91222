"""Inlined math: errors within the stated bounds, the special values of IEEE 754, scalar code equal to vector code."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from xdsl.builder import Builder
from xdsl.dialects.builtin import Float16Type, f32, f64
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint

from differential.math_harness import ARITY, BOUNDS, Array, compiled, ulp_errors
from differential.math_references import erf_series, f32_patterns, f64_arguments, powers, specials
from pdojo.backends.llvm.math import emit_math
from pdojo.dialect.semantics.functions import apply, constant
from pdojo.errors import LoweringError
from pdojo.math.functions import APPROXIMATIONS, FUNCTIONS
from pdojo.math.values import FORMATS, Real, Values

LANES = {"f32": 16, "f64": 8}
DTYPES: dict[str, np.dtype[Any]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
UNARY_NAMES = sorted(set(BOUNDS) - set(ARITY))

ZERO_BELOW = 2.0**-125
"""Results of shorter forms may be 0 if they are less."""

needs_wide_reference = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="f64 results need numpy.longdouble to be wider than f64"
)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


def exact(function: str, x: Array) -> Array:
    """The function in the format of `x`, which is wider than the one under test."""
    if FUNCTIONS[function].denotes != "math.erf":
        meaning = FUNCTIONS[function].numpy
        assert meaning is not None
        return meaning()(x)
    return erf_series(x) if x.dtype == np.longdouble else compiled("math.erf", "f64", 8)(x)


def f32_errors(function: str, result: Array, x: Array) -> Array:
    """The errors in ulp; a shorter form may be 0 where it is small and positive."""
    wanted = exact(function, x.astype(np.float64))
    errors = ulp_errors(result, wanted)
    if FUNCTIONS[function].approximates is not None:
        errors[(result == 0) & (wanted > 0) & (wanted < ZERO_BELOW)] = 0
    return errors


def worst_f32(function: str, stride: int) -> tuple[float, float]:
    """(greatest error, where) over every `stride`-th f32 number."""
    apply = compiled(function, "f32", 16)
    worst = (0.0, 0.0)
    for x in f32_patterns(stride):
        errors = f32_errors(function, apply(x), x)
        at = int(np.argmax(errors))
        worst = max(worst, (float(errors[at]), float(x[at])))
    return worst


@pytest.mark.parametrize("function", UNARY_NAMES)
def test_f32_within_bound(function: str) -> None:
    error, at = worst_f32(function, 499)
    assert error <= BOUNDS[function].f32, f"{function}({at!r})"


@pytest.mark.slow
@pytest.mark.parametrize("function", UNARY_NAMES)
def test_f32_within_bound_everywhere(function: str) -> None:
    error, at = worst_f32(function, 1)
    assert error <= BOUNDS[function].f32, f"{function}({at!r})"


@needs_wide_reference
@pytest.mark.parametrize("function", [name for name in UNARY_NAMES if FUNCTIONS[name].approximates is None])
def test_f64_within_bound(function: str) -> None:
    x = f64_arguments(seed=7)
    errors = ulp_errors(compiled(function, "f64", 8)(x), exact(function, x.astype(np.longdouble)))
    at = int(np.argmax(errors))
    assert errors[at] <= BOUNDS[function].f64, f"{function}({float(x[at])!r})"


@pytest.mark.parametrize("dtype", ["f32", pytest.param("f64", marks=needs_wide_reference)])
def test_power_within_bound(dtype: str) -> None:
    wide = np.dtype(np.float64) if dtype == "f32" else np.dtype(np.longdouble)
    x, y = powers(DTYPES[dtype], seed=5, count=300_000 if dtype == "f32" else 50_000)
    errors = ulp_errors(compiled("math.powf", dtype, LANES[dtype])(x, y), np.power(x.astype(wide), y.astype(wide)))
    at = int(np.argmax(errors))
    assert errors[at] <= getattr(BOUNDS["math.powf"], dtype), f"{float(x[at])!r} ** {float(y[at])!r}"


SPECIAL_VALUES = {
    "math.exp": [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan)],
    "math.exp2": [(0.0, 1.0), (3.0, 8.0), (-1.0, 0.5), (inf, inf), (-inf, 0.0), (nan, nan)],
    "math.expm1": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0), (nan, nan)],
    "math.log": [(1.0, 0.0), (0.0, -inf), (-0.0, -inf), (inf, inf), (-1.0, nan), (-inf, nan), (nan, nan)],
    "math.log2": [(1.0, 0.0), (8.0, 3.0), (0.0, -inf), (-0.0, -inf), (inf, inf), (-1.0, nan), (-inf, nan), (nan, nan)],
    "math.log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (inf, inf), (-2.0, nan), (-inf, nan), (nan, nan)],
    "math.atan": [(0.0, 0.0), (-0.0, -0.0), (inf, np.pi / 2), (-inf, -np.pi / 2), (nan, nan)],
    "math.tanh": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan)],
    "math.erf": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan)],
    "math.sin": [(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)],
    "math.cos": [(0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (nan, nan)],
    "math.rsqrt": [(0.0, inf), (-0.0, -inf), (4.0, 0.5), (inf, 0.0), (-1.0, nan), (-inf, nan), (nan, nan)],
}
"""(argument, result): exact in every format; shorter forms have those of their functions."""
SPECIAL_VALUES.update({short: SPECIAL_VALUES[function] for function, short in APPROXIMATIONS.items()})


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("function", UNARY_NAMES)
def test_special_values(function: str, dtype: str) -> None:
    given, expected = (np.array(column, DTYPES[dtype]) for column in zip(*SPECIAL_VALUES[function], strict=True))
    np.testing.assert_array_equal(_bits(compiled(function, dtype, 4)(given)), _bits(expected))


def test_shorter_exp_at_the_ends_of_the_range() -> None:
    """The greatest argument with a finite result, the least one with a result that is not 0, and their neighbours."""
    apply = compiled("math.exp_approx", "f32", 8)
    last, first = np.float32(88.72283), np.float32(-125.5 * np.log(2))
    x = np.array([last, np.nextafter(last, np.float32(inf)), first + np.float32(1e-4), first - np.float32(1e-4)])
    finite, infinite, normal, zero = apply(x)
    assert np.isfinite(finite)
    assert infinite == inf
    assert np.finfo(np.float32).tiny < normal < ZERO_BELOW
    assert zero == 0


@pytest.mark.parametrize("function", ["math.tanh_approx", "math.erf_approx"])
def test_no_result_of_a_shorter_form_exceeds_one(function: str) -> None:
    x = np.arange(np.float32(2.5).view(np.uint32), np.float32(20).view(np.uint32), 5, dtype=np.uint32).view(np.float32)
    found = compiled(function, "f32", 16)(x)
    assert found.max() == 1
    assert np.all(found[x > 9] == 1)


@pytest.mark.parametrize("function", APPROXIMATIONS)
def test_in_f64_a_shorter_form_is_the_function(function: str) -> None:
    x = f64_arguments(seed=2, count=2_000)
    short, long = (_bits(compiled(name, "f64", 8)(x)) for name in (APPROXIMATIONS[function], function))
    np.testing.assert_array_equal(short, long)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_powers_of_special_values(dtype: str) -> None:
    """All pairs of special numbers, against NumPy's pow in f64, where f32 results are exact or out of range."""
    special = specials(DTYPES[dtype])
    x, y = special.repeat(len(special)), np.tile(special, len(special))
    with_nan_or_end = ~(np.isfinite(x) & np.isfinite(y)) | (x == 0) | (y == 0)
    x, y = x[with_nan_or_end], y[with_nan_or_end]
    expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(DTYPES[dtype])
    np.testing.assert_array_equal(_bits(compiled("math.powf", dtype, 4)(x, y)), _bits(expected))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("function", sorted(BOUNDS))
def test_scalar_code_equals_vector_code(function: str, dtype: str) -> None:
    operands = _mixed(function, dtype)
    scalar = _bits(compiled(function, dtype, 1)(*operands))
    for lanes in (4, 8, 16):
        np.testing.assert_array_equal(_bits(compiled(function, dtype, lanes)(*operands)), scalar)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("function", sorted(BOUNDS))
def test_optimisation_changes_no_bit(function: str, dtype: str) -> None:
    operands = _mixed(function, dtype)
    lanes = LANES[dtype]
    np.testing.assert_array_equal(
        _bits(compiled(function, dtype, lanes, "full")(*operands)), _bits(compiled(function, dtype, lanes)(*operands))
    )


class _Arrays(Values[Array]):
    """Recipes on NumPy arrays, by the reference interpreter's functions."""

    def new_constant(self, number: float, dtype: str) -> Array:
        return constant(number, dtype)

    def apply(self, function: str, operands: Sequence[Array], dtypes: Sequence[str], result: str) -> Array:
        return apply(function, operands, dtypes, result)

    def shift(self, function: str, value: Array, count: int, dtype: str) -> Array:
        return apply(function, (value, constant(count, dtype)), (dtype, dtype), dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("function", sorted(BOUNDS))
def test_a_recipe_gives_the_same_bits_on_arrays(function: str, dtype: str) -> None:
    operands = _mixed(function, dtype)
    if dtype == "f64":
        # The interpreter's `fma` rounds twice if a product of f64 underflows.
        normal = np.all([(np.abs(x) > 1e-290) | (x == 0) | np.isnan(x) for x in operands], axis=0)
        operands = tuple(x[normal] for x in operands)
    recipe, code = FUNCTIONS[function].recipe, _Arrays()
    assert recipe is not None
    found = recipe()(*(Real(code, FORMATS[dtype], x) for x in operands)).value
    np.testing.assert_array_equal(_bits(found), _bits(compiled(function, dtype, 1)(*operands)))


@pytest.mark.parametrize("kind", [Float16Type(), f32])
def test_unsupported_operands_are_refused(kind: Any) -> None:
    block = Block(arg_types=[kind, f64])
    builder = Builder(InsertPoint.at_end(block))
    function, operands = ("math.powf", block.args) if kind == f32 else ("math.exp", block.args[:1])
    with pytest.raises(LoweringError, match="is inlined for f32, f64 and vectors of them, not for"):
        emit_math(function, operands, builder)


def test_unknown_function_and_arity_are_refused() -> None:
    block = Block(arg_types=[f32, f32])
    builder = Builder(InsertPoint.at_end(block))
    with pytest.raises(LoweringError, match=r"'math\.asin' has no inlined code; there is code for .*math\.cos, "):
        emit_math("math.asin", block.args[:1], builder)
    with pytest.raises(LoweringError, match=r"'math\.exp' takes 1 operand, not 2"):
        emit_math("math.exp", block.args, builder)


def _mixed(function: str, dtype: str) -> tuple[Array, ...]:
    """Operands of all kinds."""
    if function in ARITY:
        return powers(DTYPES[dtype], seed=3, count=2_000)
    if dtype == "f64":
        return (f64_arguments(seed=3, count=3_000),)
    random = np.random.default_rng(3)
    patterns = random.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    near = random.uniform(-10, 10, 20_000).astype(np.float32)
    return (np.concatenate([patterns, near, specials(DTYPES[dtype])]),)


def _bits(x: Array) -> Array:
    """Bit patterns, with one for all nan: IEEE 754 leaves sign and payload open."""
    canonical = np.where(np.isnan(x), x.dtype.type(nan), x)
    return canonical.view(np.uint32 if x.dtype == np.float32 else np.uint64)
