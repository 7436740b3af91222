"""The folder of a training: what it writes, and how it goes on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from pdojo_tools.outputs import write_output

from pdojo.errors import UsageError
from pdojo.files import replace_file
from pdojo.search.perfllm.training.trainer import Row

_KINDS = get_type_hints(Row)
_COLUMNS = tuple(field.name for field in fields(Row))


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
        """The database, unless another one is given."""
        return str(self.path / "costs.sqlite")

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Note the settings of a new training. Raises UsageError if the folder has a training with others."""
        path, text = self.path / "settings.json", json.dumps(settings, indent=1)
        try:
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read '{path}': {error}") from None
        if known is None:
            write_output(f"{text}\n", str(path))
            return
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
            return path.read_bytes() if path.exists() else None
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None

    def keep(self, checkpoint: bytes, policy: bytes) -> None:
        """Replace the state and the policy. Raises UsageError."""
        for path, data in ((self.path / "checkpoint", checkpoint), (self.policy, policy)):
            try:
                replace_file(path, data)
            except OSError as error:
                raise UsageError(f"cannot write '{path}': {error.strerror}") from None

    # The log

    def rows(self, count: int) -> list[Row]:
        """The first `count` episodes of the log; later ones are removed: they are played again.

        Raises UsageError if the log does not have so many.
        """
        path = self.path / "log.csv"
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            found = [_row(line) for line in csv.DictReader(io.StringIO(text)) if None not in line.values()]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"cannot read '{path}': {error}") from None
        kept = found[:count]
        if [row.episode for row in kept] != list(range(count)):
            raise UsageError(f"'{path}' does not have the {count} episodes that the checkpoint knows")
        write_output(_lines(kept, heading=True), str(path))
        return kept

    def add(self, row: Row) -> None:
        """Append an episode."""
        with (self.path / "log.csv").open("a", encoding="utf-8") as file:
            file.write(_lines([row], heading=False))


def _lines(rows: Sequence[Row], *, heading: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if heading:
        writer.writerow(_COLUMNS)
    writer.writerows([getattr(row, name) for name in _COLUMNS] for row in rows)
    return out.getvalue()


def _row(line: Mapping[str, str]) -> Row:
    values: dict[str, Any] = {}
    for name in _COLUMNS:
        kind = _KINDS[name]
        values[name] = line[name] == "True" if kind is bool else kind(line[name])
    return Row(**values)
