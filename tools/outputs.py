"""Writing results: a file that exists is replaced only by a complete new one."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pdojo.errors import UsageError


def write_output(content: str | bytes, path: str | None) -> None:
    """Write to a file, in one step, or to standard output (None and `-`).

    Raises UsageError where that fails, and for bytes that would go to a terminal.
    """
    if path is None or path == "-":
        _write_standard(content)
        return
    target = Path(path)
    temporary = None
    data = content.encode() if isinstance(content, str) else content
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _write_standard(content: str | bytes) -> None:
    if isinstance(content, str):
        sys.stdout.write(content)
        sys.stdout.flush()
        return
    if sys.stdout.isatty():
        raise UsageError("this is binary output, which a terminal cannot show; write it to a file (-o FILE)")
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _mode(target: Path) -> int:
    """The mode that the file has, or that a new one would get."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
