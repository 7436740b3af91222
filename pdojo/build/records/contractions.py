"""Products of matrices, sums of products, determinants."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import contractions
from pdojo.build.operator import FLOATS, INTEGERS, array, call, operator

Values = NDArray[Any]


@operator(
    build.matmul,
    call(array("3 5"), array("5 7")),
    call(array("5"), array("5")),
    call(array("5"), array("5 3")),
    call(array("4"), array("2 4 3")),
    call(array("1 4"), array("4 5")),
    call(array("2 3 5"), array("5")),
    call(array("3 5"), array("5")),
    call(array("2 3 5"), array("2 5 4")),
    call(array("5 1 3 4"), array("2 4 2")),
    call(array("1 1"), array("1 1")),
    call(array("4 37"), array("37 3")),
    call(array("3 0"), array("0 2")),
    types=(*FLOATS, *INTEGERS),
    ulps=16,
)
def matmul(a: Values, b: Values) -> Values:
    """The product of the matrices in the last axes."""
    return np.matmul(a, b)


@operator(
    build.contract,
    call("mk,kn->mn", array("3 5"), array("5 7")),
    call("bij,bkj->bik", array("2 3 5"), array("2 4 5")),
    call("ij->ji", array("3 5")),
    call("ii->i", array("4 4")),
    call("ii->", array("4 4")),
    call("mk,kn,m->nm", array("2 3"), array("3 4"), array("2")),
    call("abc->b", array("2 3 4")),
    call("i,j,k->kji", array("2"), array("3"), array("4")),
    call("ij,ij->", array("3 5"), array("3 5")),
    call("...ij,...jk->...ik", array("2 1 3 5"), array("4 5 2")),
    call("i...,i->...", array("3 2 4"), array("3")),
    call("...,...->...", array(""), array("2 3")),
    types=(*FLOATS, *INTEGERS),
    ulps=24,
)
def contract(subscripts: str, *operands: Values) -> Values:
    """The sum of products that subscripts describe."""
    return np.einsum(subscripts, *operands)


@operator(
    build.gemm,
    call(array("3 5"), array("5 7")),
    call(array("3 5"), array("5 7"), array("7"), alpha=0.5, beta=2.0),
    call(array("3 5"), array("5 7"), array("3 1"), beta=0.25),
    call(array("1 1"), array("1 4"), array("1 4"), alpha=-1.5),
    call(array("3 5"), array("5 2"), array("3 2"), beta=0.0),
    call(array("3 5"), array("5 2"), array("2"), types=("i32", "i64")),
    ulps=16,
)
def gemm(a: Values, b: Values, c: Values | None = None, *, alpha: float = 1, beta: float = 1) -> Values:
    """The product of matrices, scaled, and a scaled summand."""
    scaled = np.matmul(a, b) * alpha
    return (scaled if c is None or not beta else scaled + c * beta).astype(a.dtype)


@operator(build.det, call(array("2 3 3")), call(array("1 1")), call(array("5 5")), call(array("2 1 2 2")), ulps=64)
def det(x: Values) -> Values:
    """The determinant."""
    return np.linalg.det(x)


@operator(
    contractions.causal_conv_with_state,
    call(array("2 3 5"), array("3 1 4"), array("3"), array("2 3 3")),
    call(array("1 2 4"), array("2 1 3")),
    call(array("2 1 3"), array("1 1 1"), array("1")),
    call(array("1 2 1"), array("2 1 4"), None, array("1 2 3")),
    results=("result", "state"),
    ulps=16,
)
def causal_conv_with_state(
    x: Values, weights: Values, bias: Values | None = None, state: Values | None = None
) -> list[Values]:
    """The convolution of each channel with its elements before, and the last elements."""
    window = weights.shape[2]
    past = np.zeros((*x.shape[:2], window - 1)) if state is None else state
    joined = np.concatenate([past, x], 2)
    seen = np.lib.stride_tricks.sliding_window_view(joined, window, 2)
    sums = (seen * weights[:, 0, None, :]).sum(-1)
    return [sums if bias is None else sums + bias[:, None], joined[:, :, x.shape[2] :]]
