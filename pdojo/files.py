"""Files: reading user files (regular, of bounded size) as text; replacing files atomically."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PART = 1 << 20
_TEMPORARY = ".pdojo-"
"""Names of temporary files begin so; the number of their process follows."""
LARGEST = 1 << 20
"""Most bytes of a kernel, a trace, a machine description or a program in assembly."""


def read_text(path: Path, largest: int = LARGEST) -> str:
    """The text of a file, without a byte order mark.

    Raises OSError unless `path` is a readable regular file of at most `largest` bytes, UnicodeDecodeError unless it is
    UTF-8.
    """
    return decode(read_bytes(path, largest))


def read_bytes(path: Path, largest: int = LARGEST, *, private: bool = False) -> bytes:
    """The contents of a file. Raises OSError unless `path` is a readable regular file of at most `largest` bytes.

    With `private` also if it belongs to another user, or others may read or write it.
    """
    check_name(path)
    # Open without blocking: opening a pipe that has no writer would take for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")
        if private:
            check_owner(status, 0o077)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return read_bounded(file, largest)
    finally:
        os.close(descriptor)


def check_owner(status: os.stat_result, others: int) -> None:
    """Raise PermissionError for a file of another user, or one with a permission of the mask `others`."""
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user")
    if status.st_mode & others:
        raise PermissionError(errno.EPERM, "others have access to it")


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


def write_file(path: Path, data: str | bytes, *, append: bool = False) -> None:
    """Write a file that nobody reads before it is complete; text as UTF-8. Raises OSError with the file's name."""
    with _naming(path), path.open("ab" if append else "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """A context that adds the name of a file to an OSError, which an error of a full disk lacks."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def replace_file(target: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file atomically. Raises OSError with the file's name, and then leaves no temporary file.

    `mode` None keeps that of an existing file, and is the default for a new one.
    """
    check_name(target)
    temporary = None
    try:
        # A temporary file with an unguessable name, not a link: other users may write to the folder.
        prefix = f"{_TEMPORARY}{os.getpid()}-"
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=prefix, delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.chmod(_mode(target) if mode is None else mode)
        temporary.replace(target)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(target), None
        raise


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of processes that ended while they replaced a file in the folder. Raises OSError.

    If a writer on another computer shares the folder, its `replace_file` may raise FileNotFoundError.
    """
    for path in folder.glob(f"{_TEMPORARY}*"):
        writer = path.name.removeprefix(_TEMPORARY).partition("-")[0]
        if writer.isdecimal() and not _runs(int(writer)):
            path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _mode(target: Path) -> int:
    """The mode of the existing file, or the default mode of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def default_database() -> Path:
    """The database of searches: `PDOJO_DATABASE`, or `search.sqlite` in `data_folder()`. Raises its OSError."""
    given = os.environ.get("PDOJO_DATABASE")
    return Path(given) if given else data_folder() / "search.sqlite"


def existing_database(path: str | Path | None = None) -> Path | None:
    """The database `path`, by default `default_database()`; None if there is no such file."""
    try:
        file = default_database() if path is None else Path(path)
    except FileNotFoundError:  # The user has no home folder.
        return None
    return file if file.exists() else None


def data_folder() -> Path:
    """pdojo's folder in the user's data; it need not exist. Raises FileNotFoundError if the user has no home folder."""
    return _user_folder("XDG_DATA_HOME", ".local", "share")


def cache_folder(name: str) -> Path | None:
    """pdojo's folder `name` in the user's cache; it need not exist. None if the user has no home folder."""
    try:
        return _user_folder("XDG_CACHE_HOME", ".cache") / name
    except FileNotFoundError:
        return None


def _user_folder(variable: str, *default: str) -> Path:
    given = Path(os.environ.get(variable, ""))
    # The XDG specification says to ignore relative paths.
    if given.is_absolute():
        return given / "pdojo"
    try:
        return Path.home().joinpath(*default, "pdojo")
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, f"no home folder is known; set HOME or {variable}", "~") from None
