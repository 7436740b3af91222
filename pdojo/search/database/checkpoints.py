"""Saved states of strategies: a file for each run, in the folder `FILE.checkpoints` next to the database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pdojo.errors import DatabaseError
from pdojo.files import read_bytes, replace_file

LARGEST = 1 << 30
"""Greatest size of a checkpoint in bytes."""
_KIND = "pdojo checkpoint 2"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a strategy in a run."""

    code: str
    """Digest of the code that made the run."""
    told: int
    """Number of the log's programs that the strategy knew, including the root."""
    batches: tuple[int, ...]
    """Number of new programs in each batch."""
    repeated: int
    """Number of proposals that repeated a program."""
    stale: int
    """Number of repeating proposals since the latest new program."""
    data: bytes
    """The saved state of the strategy."""


def folder_of(database: Path) -> Path:
    """The folder of a database's checkpoints."""
    return database.with_name(f"{database.name}.checkpoints")


def read(database: Path, run: str) -> Checkpoint | None:
    """The checkpoint of the run with this hash; None if there is none, or only one of another version.

    Raises DatabaseError for a damaged checkpoint.
    """
    path = folder_of(database) / run
    try:
        head, _, data = read_bytes(path, LARGEST).partition(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DatabaseError(f"cannot read '{path}': {error.strerror}") from None
    try:
        facts = json.loads(head)
        if facts["sha256"] == sha256(data).hexdigest():
            if facts["kind"] != _KIND:
                return None
            batches = tuple(map(int, facts["batches"]))
            return Checkpoint(
                str(facts["code"]), int(facts["told"]), batches, int(facts["repeated"]), int(facts["stale"]), data
            )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass
    raise DatabaseError(f"'{path}' is damaged: delete it, and the search proposes again what is in its log")


def write(database: Path, run: str, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint of a run; a process that dies meanwhile leaves the old one. Raises DatabaseError."""
    path = folder_of(database) / run
    facts = {name: value for name, value in vars(checkpoint).items() if name != "data"}
    head = json.dumps({"kind": _KIND, **facts, "sha256": sha256(checkpoint.data).hexdigest()})
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path, head.encode() + b"\n" + checkpoint.data)
    except OSError as error:
        raise DatabaseError(f"cannot write '{path}': {error.strerror}") from None


def remove(database: Path, run: str) -> None:
    """Remove the checkpoint of a run, if there is one."""
    (folder_of(database) / run).unlink(missing_ok=True)


def keep_only(database: Path, runs: Iterable[str]) -> int:
    """Remove the checkpoints of all other runs; returns their number."""
    folder = folder_of(database)
    others = sorted({path.name for path in folder.iterdir()} - set(runs)) if folder.is_dir() else []
    for name in others:
        remove(database, name)
    return len(others)
