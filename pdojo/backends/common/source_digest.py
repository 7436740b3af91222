"""Digests of pdojo's own source, which identify the code that made a measurement."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
"""The folder of pdojo."""
RUNNING = (
    "backends/*.py",
    "backends/calibration/*.py",
    "backends/calling/*.py",
    "backends/common/*.py",
    "backends/llvm/**/*.py",
    "backends/measure/**/*.py",
    "dialect/*.py",
    "dialect/flow/**/*.py",
    "dialect/machines/**/*.py",
    "dialect/ops/**/*.py",
    "dialect/rules/**/*.py",
    "dialect/semantics/**/*.py",
    "dialect/shortcuts/**/*.py",
    "dialect/verification/**/*.py",
    "dialect/view/**/*.py",
    "math/**/*.py",
    "toml.py",
)
"""Files that generate machine code, time it, or define its expected results."""


def source_digest(*patterns: str) -> str:
    """The first 16 digits of `whole_digest`, for storing and showing."""
    return whole_digest(*patterns)[:16]


@cache
def whole_digest(*patterns: str) -> str:
    """Hexadecimal SHA-256 of the package's files that match `patterns`, read at the first call."""
    found = sha256()
    for file in sorted({file for pattern in patterns for file in PACKAGE.glob(pattern)}):
        found.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()
