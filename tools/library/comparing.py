"""`pdojo-lib bench`: the benchmark of a library, which is part of a checkout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pdojo
from pdojo.errors import UsageError


def bench(arguments: Sequence[str]) -> None:
    """Run `python -m benchmarks.library` with these arguments. Raises UsageError outside of a checkout."""
    root = Path(pdojo.__file__).resolve().parents[1]
    if not (root / "benchmarks" / "library.py").is_file():
        raise UsageError(
            "pdojo-lib bench needs a checkout of pdojo, which has the other libraries' implementations; install pdojo "
            "from one (pip install -e)"
        )
    # First, because the package xdsl installs a package `benchmarks` too.
    if sys.path[0] != str(root):
        sys.path.insert(0, str(root))
    import_module("benchmarks.library").run(arguments)
