"""`pdojo-lib bench`: the benchmark of a library, which is part of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pdojo_tools.command import tool

import pdojo
from pdojo.errors import UsageError


def bench(arguments: Sequence[str]) -> int:
    """Run `python -m benchmarks.library` with these arguments in a process of its own; returns its exit code."""
    root = Path(pdojo.__file__).resolve().parents[1]
    refused = tool(lambda _: _check(root))(())
    if refused:
        return refused
    # First, because the package xdsl installs a package `benchmarks` too.
    paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-P", "-m", "benchmarks.library", *arguments]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The benchmark has been interrupted too, and says so.
            continue


def _check(root: Path) -> None:
    if not (root / "benchmarks" / "library.py").is_file():
        raise UsageError(
            "pdojo-lib bench needs a checkout of pdojo, which has the other libraries' implementations; install pdojo "
            "from one (pip install -e)"
        )
