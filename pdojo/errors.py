"""The exception hierarchy: every mistake a user can make is a `PdojoError` whose message is complete."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from xdsl.utils.exceptions import DiagnosticException

_LINE, _WHOLE = 2000, 20_000
"""Most characters of one line and of a whole message."""


class PdojoError(DiagnosticException):
    """A user's mistake. `str(error)` is a complete message: the mistake, its place, and a remedy.

    Tools print it without a traceback and exit with `exit_code`; any other exception is a bug in pdojo. xDSL's own
    tools treat it as a diagnostic: `xdsl-opt --verify-diagnostics` prints it.
    """

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


def shortened(message: str) -> str:
    """The message, with long lines and long text cut to a few thousand characters: it may quote a user's input."""
    if len(message) <= _LINE:
        return message
    return _without_middle("\n".join(_without_middle(line, _LINE) for line in message.split("\n")), _WHOLE)


def _without_middle(text: str, most: int) -> str:
    left = len(text) - most
    return text if left <= 0 else f"{text[: most * 3 // 4]} ... {left} characters ... {text[-most // 4 :]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest known word, else `known: a, b, c`; empty if nothing is known.

    The word itself is never suggested: if it is known, something else is wrong with it.
    """
    names = [name for name in known if name != word]
    same = [name for name in names if name.casefold() == word.casefold()]
    close = same or get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names)}" if names else ""


class UsageError(PdojoError):
    """A wrong command line or call: unknown option value, missing file."""

    exit_code = 2


class IndexOutOfRange(UsageError, IndexError):
    """An index in an array of a caller that is outside of its axis; the message names array, place and index."""


class NotationError(PdojoError):
    """A `.pdojo` text does not parse or names an unsupported feature."""


class LocationError(PdojoError):
    """A location does not exist or is ambiguous; the message lists the candidates."""


class IllegalMove(PdojoError):
    """A move that would change the meaning of the program, or does not fit it."""


class Undecided(PdojoError):
    """A question about a program takes too long; the operation that asked it is not carried out."""


class UnknownSize(Undecided):
    """A number was asked for that depends on a size which callers give."""


class InvalidKernel(PdojoError):
    """A well-formed kernel without meaning: unwritten outputs, undefined reads, races."""


class LoweringError(PdojoError):
    """A backend cannot express what the program asks for."""


class ConversionError(PdojoError):
    """A program of another system that no kernel can express; the message names the operation and the reason."""

    def __init__(self, message: str, operation: object = None) -> None:
        super().__init__(message)
        self.operation = operation
        """The operation that is refused, if it is one of xDSL; tools print its place in the text."""


class MeasurementError(PdojoError):
    """A measurement that could not be made at all (as opposed to a candidate that failed)."""


class PluginError(PdojoError):
    """A move or a machine of another package that cannot be loaded; the message names the distribution."""


class DatabaseError(PdojoError):
    """A search database, or a file exported from one, that cannot be read or written; the message names the file."""


class AssemblyError(PdojoError):
    """Assembly text that cannot be assembled or built; the message begins with the line."""


class SimulationError(PdojoError):
    """A simulated program that never ends or does what hardware cannot do; the message names instruction and line."""


class CycleLimit(SimulationError):
    """A simulated program that exceeds its limit of cycles."""


class Deadlock(SimulationError):
    """A simulated program that waits for an event that never happens; the message names the event."""


class MemoryDamage(SimulationError):
    """A simulated program that wrote memory outside its arrays; the message names the array."""
