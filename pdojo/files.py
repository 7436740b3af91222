"""Files: reading user files (regular, of bounded size) as text; replacing files atomically."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

_PART = 1 << 20
LARGEST = 1 << 20
"""Most bytes of a kernel, a trace, a machine description or a program in assembly."""


def read_text(path: Path, largest: int = LARGEST) -> str:
    """The text of a file, without a byte order mark.

    Raises OSError unless `path` is a readable regular file of at most `largest` bytes, UnicodeDecodeError unless it is
    UTF-8.
    """
    return decode(read_bytes(path, largest))


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """The contents of a file. Raises OSError unless `path` is a readable regular file of at most `largest` bytes."""
    check_name(path)
    # Open without blocking: opening a pipe that has no writer would take for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return read_bounded(file, largest)
    finally:
        os.close(descriptor)


def check_name(path: Path) -> None:
    """Raise OSError for a name that no file has; Python's own error would be a ValueError."""
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        raise OSError(errno.EINVAL, "the system cannot encode its name") from None
    if b"\0" in name:
        raise OSError(errno.EINVAL, "its name has a zero byte")


def read_bounded(stream: BinaryIO, largest: int = LARGEST) -> bytes:
    """The rest of a stream. Raises OSError if it has more than `largest` bytes."""
    data = bytearray()
    # Read in parts: one read of `largest` bytes would allocate that much memory even for a tiny file.
    while part := stream.read(min(_PART, largest + 1 - len(data))):
        data += part
        if len(data) > largest:
            raise OSError(errno.EFBIG, f"it is larger than {largest >> 20} MiB")
    return bytes(data)


def decode(data: bytes) -> str:
    """UTF-8 as text, without a byte order mark. Raises UnicodeDecodeError."""
    return data.decode("utf-8-sig")


def exists(path: str | Path) -> bool:
    """Whether a file exists at that path; False for a path that the system rejects."""
    return os.path.exists(path)


def changed(path: Path) -> int:
    """Time of a file's last change in nanoseconds; 0 if there is no file."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


def replace_file(target: Path, data: bytes) -> None:
    """Write a file atomically; an existing file keeps its mode. Raises OSError, and then leaves no temporary file."""
    check_name(target)
    temporary = None
    try:
        # A temporary file with an unguessable name, not a link: other users may write to the folder.
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The mode of the existing file, or the default mode of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def default_database() -> Path:
    """The database of searches: `PDOJO_DATABASE`, or `pdojo/search.sqlite` in the user's data folder."""
    given = os.environ.get("PDOJO_DATABASE")
    if given:
        return Path(given)
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG specification says to ignore relative paths.
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "pdojo" / "search.sqlite"


def cache_folder(name: str) -> Path:
    """pdojo's folder `name` in the user's cache; it need not exist."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "pdojo" / name
