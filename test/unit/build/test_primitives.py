"""Primitives against NumPy: odd shapes, broadcasting, negative axes, all element types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import CARRIERS
from unit.build.references import NUMPY, Values, random, run

Built: TypeAlias = Callable[[Sequence[Array]], Array]
Reference: TypeAlias = Callable[[Sequence[Values]], Any]
Spec: TypeAlias = str
"""Inputs: `f64 3 5, i32 5`."""


def inputs_of(spec: Spec) -> tuple[list[Array], list[Values]]:
    """Handles and random values of inputs."""
    handles: list[Array] = []
    values: list[Values] = []
    for number, text in enumerate(spec.split(",")):
        dtype, *extents = text.split()
        shape = tuple(map(int, extents))
        handles.append(build.input(f"x{number}", dtype, shape))
        values.append(random(dtype, shape, number))
    return handles, values


def check(spec: Spec, built: Built, reference: Reference, tolerance: float = 1e-12) -> None:
    """Compare a function of handles with one of NumPy: shape, type and elements."""
    handles, values = inputs_of(spec)
    result = built(handles)
    with np.errstate(all="ignore"):
        wanted = np.asarray(reference(values))
    found = run(result, handles, values)
    assert found.shape == result.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


ALIKE: dict[str, tuple[Spec, Callable[[Sequence[Any]], Any]]] = {
    "broadcast of both": ("f64 3 1 5, f64 4 1", lambda a: a[0] + a[1]),
    "of a scalar array": ("f64 3 5, f64", lambda a: a[0] * a[1]),
    "numbers on the left": ("f64 3 5", lambda a: 2 - 3 / (1 + a[0] * a[0])),
    "numbers of NumPy": ("f64 3 5", lambda a: np.float64(0.5) * a[0] + np.int32(2)),
    "product and sum": ("f64 3 5, f64 5, f64 3 1", lambda a: a[0] * a[1] + a[2]),
    "inverted": ("u8 9", lambda a: ~a[0]),
    "remainders of 0": ("f64 9, f64 9", lambda a: 1 / (a[0] * 0 % a[1])),
    "negated": ("f64 7", lambda a: -abs(-a[0])),
    "powers": ("f64 7", lambda a: (a[0] ** 2 - a[0] ** 3) * (a[0] * a[0] + 1) ** 0.5 + a[0] ** -1),
    "power of an array": ("f64 7, f64 7", lambda a: abs(a[0]) ** a[1]),
    "fourth power": ("i64 7", lambda a: a[0] ** 4 + a[0] ** 7 + a[0] ** 0),
    "floor division": ("f64 3 5, f64 5", lambda a: a[0] // a[1]),
    "remainder": ("f64 9 5, f64 5", lambda a: a[0] % a[1]),
    "remainder of a number": ("f64 9 5", lambda a: a[0] % 0.3 + a[0] % -0.3),
    "integers": ("i32 3 5, i32 5", lambda a: (a[0] - 7) * a[1] + (-a[0])),
    "integer floor division": ("i32 9 5, i32 9 5", lambda a: a[0] // (abs(a[1]) + 1) + a[0] // -(abs(a[1]) + 1)),
    "integer remainder": ("i32 9 5, i32 9 5", lambda a: a[0] % (abs(a[1]) + 1) - a[0] % -(abs(a[1]) + 1)),
    "bits": ("i16 9, i16 9", lambda a: (a[0] & a[1]) ^ (a[0] | 5) ^ ~a[1]),
    "shifts": ("i32 9", lambda a: (a[0] << 3) + (a[0] >> 2)),
    "unsigned": ("u8 9, u8 9", lambda a: (a[0] >> 2) + a[0] // (a[1] | 1) + a[0] % (a[1] | 1)),
    "i1": ("i1 9, i1 9", lambda a: ~(a[0] & a[1]) ^ (a[0] | a[1]) ^ (a[0] == a[1])),
    "half": ("f16 9, f16 9", lambda a: a[0] * a[1] + a[0]),
    "slices": ("f64 7 9", lambda a: a[0][1:-1:2, ::-1] + a[0][2:5, None, 0][..., 0:1]),
    "slices of slices": ("f64 9 9", lambda a: a[0][::-2][1:3, 8:2:-3] * 2),
    "ellipsis": ("f64 2 3 4", lambda a: a[0][..., 1] + a[0][-1, ..., 2] + a[0][0, 1, None, None, 3]),
    "all axes indexed": ("f64 2 3", lambda a: a[0][1, -1] * 2),
    "units": ("f64 1 5 1", lambda a: a[0] + a[0][0, :, 0]),
}
"""Cases that are the same text for handles and for NumPy."""


@pytest.mark.parametrize("name", ALIKE)
def test_operators(name: str) -> None:
    spec, function = ALIKE[name]
    check(spec, function, function)


CASES: dict[str, tuple[Spec, Built, Reference]] = {
    "map of three": ("f64 3 5, f64 5", lambda a: build.map("fma", a[0], a[1], 2), lambda a: a[0] * a[1] + 2),
    "constant": ("f64 3", lambda a: a[0] + build.constant(2.5, "f64", (2, 1)), lambda a: a[0] + np.full((2, 1), 2.5)),
    "iota": (
        "i64 4 5",
        lambda a: a[0] + build.iota((5,), start=3, step=-2) + build.iota((4, 5), axis=-2)[::-1],
        lambda a: a[0] + (3 - 2 * np.arange(5)) + np.arange(4)[::-1, None],
    ),
    "iota of floats": ("f64 5", lambda a: a[0] * build.iota((5,), "f64"), lambda a: a[0] * np.arange(5)),
    "iota reshaped": (
        "i64 4 3",
        lambda a: a[0] + build.reshape(build.iota((12,)), (4, 3)),
        lambda a: a[0] + np.arange(12).reshape(4, 3),
    ),
    "transpose of axes": (
        "f64 2 3 4",
        lambda a: build.transpose(build.exp(a[0]), (1, -1, 0)),
        lambda a: np.exp(a[0]).transpose(1, 2, 0),
    ),
    "reshape of a sum": (
        "f64 2 6, f64 3 4",
        lambda a: build.reshape(build.reshape(a[0], (3, 4)) + a[1], (12,)),
        lambda a: (a[0].reshape(3, 4) + a[1]).reshape(12),
    ),
    "reshape of a slice": (
        "f64 5 6",
        lambda a: build.reshape(a[0][1:, ::2], (-1,)),
        lambda a: a[0][1:, ::2].reshape(-1),
    ),
    "reshape of a transpose": (
        "f64 4 6",
        lambda a: build.reshape(build.transpose(a[0]), (3, 8)),
        lambda a: a[0].T.reshape(3, 8),
    ),
    "concatenate twice": (
        "f64 2 3",
        lambda a: build.concatenate([build.concatenate([a[0], a[0] + 1], 1), build.constant(7, "f64", (1, 6))]),
        lambda a: np.concatenate([np.concatenate([a[0], a[0] + 1], 1), np.full((1, 6), 7)]),
    ),
    "assemble": (
        "f64 3, f64 2",
        lambda a: build.assemble((2, 7), [((0, slice(0, None, 3)), a[0]), ((slice(None), slice(1, 3)), a[1])], 5),
        lambda a: np.array([[a[0][0], a[1][0], a[1][1], a[0][1], 5, 5, a[0][2]], [5, a[1][0], a[1][1], 5, 5, 5, 5]]),
    ),
    "pad by a number": ("i8 3", lambda a: build.pad(a[0], 2, -1), lambda a: np.pad(a[0], 2, constant_values=-1)),
    "pad of a pair": ("f64 3 2", lambda a: build.pad(a[0], (1, 2)), lambda a: np.pad(a[0], (1, 2))),
    "sum of a broadcast": ("f64 3 1", lambda a: build.sum(build.broadcast_to(a[0], (3, 5))), lambda a: a[0].sum() * 5),
    "sum of a constant": ("f64 3", lambda a: a[0] + build.sum(build.constant(2, "f64", (4,))), lambda a: a[0] + 8),
    "sum of a reshape": (
        "f64 4 6",
        lambda a: build.sum(build.reshape(a[0], (2, 12)), 1),
        lambda a: a[0].reshape(2, 12).sum(1),
    ),
    "cumulative of a reshape": (
        "f64 4 3",
        lambda a: build.cumulative("+", build.reshape(a[0], (12,))),
        lambda a: a[0].reshape(-1).cumsum(),
    ),
    "contract of bytes": (
        "u8 3 4, i8 4 5",
        lambda a: build.contract("mk,kn->mn", *a, dtype="i32"),
        lambda a: a[0].astype(np.int32) @ a[1].astype(np.int32),
    ),
    "matmul of reshapes": (
        "f64 2 3 4, f64 12 2",
        lambda a: build.matmul(build.reshape(a[0], (2, 12)), a[1]),
        lambda a: a[0].reshape(2, 12) @ a[1],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name: str) -> None:
    check(*CASES[name])


FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64")


@pytest.mark.parametrize("target", ["f64", "f32", "f16", "i1", *INTEGERS])
@pytest.mark.parametrize("source", ["f64", "f32", "f16", "i1", *INTEGERS])
def test_casts(source: str, target: str) -> None:
    handles, values = inputs_of(f"{source} 3 7")
    kept = np.abs(values[0]) if target[0] == "u" and source[0] in "fi" and source != "i1" else values[0]
    given = abs(handles[0]) if target[0] == "u" and source[0] in "fi" and source != "i1" else handles[0]
    found = run(build.cast(given, target), handles, values)
    np.testing.assert_array_equal(found, kept.astype(NUMPY[target]))


def test_casts_between_half_types() -> None:
    handles, values = inputs_of("f16 9")
    found = run(build.cast(build.cast(handles[0], "bf16"), "f16"), handles, values)
    np.testing.assert_allclose(found, values[0], rtol=2**-8)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_of_16_bits_are_wide(dtype: str) -> None:
    ones = build.constant(1, dtype, (4096,))
    x = build.input("x", dtype, (1,))
    one = np.array([1], np.float16) if dtype == "f16" else np.array([0x3F80], np.uint16)
    assert run(build.sum(ones * x), [x], [one]) == 4096
    assert run(build.matmul(ones * x, ones), [x], [one]) == 4096
    assert run(build.cumulative("+", ones * x)[-1], [x], [one]) == 4096


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16"])
def test_quotients_of_floats_are_rounded_down_as_numpy_s(dtype: str) -> None:
    numbers = np.array([0, -0.0, 1, -1, 0.1, -0.1, 3, 0.3, 7.5, -2.5, 6, 1000.1, 1e-7, np.inf, -np.inf, np.nan])
    y = numbers.astype(CARRIERS[dtype])
    x = y[:, None].copy()
    a, b = build.input("x", dtype, x.shape), build.input("y", dtype, y.shape)
    kernel = build.kernel("k", [a, b], {"q": a // b, "r": a // -0.3, "s": 1 // b, "t": b // 0})
    found = interpret(kernel, {"x": x, "y": y})
    with np.errstate(all="ignore"):
        wanted = {"q": x // y, "r": x // y.dtype.type(-0.3), "s": y.dtype.type(1) // y, "t": y // y.dtype.type(0)}
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)
        known = ~np.isnan(values)
        np.testing.assert_array_equal(np.signbit(found[name])[known], np.signbit(values)[known])


@pytest.mark.parametrize(
    ("source", "target", "value", "wanted"),
    [
        ("f16", "f32", 0.1, float(np.float16(0.1))),
        ("f32", "f64", 0.1, float(np.float32(0.1))),
        ("bf16", "f32", 0.1, 0.10009765625),
        ("i64", "f32", (1 << 54) + 1, float(1 << 54)),
    ],
)
def test_constants_are_rounded_before_they_are_cast(source: str, target: str, value: float, wanted: float) -> None:
    kernel = build.kernel("k", [], {"y": build.cast(build.constant(value, source, (2,)), target)})
    assert interpret(kernel, {})["y"].tolist() == [wanted, wanted]


def test_padding_of_truth_values_is_neutral() -> None:
    x = build.input("x", "i1", (1, 1, 2, 2))
    kernel = build.kernel("k", [x], {"y": build.pool("min", x, (2, 2), stride=1, padding=1)})
    values = np.array([[[[True, False], [True, True]]]])
    assert interpret(kernel, {"x": values})["y"].tolist() == [
        [[[True, False, False], [True, False, False], [True, True, True]]]
    ]


def test_numbers_are_shifted() -> None:
    x = build.input("x", "i32", (3,))
    kernel = build.kernel("k", [x], {"y": 1 << x, "z": -64 >> x})
    found = interpret(kernel, {"x": np.array([0, 3, 5], np.int32)})
    assert (found["y"].tolist(), found["z"].tolist()) == ([1, 8, 32], [-64, -8, -2])
