"""Random kernels, and walks that keep every promise."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.kernels.random_kernels import CPU, Features, random_text
from qa.shrink import lit_test, shrunk
from qa.walks import Counts, FailedWalk, walk

__all__ = ["CPU", "assert_walk", "random_texts"]

_BATCH = 50


def random_texts(number: int, features: Features = CPU) -> list[str]:
    """The texts of `_BATCH` random kernels, the same for the same number."""
    random = Random(number)
    return [random_text(random.getrandbits(62), features) for _ in range(_BATCH)]


def assert_walk(kernel: KernelOp | str, on: str, seed: int, length: int, counts: Counts, **options: Any) -> None:
    """Fail with a lit test if a random walk breaks a promise; `options` are those of `qa.walks.walk`."""
    start = parse_notation(kernel)[0] if isinstance(kernel, str) else kernel
    for step in walk(start, machine(on), seed, length, counts, **options):
        if isinstance(step, FailedWalk):
            pytest.fail(lit_test(shrunk(step, options.get("check"))))
