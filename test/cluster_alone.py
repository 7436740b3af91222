"""What tests on private Ray clusters share."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'pdojo[ray]')")


@contextmanager
def processors_alone() -> Generator[None, None, None]:
    """The processors of this machine, which other processes that run tests may use for clusters too."""
    with (Path(tempfile.gettempdir()) / f"pdojo-cluster-tests-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
