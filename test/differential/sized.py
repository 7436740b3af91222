"""Values of the sizes of kernels, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from pdojo.dialect.ops import KernelOp


def values_of(kernel: KernelOp, blocks: tuple[int, ...]) -> Iterator[dict[str, int]]:
    """The ends of the ranges of all sizes, the values beside them, and those around multiples of blocks."""
    sizes = kernel.known_sizes().values()
    for at in ("low", "high"):
        yield {s.name: getattr(s, at) for s in sizes}
    yield {s.name: min(s.low + s.step, s.high) for s in sizes}
    yield {s.name: max(s.high - s.step, s.low) for s in sizes}
    for block in blocks:
        for more in (-1, 0, 1):
            yield {s.name: min(max((block + more) // s.step * s.step, s.low), s.high) for s in sizes}
