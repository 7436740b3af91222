"""States of the search: drawing moves, and what they lead to."""

from __future__ import annotations

from random import Random

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.kernels import workload
from pdojo.search.contract.dojo import Dojo
from pdojo.search.features.program import features


@pytest.fixture
def dojo() -> Dojo:
    return Dojo(workload("softmax:8x32").instantiate(), machine("x86-64-avx512"))


def test_drawn_moves_are_different_legal_moves(dojo: Dojo) -> None:
    drawn = dojo.draw(10, Random(0))
    assert len({*drawn}) == 10
    for move in drawn:
        dojo.fork().step(move)


def test_all_legal_moves_can_be_drawn(dojo: Dojo) -> None:
    assert len({*dojo.draw(10_000, Random(0))}) == len(dojo.moves())


def test_successors_are_what_the_moves_lead_to(dojo: Dojo) -> None:
    before = dojo.text
    successors = list(dojo.successors(12, Random(1)))
    assert [s.move for s in successors] == dojo.draw(12, Random(1))
    for successor in successors:
        state = dojo.fork()
        state.step(successor.move)
        assert (successor.text, successor.fingerprint) == (state.text, state.fingerprint)
        assert successor.features == features(state.game.program.nest, state.machine)
    assert dojo.text == before
    assert not dojo.trace.steps


def test_successors_are_made_when_they_are_asked_for(dojo: Dojo, monkeypatch: pytest.MonkeyPatch) -> None:
    successors = dojo.successors(5, Random(2))
    first = next(successors)
    monkeypatch.setattr(type(dojo.game.program), "copy", None)
    assert first.text
    with pytest.raises(TypeError):
        list(successors)
