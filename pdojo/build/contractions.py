"""Sums of products: contractions, matrix products, convolutions; f16 and bf16 accumulate in f32.

The products of a sum are computed in its nest, so that moves can contract, tile and map both together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from itertools import product as combined
from math import prod
from string import ascii_letters
from typing import NamedTuple

from pdojo.build.array import Array, broadcast_to, cast, constant, define, map, wide
from pdojo.build.extents import broadcast_shape, shown
from pdojo.build.graph import Computed, Write, identity
from pdojo.build.pieces import Piece, Widths, assemble, concatenate, pad
from pdojo.build.policy import accumulated_wide, calls_wide, rounded_once
from pdojo.build.reductions import reduce
from pdojo.build.shapes import expand_dims, flip, per_axis, reshape, transpose, windows
from pdojo.build.sizes import Open, is_open
from pdojo.dialect.affine import var
from pdojo.dialect.element_types import is_float
from pdojo.errors import UsageError

_SUBSCRIPTS = re.compile(r"([a-zA-Z]*(?:,[a-zA-Z]*)*)->([a-zA-Z]*)")


@calls_wide
def contract(subscripts: str, *operands: Array, dtype: str | None = None) -> Array:
    """The sum of products that `subscripts` describe, as in `numpy.einsum`, with an explicit result.

    `...` stands for axes that broadcast. The operands are cast to `dtype`, the element type of products, sums and
    result; None is the operands' own type.

    >>> from pdojo import build
    >>> a, b = build.input("a", "bf16", (4, 8)), build.input("b", "bf16", (8, 2))
    >>> build.contract("mk,kn->mn", a, b, dtype="f32")
    <Array f32 [4, 2]>
    """
    if "..." in subscripts:
        subscripts, operands = _without_dots(subscripts.replace(" ", ""), operands)
    letters, result = _letters(subscripts, operands)
    extents: dict[str, int] = {}
    for word, operand in zip(letters, operands, strict=True):
        for letter, extent in zip(word, operand.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise UsageError(f"'{letter}' of '{subscripts}' stands for {extents[letter]} and for {extent} elements")
    for letter in result:
        if letter not in extents or result.count(letter) > 1:
            raise UsageError(f"'{letter}' of the result of '{subscripts}' is in no operand, or there twice")
    summed = [letter for letter in extents if letter not in result]
    order = [*result, *summed]
    shape = tuple(extents[letter] for letter in order)
    factors, kind = _factors(operands, dtype)
    aligned = [
        factor.view(shape, [var(order.index(letter)) for letter in word])
        for word, factor in zip(letters, factors, strict=True)
    ]
    return cast(sum_of_products(aligned, len(summed)), kind)


def _letters(subscripts: str, operands: Sequence[Array]) -> tuple[list[str], str]:
    match = _SUBSCRIPTS.fullmatch(subscripts.replace(" ", ""))
    if match is None:
        raise UsageError(f"'{subscripts}' are no subscripts; write letters for the axes: 'mk,kn->mn'")
    words = match[1].split(",")
    _check_count(subscripts, words, operands)
    for word, operand in zip(words, operands, strict=True):
        if len(word) != operand.rank:
            raise UsageError(
                f"'{word}' of '{subscripts}' does not name the {operand.rank} axes of {shown(operand.shape)}"
            )
    return words, match[2]


def _without_dots(subscripts: str, operands: Sequence[Array]) -> tuple[str, tuple[Array, ...]]:
    """Subscripts with letters for the axes that `...` stands for, and the operands, in which these are broadcast."""
    inputs, _, result = subscripts.partition("->")
    words = inputs.split(",")
    _check_count(subscripts, words, operands)
    unused = [letter for letter in ascii_letters if letter not in subscripts]
    counts = [max(0, x.rank - len(word) + 3) if "..." in word else 0 for word, x in zip(words, operands, strict=True)]
    starts = [max(0, word.find("...")) for word in words]
    rows = list(zip(words, operands, starts, counts, strict=True))
    shared = broadcast_shape(*(x.shape[start : start + count] for _, x, start, count in rows))
    dots = "".join(unused[: len(shared)])
    found = [
        broadcast_to(x, (*x.shape[:start], *shared[len(shared) - count :], *x.shape[start + count :])) if count else x
        for _, x, start, count in rows
    ]
    named = [word.replace("...", dots[len(dots) - count :]) for word, *_, count in rows]
    return f"{','.join(named)}->{result.replace('...', dots)}", tuple(found)


def _check_count(subscripts: str, words: Sequence[str], operands: Sequence[Array]) -> None:
    if len(words) != len(operands):
        raise UsageError(f"'{subscripts}' describes {len(words)} operand{'s' * (len(words) != 1)}, not {len(operands)}")


def _factors(operands: Sequence[Array], dtype: str | None) -> tuple[list[Array], str]:
    """The operands in the type of the sum, and the type of the result."""
    dtypes = list(dict.fromkeys(operand.dtype for operand in operands))
    if dtype is None and len(dtypes) > 1:
        raise UsageError(f"factors have one element type, not {' and '.join(dtypes)}; give dtype=, or use build.cast")
    kind = dtype or dtypes[0]
    return [wide(cast(operand, kind)) for operand in operands], kind


def sum_of_products(factors: Sequence[Array], count: int) -> Array:
    """The product of arrays of one shape and type, summed over the last `count` axes."""
    first, *others = factors
    if first.dtype == "i1":
        raise UsageError("'*' does not take i1; use build.cast")
    value, dtype, shape = first.operand, first.storage, first.shape
    for other in others:
        value = Computed("arith.mulf" if is_float(dtype) else "arith.muli", (value, other.operand), dtype)
    product = Array(first.dtype, shape, value)
    if not count:
        return define(first.dtype, shape, Write(shape, identity(shape), value))
    return reduce("+", product, range(len(shape) - count, len(shape)))


@calls_wide
def matmul(a: Array, b: Array, *, dtype: str | None = None) -> Array:
    """The matrix product of the last two axes, as `numpy.matmul`: axes before them broadcast, vectors are allowed.

    `dtype` is the type of products, sums and result; None is the operands' own type.

    >>> from pdojo import build
    >>> build.matmul(build.input("a", "f32", (5, 1, 4, 8)), build.input("b", "f32", (3, 8, 2)))
    <Array f32 [5, 3, 4, 2]>
    """
    if not a.rank or not b.rank:
        raise UsageError("matmul takes arrays of at least one dimension")
    left = expand_dims(a, 0) if a.rank == 1 else a
    right = expand_dims(b, -1) if b.rank == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise UsageError(
            f"matmul of {shown(a.shape)} and {shown(b.shape)}: {left.shape[-1]} columns for {right.shape[-2]} rows"
        )
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    (left, right), kind = _factors((left, right), dtype)
    rank = len(batch)
    shape = (*batch, m, n, k)
    rows = [var(d) for d in range(rank)]
    aligned = [
        broadcast_to(left, (*batch, m, k)).view(shape, [*rows, var(rank), var(rank + 2)]),
        broadcast_to(right, (*batch, k, n)).view(shape, [*rows, var(rank + 2), var(rank + 1)]),
    ]
    result = cast(sum_of_products(aligned, 1), kind)
    gone = [d for d, operand in ((rank, a), (rank + 1, b)) if operand.rank == 1]
    return reshape(result, [e for d, e in enumerate((*batch, m, n)) if d not in gone]) if gone else result


@accumulated_wide
def gemm(a: Array, b: Array, c: Array | None = None, *, alpha: float = 1, beta: float = 1) -> Array:
    """`alpha a @ b + beta c`; `c` broadcasts to the product.

    >>> from pdojo import build
    >>> a, b, c = (build.input(name, "f32", shape) for name, shape in {"a": (4, 8), "b": (8, 2), "c": (2,)}.items())
    >>> build.gemm(a, b, c, alpha=0.5)
    <Array f32 [4, 2]>
    """
    return with_summand(matmul(a, b), c, alpha, beta)


def with_summand(product: Array, c: Array | None, alpha: float, beta: float) -> Array:
    """`alpha product + beta c`."""
    scaled = product if alpha == 1 else product * alpha
    if c is None or not beta:
        return scaled
    added = cast(c, product.dtype)
    return scaled + (added if beta == 1 else added * beta)


LARGEST_DETERMINANT = 6
"""The greatest number of rows of a determinant, whose nests double with each row."""


@rounded_once
def det(x: Array) -> Array:
    """The determinants of square matrices of up to 6 rows, the last two axes, by expansion along their rows.

    >>> from pdojo import build
    >>> build.det(build.input("x", "f32", (4, 3, 3)))
    <Array f32 [4]>
    """
    size = x.shape[-1] if x.rank > 1 else -1
    if size < 0 or x.shape[-2] != size or size > LARGEST_DETERMINANT:
        raise UsageError(
            f"determinants are of square matrices of up to {LARGEST_DETERMINANT} rows, not of {shown(x.shape[-2:])}"
        )
    # The minors of the last rows, by their columns.
    minors: dict[tuple[int, ...], Array] = {(): constant(1, x.dtype, x.shape[:-2])}
    for row in reversed(range(size)):
        found: dict[tuple[int, ...], Array] = {}
        for columns in combinations(range(size), size - row):
            total = None
            for k, column in enumerate(columns):
                part = x[..., row, column] * minors[columns[:k] + columns[k + 1 :]]
                total = part if total is None else total - part if k % 2 else total + part
            assert total is not None
            found[columns] = total
        minors = found
    return minors[tuple(range(size))]


def conv(
    x: Array,
    weights: Array,
    bias: Array | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Widths = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """The convolution of neural networks, of any number of spatial dimensions, padded with zeros.

    Shapes: `x` [N, C, *spatial], `weights` [O, C / groups, *window], `bias` [O]; the result is [N, O, *places].

    >>> from pdojo import build
    >>> x, k = build.input("x", "f32", (2, 4, 9, 9)), build.input("k", "f32", (6, 2, 3, 3))
    >>> build.conv(x, k, stride=2, padding=1, groups=2)
    <Array f32 [2, 6, 5, 5]>
    """
    rank = x.rank - 2
    if rank < 1 or weights.rank != x.rank:
        raise UsageError(
            f"conv takes x [N, C, ...] and weights of its rank, not {shown(x.shape)}, {shown(weights.shape)}"
        )
    outputs, channels = weights.shape[:2]
    if groups < 1 or x.shape[1] != channels * groups or outputs % groups:
        raise UsageError(
            f"{groups} groups of {channels} channels and {outputs} outputs do not fit x {shown(x.shape)} and weights "
            f"{shown(weights.shape)}"
        )
    (padded, kernel), kind = _factors((pad(x, [(0, 0), (0, 0), *ends_of(padding, rank)]), weights), None)
    seen = windows(padded, weights.shape[2:], stride, dilation)
    places, window = seen.shape[2 : 2 + rank], weights.shape[2:]
    n = x.shape[0]
    parts = reshape(seen, (n, groups, channels, *places, *window))
    filters = reshape(kernel, (groups, outputs // groups, channels, *window))
    # Iterations: image, group, output, places; channel, window.
    shape = (n, groups, outputs // groups, *places, channels, *window)
    at = [var(d) for d in range(len(shape))]
    aligned = [
        parts.view(shape, [at[0], at[1], at[3 + rank], *at[3 : 3 + rank], *at[4 + rank :]]),
        filters.view(shape, [at[1], at[2], *at[3 + rank :]]),
    ]
    result = reshape(sum_of_products(aligned, 1 + rank), (n, outputs, *places))
    return cast(with_bias(result, bias), kind)


def causal_conv_with_state(
    x: Array, weights: Array, bias: Array | None = None, state: Array | None = None
) -> tuple[Array, Array]:
    """The convolution of each channel with its elements before, and the last elements, which are the state afterwards.

    Shapes: `x` [N, C, L], `weights` [C, 1, window]; `state` [N, C, window - 1] is before the first elements, or 0.
    """
    if x.rank != 3 or weights.rank != 3:
        raise UsageError(f"arrays and windows have 3 axes, not the shapes {shown(x.shape)} and {shown(weights.shape)}")
    before = weights.shape[2] - 1
    past = constant(0, x.dtype, (*x.shape[:2], before)) if state is None else state
    if past.shape != (*x.shape[:2], before):
        known = f"the {before} elements before those of {shown(x.shape)}"
        raise UsageError(f"a state of shape {shown(past.shape)} is not {known}, for a window of {before + 1}")
    joined = concatenate([past, x], 2)
    return conv(joined, weights, bias, groups=x.shape[1]), joined[:, :, joined.shape[2] - before :]


def ends_of(padding: Widths, rank: int) -> Sequence[Sequence[int]]:
    """(before, after) for each spatial axis."""
    if isinstance(padding, int):
        return [(padding, padding)] * rank
    rows = [(row, row) if isinstance(row, int | Open) else row for row in padding]
    if len(rows) != rank or any(len(row) != 2 for row in rows):
        raise UsageError(f"padding is a number, or a number or a pair for each of {rank} axes, not {padding}")
    return rows


def with_bias(x: Array, bias: Array | None) -> Array:
    """`x` [N, C, ...] and a bias [C]."""
    if bias is None:
        return x
    if bias.shape != x.shape[1:2]:
        raise UsageError(f"a bias of shape {shown(bias.shape)} is not one of {x.shape[1]} channels")
    return map("+", x, reshape(cast(bias, x.dtype), (-1, *[1] * (x.rank - 2))))


def turned_taps(weights: Array) -> Array:
    """The weights [C, O, *window] of the convolution that is the gradient of one with the weights [O, C, *window]."""
    axes = range(2, weights.rank)
    return flip(transpose(weights, (1, 0, *axes)), axes)


def conv_transpose(
    x: Array,
    weights: Array,
    bias: Array | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Widths = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """The gradient of `conv`: every element of `x` adds the weights, times itself, to the result.

    Shapes: `x` [N, C, *spatial], `weights` [C, O / groups, *window], `bias` [O]; `padding` elements are cut off the
    ends of the result [N, O, *places], and `output_padding` are added at the end. It is a convolution of stride 1 for
    each position of the result modulo the stride.

    >>> from pdojo import build
    >>> x, k = build.input("x", "f32", (2, 4, 5, 5)), build.input("k", "f32", (4, 6, 3, 3))
    >>> build.conv_transpose(x, k, stride=2, padding=1, output_padding=1)
    <Array f32 [2, 6, 10, 10]>
    """
    rank = x.rank - 2
    if rank < 1 or weights.rank != x.rank or groups < 1 or weights.shape[0] != x.shape[1] or x.shape[1] % groups:
        raise UsageError(f"conv_transpose of {groups} groups: {shown(x.shape)} and {shown(weights.shape)} do not fit")
    strides, dilations = per_axis("stride", stride, rank), per_axis("dilation", dilation, rank)
    behind = per_axis("output_padding", output_padding, rank, least=0)
    spread = _spread(weights, dilations)
    # Extent of the result without padding; taps of each residue; elements of the result for each residue.
    whole = [
        (extent - 1) * s + k + more
        for extent, s, k, more in zip(x.shape[2:], strides, spread.shape[2:], behind, strict=True)
    ]
    first, last = zip(*ends_of(padding, rank), strict=True)
    sides = [extent - a - b for extent, a, b in zip(whole, first, last, strict=True)]
    if groups == 1 and _pays_by_phases(x, spread, strides, sides):
        return _by_phases(x, spread, bias, (strides, sides, first))
    taps = [-(-k // s) for k, s in zip(spread.shape[2:], strides, strict=True)]
    counts = [-(-extent // s) for extent, s in zip(whole, strides, strict=True)]
    before = [(tap - 1, count - extent) for tap, count, extent in zip(taps, counts, x.shape[2:], strict=True)]
    after = [(0, tap * s - k) for tap, s, k in zip(taps, strides, spread.shape[2:], strict=True)]
    # Blocks of outputs read neighbouring weights.
    spread = transpose(spread, [0, *range(2, 2 + rank), 1])
    operands = pad(x, [(0, 0), (0, 0), *before]), pad(spread, [(0, 0), *after, (0, 0)])
    (images, filters), kind = _factors(operands, None)
    n, channels, outputs = x.shape[0], x.shape[1] // groups, weights.shape[1]
    seen = flip(windows(images, taps), range(2 + rank, 2 + 2 * rank))
    parts = reshape(seen, (n, groups, channels, *counts, *taps))
    pairs = [extent for tap, s in zip(taps, strides, strict=True) for extent in (tap, s)]
    by_residue = reshape(filters, (groups, channels, *pairs, outputs))
    # Iterations: image, group, output, residues, places; channel, taps.
    shape = (n, groups, outputs, *strides, *counts, channels, *taps)
    at = [var(d) for d in range(len(shape))]
    residues, places, channel = at[3 : 3 + rank], at[3 + rank : 3 + 2 * rank], at[3 + 2 * rank]
    tap = at[4 + 2 * rank :]
    aligned = [
        parts.view(shape, [at[0], at[1], channel, *places, *tap]),
        by_residue.view(shape, [at[1], channel, *[e for two in zip(tap, residues, strict=True) for e in two], at[2]]),
    ]
    found = sum_of_products(aligned, 1 + rank)
    order = [0, 1, 2, *[d for k in range(rank) for d in (3 + rank + k, 3 + k)]]
    joined = [count * s for count, s in zip(counts, strides, strict=True)]
    flat = reshape(transpose(found, order), (n, groups * outputs, *joined))
    ends = [(-first, extent - last - total) for (first, last), extent, total in
            zip(ends_of(padding, rank), whole, joined, strict=True)]  # fmt: skip
    return cast(with_bias(pad(flat, [(0, 0), (0, 0), *ends]), bias), kind)


MOST_PHASES = 8
"""Most nests of a transposed convolution."""
FEWEST_CHANNELS = 16
"""Fewest channels for which a nest for each phase takes less time than one for all of them."""


def _pays_by_phases(x: Array, weights: Array, strides: Sequence[int], sides: Sequence[int]) -> bool:
    """True if products are most of a transposed convolution, and a convolution for each phase takes less time.

    False for numbers of 16 bits, whose sums are rounded once, behind the bias.
    """
    if is_open(x.shape) or is_open(weights.shape) or x.dtype not in ("f32", "f64") or x.dtype != weights.dtype:
        return False
    if x.shape[1] < FEWEST_CHANNELS or not 1 < prod(strides) <= MOST_PHASES or min(sides) < 1:
        return False
    return any(k > s for k, s in zip(weights.shape[2:], strides, strict=True))


def _by_phases(x: Array, weights: Array, bias: Array | None, result: Sequence[Sequence[int]]) -> Array:
    """The transposed convolution, with a convolution for the places of the result with each remainder by the stride.

    `result` has the strides, the extents of the result, and the places of the one without padding at which it begins.
    """
    strides, sides, cut = result
    phases = [
        [_phase(k, s, r + before, -(-(side - r) // s)) for r in range(min(s, side))]
        for k, s, before, side in zip(weights.shape[2:], strides, cut, sides, strict=True)
    ]
    before = [max(0, *(-phase.start for phase in along)) for along in phases]
    after = [
        max(0, *(phase.start + phase.places + phase.taps - 1 - extent for phase in along))
        for along, extent in zip(phases, x.shape[2:], strict=True)
    ]
    padded = pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    idle = any(not phase.taps for along in phases for phase in along)
    pieces: list[Piece] = []
    for residues in combined(*(range(len(along)) for along in phases)):
        own = [along[r] for along, r in zip(phases, residues, strict=True)]
        window = weights[(..., *[slice(phase.first, None, s) for phase, s in zip(own, strides, strict=True)])]
        if not window.size:
            continue
        starts = [begin + phase.start for begin, phase in zip(before, own, strict=True)]
        ends = [start + phase.places + phase.taps - 1 for start, phase in zip(starts, own, strict=True)]
        seen = padded[(..., *[slice(*pair) for pair in zip(starts, ends, strict=True)])]
        taps = turned_taps(window)
        place = (..., *[slice(r, None, s) for r, s in zip(residues, strides, strict=True)])
        pieces.append((place, conv(seen, taps, None if idle else bias)))
    found = assemble((x.shape[0], weights.shape[1], *sides), pieces, 0 if idle else None)
    return with_bias(found, bias if idle else None)


class _Phase(NamedTuple):
    """The places of a result with one remainder by the stride, along one axis."""

    first: int
    """The first tap that they read."""
    taps: int
    """The number of these taps, which are a stride apart."""
    start: int
    """The first element of the input that the first place reads; negative before the input."""
    places: int


def _phase(taps: int, stride: int, position: int, count: int) -> _Phase:
    """The phase whose first place is at a position of the result without padding."""
    first = position % stride
    own = -(-(taps - first) // stride) if taps > first else 0
    return _Phase(first, own, position // stride - own + 1, count)


def _spread(weights: Array, dilations: Sequence[int]) -> Array:
    """The weights with zeros between them."""
    if prod(dilations) == 1:
        return weights
    window = [(k - 1) * d + 1 for k, d in zip(weights.shape[2:], dilations, strict=True)]
    place = (..., *[slice(None, None, d) for d in dilations])
    return assemble((*weights.shape[:2], *window), [(place, weights)])
