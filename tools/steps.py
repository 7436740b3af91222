"""The steps of a `pdojo-opt` command line, in their order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True)
class CommandStep:
    """An option that acts on the program (`passes`, `apply`, `apply_trace`, `undo`) and its value."""

    option: str
    value: str


class AppendStep(argparse.Action):
    """Appends the option to the common list of steps."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Record the option and its value."""
        steps: list[CommandStep] = getattr(namespace, "steps", None) or []
        namespace.steps = [*steps, CommandStep(self.dest, str(values))]


def suggestion(name: str, known: Sequence[str] | dict[str, Any]) -> str:
    """`; did you mean 'x'?`; if no name is close, the whole list if it is short, else ''."""
    others = [each for each in known if each != name]
    close = get_close_matches(name, others, 1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(others)}" if 0 < len(others) <= 20 else ""
