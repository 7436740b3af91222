"""NumPy's functions, methods, operators and indices of handles, each against NumPy; mistakes and their messages."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pdojo import build
from pdojo.build.like_numpy.methods import Methods
from pdojo.errors import UsageError
from qa.array_api import STANDARD, survey, takes_handles
from unit.build.references import NUMPY, Values, random, run

SHAPES = {
    **{"x": ("f32", (4, 6)), "y": ("f32", (4, 6)), "v": ("f32", (6,)), "w": ("f32", (6, 4)), "s": ("f32", (4, 4))},
    **{"c": ("f32", (2, 3, 4)), "i": ("i32", (4, 6)), "j": ("i32", (6,)), "u": ("u8", (4, 6)), "m": ("i1", (4, 6))},
    **{"k": ("i1", (6,)), "h": ("f16", (4, 6)), "one": ("f32", (1, 5, 1))},
}
EXPRESSIONS = """
x @ w; v @ w; x @ v; v @ v; c @ s; c[:, None] @ c.mT; np.matmul(s, c.mT[0, :, :2].T.T)
x.T; c.T; c.mT; x.ndim + x; x.size * x; len(x) + x; +x; -x; abs(x)
x.sum(); x.sum(0); x.sum(axis=(0, -1), keepdims=True); x.sum(-1, initial=2); x.sum(0, where=m); u.sum()
i.sum(0)
m.sum(1); i.sum(0, dtype=np.int32); x.sum(dtype=np.float64); x.mean(); x.mean(0, keepdims=True); i.mean(1)
m.mean()
x.mean(1, where=x > -9); x.mean(1, dtype=np.float64); x.var(0); x.var(axis=1, ddof=1); x.std(-1, keepdims=True)
i.var()
np.var(x, where=x > 0); np.std(x, 0, where=x > -9, keepdims=True)
x.max(); x.min(0); u.max(1, keepdims=True); i.max(initial=50); x.max(1, initial=-1, where=m); np.amin(x, 1)
np.ptp(i, 1)
x.prod(1); i.prod(0, dtype=np.int64); x.any(); (x > 0).all(1); m.any(0); x.all(where=m)
x.argmax(); x.argmin(0); x.argmax(1, keepdims=True); np.argmin(x, keepdims=True); np.argmax(m, axis=1)
x.cumsum(); i.cumsum(0); x.cumsum(1); x.cumprod(axis=-1); np.cumulative_sum(v, include_initial=True)
x.reshape(6, 4); x.reshape((3, -1)); x.reshape(-1); x.ravel(); c.flatten(); c.transpose(2, 0, 1)
c.transpose((0, 2, 1))
c.transpose(); c.swapaxes(0, -1); one.squeeze(); one.squeeze(axis=0); x.astype(np.float64); x.astype("float16")
i.astype(bool)
x.astype(int); x.clip(-1, 1); x.clip(max=0.5); np.clip(x, v, 2); x.round(); x.round(2); i.round()
v.repeat(2); x.repeat(3, axis=1); np.repeat(x, [1, 0, 2, 1], 0); x.dot(w); v.dot(v); x.take([0, -1], axis=1)
x.take([[1, 2], [-1, 0]], 0); s.trace(); s.trace(1); c.diagonal(1, 1, 2); x.copy()
2 + x; x - 2.5; np.float32(2) * x; x / np.float32(3); 1 / (x * x + 1); i // 3; 7 // (i * i + 1); i % 5
-7 % (j * j + 1)
x**2; x**-1; 2.0**x; np.int32(3) - i; divmod(i, 7)[0]; divmod(100, i * i + 1)[1]; x // 0.5; x % 0.75; i & 3
i | 8; i ^ j
i << 2; i >> 1; ~i; ~m; m & (x > 0); m | k; m ^ k; x < y; x <= 0; 0 > x; x == x; x != y; i >= j; True & m
x * m; m * x; x + (y > 0); i * (i > 0); m / x.clip(1, 2); x > m; u + k
x[::-1]; x[::-2, 1::2]; x[-1]; x[1:-1, -3:]; x[..., 0]; x[None, :, None]; x[:, np.newaxis]; c[1, ..., ::-2]
x[-3:-1]
x[[0, -1]]; x[:, [1, 1, 0]]; x[np.array([[0, 2], [3, -2]])]; x[np.array([True, False, True, True])]; v[2] * x
x[[0, 1], [2, -1]]
x[np.eye(4, 6) > 0]; x[:, np.array([-1, -2])]; x[np.arange(3), np.arange(3)]; x[np.int64(2)]; c[:, [[0, 2]], 1]
np.exp(x); np.add(2, x); np.maximum(x, 0); np.minimum(x, v); np.sqrt(abs(x)); np.square(x); np.sign(x)
np.negative(i)
np.log1p(abs(x)); np.hypot(x, y); np.arctan2(x, y); np.logaddexp(x, y); np.copysign(1.0, x); np.fmod(x, 0.75)
np.fabs(x)
np.power(abs(x), y); np.isnan(x / (x - x)); np.isinf(x / 0.0); np.isfinite(x); np.heaviside(x, 0.5); np.rint(x)
np.fmax(x, y)
np.degrees(x); np.deg2rad(x); np.logical_and(x, m); np.logical_not(i); np.logical_xor(i, 1); np.invert(i)
np.positive(x)
np.divmod(i, 7)[1]; np.floor_divide(i, 3); np.true_divide(x, 2); np.bitwise_and(i, j); np.left_shift(i, 1)
np.exp2(x)
np.add.reduce(x); np.add.reduce(x, axis=1); np.multiply.reduce(x, axis=-1); np.maximum.reduce(x, axis=(0, 1))
np.add.reduce(i)
np.minimum.reduce(x, axis=0, keepdims=True); np.logical_or.reduce(m, axis=0); np.bitwise_or.reduce(i, axis=1)
np.add.accumulate(x); np.maximum.accumulate(x, axis=1); np.multiply.accumulate(v)
np.multiply.outer(v, j.astype(np.float32))
np.subtract.outer(v, v); np.add.outer(np.float32(2), v); np.matvec(x, v); np.vecmat(v, w); np.vecdot(x, v)
np.concatenate([x, y]); np.concatenate((x, y), axis=-1); np.concatenate([x, y], axis=None)
np.concat([x, np.ones((1, 6), "f4")])
np.stack([x, y], -1); np.vstack([x, v]); np.hstack([x, y]); np.hstack((v, v)); np.dstack([x, y])
np.column_stack((v, v, w))
np.append(x, y); np.split(x, 2)[1]; np.split(v, [1, 4])[1]; np.split(x, np.array([2, 3]), axis=1)[2]
np.array_split(v, 4)[1]
np.hsplit(x, 3)[1]; np.vsplit(x, 2)[0]; np.unstack(c, axis=1)[2]; np.tile(x, 2); np.tile(v, (2, 1))
np.tile(x, (1, 2))
np.flip(x); np.flip(x, -1); np.flipud(x); np.fliplr(x); np.rot90(x); np.rot90(x, 3); np.rot90(c, 2, (1, 2))
np.roll(x, 2)
np.roll(x, -1, axis=0); np.roll(x, (1, 2), axis=(0, 1)); np.roll(x, 9, axis=1); np.pad(x, 1)
np.pad(x, ((1, 0), (0, 2)))
np.pad(x, (1, 2), mode="edge"); np.pad(x, ((0, 0), (2, 2)), "reflect"); np.pad(v, 2, mode="wrap")
np.pad(v, (2, 1), "symmetric")
np.pad(x, ((1, 1),), constant_values=3); np.pad(x, 2, mode="symmetric")
np.transpose(c, (1, 0, 2)); np.moveaxis(c, 0, -1); np.moveaxis(c, (0, 1), (-1, 0)); np.swapaxes(c, 0, 1)
np.ravel(x)
np.expand_dims(x, (0, -1)); np.squeeze(one, (0, 2)); np.broadcast_to(v, (4, 6)); np.broadcast_arrays(x, v)[1]
np.atleast_2d(v); np.atleast_3d(x); np.meshgrid(v, j)[1]; np.meshgrid(v, j, indexing="ij")[0]
np.matrix_transpose(c)
np.where(m, x, y); np.where(x > 0, x, 0); np.where(m, 1.0, 0.0); np.where(np.arange(6) < 3, x, -1)
np.where(m, i, 7)
np.select([x > 1, x > 0], [x, 2 * x], -1); np.where(k, x, m); np.isclose(x, x + 1e-9)
np.nan_to_num(x / (x - x))
np.take(x, 2, axis=1); np.take(v, np.array([1, -1])); np.take(x, [9, -9], axis=1, mode="clip")
np.take(x, [3, 8])
np.take_along_axis(x, np.array([[0], [1], [-1], [2]]), axis=1); np.searchsorted(np.sort(v), x)
np.sort(x, axis=0); np.argsort(i)
np.sort(x, axis=None); np.count_nonzero(i > 0, axis=1); np.diff(x); np.diff(i, axis=0); np.diff(v, n=2)
np.diff(v, prepend=np.float32(0))
np.diff(m); np.average(x, axis=1, weights=v); np.average(x, weights=y * y); np.nansum(x); np.nanmean(x, axis=0)
np.einsum("ij,jk->ik", x, w); np.einsum("ij,jk", x, w); np.einsum("ii", s); np.einsum("ii->i", s)
np.einsum("...i,i", c, s[0])
np.einsum("ba", x); np.einsum("ij,kj->ki", x, y); np.einsum("i,j->ij", v, v); np.einsum("i...->...", c)
np.einsum("ij->", x)
np.dot(x, w); np.dot(x, v); np.dot(np.float32(2), x); np.dot(c, s); np.inner(x, v); np.inner(x, y)
np.outer(x, v); np.vdot(x, y)
np.tensordot(c, c, 3); np.tensordot(x, w, 1); np.tensordot(c, c, ([0, 2], [0, 2]))
np.cross(c[:, :, 0], c[:, :, 1])
np.kron(s, v[:2]); np.kron(v[:2], v); np.trace(s, offset=-1); np.diag(v); np.diag(v, 2); np.diag(v, -1)
np.diag(s, 1)
np.tril(x); np.triu(x, 1); np.linalg.norm(x); np.linalg.norm(x, axis=1)
np.linalg.norm(x, ord=1, axis=0, keepdims=True)
np.linalg.norm(x, np.inf); np.linalg.norm(x, "fro"); np.linalg.norm(v, 3); np.linalg.norm(c, axis=(1, 2))
np.linalg.norm(x, 1)
np.linalg.norm(v, -np.inf); np.linalg.norm(c, np.inf, axis=(0, 2)); np.linalg.multi_dot([x, w, s])
np.linalg.matrix_power(s, 3)
np.convolve(v, v[:3]); np.convolve(v, v[:2], "same"); np.convolve(v[:3], v, mode="valid")
np.convolve(v, v[:4], "same")
np.lib.stride_tricks.sliding_window_view(v, 3); np.lib.stride_tricks.sliding_window_view(x, (2, 3))
np.lib.stride_tricks.sliding_window_view(c, 2, axis=1); np.zeros_like(x) + x; np.ones_like(i, dtype=np.float32)
np.full_like(x, 7)
np.mean(x, axis=0, keepdims=True); np.sum(h, axis=1); np.max(x, axis=1); np.cumsum(x, axis=0); np.prod(v)
np.round(x, 1)
np.abs(x); np.array(2.0) * x.astype(np.float64); np.arange(6, dtype=np.int32) * i; np.zeros(6, np.float32) + x
x - np.ones((4, 1), "f4")
np.median(x); np.median(x, axis=0); np.median(c, axis=(0, 2), keepdims=True); np.percentile(x, 30, axis=1)
np.quantile(i, 0.9); np.median(np.where(m, x, np.nan), axis=1); np.nanmax(np.where(m, x, np.nan), axis=1)
np.nanmin(x, 0); np.nanmax(i); np.cov(x); np.cov(x, rowvar=False, ddof=0); np.cov(v); np.corrcoef(w, dtype=np.float32)
np.trapezoid(x); np.trapezoid(x, dx=0.5, axis=0); np.trapezoid(x, np.cumsum(abs(v)), axis=1)
np.gradient(v); np.gradient(x)[1]; np.gradient(x, 0.5, axis=0); np.gradient(c, 1.0, 2.0, 3.0)[2]
np.eye(4, dtype=np.float32) @ x; x + np.arange(6, dtype=np.float32); x * np.array([-1, 2, 0, 3, 5, -7], np.float32)
"""
LINES = [each.strip() for line in EXPRESSIONS.splitlines() for each in line.split(";") if each.strip()]


def arrays() -> tuple[dict[str, build.Array], dict[str, Values]]:
    values = {name: random(dtype, shape, number) for number, (name, (dtype, shape)) in enumerate(SHAPES.items())}
    return {name: build.input(name, *row) for name, row in SHAPES.items()}, values


@pytest.mark.parametrize("expression", LINES)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_expressions_are_those_of_numpy(expression: str) -> None:
    handles, values = arrays()
    made: build.Array = eval(expression, {"np": np, **handles})
    wanted = np.asarray(eval(expression, {"np": np, **values}))
    used = [name for name in handles if re.search(rf"\b{name}\b", expression)]
    found = run(made, [handles[name] for name in used], [values[name] for name in used])
    assert np.dtype(NUMPY[made.dtype]) == wanted.dtype
    assert found.shape == wanted.shape
    tolerance = 2e-3 if wanted.dtype == np.float16 else 2e-6 if wanted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=8 * tolerance, atol=8 * tolerance)


def test_every_method_is_tried() -> None:
    text = EXPRESSIONS + " .rank"
    names = [name for name in vars(Methods) if not name.startswith("_") and name not in ("shape",)]
    assert [name for name in names if f".{name}" not in text] == []


WHOLE = (
    "an array of float64 with several values is no constant of a kernel, unless they are whole; pass it as an input: "
    "build.input(..., const=True)"
)
MISTAKES = [
    ("np.exp(x, out=x)", "np.exp: no handle is written in place; leave out= away and use the result"),
    ("np.add.at(x, 0, 1)", "np.add.at takes no handles; build.put_at(..., accumulation='+') makes a changed copy"),
    ("np.add.reduceat(x, [0, 2])", "np.add.reduceat takes no handles; did you mean 'np.add.reduce'?"),
    ("np.add(x, 1, where=m)", "np.add of handles has no option 'where'; use np.where, or x.astype"),
    ("np.cumsum(x, out=x)", "np.cumsum: no handle is written in place; leave out= away and use the result"),
    (
        "np.unique(x)",
        "np.unique takes no handles; the shape of its result would depend on data; np.where keeps the shape",
    ),
    ("np.linalg.svd(x)", "np.linalg.svd takes no handles; docs/build.md lists the functions that do"),
    ("np.nancumsum(x)", "np.nancumsum takes no handles; did you mean 'np.nansum'?"),
    ("np.nextafter(h, h)", "the next number is computed of f32 and f64, not of f16"),
    ("np.reshape(x, (5, 5))", "shape [4, 6] of 24 elements cannot become [5, 5]"),
    ("np.sum(x, axis=5)", "axis 5 is out of bounds for an array of 2 dimensions"),
    ("x.sum(axis='rows')", "'np.sum': axis is an integer or a sequence of integers or None, not 'rows'"),
    ("x.sum(axes=0)", "'np.sum' cannot be called like that: got an unexpected keyword argument 'axes'"),
    ("x.max(where=m)", "np.max with where= needs initial=, the value if the condition never holds"),
    ("x.sums()", "a handle has no attribute 'sums'; did you mean 'sum'?"),
    ("x.sort()", "a handle has no attribute 'sort'; np.sort takes handles"),
    ("x.tolist()", "a handle has no attribute 'tolist'; docs/build.md lists methods and functions"),
    (
        "x.astype('complex64')",
        "'complex64' is no element type; known: bool, f64, f32, f16, bf16, i64, i32, i16, i8, i1, u8, u16, u32, u64",
    ),
    ("x.astype(np.complex64)", "complex64 is no element type of handles; kernels have real numbers and booleans"),
    ("float(x[0, 0])", "a handle is no number before the kernel runs; its shape, and a slice of it, are known"),
    ("int(i[0, 0])", "a handle is no number before the kernel runs; its shape, and a slice of it, are known"),
    ("range(i[0, 0])", "a handle is no number before the kernel runs; its shape, and a slice of it, are known"),
    ("np.asarray(x)", "a handle has no elements before the kernel runs; np.stack joins handles"),
    ("np.array([x, x])", "a handle has no elements before the kernel runs; np.stack joins handles"),
    (
        "x.__setitem__(0, 1)",
        "a handle is not written in place; np.where, build.put_at and build.assemble make new arrays",
    ),
    ("x[x > 0]", "x[mask] has a shape that depends on data; build.where and where= keep the shape"),
    ("x[[0, 4]]", "index 4 is out of bounds for axis 0 of 4 elements"),
    ("x[[0.5]]", "indices are integers or a mask, not float64"),
    ("x[np.array([True, False])]", "a mask of 2 elements is not for axis 0 of 4 elements"),
    ("len(x[0, 0])", "an array without axes has no length"),
    ("list(x[0, 0])", "an array without axes has no length"),
    ("bool(x[0, 0])", "a handle has no truth value; a kernel has no branches: use build.where"),
    (
        "x * np.linspace(0, 1, 6)",
        WHOLE,
    ),
    ("x * np.array([0.0, -0.0, 1, 2, 3, 4])", WHOLE),
    ("np.quantile(x, 1.5)", "quantiles are from 0 to 1, of one element or more, not 1.5 of 24"),
    ("x * np.arange(6)", "'*' takes no i64 beside f32; use x.astype('f32')"),
    ("x @ i.T", "'np.matmul' takes no i32 beside f32; use x.astype('f32')"),
    ("np.add(x, i)", "'np.add' takes no i32 beside f32; use x.astype('f32')"),
    ("np.hypot(h, i)", "'np.hypot' takes no i32 beside f16; use x.astype('f16')"),
    ("np.where(m, i, x)", "'np.where' takes no i32 beside f32; use x.astype('f32')"),
    ("np.select([m, m], [u, i], x)", "'np.select' takes no u8 beside f32; use x.astype('f32')"),
    ("np.clip(i, x, x + 1)", "'np.clip' takes no i32 beside f32; use x.astype('f32')"),
    ("np.einsum('ij,j', x, j)", "'np.einsum' takes no i32 beside f32; use x.astype('f32')"),
    ("np.stack([x, i])", "'np.stack' takes no i32 beside f32; use x.astype('f32')"),
    ("np.diff(v, append=j)", "'np.diff' takes no i32 beside f32; use x.astype('f32')"),
    ("np.result_type(x, i)", "'np.result_type' takes no i32 beside f32; use x.astype('f32')"),
    ("np.result_type(i, 2.5)", "2.5 is no constant of type i32"),
    ("np.result_type(m, 2)", "2 does not fit i1"),
    ("np.add(i, np.arange(6, dtype=np.uint64))", "'np.add' takes no i32 beside u64; use x.astype('i64')"),
    ("x @ x", "matmul of [4, 6] and [4, 6]: 6 columns for 4 rows"),
    ("x @ 2", "'np.matmul': x2 is a handle, not 2"),
    ("np.concatenate([x, i])", "'np.concatenate' takes no i32 beside f32; use x.astype('f32')"),
    (
        "np.pad(x, 1, mode='mean')",
        "'mean' is no mode of np.pad of handles; known: constant, edge, reflect, symmetric, wrap",
    ),
    ("np.linalg.norm(x, 2)", "np.linalg.norm of handles has no order 2 for 2 axes; known: fro, 1, -1, inf"),
    ("np.where(m)", "'np.where' cannot be called like that: missing a required argument: 'x'"),
    (
        "np.reshape(x, (6, 4), order='F')",
        "np.reshape of handles is in row-major order, not 'F'; transpose before and after",
    ),
    ("np.einsum('ij,jk', x, x)", "'j' of 'ij,jk->ik' stands for 6 and for 4 elements"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes(call: str, message: str) -> None:
    handles, _ = arrays()
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        eval(call, {"np": np, **handles})


def test_missing_attributes_are_attribute_errors() -> None:
    x: Any = build.input("x", "f32", (4,))
    assert not hasattr(x, "tolist")
    assert getattr(x, "nothing", None) is None


def test_the_share_of_the_array_api() -> None:
    names = [name for text in STANDARD.values() for name in text.split()]
    assert sum(map(takes_handles, names)) == 128
    rows = survey(1, 0)
    assert [failure for row in rows.values() for failure in row.failures] == []
