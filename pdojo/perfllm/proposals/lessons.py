"""Lessons: the best traces of searches, each move with what is lost without it. A file has a header and a line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, cast

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import IllegalMove, UsageError
from pdojo.files import exists, read_text, replace_file, write_file
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

HEADER = json.dumps({"kind": "pdojo lessons", "version": 1})
"""The first line of a file."""
LARGEST = 1 << 28
"""Greatest size of a file in bytes."""
_TEXTS = ("kernel", "source", "text", "machine", "evaluator")


@dataclass(frozen=True)
class Lesson:
    """The best trace of a search, without its idle moves."""

    kernel: str
    """The kernel's name for people; kernels of one family share what is before the colon."""
    source: str
    """The search: its round and seed, or its run in a database."""
    text: str
    """The plain kernel in the notation."""
    machine: str
    """The machine's name."""
    evaluator: str
    moves: tuple[str, ...]
    """The moves by identifier."""
    losses: tuple[float, ...]
    """For each move, the logarithm of the cost without it over the cost with it."""
    plain: float
    """The cost of the plain kernel."""
    cost: float
    """The cost of the best program."""

    @property
    def family(self) -> str:
        """The kernel without its sizes: models are tested on families that they have not seen."""
        return self.kernel.partition(":")[0]

    def game(self, machine: Machine) -> Game:
        """The plain kernel. Raises PdojoError."""
        return Game(parse_notation(self.text)[0], machine)

    def dump(self) -> str:
        """The lesson as a line."""
        return json.dumps(asdict(self), separators=(",", ":")) + "\n"

    @staticmethod
    def parse(line: str) -> Lesson:
        """The inverse of `dump`. Raises UsageError for other text."""
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"it is no JSON: {error}") from None
        if not isinstance(data, dict) or set(cast("dict[str, Any]", data)) != {field.name for field in fields(Lesson)}:
            raise UsageError("it has other fields than a lesson")
        found = cast("dict[str, Any]", data)
        moves, losses = found["moves"], found["losses"]
        if not (_are(moves, str) and _are(losses, (int, float)) and len(moves) == len(losses)):
            raise UsageError("it has no move for each loss")
        numbers = (*losses, found["plain"], found["cost"])
        if not _are(numbers, (int, float)) or not all(isfinite(number) and number >= 0 for number in numbers):
            raise UsageError("its costs are no positive numbers")
        if not found["cost"] or not all(isinstance(found[name], str) for name in _TEXTS):
            raise UsageError("a text or its cost is missing")
        try:
            for move in moves:
                Move.parse(move)
        except IllegalMove as error:
            raise UsageError(str(error)) from None
        found |= {"moves": tuple(moves), "losses": tuple(map(float, losses))}
        return Lesson(**found)


def _are(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list | tuple) and all(
        isinstance(value, kind) and not isinstance(value, bool) for value in cast("Sequence[Any]", values)
    )


def read_lessons(path: Path) -> list[Lesson]:
    """The lessons of a file; none if there is no file. Raises UsageError with the line that is wrong.

    A last line without an end is of a process that was killed while it wrote, and is left out.
    """
    if not exists(path):
        return []
    try:
        first, *lines = read_text(path, LARGEST).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the lessons '{path}': {error}") from None
    if first != HEADER:
        raise UsageError(f"'{path}' has no lessons of this version: its first line is not '{HEADER}'")
    found: list[Lesson] = []
    for number, line in enumerate(lines[:-1], 2):
        try:
            found.append(Lesson.parse(line))
        except UsageError as error:
            raise UsageError(f"{path}:{number}: {error}") from None
    return found


def write_lessons(path: Path, lessons: Sequence[Lesson]) -> None:
    """Replace a file. Raises OSError."""
    replace_file(path, "".join([f"{HEADER}\n", *(lesson.dump() for lesson in lessons)]).encode())


def add_lesson(path: Path, lesson: Lesson) -> None:
    """Append a lesson to an existing file. Raises OSError."""
    write_file(path, lesson.dump(), append=True)
