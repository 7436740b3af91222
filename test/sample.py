"""A sample of the library's kernels; tests of what every kernel goes through take the others only with `--slow`.

Kernels that are in no library have small sizes here.
"""

from __future__ import annotations

import pytest

from benchmarks.unseen import UnseenWorkload, unseen
from pdojo.kernels import kernel_names

__all__ = ["SAMPLE", "sampled", "small_unseen"]

SAMPLE = (
    "argmax",
    "axpy",
    "bmm",
    "conv",
    "cumsum",
    "layernorm",
    "matmul",
    "matmul_i8",
    "maxpool",
    "reducemean",
    "rotary",
    "softmax",
    "transpose",
)
"""One kernel of each kind: selections of indices, scalars, batches, windows with channels, dependent sums,
normalisations with parameters, products, integers, windows without products, sums, two halves of a row, rows that are
read three times, and transposition."""


def sampled(*long: str) -> list[object]:
    """The names of all kernels, as parameters of a test; kernels outside the sample, and those in `long`, are slow."""
    quick = set(SAMPLE) - set(long)
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in kernel_names(long=False)]


def small_unseen(name: str) -> UnseenWorkload:
    """A kernel of `benchmarks.unseen` at small, odd sizes; windows, paddings and small axes stay."""
    sizes = unseen(name).sizes
    given = tuple((size, min(extent, 11 + 2 * place)) for place, (size, extent) in enumerate(sizes.items()))
    return UnseenWorkload(name, given, label=name)
