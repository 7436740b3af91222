"""The folder of a library while it is built, and the one step in which it takes its place."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pdojo.errors import MeasurementError, UsageError
from pdojo.files import check_name, read_text, replace_file, write_file
from pdojo.library.manifest import FORMAT, LARGEST, MANIFEST, differing
from pdojo.library.paths import inside


@dataclass(frozen=True)
class Workplace:
    """The folder `.DEST.building` beside the destination: finished programs, and the library as it is assembled.

    A killed process leaves it behind, and the next build continues with it.
    """

    destination: Path

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.destination.parent / f".{self.destination.name}.building"

    @property
    def programs(self) -> Path:
        """The folder of finished programs."""
        return self.folder / "programs"

    @property
    def library(self) -> Path:
        """The library that is put together."""
        return self.folder / "library"

    @property
    def _old(self) -> Path:
        """The library that was replaced, until it is removed."""
        return self.destination.parent / f".{self.destination.name}.old"

    def keep(self, name: str, key: str, facts: dict[str, Any], code: bytes) -> None:
        """Store a finished program: its facts last, so that they are there only with the code."""
        replace_file(inside(self.programs, f"{name}.o"), code)
        replace_file(inside(self.programs, f"{name}.json"), json.dumps({"key": key, **facts}).encode())

    def find(self, name: str, key: str) -> dict[str, Any] | None:
        """The facts of a finished program; None if it is missing, or made from other facts than `key` says."""
        try:
            data: object = json.loads(read_text(inside(self.programs, f"{name}.json")))
        except (OSError, ValueError, UsageError):
            return None
        found = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        return found if found.get("key") == key and inside(self.programs, f"{name}.o").is_file() else None

    def begin(self) -> None:
        """Make an empty folder for the library."""
        shutil.rmtree(self.library, ignore_errors=True)
        self.library.mkdir()

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file of the library."""
        target = inside(self.library, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, text)

    def publish(self) -> None:
        """Give the library its place, and remove this folder."""
        if self.destination.exists():
            # Two renames: a process that is killed between them leaves the old library, which `opened` puts back.
            shutil.rmtree(self._old, ignore_errors=True)
            self.destination.rename(self._old)
        self.library.rename(self.destination)
        shutil.rmtree(self._old, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def opened(self, *, force: bool) -> Generator[None]:
        """A context in which no other process builds. Raises UsageError if the destination is taken.

        With `force`, a library may be replaced, but no other folder.
        """
        try:
            check_name(self.destination)
        except OSError as error:
            raise UsageError(f"there can be no folder '{self.destination}': {error.strerror}") from None
        parent = self.destination.parent
        if not parent.is_dir():
            raise UsageError(f"there is no folder '{parent}'")
        self._put_back()
        _check_free(self.destination, force=force)
        if self.folder.is_symlink():
            raise UsageError(f"'{self.folder}' is a link, and builds have a folder there; remove it")
        try:
            self.programs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder '{self.folder}': {error.strerror}") from None
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise UsageError(f"another process builds '{self.destination}' now") from None
        try:
            yield
        finally:
            os.close(lock)

    def _put_back(self) -> None:
        """Put back the library that a killed process was about to replace."""
        if not (self._old.exists() or self._old.is_symlink()):
            return
        if not is_library(self._old):
            raise UsageError(f"'{self._old}' is no library of pdojo, and builds have the old library there; move it")
        if not self.destination.exists():
            self._old.rename(self.destination)


def _check_free(destination: Path, *, force: bool) -> None:
    if not (destination.exists() or destination.is_symlink()):
        return
    if not is_library(destination):
        raise UsageError(f"'{destination}' exists and is no library of pdojo; name another folder")
    if not force:
        raise UsageError(f"'{destination}' exists; --force replaces it")


def is_library(folder: Path) -> bool:
    """Whether a folder is a library that pdojo made."""
    if folder.is_symlink():
        return False
    try:
        data: object = json.loads(read_text(inside(folder, MANIFEST), LARGEST))
    except (OSError, ValueError, UsageError):
        return False
    return isinstance(data, dict) and cast("dict[str, object]", data).get("format") == FORMAT


def check_digests(folder: Path) -> None:
    """Raise MeasurementError if a file of a library differs from its manifest."""
    data = json.loads(read_text(inside(folder, MANIFEST), LARGEST))
    wrong = [path for path, _ in differing(folder, cast("dict[str, str]", data["files"]))]
    if wrong:
        raise MeasurementError(f"the library is damaged: {', '.join(wrong[:8])}")
