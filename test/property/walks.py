"""Random kernels for random walks."""

from __future__ import annotations

from random import Random

from qa.random_kernels import CPU, Features, random_text

__all__ = ["CPU", "random_texts"]

_BATCH = 50


def random_texts(number: int, features: Features = CPU) -> list[str]:
    """The texts of `_BATCH` random kernels, the same for the same number."""
    random = Random(number)
    return [random_text(random.getrandbits(62), features) for _ in range(_BATCH)]
