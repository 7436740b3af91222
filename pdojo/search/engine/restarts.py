"""Restarts of searches that no longer make progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
ALONE = 2
"""Number of restarts from nothing before each restart with the champions."""


def taken_up(champions: Sequence[T]) -> list[T]:
    """The earlier bests that seed a restart: all of them at every third restart, else none."""
    return list(champions) if len(champions) % (ALONE + 1) == ALONE else []
