"""Traces: lists of moves with their kernel and machine; they can be read, edited, replayed and stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.names import is_machine_name
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IllegalMove, UsageError
from pdojo.files import read_text, replace_file
from pdojo.transforms.move import Move, split_outside

_HEADER = "# pdojo trace 1"
_NONE = "none"
_ALIGNMENTS = {str(1 << exponent) for exponent in range(63)}


@dataclass(frozen=True, slots=True)
class Step:
    """One move of a trace, located for people and by identifier for replay."""

    move: Move
    resolved: Move


@dataclass
class Trace:
    """The moves that lead from a kernel to a state."""

    kernel: str = ""
    """Name of the kernel."""
    machine: str = ""
    """Name of the machine description."""
    alignments: tuple[int, ...] = ()
    """Alignment in bytes of each array in the kernel's order, or one number for all; () if not known."""
    numerics: tuple[Numerics, ...] | None = None
    """Numerics classes that the kernel permits; None if not known."""
    steps: list[Step] = field(default_factory=list[Step])

    @staticmethod
    def of(kernel: KernelOp, machine: str) -> Trace:
        """A trace without moves, with the assumptions of the kernel."""
        aligned = tuple(buffer.alignment for buffer in nest_of(kernel).buffers if buffer.op is None)
        same = aligned[:1] if len(set(aligned)) == 1 else aligned
        return Trace(kernel.sym_name.data, machine, same, kernel.permitted)

    def missing(self, kernel: KernelOp) -> str:
        """A clause for messages about an inapplicable move: the trace's assumptions that the kernel lacks.

        '' if it lacks none.
        """
        lacks: list[str] = []
        here = Trace.of(kernel, self.machine)
        if any(there < wanted for there, wanted in _side_by_side(here.alignments, self.alignments)):
            listed = [" ".join(map(str, each)) for each in (self.alignments, here.alignments)]
            lacks.append(f"arrays aligned to {listed[0]} bytes, and here they are aligned to {listed[1]} bytes")
        absent = [n.value for n in self.numerics or () if n not in kernel.permitted]
        if absent:
            lacks.append(f"a kernel that permits {' '.join(absent)}, which this one does not")
        return "".join(f"; the trace was found for {each}" for each in lacks)

    @property
    def moves(self) -> list[Move]:
        """The moves with locations for people."""
        return [step.move for step in self.steps]

    def dump(self) -> str:
        """The text form: one move per line, followed by the resolved location after `;` if it differs."""
        lines = [_HEADER, f"kernel {self.kernel}", f"machine {self.machine}"]
        if self.alignments:
            lines.append(f"align {' '.join(map(str, self.alignments))}")
        if self.numerics is not None:
            lines.append(f"numerics {' '.join(n.value for n in self.numerics) or _NONE}")
        lines.extend(
            str(step.move) if step.move == step.resolved else f"{step.move}  ; {step.resolved.at}"
            for step in self.steps
        )
        return "\n".join(lines) + "\n"

    @staticmethod
    def parse(text: str, source: str = "<trace>") -> Trace:
        """Read the text form. Raises IllegalMove with the line, UsageError for mistakes outside the moves.

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
                case ["kernel" | "machine" | "align" | "numerics" as word, *rest]:
                    trace._assume(word, " ".join(rest), f"{source}:{number}")
                case _:
                    try:
                        move = Move.parse(body)
                    except IllegalMove as error:
                        raise IllegalMove(f"{source}:{number}: {error}") from None
                    trace.steps.append(Step(move, move.moved_to(target) if target else move))
        return trace

    def _assume(self, word: str, value: str, place: str) -> None:
        """Read a line that is not a move."""
        match word:
            case _ if not value:
                raise UsageError(f"{place}: '{word}' has no value; write one after it")
            case "kernel":
                self.kernel = value
            case "machine":
                if not is_machine_name(value):
                    raise UsageError(f"{place}: {value[:60]!r} is no name of a machine")
                self.machine = value
            case "align":
                self.alignments = _alignments(value, place)
            case _:
                self.numerics = _numerics(value, place)

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read a trace file, which begins with `# pdojo trace 1`. Raises UsageError for any other file."""
        try:
            text = read_text(Path(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the trace '{path}': {_reason(error)}") from None
        if text.partition("\n")[0].rstrip() != _HEADER:
            problem = f"its first line is not '{_HEADER}'" if text.strip() else "it is empty"
            raise UsageError(f"'{path}' is no trace: {problem}")
        return Trace.parse(text, str(path))

    def save(self, path: str | Path) -> None:
        """Write a trace file; only a complete file replaces an existing one. Raises UsageError."""
        try:
            replace_file(Path(path), self.dump().encode())
        except OSError as error:
            raise UsageError(f"cannot write the trace '{path}': {_reason(error)}") from None

    def extend(self, moves: Iterable[Move]) -> None:
        """Append moves without resolving them."""
        self.steps.extend(Step(m, m) for m in moves)


def _side_by_side(first: tuple[int, ...], second: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    """Pairs of two lists of alignments; either list may be one number for all arrays."""
    count = max(len(first), len(second))
    return zip(*(each * count if len(each) == 1 else each for each in (first, second)), strict=False)


def _alignments(text: str, place: str) -> tuple[int, ...]:
    if not all(word in _ALIGNMENTS for word in text.split()):
        raise UsageError(f"{place}: 'align {text}': alignments are powers of two, in bytes")
    return tuple(map(int, text.split()))


def _numerics(text: str, place: str) -> tuple[Numerics, ...]:
    words = [] if text == _NONE else text.split()
    unknown = [word for word in words if word not in list(Numerics)]
    if unknown:
        raise UsageError(f"{place}: unknown numerics class '{unknown[0]}'; known: {_NONE}, {', '.join(Numerics)}")
    return tuple(map(Numerics, words))


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not a text file"
