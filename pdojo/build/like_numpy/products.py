"""NumPy's sums of products: `einsum` with its implicit result, products of matrices and vectors, convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

from pdojo.build import contractions, tables
from pdojo.build.array import Array, Like, cast, constant, iota, promoted
from pdojo.build.contractions import contract
from pdojo.build.extents import axes_of, shown
from pdojo.build.indexing import triangle
from pdojo.build.like_numpy.constants import as_float, element_type, of
from pdojo.build.like_numpy.reductions import sum as total
from pdojo.build.like_numpy.table import FUNCTIONS
from pdojo.build.pieces import pad, stack
from pdojo.build.shapes import flip, reshape, transpose, windows
from pdojo.errors import UsageError


@of("einsum")
def einsum(subscripts: str, *operands: Array, dtype: Any = None, optimize: Any = False) -> Array:
    """The sum of products that `subscripts` describe; without `->`, letters that occur once, in order, are kept."""
    text = subscripts.replace(" ", "")
    if "->" not in text:
        kept = sorted(c for c in set(text) if c.isalpha() and text.count(c) == 1)
        text = f"{text}->{'...' * ('...' in text)}{''.join(kept)}"
    if dtype is not None:
        return contract(text, *operands, dtype=element_type(dtype))
    return contract(text, *promoted("'np.einsum'", *operands))


@of("matmul", "linalg.matmul")
def matmul(x1: Array, x2: Array) -> Array:
    """The product of the last two axes; axes before them broadcast, and vectors are rows or columns."""
    return contractions.matmul(*promoted("'np.matmul'", x1, x2))


@of("tensordot", "linalg.tensordot")
def tensordot(a: Array, b: Array, axes: int | Sequence[int | Sequence[int]] = 2) -> Array:
    """The sum of products over pairs of axes: so many last and first ones, or two lists."""
    if isinstance(axes, int):
        first, second = [*range(a.rank - axes, a.rank)], [*range(axes)]
    else:
        first, second = ([*axes_in_order(each)] for each in axes)
    if len(first) != len(second) or len(first) > min(a.rank, b.rank):
        raise UsageError(f"axes {axes} of {shown(a.shape)} and {shown(b.shape)} are no pairs")
    left, right = [*ascii_letters[: a.rank]], [*ascii_letters[a.rank : a.rank + b.rank]]
    for one, other in zip(first, second, strict=True):
        (place,), (there,) = axes_of(one, a.rank), axes_of(other, b.rank)
        right[there] = left[place]
    kept = [letter for letter in (*left, *right) if (letter in left) != (letter in right)]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b)


def axes_in_order(axes: int | Sequence[int]) -> Sequence[int]:
    """One or several axes as they are given."""
    return (axes,) if isinstance(axes, int) else axes


@of("dot")
def dot(a: Like, b: Like) -> Array:
    """The product of numbers, vectors or matrices: over the last axis of `a` and the last but one of `b`."""
    if isinstance(a, Array) and isinstance(b, Array) and a.rank and b.rank:
        return tensordot(a, b, ([-1], [max(-2, -b.rank)]))
    return FUNCTIONS["multiply"](a, b)


@of("inner")
def inner(a: Array, b: Array) -> Array:
    """The sum of products over the last axes."""
    return tensordot(a, b, ([-1], [-1])) if a.rank and b.rank else a * b


@of("outer", "linalg.outer")
def outer(a: Array, b: Array) -> Array:
    """The products of all elements of one array and all of another."""
    return reshape(a, (a.size, 1)) * reshape(b, (1, b.size))


@of("vdot")
def vdot(a: Array, b: Array) -> Array:
    """The sum of the products of all elements."""
    return dot(reshape(a, (a.size,)), reshape(b, (b.size,)))


@of("vecdot", "linalg.vecdot")
def vecdot(x1: Array, x2: Array, *, axis: int = -1) -> Array:
    """The sums of products along an axis; the others broadcast."""
    one, other = _last(x1, axis), _last(x2, axis)
    return einsum("...i,...i->...", one, other)


def _last(x: Array, axis: int) -> Array:
    (place,) = axes_of(axis, x.rank)
    return transpose(x, [*(d for d in range(x.rank) if d != place), place])


@of("matvec")
def matvec(x1: Array, x2: Array) -> Array:
    """The products of matrices and vectors; axes before them broadcast."""
    return einsum("...ij,...j->...i", x1, x2)


@of("vecmat")
def vecmat(x1: Array, x2: Array) -> Array:
    """The products of vectors and matrices; axes before them broadcast."""
    return einsum("...i,...ij->...j", x1, x2)


@of("cross", "linalg.cross")
def cross(a: Array, b: Array, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements along `axis`."""
    one, other = _last(a, axis), _last(b, axis)
    if one.shape[-1] != 3 or other.shape[-1] != 3:
        raise UsageError(f"np.cross takes vectors of 3 elements, not {one.shape[-1]} and {other.shape[-1]}")
    pairs = ((1, 2), (2, 0), (0, 1))
    parts = [one[..., i] * other[..., j] - one[..., j] * other[..., i] for i, j in pairs]
    found = stack(parts, -1)
    (place,) = axes_of(axis, found.rank)
    order = [*range(found.rank - 1)]
    return transpose(found, [*order[:place], found.rank - 1, *order[place:]])


@of("kron")
def kron(a: Array, b: Array) -> Array:
    """The Kronecker product."""
    rank = max(a.rank, b.rank)
    one = reshape(a, (*[1] * (rank - a.rank), *a.shape))
    other = reshape(b, (*[1] * (rank - b.rank), *b.shape))
    left = reshape(one, [extent for size in one.shape for extent in (size, 1)])
    right = reshape(other, [extent for size in other.shape for extent in (1, size)])
    return reshape(left * right, [m * n for m, n in zip(one.shape, other.shape, strict=True)])


@of("diagonal")
def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements (i, i + offset) of two axes, along a new last axis."""
    return tables.diagonal(a, offset, axis1, axis2)


@of("linalg.diagonal")
def last_diagonal(x: Array, *, offset: int = 0) -> Array:
    """The diagonals of matrices, the last two axes."""
    return tables.diagonal(x, offset, -2, -1)


@of("trace")
def trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """The sum of a diagonal."""
    return total(diagonal(a, offset, axis1, axis2), -1, dtype)


@of("linalg.trace")
def last_trace(x: Array, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of matrices, the last two axes."""
    return total(last_diagonal(x, offset=offset), -1, dtype)


@of("diag")
def diag(v: Array, k: int = 0) -> Array:
    """The matrix with a vector on a diagonal, or the diagonal of a matrix."""
    if v.rank == 2:
        return tables.diagonal(v, k)
    if v.rank != 1:
        raise UsageError(f"np.diag takes a vector or a matrix, not an array of {v.rank} axes")
    size = v.shape[0] + abs(k)
    return tables.put_diagonal(constant(0, v.dtype, (size, size)), v, k)


@of("tril")
def tril(m: Array, k: int = 0) -> Array:
    """The matrices with 0 above a diagonal."""
    return triangle(m, k, upper=False)


@of("triu")
def triu(m: Array, k: int = 0) -> Array:
    """The matrices with 0 below a diagonal."""
    return triangle(m, k, upper=True)


@of("linalg.det")
def det(a: Array) -> Array:
    """The determinants of matrices of up to 6 rows."""
    return contractions.det(as_float(a))


@of("linalg.matrix_power")
def matrix_power(a: Array, n: int) -> Array:
    """The product of `n` equal matrices."""
    if n < 0:
        raise UsageError(f"np.linalg.matrix_power of handles takes a power from 0 on, not {n}: there are no inverses")
    if not n:
        rows, columns = iota(a.shape, "i64", -2), iota(a.shape, "i64", -1)
        return cast(rows == columns, a.dtype)
    half = matrix_power(a, n // 2) if n > 1 else a
    return matmul(matmul(half, half), a) if n % 2 and n > 1 else matmul(half, half) if n > 1 else a


@of("linalg.multi_dot")
def multi_dot(arrays: Sequence[Array]) -> Array:
    """The product of several matrices, from the left."""
    found, *others = arrays
    for other in others:
        found = matmul(found, other)
    return found


@of("convolve")
def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """The convolution of two vectors: full, same or valid."""
    x, taps = (a, v) if a.size >= v.size else (v, a)
    if x.rank != 1 or taps.rank != 1:
        raise UsageError("np.convolve takes two vectors")
    count = taps.shape[0]
    widths = {"full": (count - 1, count - 1), "same": (count // 2, (count - 1) // 2), "valid": (0, 0)}
    if mode not in widths:
        raise UsageError(f"'{mode}' is no mode of np.convolve; known: full, same, valid")
    return matmul(windows(pad(x, (widths[mode],)), (count,)), flip(taps))
