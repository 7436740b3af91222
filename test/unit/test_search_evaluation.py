"""Who wins a duel: by costs where these are computed, by a sign test over samples taken in turns where programs ran."""

from __future__ import annotations

from math import inf
from random import Random
from statistics import median

import pytest

from pdojo.backends.measure.timing import Timed
from pdojo.search.evaluation import CHANCE, Anchor, Candidate, Evaluation, neighbours, seed_of_duel
from search_games import KERNEL, start


def timed(*samples: float) -> Evaluation:
    return Evaluation(median(samples), detail={"samples": samples})


def test_computed_costs_are_compared() -> None:
    assert Evaluation(1.0).beats(Evaluation(1.0001))
    assert not Evaluation(1.0).beats(Evaluation(1.0))
    assert not Evaluation(2.0).beats(Evaluation(1.0))
    assert not Evaluation.failed("Timeout", {}).beats(Evaluation(inf))


@pytest.mark.parametrize(("pairs", "needed"), [(1, 1), (3, 3), (4, 4), (5, 5), (7, 7), (8, 7), (15, 12), (25, 18)])
def test_as_many_samples_have_to_be_less_as_are_not_by_chance(pairs: int, needed: int) -> None:
    """The table of the one-sided sign test at 5 %; where no number is so rare, all of them."""
    for wins in range(pairs + 1):
        # The median is less in any case.
        ours = [0.5] * wins + [1.01] * (pairs - wins)
        duel = Evaluation(0.9, detail={"samples": ours}).beats(Evaluation(1.0, detail={"samples": [1.0] * pairs}))
        assert duel == (wins >= needed)


def test_what_disturbs_both_decides_nothing() -> None:
    """A machine that becomes slower by half: each sample is compared with the one beside it."""
    weather = [1.0 + 0.05 * k for k in range(15)]
    assert timed(*(0.98 * w for w in weather)).beats(timed(*weather))
    assert not timed(*weather).beats(timed(*(0.98 * w for w in weather)))


def test_equal_programs_win_as_often_as_chance_allows() -> None:
    random = Random(3)

    def samples() -> Evaluation:
        return timed(*(random.lognormvariate(0.0, 0.1) for _ in range(15)))

    wins = sum(samples().beats(samples()) for _ in range(2000))
    assert 0 < wins < 2000 * CHANCE


def test_samples_of_different_numbers_are_compared_with_what_was_taken_beside_them() -> None:
    """Few samples over the same turns as many, while the machine becomes slower: by who is due in which turn."""
    for many, few in ((15, 5), (45, 44), (45, 15), (45, 14), (45, 7)):
        turns = range(many)
        weather = [1.0 + 0.1 * turn for turn in turns]
        taker = Timed([], lambda: None, wanted=few)
        taken = [weather[turn] for turn in turns if taker.is_due(turn, many)]
        assert len(taken) == few
        assert neighbours(taken, weather) == [(w, w) for w in taken]
        assert neighbours(weather, taken) == [(w, w) for w in taken]


def test_each_duel_has_inputs_of_its_own() -> None:
    one, other = Candidate.of(start()), Candidate.of(start(KERNEL.replace("+ 1", "+ 2")))
    duels = [[one], [other], [one, other], [other, one]]
    seeds = [seed_of_duel(seed, rivals) for seed in (0, 1) for rivals in duels]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    # The same in every process, whatever came before.
    assert seeds[:4] == [seed_of_duel(0, rivals) for rivals in duels]


def test_costs_are_told_by_the_measure_of_the_anchor() -> None:
    candidate = Candidate.of(start())
    anchor = Anchor(candidate, 2.0)
    # The machine is twice as fast as it was when the anchor cost 2.
    found = anchor.scaled(Evaluation(0.5, detail={"samples": [0.5, 0.6]}), Evaluation(1.0))
    assert found.cost == 1.0
    assert found.detail == {"samples": [0.5, 0.6], "anchor": {"program": candidate.fingerprint, "now": 1.0}}
    # A moment in which the machine was faster met only one of them.
    ours, others = Evaluation(0.4, detail={"samples": [2.0, 2.0, 0.4]}), Evaluation(1.0, detail={"samples": [1.0] * 3})
    assert anchor.scaled_in_turns(ours, others).cost == 4.0
    assert anchor.scaled_in_turns(ours, others).detail["anchor"]["now"] == 1.0
    # What failed has no cost, and an anchor that failed says nothing.
    failed = Evaluation.failed("Timeout", {})
    assert anchor.scaled(failed, Evaluation(1.0)) is failed
    assert anchor.scaled(found, failed) is found
