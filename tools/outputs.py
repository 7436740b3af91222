"""Writing results: a file that exists is replaced only by a complete new one."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pdojo.errors import UsageError


def write_output(text: str, path: str | None) -> None:
    """Write to a file, in one step, or to standard output (None and `-`). Raises UsageError where that fails."""
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    target = Path(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(text)
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _mode(target: Path) -> int:
    """The mode that the file has, or that a new one would get."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
