"""What was the best and turns out to be wrong later: who takes its place, what is stored, how a run goes on."""

from __future__ import annotations

from math import inf, isfinite
from pathlib import Path

import pytest

from pdojo.search.database import Database, Duel, Problem
from pdojo.search.database.queries import runs
from pdojo.search.dojo import fingerprint_of
from pdojo.search.driver import search
from pdojo.search.evaluation import Anchor, Candidate, Evaluation
from pdojo.search.progress import Budget, Result
from pdojo.search.strategies import strategy
from search_games import Downhill, Edges, TextCosts, best_in, facts, find, start

WRONG = Evaluation.failed("WrongResult", {"kind": "WrongResult"})


class Overturned(TextCosts):
    """Every program that loses its place as the best turns out to be wrong, from the second one on."""

    deterministic = False

    def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
        is_root = best is not None and best.program.text == start().text
        return given if best is None or is_root else [given[0], Evaluation.failed("WrongResult", {})]


@pytest.mark.parametrize("name", ["sample", "anneal", "evolve", "elites", "model", "downhill"])
def test_a_best_that_fails_later_was_none(name: str) -> None:
    if name == "model":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    costs = Overturned()
    chosen = Downhill() if name == "downhill" else strategy(name, 60)
    with Database.in_memory() as database:
        result = search(start(), costs, chosen, Edges(), Budget(60), 1, database=database)
        wrong = {against for _, against in costs.confirmed[1:]} - {None, start().fingerprint}
        assert wrong
        failed = {row.number for row in result.history if row.failure == "WrongResult"}
        assert len(failed) == len(wrong) == result.progress.failures["WrongResult"]
        assert result.best is not None
        assert result.best.fingerprint not in wrong
        assert result.best.number not in failed
        assert not any(row.is_best for row in result.history if row.number in failed)
        # Each rival of the root stood a duel with it once the better one was gone.
        assert all(against in (None, start().fingerprint, *wrong) for _, against in costs.confirmed)
        assert best_in(database) == [result.best.fingerprint]
        # The log says what the history does.
        logged = database.connection.rows("SELECT number, cost, failure, best FROM evaluations ORDER BY number")
        assert [tuple(row) for row in logged] == [
            (row.number, row.cost if isfinite(row.cost) else None, row.failure, row.is_best) for row in result.history
        ]
        memory = database.memory(Problem.of(start()), costs)
        assert all((found := memory.find(each)) and found.failure == "WrongResult" for each in wrong if each)


def test_what_cannot_be_timed_beside_a_wrong_best_has_not_failed() -> None:
    class Deadly(Overturned):
        """The wrong ones take whoever times them down."""

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            given = super().duel(candidate, best, given)
            return given if given[-1].is_ok else [Evaluation(inf), given[-1]]

    one, other = find(Overturned(), 30), find(Deadly(), 30)
    assert [(row.cost, row.is_best) for row in one.history] == [(row.cost, row.is_best) for row in other.history]
    assert one.trace == other.trace


class BothWrong(TextCosts):
    """In the first return match both programs turn out to be wrong: one may come from the other."""

    deterministic = False
    found_out: tuple[str, str] | None = None

    def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
        if best is None or self.found_out or (best.fingerprint, candidate.fingerprint) not in self.confirmed:
            return given
        self.found_out = (candidate.fingerprint, best.fingerprint)
        return [WRONG, WRONG]


def test_both_of_a_return_match_may_be_wrong() -> None:
    for evaluations in range(2, 30):
        with Database.in_memory() as database:
            costs = BothWrong()
            result = find(costs, evaluations, database=database)
            if costs.found_out is None:
                continue
            memory = database.memory(Problem.of(start()), costs)
            assert result.best is None or result.best.fingerprint not in costs.found_out
            assert result.progress.failures["WrongResult"] == 2
            assert best_in(database) == ([] if result.best is None else [result.best.fingerprint])
            assert all((found := memory.find(each)) and not found.is_ok for each in costs.found_out)
            (run,) = runs(database.connection)
            assert run.cost == (None if result.best is None else result.cost)


class OneWrong(TextCosts):
    """A program is wrong, which is found out when it is the best and stands a duel."""

    def __init__(self, bad: str) -> None:
        super().__init__()
        self.bad = bad

    def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
        return [given[0], WRONG] if best is not None and best.fingerprint == self.bad else given


class WrongAndFast(OneWrong):
    """It is faster than all others, and stands no duel before its return match."""

    deterministic = False

    def cost(self, text: str) -> Evaluation:
        return Evaluation(-1000.0) if fingerprint_of(text) == self.bad else super().cost(text)


def test_what_a_wrong_best_kept_from_its_duel_stands_it_later() -> None:
    costs = TextCosts()
    plain = find(costs, 60)
    bad = costs.evaluated[[row.number for row in plain.history if row.is_best][1]]
    found = WrongAndFast(bad)
    result = find(found, 60)
    right = [row for row in result.history if not row.failure]
    assert result.best is not None
    assert result.best.number == min(right, key=lambda row: row.cost).number
    assert result.history[result.best.number].is_best
    assert "" not in result.progress.failures
    assert not result.history[found.evaluated.index(bad)].is_best
    assert result.cost < plain.root.cost - 3


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_run_repeats_itself_also_where_a_best_was_wrong(tmp_path: Path, seed: int) -> None:
    costs = TextCosts()
    bests = [row.number for row in find(costs, 60, seed).history if row.is_best]
    middle = len(bests) // 2
    bad, cut = costs.evaluated[bests[middle]], bests[min(middle + 1, len(bests) - 1)] + 3

    def go(path: Path, evaluations: int) -> tuple[OneWrong, Result]:
        with Database(path) as database:
            wrong = OneWrong(bad)
            return wrong, find(wrong, evaluations, seed, database)

    _, whole = go(tmp_path / "whole", 60)
    go(tmp_path / "cut", cut)
    _, resumed = go(tmp_path / "cut", 60)
    assert facts(resumed) == facts(whole)
    repeating, again = go(tmp_path / "whole", 60)
    assert facts(again) == facts(whole)
    assert not repeating.evaluated
    assert not repeating.confirmed


def test_a_best_that_others_found_out_is_none() -> None:
    with Database.in_memory() as database:
        costs = TextCosts()
        before = find(costs, 40, database=database)
        assert before.best is not None
        memory = database.memory(Problem.of(start()), costs)
        memory.keep_duel(start().text, before.best.dojo.text, Duel.of(Evaluation(1000.0), WRONG))
        after = find(costs, 40, database=database)
        assert after.best is not None
        assert after.best.fingerprint != before.best.fingerprint
        right = [row for row in after.history if not row.failure]
        assert after.best.cost == min(row.cost for row in right)
        assert facts(find(costs, 40, database=database)) == facts(after)


def test_nobody_is_the_measure_where_nobody_is_the_best() -> None:
    """The first program fails in its second duel, when there is nobody to take its place."""

    class Alone(TextCosts):
        deterministic = False
        anchor: Anchor | None = None

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            return given if best is None else [WRONG, WRONG]

    result = find(TextCosts(), 1)
    for evaluations in range(1, 20):
        costs = Alone()
        result = find(costs, evaluations)
        assert (costs.anchor is None) == (result.best is None)
        if costs.anchor is not None and result.best is not None:
            assert costs.anchor.candidate.fingerprint == result.best.fingerprint
        if result.best is None:
            break
    assert result.best is None
    assert result.cost == inf
