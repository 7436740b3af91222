"""Element types of arrays together: the table of the array API standard, for operators and NumPy's functions only."""

from __future__ import annotations

from inspect import signature
from itertools import combinations, count, permutations, product
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.build.arguments import listed
from pdojo.build.numbers import common_type
from pdojo.build.operator import Input
from pdojo.build.records import OPERATORS
from pdojo.dialect.notation import print_notation
from pdojo.errors import UsageError
from unit.build.references import NUMPY, Values, random, run

FLOATS = ("f64", "f32", "f16", "bf16")
PAIRS = [pair[:: 1 - 2 * (k % 2)] for k, pair in enumerate(combinations((name for name in NUMPY if name != "i1"), 2))]
"""Types of two operands, in either order."""


def common(*kinds: str) -> str | None:
    try:
        return common_type("it", kinds)
    except UsageError:
        return None


def test_the_table_is_that_of_numpy() -> None:
    for one, other in product(NUMPY, NUMPY):
        wanted = np.promote_types(NUMPY[one], NUMPY[other])
        is_open = "i1" not in (one, other) and wanted.kind == "f" and (one not in FLOATS or other not in FLOATS)
        found = common(one, other)
        assert (found is None) == is_open
        assert found is None or np.dtype(NUMPY[found]) == wanted


def test_floats_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    types: dict[str, Any] = dict(
        zip(FLOATS, (torch.float64, torch.float32, torch.float16, torch.bfloat16), strict=True)
    )
    for one, other in product(FLOATS, FLOATS):
        assert types[str(common(one, other))] == torch.promote_types(types[one], types[other])


def test_the_order_of_types_does_not_matter() -> None:
    for kinds in product((*NUMPY, "bf16"), repeat=3):
        assert len({common(*order) for order in permutations(kinds)}) == 1
        first = common(*kinds[:2])
        if first is not None and common(*kinds) is not None:
            assert common(first, kinds[2]) == common(*kinds)


EXPRESSIONS = """
x + y; y - x; x * y; x < y; y == x; np.maximum(x, y); np.where(x > y, x, y); np.concatenate([x, y], axis=None)
np.stack(np.broadcast_arrays(x, y)); y @ x.T; np.clip(x, y, y + 1); np.isclose(x, y); np.subtract.outer(y, x)
np.einsum("ij,j->i", x, y); np.select([x > 3, y > 2], [x, y], 1); np.logical_xor(x, y); np.append(y, x)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().replace("\n", "; ").split("; "))
def test_results_are_those_of_numpy(expression: str) -> None:
    for kinds in PAIRS:
        if common(*kinds) is None:
            continue
        rows = {"x": (kinds[0], (4, 5)), "y": (kinds[1], (5,))}
        values = {name: random(*row, seed) for seed, (name, row) in enumerate(rows.items())}
        handles = {name: build.input(name, *row) for name, row in rows.items()}
        with np.errstate(over="ignore"):
            wanted = np.asarray(eval(expression, {"np": np, **values}))
        made: build.Array = eval(expression, {"np": np, **handles})
        assert np.dtype(NUMPY[made.dtype]) == wanted.dtype
        found = run(made, [*handles.values()], [*values.values()])
        tolerance = 0 if wanted.dtype.kind != "f" else 8 * float(np.finfo(wanted.dtype).eps)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_numbers_are_weak() -> None:
    x: Any = build.input("x", "f16", (4,))
    i: Any = build.input("i", "u8", (4,))
    assert [(x + 2.5).dtype, (np.float64(2) * x).dtype, np.where(x > 0, x, 0.5).dtype] == ["f16"] * 3
    assert [(i + 200).dtype, np.maximum(i, 3).dtype, (i * np.int64(2)).dtype] == ["u8"] * 3


def test_bf16() -> None:
    x, h = build.input("x", "bf16", (3, 4)), build.input("h", "f16", (3, 4))
    assert (x + h).dtype == (x * build.input("y", "f32", (4,))).dtype == "f32"


def test_a_cast_is_one_statement_and_one_for_all_readers() -> None:
    x, y = build.input("x", "f32", (4, 8)), build.input("y", "f64", (4, 8))
    text = print_notation(build.kernel("mixed", [x, y], [(x + y) * x]))
    assert text.count("cast(") == 1
    j: Any = build.input("j", "i64", (8,))
    indices = build.kernel("indices", [j], [np.arange(8, dtype=np.int32) * j + build.iota((8,), "u8", start=200)])
    assert "cast" not in print_notation(indices)
    given = np.arange(-4, 4)
    assert np.array_equal(pdojo.run(indices, given), np.arange(8) * given + np.arange(200, 208))


@pytest.mark.parametrize("name", OPERATORS)
def test_functions_by_name_do_not_promote(name: str) -> None:
    """A float array of another type beside the first array is refused, or cast to the type of the computation."""
    record = OPERATORS[name]
    for sample in record.samples:
        given: list[Input] = []
        sample.filled(given.append)
        if "f32" not in (sample.types or record.types):
            continue
        plain = types_of(name, sample, ["f32"] * len(given))
        for place in range(1, len(given)):
            if (given[place].dtype or "f32") == "f32" and plain:
                found = types_of(name, sample, ["f64" if k == place else "f32" for k in range(len(given))])
                assert found in (None, plain)


def constants(values: Values, dtype: str) -> build.Array:
    """A constant input for numbers that are no table."""
    return build.input("numbers", dtype, values.shape)


def types_of(name: str, sample: Any, kinds: list[str]) -> list[str] | None:
    """The element types of the results of a call, whose arrays without type are of `kinds`; None if it is refused."""
    number = count()

    def made(given: Input) -> build.Array:
        place = next(number)
        kind = given.dtype if given.dtype not in (None, "f32") else kinds[place]
        return build.input(f"x{place}", kind, given.shape)

    arguments, keywords = sample.filled(made)
    if "constants" in signature(OPERATORS[name].build).parameters:
        keywords["constants"] = constants
    try:
        return [each.dtype for each in listed(OPERATORS[name].build(*arguments, **keywords))]
    except UsageError:
        return None
