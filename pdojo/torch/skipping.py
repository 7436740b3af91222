"""Frames that Dynamo skips: functions of which it compiles nothing, so that no backend is called."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import FrameSummary
from typing import Any

from torch._dynamo.callback import CallbackArgs, callback_handler
from torch._dynamo.eval_frame import cached_backends
from torch._dynamo.exc import Unsupported

from pdojo.torch.fallbacks import FallbackWarning

_said: dict[str | tuple[str, type[Warning], int], int] = {}
"""The registry with which Python gives a warning once for each place and reason."""


@dataclass(frozen=True)
class Obstacle:
    """A call that Dynamo cannot compile."""

    reason: str
    filename: str
    line: int
    remedy: str
    """Dynamo's first hint; empty if it has none."""

    @staticmethod
    def of(message: str, stack: Sequence[FrameSummary]) -> Obstacle:
        """The obstacle that a message of Dynamo names, with the place in the program where the stack ends."""
        reason, *lines = message.strip().splitlines()
        hints = [line.strip().removeprefix("Hint: ") for line in lines if line.strip().startswith("Hint: ")]
        place = (stack[-1].filename, stack[-1].lineno or 0) if stack else ("<unknown>", 0)
        return Obstacle(reason, *place, hints[0] if hints else "")

    def __str__(self) -> str:
        return f"{self.reason} ({self.filename}:{self.line}){self.remedy and f'; {self.remedy}'}"


def at_other_places(obstacles: Sequence[Obstacle], known: Sequence[Obstacle] = ()) -> list[Obstacle]:
    """The first obstacle at each place that has no known one; Dynamo gives some calls several reasons."""
    places = {(each.filename, each.line) for each in known}
    found: dict[tuple[str, int], Obstacle] = {}
    for each in obstacles:
        found.setdefault((each.filename, each.line), each)
    return [each for place, each in found.items() if place not in places]


@contextmanager
def skipped_functions() -> Generator[list[Obstacle]]:
    """The frames that are skipped in the context."""
    found: list[Obstacle] = []

    def record(_: CallbackArgs) -> None:
        found.extend(_skipped())

    callback_handler.register_end_callback(record)
    try:
        yield found
    finally:
        if record in callback_handler.end_callbacks:  # `torch._dynamo.reset` removes all.
            callback_handler.remove_end_callback(record)


def warn_of_skipped_functions(backend: Callable[..., object]) -> None:
    """Let a FallbackWarning name each function that Dynamo skips from now on, if a program uses the backend."""
    if _Warner(backend) not in callback_handler.end_callbacks:
        callback_handler.register_end_callback(_Warner(backend))


@dataclass(frozen=True)
class _Warner:
    backend: Callable[..., object]

    def __call__(self, _: CallbackArgs) -> None:
        if any(getattr(each, "compiler_fn", None) is self.backend for each in cached_backends.values()):
            for each in _skipped():
                text = f"Dynamo compiles nothing of a function, which PyTorch runs: {each}"
                warnings.warn_explicit(text, FallbackWarning, each.filename, each.line, registry=_said)


def _skipped() -> list[Obstacle]:
    """The obstacle for which the compilation of a function ends now without code."""
    error: Any = sys.exc_info()[1]
    return [Obstacle.of(str(error), error.real_stack)] if isinstance(error, Unsupported) else []
