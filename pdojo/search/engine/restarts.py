"""Restarts of searches that no longer make progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
ALONE = 2
"""Number of restarts without the champions for each that begins with them."""


def taken_up(champions: Sequence[T]) -> list[T]:
    """What a restart takes up of the best of each time before: nothing, or all of them every third time."""
    return list(champions) if len(champions) % (ALONE + 1) == ALONE else []
