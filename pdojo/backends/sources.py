"""Digests of our own source: what was measured with other code is another measurement."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
"""The folder of pdojo."""
RUNNING = (
    "backends/*.py",
    "backends/llvm/*.py",
    "backends/measure/*.py",
    "dialect/*.py",
    "dialect/analysis/*.py",
    "dialect/ops/*.py",
    "dialect/oracle/*.py",
)
"""Files that make machine code, that time it, and that say what it should compute."""


def source_digest(*patterns: str) -> str:
    """The first digits of `whole_digest`: to be stored, and shown."""
    return whole_digest(*patterns)[:16]


@cache
def whole_digest(*patterns: str) -> str:
    """Hexadecimal SHA-256 of the files of the package that match, as they are when it is first asked for."""
    found = sha256()
    for file in sorted({file for pattern in patterns for file in PACKAGE.glob(pattern)}):
        found.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()
