"""Sums of products; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from pdojo import build
from pdojo.build import Array, quantising
from pdojo.build.contractions import with_summand
from pdojo.dialect.element_types import wide_type
from pdojo.torch.operators.registry import Call, aten


@aten("mm.default", "bmm.default", "mm.dtype", "bmm.dtype", "mv.default", "dot.default", "vdot.default")
def matmul(call: Call, a: Array, b: Array, out_dtype: object = None) -> Array:
    """Products of matrices and vectors."""
    return build.matmul(a, b, dtype=call.dtype)


@aten("_int_mm.default")
def integer_matmul(call: Call, a: Array, b: Array) -> Array:
    """Products of matrices of bytes, as processors multiply them."""
    return quantising.integer_matmul(a, b)


@aten("addmm.default", "addmm.dtype", "baddbmm.default", "baddbmm.dtype", "addmv.default")
def added_product(
    call: Call, bias: Array, a: Array, b: Array, out_dtype: object = None, *, beta: float = 1, alpha: float = 1
) -> Array:
    """`beta * bias + alpha * (a @ b)`."""
    left, right, added = (build.cast(each, wide_type(call.dtype)) for each in (a, b, bias))
    return build.gemm(left, right, added, alpha=alpha, beta=beta)


@aten("linear.default")
def linear(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """`x @ weight.T + bias`; `x` may have any number of axes before the last one."""
    dtype = wide_type(call.dtype)
    return with_summand(build.contract("...k,nk->...n", x, weight, dtype=dtype), bias, 1, 1)


@aten("addbmm.default")
def addbmm(call: Call, bias: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """`beta * bias + alpha * sum(a @ b)` with the sum over the batch."""
    return with_summand(build.contract("bmk,bkn->mn", a, b, dtype=wide_type(call.dtype)), bias, alpha, beta)


@aten("_trilinear.default")
def trilinear(
    call: Call,
    a: Array,
    b: Array,
    c: Array,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Array:
    """The sum of the products of three arrays, each of which lacks some axes."""
    letters = ascii_letters[: a.rank + len(expand1)]
    words = [
        "".join(letter for d, letter in enumerate(letters) if d not in gone) for gone in (expand1, expand2, expand3)
    ]
    result = "".join(letter for d, letter in enumerate(letters) if d not in sumdim)
    return build.contract(f"{','.join(words)}->{result}", a, b, c)


@aten("_cdist_forward.default")
def distances(call: Call, x: Array, y: Array, p: float, compute_mode: int | None) -> Array:
    """The norms of the differences of all pairs of rows."""
    if p < 0:
        call.refuse(f"a norm of order {p}")
    return build.distances(x, y, p)
