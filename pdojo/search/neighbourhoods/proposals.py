"""Proposals for the heuristic neighbourhood (paper 4.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.kind import ExpertPass
from pdojo.transforms.game import Game, Skipped
from pdojo.transforms.move import Move


@dataclass(frozen=True, slots=True)
class Edit:
    """An edited trace."""

    moves: Sequence[Move]
    """The moves by identifier. Moves that do not apply are skipped, and the trace is mended."""
    spared: str = ""
    """The edited transformation: mending must not restore its old moves."""
    is_start: bool = False
    """True if the expert pass completes the trace."""


Alteration: TypeAlias = Callable[[Game, Random], Edit | None]
"""An edit of a trace; None if the drawn edit is impossible."""


@dataclass(frozen=True)
class Proposals:
    """The proposals for a kind of machine."""

    expert: ExpertPass
    """The pass that makes the first trace."""
    alterations: Sequence[tuple[Alteration, int]]
    """The edits and their relative weights."""
    mend: Callable[[PassBuilder, Sequence[Skipped], str], None]
    """Compensates for skipped moves of an edited trace; the last argument is `Edit.spared`."""
