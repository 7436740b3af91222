"""The folder of a training: its files, and how it resumes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import inf
from pathlib import Path
from sys import float_info
from typing import Any, cast, get_type_hints

from pdojo_tools.outputs import write_output

from pdojo.errors import UsageError
from pdojo.files import exists, read_bytes, read_text, replace_file, write_file
from pdojo.perfllm.storing import LARGEST
from pdojo.perfllm.training.trainer import EpisodeRow

_KINDS = get_type_hints(EpisodeRow)
_COLUMNS = tuple(field.name for field in fields(EpisodeRow))


class Folder:
    """The files of a training. Raises UsageError if the folder cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder '{path}': {error.strerror}") from None

    @property
    def policy(self) -> Path:
        """The policy, for `--agent policy=FILE`."""
        return self.path / "policy"

    @property
    def report(self) -> Path:
        """The report."""
        return self.path / "report.html"

    @property
    def database(self) -> str:
        """The default database."""
        return str(self.path / "costs.sqlite")

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Store the settings of a new training. Raises UsageError if the folder has a training with other settings."""
        path, text = self.path / "settings.json", json.dumps(settings, indent=1)
        if not exists(path):
            write_output(f"{text}\n", str(path))
            return
        try:
            known = json.loads(read_text(path))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(self.damaged(path.name, error)) from None
        if not isinstance(known, dict):
            raise UsageError(self.damaged(path.name, "it holds no settings"))
        known = cast("dict[str, object]", known)
        wanted = json.loads(text)
        changed = next((name for name in wanted if known.get(name) != wanted[name]), None)
        if changed is not None:
            raise UsageError(
                f"'{self.path}' has another training: {changed} was {known.get(changed)} and is {wanted[changed]};"
                " name another folder with -o"
            )

    def checkpoint(self) -> bytes | None:
        """The state of the trainer; None if there is none."""
        path = self.path / "checkpoint"
        try:
            return read_bytes(path, LARGEST) if exists(path) else None
        except OSError as error:
            raise UsageError(self.damaged(path.name, error)) from None

    def damaged(self, name: str, error: object) -> str:
        """The message for a file of the folder that cannot be used."""
        reason = error.strerror if isinstance(error, OSError) else error
        return f"cannot go on from '{self.path / name}': {reason}; remove the folder to begin again, or name another"

    def keep(self, checkpoint: bytes, policy: bytes) -> None:
        """Replace the state and the policy. Raises UsageError."""
        for path, data in ((self.path / "checkpoint", checkpoint), (self.policy, policy)):
            try:
                replace_file(path, data)
            except OSError as error:
                raise UsageError(f"cannot write '{path}': {error.strerror}") from None

    # The log

    def rows(self, count: int) -> list[EpisodeRow]:
        """The first `count` episodes of the log; later ones are removed, as they will be played again.

        Raises UsageError if the log has fewer.
        """
        path = self.path / "log.csv"
        try:
            text = read_text(path, LARGEST) if exists(path) else ""
            found = [_row(line) for line in csv.DictReader(io.StringIO(text)) if None not in line.values()]
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            raise UsageError(self.damaged(path.name, error)) from None
        kept = found[:count]
        if [row.episode for row in kept] != list(range(count)):
            reason = f"it does not have the {count} episodes that the checkpoint knows"
            raise UsageError(self.damaged(path.name, reason))
        write_output(_lines(kept, heading=True), str(path))
        return kept

    def add(self, row: EpisodeRow) -> None:
        """Append an episode."""
        write_file(self.path / "log.csv", _lines([row], heading=False), append=True)


def _lines(rows: Sequence[EpisodeRow], *, heading: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if heading:
        writer.writerow(_COLUMNS)
    writer.writerows([getattr(row, name) for name in _COLUMNS] for row in rows)
    return out.getvalue()


def _row(line: Mapping[str, str]) -> EpisodeRow:
    values: dict[str, Any] = {}
    for name in _COLUMNS:
        kind = _KINDS[name]
        values[name] = line[name] == "True" if kind is bool else kind(line[name])
        if kind in (int, float):
            # The network may predict negative values, and a failed kernel has infinite cost.
            least, most = -inf if name == "predicted" else 0, inf if name == "cost" else float_info.max
            if not least <= values[name] <= most:
                raise ValueError(f"'{name}' cannot be {line[name]:.40}")
    return EpisodeRow(**values)
