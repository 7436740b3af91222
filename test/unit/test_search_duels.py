"""How a program becomes the best: duels, return matches, machines of changing speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from random import Random
from statistics import median

import pytest

from pdojo.search.database import Database, Duel, Problem
from pdojo.search.database.queries import runs
from pdojo.search.evaluation import Anchor, Candidate, Evaluation, Listener
from search_games import KERNEL, TextCosts, best_in, facts, find, start


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

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            return given if best is None else [Evaluation.failed("WrongResult", {}), given[1]]

    result = find(Suspicious(), 10)
    assert result.best is result.root
    assert result.progress.failures == {"WrongResult": 10}
    assert [row.is_best for row in result.history] == [True] + [False] * 10


def test_a_duel_that_does_not_come_to_timing_is_lost() -> None:
    class Unfit(TextCosts):
        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            return given if best is None else [Evaluation.failed("CompileError", {}), Evaluation(inf)]

    result = find(Unfit(), 10)
    assert result.best is result.root
    assert result.root.cost < inf
    assert result.progress.failures["CompileError"] > 0


def test_costs_in_duels_are_compared_with_nothing_else() -> None:
    class Medians(TextCosts):
        """Duels find more than evaluations: a median beside a minimum."""

        deterministic = False

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            return [replace(e, cost=2 * e.cost + 100) for e in given]

    costs = Medians()
    result, plain = find(costs), find(TextCosts())
    assert [row.cost for row in result.history] == [row.cost for row in plain.history]
    assert [row.is_best for row in result.history] == [row.is_best for row in plain.history]
    assert [row.best for row in result.history] == [2 * row.best + 100 for row in plain.history]
    # Each best stood a duel, and the last one a return match with each of those before it.
    assert len(costs.confirmed) == 2 * sum(row.is_best for row in result.history) - 1
    assert result.best is not None
    assert result.cost == 2 * result.best.cost + 100


@pytest.mark.parametrize("worse", [1, 3])
def test_who_loses_the_return_match_is_the_best_no_longer(worse: int) -> None:
    """The machine was not itself when the last programs won; their rivals are faster once it is again."""

    class Moody(TextCosts):
        deterministic = False

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
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
        # Whoever was the best stood one return match, or ended as the best.
        assert len(costs.confirmed) == 2 * len(bests) - 1
        assert [row.number for row in result.history if row.is_best] == bests[:-worse]
        assert best_in(database) == [result.best.fingerprint]
        (run,) = runs(database.connection)
        assert (run.cost, run.state) == (result.best.cost, "finished")
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

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            rivals = [self.timed(15) for _ in range(1 if best is None else 2)]
            return [Evaluation(median(samples), detail={"samples": samples}) for samples in rivals]

    duels = wins = would = matches = 0
    with Database.in_memory() as database:
        for seed in range(20):
            costs = Noisy(seed)
            costs.version = seed
            result = find(costs, 40, database=database)
            duels += len(costs.confirmed) - 1
            wins += sum(row.is_best for row in result.history) - 1
            matches += sum(pair[::-1] in costs.confirmed[:number] for number, pair in enumerate(costs.confirmed))
            again = Noisy(seed)
            again.version = seed
            assert facts(find(again, 40, database=database)) == facts(result)
            assert not again.confirmed
        query = "SELECT count(*) AS n FROM duels WHERE cost < against_cost AND NOT again"
        would = database.connection.rows(query)[0]["n"]
    duels -= matches
    assert 40 < duels < 20 * 40 / 3
    assert would > duels / 4
    assert wins < duels / 8


def test_a_lucky_measurement_shuts_nobody_out() -> None:
    """One program seemed to be twice as fast as it is. Those that are faster by 5 % each come after it."""

    class Lucky(TextCosts):
        deterministic = False

        def __init__(self, *, anchored: bool) -> None:
            super().__init__()
            if anchored:
                self.anchor: Anchor | None = None

        def true_cost(self, fingerprint: str) -> float:
            place = self.evaluated.index(fingerprint)
            return 100 * 0.95 ** (place - 4) if place >= 5 else 100.0 + place

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            for candidate in candidates:
                self.evaluated.append(candidate.fingerprint)
                flattered = len(self.evaluated) == 3
                yield Evaluation(50.0 if flattered else self.true_cost(candidate.fingerprint))

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            # All takes twice as long from then on.
            weather = 1.0 if best is None else 2.0
            rivals = [candidate] if best is None else [candidate, best]
            return [Evaluation(weather * self.true_cost(rival.fingerprint)) for rival in rivals]

    for anchored in (True, False):
        result = find(Lucky(anchored=anchored), 12)
        assert [row.is_best for row in result.history] == [True, *[False] * 4, *[True] * 8]
        # By the measure of the best, its duel says best what a program costs.
        assert result.history[2].cost == pytest.approx(102.0 if anchored else 50.0)
        true = pytest.approx([100 * 0.95**k for k in range(1, 9)])
        assert [row.cost for row in result.history[5:]] == true
        # What is reported is never better than before only because the machine was slower then.
        assert [row.best / (1.0 if anchored else 2.0) for row in result.history[5:]] == true


def test_a_program_that_won_by_the_weather_shields_nobody() -> None:
    """The second program won in an odd minute; the third one is faster than it, but not than the first."""

    class Chain(TextCosts):
        deterministic = False

        def true_cost(self, fingerprint: str) -> float:
            return {0: 100.0, 1: 106.0, 2: 103.0}.get(self.evaluated.index(fingerprint), 200.0)

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            for candidate in candidates:
                self.evaluated.append(candidate.fingerprint)
                place = len(self.evaluated) - 1
                yield Evaluation({1: 99.0, 2: 98.0}.get(place, self.true_cost(candidate.fingerprint)))

        def duel(self, candidate: Candidate, best: Candidate | None, given: list[Evaluation]) -> list[Evaluation]:
            odd = best is not None and [candidate.fingerprint, best.fingerprint] == self.evaluated[1::-1]
            costs = [self.true_cost(each.fingerprint) for each in (candidate, best) if each is not None]
            return [Evaluation(cost) for cost in ([95.0, 100.0] if odd else costs)]

    with Database.in_memory() as database:
        result = find(Chain(), 6, database=database)
        assert result.best is result.root
        assert [row.is_best for row in result.history] == [True] + [False] * 6
        assert result.cost == 100.0
        (run,) = runs(database.connection)
        assert run.cost == 100.0


def test_a_return_match_is_another_one_than_the_duel() -> None:
    """A duel is won by more than luck, a return match by any difference, and each takes place at its own time."""
    one, other = start().text, start(KERNEL.replace("+ 1", "+ 2"))
    some, more = Evaluation(1.0, detail={"samples": [1.0, 1.2, 1.0]}), Evaluation(1.1, detail={"samples": [1.1] * 3})
    with Database.in_memory() as database:
        memory = database.memory(Problem.of(start()), TextCosts())
        assert not memory.keep_duel(one, other.text, Duel.of(some, more)).won
        assert memory.find_duel(start().fingerprint, other.fingerprint, again=True) is None
        assert memory.keep_duel(one, other.text, Duel.of(some, more, again=True), again=True).won
        duel, match = (memory.find_duel(start().fingerprint, other.fingerprint, again=again) for again in (False, True))
        assert duel is not None
        assert match is not None
        assert (duel.won, match.won) == (False, True)


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
