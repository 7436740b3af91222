"""Results of compilers in a folder of the user's cache."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pdojo.files import check_owner, data_folder, read_bytes, remove_abandoned, replace_file

MOST_BYTES = 256 << 20
"""Limit of a cache in bytes; the least recently used files are removed first."""
_LARGEST = 64 << 20
"""Limit of one file in bytes."""
_BETWEEN = 32
"""Number of files that a process stores between two checks of the cache's size."""
_SECRET_BYTES = 32


class FileCache:
    """Bytes, keyed by key, a file each; several processes may use a folder at once, and may be killed.

    A file begins with the HMAC-SHA256 of its name and contents by the user's secret. A damaged, renamed or foreign file
    counts as missing, and so does one of another user, or that others may read or write. Nothing is stored without a
    folder, and in one that is not writable or belongs to another user.
    """

    def __init__(self, folder: Path | None, suffix: str, most_bytes: int = MOST_BYTES) -> None:
        """`suffix` begins with a dot; the cache owns the folder's files with it, and the temporary ones."""
        self.folder = folder
        self.most_bytes = most_bytes
        self._suffix = suffix
        self._stored = 0

    def read(self, key: str) -> bytes | None:
        """The bytes of a key, marked as used now; None if there are none."""
        if self.folder is None:
            return None
        file = self._file(self.folder, key)
        try:
            check_owner(self.folder.stat(), 0o022)
            code, _, data = read_bytes(file, _LARGEST, private=True).partition(b"\n")
            if not hmac.compare_digest(code, _authentication(file, data)):
                return None
            os.utime(file)
        except OSError:
            return None
        return data

    def store(self, key: str, data: bytes) -> None:
        """Keep the bytes of a key."""
        if self.folder is None:
            return
        file = self._file(self.folder, key)
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_owner(self.folder.stat(), 0)
            # Other users may have been permitted to write to a folder that existed.
            self.folder.chmod(0o700)
            if self._stored % _BETWEEN == 0:
                remove_abandoned(self.folder)
            replace_file(file, _authentication(file, data) + b"\n" + data, mode=0o600)
            self._stored += 1
            if self._stored % _BETWEEN == 1:
                self._remove_oldest(self.folder)

    def _file(self, folder: Path, key: str) -> Path:
        return folder / f"{sha256(key.encode()).hexdigest()}{self._suffix}"

    def _remove_oldest(self, folder: Path) -> None:
        entries = [(entry.stat(), entry.path) for entry in os.scandir(folder) if entry.name.endswith(self._suffix)]
        total = sum(stat.st_size for stat, _ in entries)
        for stat, path in sorted(entries, key=lambda entry: entry[0].st_mtime_ns):
            if total <= self.most_bytes:
                return
            Path(path).unlink(missing_ok=True)
            total -= stat.st_size


def _authentication(file: Path, data: bytes) -> bytes:
    """The code that only the user can make for a file of that name. Raises OSError if there can be no secret."""
    return hmac.digest(_secret(), file.name.encode() + b"\n" + data, "sha256").hex().encode()


def _secret() -> bytes:
    """The user's secret, made at the first use. Raises OSError if it cannot be kept for the user alone."""
    file = data_folder() / "cache-key"
    with suppress(OSError):
        known = read_bytes(file, _SECRET_BYTES, private=True)
        if len(known) == _SECRET_BYTES:
            return known
    file.parent.mkdir(parents=True, exist_ok=True)
    check_owner(file.parent.stat(), 0)
    replace_file(file, secrets.token_bytes(_SECRET_BYTES), mode=0o600)
    # Another process may have written the file in the meantime.
    return read_bytes(file, _SECRET_BYTES, private=True)
