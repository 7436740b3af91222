"""Paths inside of a library's folder, which may be foreign: every file is read and written through them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pdojo.errors import UsageError

_PART = "[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*")
LINK = "it is a link, and a library has none"


def path_problem(path: str) -> str | None:
    """The reason why no file of a library has a path, relative to the folder; None if there is none."""
    return None if _PATH.fullmatch(path) else f"{shown(path)} is no path of a file of a library"


def inside(folder: Path, path: str) -> Path:
    """The place of a file of the library in `folder`. Raises UsageError for a path, or a link, that leads elsewhere."""
    problem = path_problem(path)
    if problem is not None:
        raise UsageError(problem)
    place = folder
    for part in path.split("/"):
        place /= part
        if place.is_symlink():
            raise UsageError(f"'{path}': {LINK}")
    return place


def contents(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Everything below a folder, keyed by relative path: regular files with None, all else with what is wrong with it.

    Folders that have something in them are left out.
    """
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        name = place.relative_to(folder).as_posix()
        try:
            with os.scandir(place) as listed:
                entries = list(listed)
        except OSError as error:
            yield name, f"it cannot be read: {error.strerror}"
            continue
        if not entries and place != folder:
            yield name, "it is an empty folder, and a library has none"
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink():
                yield path.relative_to(folder).as_posix(), LINK
            elif entry.is_dir():
                waiting.append(path)
            else:
                fault = None if entry.is_file() else "it is a pipe, a socket or a device, not a file"
                yield path.relative_to(folder).as_posix(), fault


def shown(text: str) -> str:
    """A foreign text in a message: in quotes, of bounded length, without control characters."""
    short = text if len(text) <= 100 else f"{text[:97]}..."
    return f"'{short}'" if short.isprintable() else ascii(short)
