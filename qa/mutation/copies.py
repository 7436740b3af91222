"""Private copies of the project for planted defects: the working tree is never touched."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from pdojo.errors import UsageError
from qa.mutation.mutant import Mutant

_CODE = ("pdojo", "tools", "qa", "benchmarks", "test")
PARTS = (*_CODE, "docs", "examples", "pyproject.toml", "README.md", "CHANGELOG.md")
"""The contents of a copy: the packages, the tests, and the files that the tests read."""

_SKIPPED = shutil.ignore_patterns("Output", "results", ".lit_test_times.txt", ".hypothesis", ".pytest_cache")


def checkout() -> Path:
    """The root of this package's checkout. Raises UsageError for an installed package."""
    root = Path(__file__).resolve().parents[2]
    missing = [part for part in PARTS if not (root / part).exists()]
    if missing:
        raise UsageError(f"mutants need a checkout with its tests; {root} has no {', '.join(missing)}")
    return root


def digest(root: Path) -> str:
    """A digest of all sources and tests: results stay valid while it is the same."""
    state = sha256()
    for part in _CODE:
        for path in sorted((root / part).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".pdojo", ".mlir", ".trace") and "Output" not in path.parts:
                state.update(str(path.relative_to(root)).encode())
                state.update(path.read_bytes())
    return state.hexdigest()[:16]


@contextmanager
def private_copy(root: Path, mutant: Mutant | None, *, linked: bool = False) -> Generator[Path]:
    """A copy of the project, with the defect if one is given, while the context lasts.

    `linked` makes hard links, in a quarter of the time, if `root` is a private copy that nobody edits.
    """
    copied = os.link if linked else shutil.copy2
    with tempfile.TemporaryDirectory(prefix="pdojo-mutant-") as folder:
        copy = Path(folder)
        for part in PARTS:
            if (root / part).is_dir():
                shutil.copytree(root / part, copy / part, ignore=_SKIPPED, copy_function=copied)
            else:
                copied(root / part, copy / part)
        (copy / "pdojo_tools").symlink_to("tools")
        if mutant is not None:
            path = mutant.path(copy)
            path.unlink()
            path.write_text(mutant.mutated(root), encoding="utf-8")
            # Python takes a compiled file as fresh if time and size agree: give the text a later time.
            stamp = path.stat()
            os.utime(path, (stamp.st_atime, stamp.st_mtime + 2))
        yield copy
