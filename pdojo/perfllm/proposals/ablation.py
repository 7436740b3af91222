"""Worth of the moves of a trace: the cost of the program without each. Moves that are worth nothing are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import NamedTuple

from pdojo.search.contract.evaluation import Evaluation
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

IDLE = 0.005
"""A move is idle if the program without it is slower by this fraction at most."""


class Ablated(NamedTuple):
    """A trace without idle moves."""

    moves: list[Move]
    """The moves by identifier."""
    losses: list[float]
    """The logarithm of the cost without a move over the cost with it; later moves that need it are missing, too."""
    cost: float


def ablated(start: Game, moves: Sequence[Move], price: Callable[[Game], Evaluation], most: float) -> Ablated | None:
    """The trace without idle moves, and the loss of each; None if its program has no cost.

    No loss is greater than `most`, the loss of all moves: a program that fails without a move counts as that slow.
    """
    moves = _made(start, moves)
    cost = price(_state(start, moves)).cost
    if not 0 < cost < float("inf"):
        return None
    for at in reversed(range(len(moves))):
        if at >= len(moves):
            # Moves after a dropped one may have gone with it.
            continue
        shorter = _made(start, [*moves[:at], *moves[at + 1 :]])
        known = price(_state(start, shorter)).cost
        if known <= cost * (1 + IDLE):
            moves, cost = shorter, known
    losses = [_loss(price(_state(start, [*moves[:at], *moves[at + 1 :]])), cost, most) for at in range(len(moves))]
    return Ablated(moves, losses, cost)


def _loss(without: Evaluation, cost: float, most: float) -> float:
    return most if not without.is_ok else min(most, max(0.0, log(without.cost / cost)))


def _state(start: Game, moves: Sequence[Move]) -> Game:
    """The state after the moves that apply."""
    game = start.fork()
    game.become(moves)
    return game


def _made(start: Game, moves: Sequence[Move]) -> list[Move]:
    """The moves that apply."""
    return [step.resolved for step in _state(start, moves).trace.steps]
