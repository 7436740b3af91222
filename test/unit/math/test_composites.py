"""Composite functions: exact results within the stated errors, in all types they compute in; one home of each name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo import build
from pdojo.dialect.notation.spelling import CALLS
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import UsageError
from pdojo.math.composites import COMPOSITES
from pdojo.math.composites.record import Composite
from pdojo.math.composites.samples import samples
from qa.math_page import PAGE, with_table

pytest.importorskip("mpmath", reason="exact values of special functions need mpmath")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero

Values = NDArray[Any]
FLOATS = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
INTEGERS = {"i8": np.dtype(np.int8), "i32": np.dtype(np.int32), "u8": np.dtype(np.uint8)}
CASES = [(record, variant) for record in COMPOSITES.values() for variant in record.variants]
ROUNDINGS = 2.0
"""Units in the last place by which references of f64 may be wrong."""


def run(record: Composite, dtype: str, arrays: list[Values], variant: dict[str, Any]) -> Values:
    """The results of the function, by the reference interpreter, as the memory of the kernel has them."""
    handles = [build.input(f"x{k}", dtype, array.shape) for k, array in enumerate(arrays)]
    kernel = build.kernel("made", handles, [build.map(record.name, *handles, **variant)])
    names = [name.data for name in kernel.arg_names]
    memory = [array.view(np.int8) if array.dtype == np.uint8 else array for array in arrays]
    return interpret(kernel, dict(zip(names, memory, strict=False)))[names[-1]]


def units(exact: Values, dtype: np.dtype[Any]) -> Values:
    """The distance of numbers of a format near the exact results, which are finite."""
    info = np.finfo(dtype)
    exponents = np.frexp(exact)[1] - 1
    return np.ldexp(1.0, np.where(exact == 0, info.minexp, np.maximum(exponents, info.minexp)) - info.nmant)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("record", "variant"), CASES, ids=lambda each: getattr(each, "name", str(each)))
def test_results_are_within_the_stated_error(record: Composite, variant: dict[str, Any], dtype: str) -> None:
    kind = FLOATS[dtype]
    arrays = samples(record, kind)
    if record.computing(dtype) is None:
        with pytest.raises(UsageError, match="f16, bf16 and f32, not f64"):
            run(record, dtype, arrays, variant)
        return
    found = run(record, dtype, arrays, variant)
    if not record.accuracy.ulps:
        wanted = record.exact(*arrays, **variant)
        assert found.dtype == wanted.dtype or wanted.dtype == np.bool_
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
        return
    exact = record.exact(*[array.astype(np.float64) for array in arrays], **variant)
    rounded = exact.astype(kind)
    odd = ~np.isfinite(rounded)
    np.testing.assert_array_equal(found[odd], rounded[odd])
    at_zero = np.logical_or.reduce([array == 0 for array in arrays]) & (exact == 0)
    np.testing.assert_array_equal(np.signbit(found[at_zero]), np.signbit(exact[at_zero]))
    error = np.abs(found[~odd].astype(np.float64) - exact[~odd])
    ulps = record.accuracy.ulps + (ROUNDINGS if dtype == "f64" else 0)
    bound = ulps * units(exact[~odd], kind) + record.accuracy.beside * np.finfo(kind).eps
    worst = int(np.argmax(error - bound))
    assert error[worst] <= bound[worst], [float(array[~odd][worst]) for array in arrays]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("record", [record for record in COMPOSITES.values() if record.integers], ids=lambda r: r.name)
def test_functions_of_integers(record: Composite, dtype: str) -> None:
    arrays = samples(record, INTEGERS[dtype])
    found = run(record, dtype, arrays, {})
    np.testing.assert_array_equal(found.view(INTEGERS[dtype]), record.exact(*arrays))


def test_a_name_has_one_meaning() -> None:
    assert not set(COMPOSITES) & set(CALLS)
    assert all(record.summary for record in COMPOSITES.values())


def test_the_page_shows_the_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "python -m qa.math_page"
