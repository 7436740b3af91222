"""Results of compilers in a folder of the user's cache."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pdojo.files import read_bytes, replace_file

MOST_BYTES = 256 << 20
"""Limit of a cache in bytes; the least recently used files are removed first."""
_LARGEST = 64 << 20
"""Limit of one file in bytes."""
_BETWEEN = 32
"""Number of files that a process stores between two checks of the cache's size."""


class FileCache:
    """Bytes by key, a file each; several processes may use a folder at once, and may be killed.

    A file has the digest of its contents: a damaged one counts as missing. If the folder is not writable, nothing is
    stored.
    """

    def __init__(self, folder: Path, suffix: str, most_bytes: int = MOST_BYTES) -> None:
        """`suffix` begins with a dot; files with other suffixes are not the cache's."""
        self.folder = folder
        self.most_bytes = most_bytes
        self._suffix = suffix
        self._stored = 0

    def read(self, key: str) -> bytes | None:
        """The bytes of a key, marked as used now; None if there are none."""
        file = self._file(key)
        try:
            digest, _, data = read_bytes(file, _LARGEST).partition(b"\n")
            os.utime(file)
        except OSError:
            return None
        return data if sha256(data).hexdigest().encode() == digest else None

    def store(self, key: str, data: bytes) -> None:
        """Keep the bytes of a key."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._file(key), sha256(data).hexdigest().encode() + b"\n" + data)
            self._stored += 1
            if self._stored % _BETWEEN == 1:
                self._remove_oldest()

    def _file(self, key: str) -> Path:
        return self.folder / f"{sha256(key.encode()).hexdigest()}{self._suffix}"

    def _remove_oldest(self) -> None:
        entries = [(entry.stat(), entry.path) for entry in os.scandir(self.folder) if entry.name.endswith(self._suffix)]
        total = sum(stat.st_size for stat, _ in entries)
        for stat, path in sorted(entries, key=lambda entry: entry[0].st_mtime_ns):
            if total <= self.most_bytes:
                return
            Path(path).unlink(missing_ok=True)
            total -= stat.st_size
