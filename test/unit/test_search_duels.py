"""How a program becomes the best: duels, return matches, bests that fail later, machines of changing speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite
from random import Random
from statistics import median

import pytest

from pdojo.search.database import Database, Problem
from pdojo.search.database.queries import runs
from pdojo.search.driver import search
from pdojo.search.evaluation import Anchor, Candidate, Evaluation, Listener
from pdojo.search.progress import Budget
from pdojo.search.strategies import strategy
from search_games import Downhill, Edges, TextCosts, facts, find, start


def test_every_new_best_stood_a_duel() -> None:
    costs = TextCosts()
    result = find(costs)
    best = [row for row in result.history if row.is_best]
    assert len(best) == len(costs.confirmed) > 2
    chain = [candidate for candidate, _ in costs.confirmed]
    assert [against for _, against in costs.confirmed] == [None, *chain[:-1]]


def test_what_loses_its_duel_is_no_best() -> None:
    class Suspicious(TextCosts):
        """Screening flatters every program; on fresh inputs those after the first are wrong."""

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            for number, _ in enumerate(candidates):
                yield Evaluation(1.0 - len(self.confirmed) - number)

        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            given = super().confirm(candidate, best, listener)
            return given if best is None else [Evaluation.failed("WrongResult", {}), given[1]]

    result = find(Suspicious(), 10)
    assert result.best is result.root
    assert result.progress.failures == {"WrongResult": 10}
    assert [row.is_best for row in result.history] == [True] + [False] * 10


def test_a_duel_that_does_not_come_to_timing_is_lost() -> None:
    class Unfit(TextCosts):
        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            given = super().confirm(candidate, best, listener)
            return given if best is None else [Evaluation.failed("CompileError", {}), Evaluation(inf)]

    result = find(Unfit(), 10)
    assert result.best is result.root
    assert result.root.cost < inf
    assert result.progress.failures["CompileError"] > 0


class Overturned(TextCosts):
    """Every program that loses its place as the best turns out to be wrong, from the second one on."""

    deterministic = False

    def confirm(
        self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
    ) -> list[Evaluation]:
        given = super().confirm(candidate, best, listener)
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
        rows = database.connection.rows("SELECT p.hash FROM best b JOIN programs p ON p.id = b.program")
        assert [row["hash"] for row in rows] == [result.best.fingerprint]
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

        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            given = super().confirm(candidate, best, listener)
            return given if given[-1].is_ok else [Evaluation(inf), given[-1]]

    one, other = find(Overturned(), 30), find(Deadly(), 30)
    assert [(row.cost, row.is_best) for row in one.history] == [(row.cost, row.is_best) for row in other.history]
    assert one.trace == other.trace


def test_costs_in_duels_are_compared_with_nothing_else() -> None:
    class Medians(TextCosts):
        """Duels find more than evaluations: a median beside a minimum."""

        deterministic = False

        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            return [replace(e, cost=2 * e.cost + 100) for e in super().confirm(candidate, best, listener)]

    costs = Medians()
    result, plain = find(costs), find(TextCosts())
    assert [row.cost for row in result.history] == [row.cost for row in plain.history]
    assert [row.is_best for row in result.history] == [row.is_best for row in plain.history]
    assert [row.best for row in result.history] == [2 * row.best + 100 for row in plain.history]
    # Each best stood a duel, and the last one a return match.
    assert len(costs.confirmed) == sum(row.is_best for row in result.history) + 1
    assert result.best is not None
    assert result.cost == 2 * result.best.cost + 100


@pytest.mark.parametrize("worse", [1, 3])
def test_who_loses_the_return_match_is_the_best_no_longer(worse: int) -> None:
    """The machine was not itself when the last programs won; their rivals are faster once it is again."""

    class Moody(TextCosts):
        deterministic = False

        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            given = super().confirm(candidate, best, listener)
            again = (candidate.fingerprint, None if best is None else best.fingerprint)[::-1] in self.confirmed
            if again and self.returned < worse:
                self.returned += 1
                return given[::-1]
            return given

        returned = 0

    costs = Moody()
    with Database.in_memory() as database:
        result, plain = find(costs, database=database), find(TextCosts())
        bests = [row.number for row in plain.history if row.is_best]
        assert costs.returned == worse
        assert result.best is not None
        assert result.best.number == bests[-1 - worse]
        # One return match more: the one that it won.
        assert len(costs.confirmed) == len(bests) + worse + 1
        assert [row.number for row in result.history if row.is_best] == bests[:-worse]
        rows = database.connection.rows("SELECT p.hash FROM best b JOIN programs p ON p.id = b.program")
        assert [row["hash"] for row in rows] == [result.best.fingerprint]
        (run,) = runs(database.connection)
        assert (run.cost, run.state) == (result.cost, "finished")
        # A search that goes on remembers its return matches.
        again = Moody()
        assert facts(find(again, database=database)) == facts(result)
        assert not again.confirmed


def test_luck_dethrones_nobody() -> None:
    """All programs are equally fast; what is measured is noise. By medians, every second challenger would win."""

    class Noisy(TextCosts):
        deterministic = False

        def __init__(self, seed: int) -> None:
            super().__init__()
            self.random = Random(seed)

        def timed(self, samples: int) -> tuple[float, ...]:
            return tuple(self.random.gauss(1.0, 0.05) for _ in range(samples))

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            for _ in candidates:
                yield Evaluation(min(self.timed(3)))

        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            super().confirm(candidate, best, listener)
            rivals = [self.timed(15) for _ in range(1 if best is None else 2)]
            return [Evaluation(median(samples), detail={"samples": samples}) for samples in rivals]

    duels = wins = would = 0
    with Database.in_memory() as database:
        for seed in range(20):
            costs = Noisy(seed)
            costs.version = seed
            result = find(costs, 40, database=database)
            duels += len(costs.confirmed) - 1
            wins += sum(row.is_best for row in result.history) - 1
            # Whoever challenged was cheaper alone than all who did before.
            bars = [row.cost for row in result.history]
            assert len(costs.confirmed) == sum(cost < min(bars[:k], default=inf) for k, cost in enumerate(bars))
            again = Noisy(seed)
            again.version = seed
            assert facts(find(again, 40, database=database)) == facts(result)
            assert not again.confirmed
        would = database.connection.rows("SELECT count(*) AS n FROM duels WHERE cost < against_cost")[0]["n"]
    assert duels > 40
    assert would > duels / 4
    assert wins < duels / 8


def test_a_machine_that_changes_its_speed_changes_no_search() -> None:
    """Three programs in four are timed while the machine is up to three times as fast or as slow as at first."""

    class Positive(TextCosts):
        def cost(self, text: str) -> Evaluation:
            found = super().cost(text)
            return replace(found, cost=found.cost + 100) if found.is_ok else found

    class Weathered(Positive):
        deterministic = False
        anchor: Anchor | None = None
        rounds = 0

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            weather = (1.0, 0.34, 2.1, 0.8)[self.rounds % 4]
            self.rounds += 1
            now = None if self.anchor is None else self.cost(self.anchor.candidate.program.text)
            for found in super().evaluate(candidates, listener):
                raw = replace(found, cost=found.cost * weather)
                yield raw if now is None else self.measure(raw, replace(now, cost=now.cost * weather))

        def measure(self, found: Evaluation, now: Evaluation) -> Evaluation:
            assert self.anchor is not None
            return self.anchor.scaled(found, now)

    class Naive(Weathered):
        def measure(self, found: Evaluation, now: Evaluation) -> Evaluation:
            return found

    with Database.in_memory() as database:
        steady, weathered = find(Positive()), find(Weathered(), database=database)
        assert [(row.number, row.is_best) for row in steady.history] == [
            (row.number, row.is_best) for row in weathered.history
        ]
        assert [row.cost for row in weathered.history] == pytest.approx([row.cost for row in steady.history])
        assert steady.trace == weathered.trace
        # The anchor of each program that was timed is the best of its time, and stored with it.
        query = "SELECT json_extract(detail, '$.anchor.program') AS anchor FROM measurements WHERE failure = ''"
        anchors = {row["anchor"] for row in database.connection.rows(query)}
        best = {row.number for row in weathered.history if row.is_best}
        assert len(anchors - {None}) > 2
        assert len(anchors) <= 1 + len(best)
    assert [row.cost for row in find(Naive()).history] != pytest.approx([row.cost for row in steady.history])
