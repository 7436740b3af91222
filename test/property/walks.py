"""Random kernels for random walks, and kernels that walks once failed on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from hypothesis import HealthCheck, Phase, given, seed, settings

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from property.kernels import Features, kernel_texts

CPU = replace(Features(), mappings=("u", "p", "v"), facts=False)
"""What the moves of a CPU may meet. Without facts: a kernel that forbids a numerics class has fewer moves."""

_BATCH = 50


def random_texts(number: int) -> list[str]:
    """The texts of `_BATCH` random kernels, the same for the same number."""
    texts: list[str] = []

    @seed(number)
    @settings(
        max_examples=_BATCH,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(kernel_texts(CPU))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


def random_kernels(number: int) -> Iterator[KernelOp]:
    """Random kernels without end, the same for the same number."""
    for batch in count():
        for text in random_texts(number * 1_000_003 + batch):
            yield parse_notation(text)[0]
