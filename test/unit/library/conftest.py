"""The small library, built once for all tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaded_library import Loaded, build_unproved, require_compiler, small_spec


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small library."""
    require_compiler()
    folder = tmp_path_factory.mktemp("library") / "dist"
    build_unproved(small_spec(), folder)
    return folder


@pytest.fixture(scope="session")
def small(built: Path) -> Loaded:
    """The small library, loaded."""
    return Loaded.of(built)


@pytest.fixture
def handle(small: Loaded) -> Iterator[ctypes.c_void_p]:
    """A handle of two threads."""
    made = small.create()
    yield made
    small.function("destroy")(made)
