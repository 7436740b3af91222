"""A reference of erf wider than f64, and arguments at which inlined math functions are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def erf_series(x: Array) -> Array:
    """erf by the series 2/sqrt(pi) * exp(-x*x) * sum(2**n * x**(2*n+1) / (2*n+1)!!), whose terms have one sign."""
    magnitude = np.minimum(np.abs(x), x.dtype.type(6.2))
    term, total = magnitude.copy(), magnitude.copy()
    for n in range(1, 150):
        term *= 2 * magnitude * magnitude / (2 * n + 1)
        total += term
    root = np.sqrt(np.arctan(x.dtype.type(1)))
    value = np.exp(-magnitude * magnitude) * total / root
    return np.copysign(np.where(np.isnan(x), x, value), x)


def f32_patterns(stride: int) -> Iterator[NDArray[np.float32]]:
    """Every `stride`-th of all f32 numbers, in pieces that stay in a cache."""
    piece = stride << 15
    for first in range(0, 1 << 32, piece):
        patterns = np.arange(first, min(first + piece, 1 << 32), stride, dtype=np.uint64)
        yield patterns.astype(np.uint32).view(np.float32)


def f64_arguments(seed: int, count: int = 60_000) -> Array:
    """All magnitudes, and dense samples where functions change fast or results are rounded to denormal numbers."""
    random = np.random.default_rng(seed)
    sign = random.choice([-1.0, 1.0], count)
    quarter_turns = np.arange(1, 3000) * (np.pi / 2)
    return np.concatenate(
        [
            random.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64),
            sign * np.exp2(random.uniform(-30, 12, count)),
            np.exp2(random.uniform(-1074, -1000, count // 8)),
            random.uniform(-800, 800, count),
            random.uniform(-745.2, -708, count // 8),
            random.uniform(-1.5, 1.5, 2 * count),
            random.uniform(0.3, 1.7, 2 * count),
            random.uniform(-6, 6, count),
            -np.exp2(random.uniform(-70, 0, count // 4)),
            quarter_turns,
            -quarter_turns,
            # Of all f64 numbers, the one next to a multiple of pi/2.
            np.array([np.ldexp(6381956970095103.0, 797), 1e22, 1e300]),
            specials(np.dtype(np.float64)),
        ]
    )


def specials(dtype: np.dtype[Any]) -> Array:
    """Zeros, infinities, nan, the ends of the normal and the denormal numbers, small integers, with both signs."""
    info = np.finfo(dtype)
    positive = [0.0, np.inf, info.max, info.tiny, info.smallest_subnormal, info.tiny / 2, 1 + info.eps, 1 - info.epsneg]
    positive += [0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 127.0, 1023.0, 1.0 / info.eps, 2.0 / info.eps + 2.0]
    return np.array([*positive, *(-p for p in positive), np.nan], dtype)


def powers(dtype: np.dtype[Any], seed: int, count: int) -> tuple[Array, Array]:
    """(x, y) for x**y: anything, what is within range, x next to 1, integers, all pairs of special numbers."""
    random = np.random.default_rng(seed)
    kind, top = (np.uint32, 128) if dtype == np.float32 else (np.uint64, 1024)
    width = 8 * dtype.itemsize
    special = specials(dtype)

    def anything() -> Array:
        return random.integers(0, 1 << width, count, dtype=kind).view(dtype)

    pairs = [
        (anything(), anything()),
        (np.exp2(random.uniform(-20, 20, count)), random.uniform(-top / 20, top / 20, count)),
        (np.exp2(random.uniform(-top, top, count)), random.uniform(-1.1, 1.1, count)),
        (np.exp2(random.uniform(-0.5, 0.5, count)), random.uniform(-2.1 * top, 2.1 * top, count)),
        (1 + random.normal(size=count) * 1e-3, random.uniform(-700 * top, 700 * top, count)),
        (random.integers(-40, 40, count), random.integers(-40, 40, count)),
        (special.repeat(len(special)), np.tile(special, len(special))),
    ]
    return np.concatenate([x.astype(dtype) for x, _ in pairs]), np.concatenate([y.astype(dtype) for _, y in pairs])
