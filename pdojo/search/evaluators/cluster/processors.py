"""Exclusive processors for the workers of one machine."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pdojo.backends.common.cores import core_order
from pdojo.errors import MeasurementError

PATIENCE = 20.0
"""Seconds to wait for processors: a dying worker holds its own until it is gone."""


def claim(count: int, allowed: Sequence[int], folder: Path | None = None, patience: float = PATIENCE) -> list[int]:
    """Reserve `count` of the `allowed` processors on this machine until this process ends.

    Each is a locked file; processors of different cores come first. Raises MeasurementError if too few are free.
    """
    folder = folder or Path(tempfile.gettempdir()) / f"pdojo-processors-{os.getuid()}"
    try:
        opened = _own_folder(folder)
        end = time.monotonic() + patience
        while True:
            claimed = _locked(core_order(allowed), count, opened)
            if len(claimed) == count:
                os.close(opened)
                # The locks are released when the process exits.
                return sorted(claimed)
            for handle in claimed.values():
                os.close(handle)
            if time.monotonic() > end:
                raise MeasurementError(
                    f"a worker needs {count} processors for itself, and {len(claimed)} of {len(allowed)} are free:"
                    f" start Ray with fewer (ray start --num-cpus N), or end other searches on this machine"
                )
            time.sleep(0.1)
    except OSError as error:
        raise MeasurementError(f"cannot lock processors in '{folder}': {error.strerror}") from None


def _own_folder(folder: Path) -> int:
    """A handle of the folder; creates the folder if missing.

    Raises MeasurementError if it is a link, or if others may write to it: they could make us lock or create any file.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise MeasurementError(
            f"'{folder}', which is for the locks of processors, is not a folder that only this user may write to:"
            " remove it"
        )
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _locked(processors: Iterable[int], count: int, folder: int) -> dict[int, int]:
    """Handles of locks on the first free processors, at most `count`."""
    claimed: dict[int, int] = {}
    for processor in processors:
        if len(claimed) == count:
            break
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(str(processor), flags, 0o600, dir_fd=folder)
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            claimed[processor] = handle
            continue
        os.close(handle)
    return claimed
