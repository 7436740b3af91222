"""Writing results: only a complete new file replaces an existing one."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import cast

from pdojo.errors import UsageError
from pdojo.files import replace_file, write_file


def write_output(content: str | bytes, path: str | None) -> None:
    """Write to a file, in one step, or to standard output (None and `-`).

    Links are followed; pipes and devices are written directly. Raises UsageError if writing fails, and for bytes that
    would go to a terminal.
    """
    if path is None or path == "-":
        _write_standard(content)
        return
    # File names may contain bytes that are no text.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        if _is_special(Path(path)):
            write_file(Path(path), data)
        else:
            replace_file(_meant(path), data)
    except OSError as error:
        raise _cannot_write(path, error) from None


def json_text(value: object) -> str:
    """A value as JSON; numbers that are not finite become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False) + "\n"


def write_json(value: object, path: str | None = None) -> None:
    """Write a value as `json_text`. Raises UsageError if writing fails."""
    write_output(json_text(value), path)


def shows_colours(path: str | None) -> bool:
    """True if output with colours may be written: to a terminal, unless NO_COLOR is set."""
    return path in (None, "-") and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("Sequence[object]", value)]
    return value


def check_writable(path: str) -> None:
    """Raise UsageError if `write_output` would fail, before hours of work."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"'{path}' is a folder; name a file")
    if not target.parent.is_dir():
        raise UsageError(f"cannot write '{path}': there is no folder '{target.parent}'")
    try:
        with suppress(FileNotFoundError):
            target.lstat()
        if _is_special(target):
            if not os.access(target, os.W_OK):
                raise UsageError(f"cannot write '{path}': Permission denied")
        else:
            check_folder(_meant(path).parent)
    except OSError as error:
        raise _cannot_write(path, error) from None


def check_folder(folder: Path) -> None:
    """Raise OSError if no file can be created in a folder."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def _cannot_write(path: str, error: OSError) -> UsageError:
    return UsageError(f"cannot write '{path}': {error.strerror}")


def _meant(path: str) -> Path:
    """The file behind a path's links. Raises OSError if they form a cycle."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


def _is_special(target: Path) -> bool:
    """True for a file that cannot be replaced: a pipe, a device."""
    return target.exists() and not target.is_file() and not target.is_dir()


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


def replaced(text: str, begin: str, generated: str, end: str) -> str:
    """A page with its generated part, between two lines, replaced."""
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{generated}\n{end}{rest.partition(end)[2]}"
