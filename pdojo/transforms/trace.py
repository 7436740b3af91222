"""Traces: lists of moves with the kernel and machine that they were found for; read, edited, replayed, stored."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pdojo.errors import IllegalMove, UsageError
from pdojo.transforms.move import Move, split_outside

_HEADER = "# pdojo trace 1"


@dataclass(frozen=True, slots=True)
class Step:
    """One move of a trace: as people read it, and by identifier for replay."""

    move: Move
    resolved: Move


@dataclass
class Trace:
    """The moves that lead from a kernel to a state."""

    kernel: str = ""
    """Name of the kernel."""
    machine: str = ""
    """Name of the machine description."""
    steps: list[Step] = field(default_factory=list[Step])

    @property
    def moves(self) -> list[Move]:
        """The moves as people read them."""
        return [step.move for step in self.steps]

    def dump(self) -> str:
        """The text form: one move a line, the resolved location behind `;` where it differs."""
        lines = [_HEADER, f"kernel {self.kernel}", f"machine {self.machine}"]
        lines.extend(
            str(step.move) if step.move == step.resolved else f"{step.move}  ; {step.resolved.at}"
            for step in self.steps
        )
        return "\n".join(lines) + "\n"

    @staticmethod
    def parse(text: str, source: str = "<trace>") -> Trace:
        """Read the text form. Raises IllegalMove with the line.

        Lines may also be bare moves; lines that start with `#` are comments.
        """
        trace = Trace()
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("#"):
                continue
            body, target = (piece.strip() for piece in (*split_outside(line, ";"), "")[:2])
            match body.split(maxsplit=1):
                case []:
                    continue
                case ["kernel", name]:
                    trace.kernel = name
                case ["machine", name]:
                    trace.machine = name
                case _:
                    try:
                        move = Move.parse(body)
                    except IllegalMove as error:
                        raise IllegalMove(f"{source}:{number}: {error}") from None
                    trace.steps.append(Step(move, move.moved_to(target) if target else move))
        return trace

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read a trace file. Raises UsageError where it cannot be read."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the trace '{path}': {_reason(error)}") from None
        return Trace.parse(text, str(path))

    def save(self, path: str | Path) -> None:
        """Write a trace file; a file that is there is replaced only by a complete one. Raises UsageError."""
        target = Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            unfinished.write_text(self.dump(), encoding="utf-8")
            unfinished.replace(target)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise UsageError(f"cannot write the trace '{path}': {_reason(error)}") from None

    def extend(self, moves: Iterable[Move]) -> None:
        """Append moves that are not resolved yet."""
        self.steps.extend(Step(m, m) for m in moves)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not a text file"
