"""Candidates of a state, and the actions of single moves."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.kernels import workload
from pdojo.search.contract.candidates import MoveCandidate, legal_candidates
from pdojo.search.environment.actions import Action
from pdojo.search.features.program import features
from pdojo.transforms.game import Game


@pytest.fixture
def game() -> Game:
    return Game(workload("softmax:8x32").instantiate(), machine("x86-64-avx512"))


def drawn(game: Game, count: int, seed: int) -> list[MoveCandidate]:
    return list(islice(legal_candidates(game.program, Random(seed)), count))


def test_drawn_moves_are_different_legal_moves(game: Game) -> None:
    moves = [candidate.move for candidate in drawn(game, 10, 0)]
    assert len({*moves}) == 10
    for move in moves:
        game.fork().apply(move)


def test_all_legal_moves_can_be_drawn(game: Game) -> None:
    assert len({candidate.move for candidate in drawn(game, 10_000, 0)}) == len(game.moves())


def test_an_action_has_the_program_that_its_move_leads_to(game: Game) -> None:
    before = game.text
    for candidate in drawn(game, 12, 1):
        action = Action(game, candidate)
        state = game.fork()
        state.apply(candidate.move)
        assert (action.text, action.fingerprint) == (state.text, state.fingerprint)
        assert action.features == features(state.program.nest, state.machine)
    assert game.text == before
    assert not game.trace.steps


def test_an_action_makes_its_program_when_it_is_asked_for(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (Action(game, candidate) for candidate in drawn(game, 2, 2))
    assert first.text
    monkeypatch.setattr(type(game.program), "copy", None)
    assert first.text
    with pytest.raises(TypeError):
        _ = second.text
