"""Calls whose arrays fit as they are take the short way, and give what the long way gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pdojo.backends.calling.arrays import address_of, aligned, aligned_empty
from pdojo.errors import UsageError

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")

from onnx import parser

from pdojo import onnx

_TEXT = """<ir_version: 8, opset_import: ["" : 17]>
m (float[n, 6] a, float[n, 6] b) => (float[n, 6] y, float[n] z, bool[n, 6] w)
<int64[1] axes = {1}>
{ y = Add (a, b) p = Mul (a, y) z = ReduceSum <keepdims = 0> (p, axes) w = Greater (a, b) }"""


def _model() -> Any:
    return onnx.load(parser.parse_model(_TEXT)).compile(tune="none")


def _arrays(seed: int, rows: int = 7) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.normal(size=(rows, 6)).astype(np.float32) for _ in range(2)]


def _check(found: Any, a: Any, b: Any) -> None:
    y, z, w = found
    assert np.array_equal(y, a + b)
    assert np.allclose(z, (a * (a + b)).sum(1), atol=1e-5)
    assert np.array_equal(w, a > b)


def test_arrays_of_all_kinds() -> None:
    """Arrays at any address, read-only, with gaps, of subclasses and by name; results are arrays of their own."""
    model = _model()
    a, b = _arrays(1)
    first = model(a, b)
    for _ in range(2):
        _check(model(a, b), a, b)
        _check(model(aligned(a), b), a, b)
        _check(model(b=b, a=a), a, b)
        _check(model(a, b=b), a, b)
    _check(first, a, b)
    frozen = a.copy()
    frozen.flags.writeable = False
    wide = np.zeros((7, 12), np.float32)
    wide[:, ::2] = b
    memory = np.zeros(7 * 6 * 4 + 1, np.uint8)
    odd = memory[1:].view(np.float32).reshape(7, 6)
    odd[...] = a
    for x, y in [(frozen, b), (a, wide[:, ::2]), (odd, b), (a.view(np.recarray), b), (a, a), (a, np.asfortranarray(b))]:
        _check(model(x, y), np.asarray(x), np.asarray(y))
    results = [*first, *model(a, b)]
    assert not any(np.may_share_memory(x, y) for k, x in enumerate(results) for y in (a, b, *results[:k]))
    assert all(each.flags.writeable for each in results)


def test_wrong_arrays_after_right_ones() -> None:
    """The long way refuses arrays of other types and shapes."""
    model = _model()
    a, b = _arrays(2)
    model(a, b)
    model(a, b)
    with pytest.raises(UsageError, match="float64"):
        model(a.astype(np.float64), b)
    with pytest.raises(UsageError, match="shape"):
        model(a[:, :5], b)
    with pytest.raises(UsageError, match="needs b"):
        model(a)
    with pytest.raises(UsageError, match="takes 2 arrays"):
        model(a, b, b)
    with pytest.raises(UsageError, match="no array 'c'"):
        model(a=a, c=b)
    with pytest.raises(UsageError, match="given twice"):
        model(a, b, a=a)
    with pytest.raises(UsageError):
        model(a.astype(">f4"), b)


def test_many_shapes_and_threads() -> None:
    """Calls of several threads at shapes in turns."""
    model = _model()
    cases = [_arrays(k, rows) for k, rows in enumerate([7, 3, 12, 7, 1, 5] * 20)]
    firsts, seconds = zip(*cases, strict=True)
    with ThreadPoolExecutor(4) as pool:
        for a, b, found in zip(firsts, seconds, pool.map(model, firsts, seconds), strict=True):
            _check(found, a, b)


def test_values_of_inputs() -> None:
    """Inputs whose values nodes need, and outputs that are inputs, take the long way."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[4] x, int64[2] s) => (float[p, q] y, float[4] z) { y = Reshape (x, s) z = Identity (x) }"""
    model = onnx.load(parser.parse_model(text)).compile(tune="none")
    x = np.arange(4, dtype=np.float32)
    for shape in ([2, 2], [4, 1], [1, 4], [2, 2]):
        y, z = model(x, np.array(shape))
        assert y.shape == (*shape,)
        assert np.array_equal(z, x)
        assert not np.may_share_memory(z, x)


def test_indices_are_checked() -> None:
    """The short way checks indices."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[4, 3] x, int64[n] i) => (float[n, 3] y) { y = Gather (x, i) }"""
    model = onnx.load(parser.parse_model(text)).compile(tune="none")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for _ in range(3):
        assert np.array_equal(model(x, np.array([3, -1])), x[[3, 3]])
        with pytest.raises(UsageError, match="4"):
            model(x, np.array([0, 4]))


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "u8", "?", "c8", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 3), (1,)])
def test_addresses(dtype: str, shape: tuple[int, ...]) -> None:
    """Addresses of arrays of all types, writeable or not, dense or not."""
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    array = aligned_empty(shape, kind)
    assert (array.shape, array.dtype) == (shape, kind)
    assert array.flags.c_contiguous
    frozen = np.zeros(shape, kind)
    frozen.flags.writeable = False
    for each in (array, frozen, np.zeros((4, 6), kind)[1:, ::2]):
        assert address_of(each) == each.ctypes.data
    assert address_of(array) % 64 == 0
