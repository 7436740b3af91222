"""The driver: batches, memory, duels, budgets, interruption, going on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

import pytest

from pdojo.errors import UsageError
from pdojo.search.database import Database, Problem
from pdojo.search.dojo import Dojo
from pdojo.search.driver import search
from pdojo.search.evaluation import JSON, Anchor, Candidate, Evaluation, Listener
from pdojo.search.node import Proposal
from pdojo.search.progress import Budget, Ending, Progress, Result
from pdojo.search.strategies import strategy
from search_games import Downhill, Edges, TextCosts, start


def find(costs: TextCosts, evaluations: int = 40, seed: int = 1, database: Database | None = None) -> Result:
    return search(start(), costs, Downhill(), Edges(), Budget(evaluations), seed, database=database)


def facts(result: Result) -> list[tuple[int, float, str, float, bool]]:
    """A history without its times."""
    return [(row.number, row.cost, row.failure, row.best, row.is_best) for row in result.history]


def test_finds_better_programs() -> None:
    costs = TextCosts()
    result = find(costs)
    assert result.ending is Ending.EVALUATIONS
    assert [row.number for row in result.history] == list(range(41))
    assert result.best is not None
    assert result.best.cost < result.root.cost
    assert result.best.cost == min(row.cost for row in result.history) == result.history[-1].best
    assert result.trace == result.best.trace
    # The trace leads to the program.
    again = start()
    assert not again.become(step.resolved for step in result.trace.steps)
    assert again.fingerprint == result.best.fingerprint
    assert costs.cost(again.text).cost == result.best.cost


def test_no_program_is_evaluated_twice() -> None:
    costs = TextCosts()
    result = find(costs)
    assert len(costs.evaluated) == len(set(costs.evaluated)) == 41
    assert result.progress.repeated > 0
    assert result.progress.evaluations == 40


def test_programs_are_expected_while_their_batch_is_asked_for() -> None:
    class Watching(TextCosts):
        """Evaluates what it was told to expect, nothing else."""

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            if self.evaluated:
                assert self.expected[-len(candidates) :] == [c.fingerprint for c in candidates]
            return super().evaluate(candidates, listener)

    costs = Watching()
    with Database.in_memory() as database:
        find(costs, 20, database=database)
        assert costs.expected == costs.evaluated[1:]
        # What is in the database is not expected.
        again = TextCosts()
        find(again, 20, database=database)
        assert not again.expected


def test_failures_are_data() -> None:
    result = find(TextCosts())
    failed = [row for row in result.history if row.failure]
    assert failed
    assert {row.failure for row in failed} == {"Timeout"}
    assert all(row.cost == inf and not row.is_best for row in failed)
    assert result.progress.failures == {"Timeout": len(failed)}


def test_the_same_seed_gives_the_same_search() -> None:
    one, other, third = find(TextCosts()), find(TextCosts()), find(TextCosts(), seed=2)
    assert facts(one) == facts(other) != facts(third)
    assert one.trace == other.trace


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


def test_the_leaders_of_a_batch_are_measured_again() -> None:
    class Rough(TextCosts):
        """First costs are too small by a half for every second program."""

        rounds = 0

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            for evaluation in super().evaluate(candidates, listener):
                yield replace(evaluation, cost=evaluation.cost - 0.5) if evaluation.is_ok else evaluation

        def refine(
            self, found: Mapping[str, Evaluation], best: float, listener: Listener | None = None
        ) -> dict[str, Evaluation]:
            self.rounds += 1
            leaders = {key: each for key, each in found.items() if each.cost < best}
            return {key: replace(each, cost=each.cost + 0.5) for key, each in leaders.items()}

    costs = Rough()
    with Database.in_memory() as database:
        result = find(costs, 30, database=database)
        assert costs.rounds > 5
        query = "SELECT p.hash, m.cost FROM measurements m JOIN programs p ON p.id = m.program"
        stored = {row["hash"]: row["cost"] for row in database.connection.rows(query)}
        # What became the best did so with its better cost.
        best = [row for row in result.history if row.is_best and row.number]
        assert best
        assert all(row.cost in stored.values() for row in best)
        assert stored[start().fingerprint] == costs.cost(start().text).cost - 0.5
        # What is remembered is not measured again.
        again = Rough()
        assert facts(find(again, 30, database=database)) == facts(result)
        assert not again.rounds


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
    assert len(costs.confirmed) == sum(row.is_best for row in result.history)
    assert result.best is not None
    assert result.cost == 2 * result.best.cost + 100


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


def test_strategies_are_told_in_the_order_of_asking() -> None:
    asked: list[str] = []

    class Watching(Downhill):
        def ask(self) -> Proposal | None:
            found = super().ask()
            assert found is not None
            asked.append(found.dojo.fingerprint)
            return found

    strategy = Watching(batch=5)
    search(start(), TextCosts(), strategy, Edges(), Budget(30), 1)
    told = [node.fingerprint for node in strategy.told[1:]]
    assert told == asked
    # Nodes of one program share its number, and those numbers count the programs.
    numbers = {node.fingerprint: node.number for node in strategy.told}
    assert sorted(numbers.values()) == list(range(31))
    assert all(node.number == numbers[node.fingerprint] for node in strategy.told)


def test_a_search_ends_where_nothing_is_new() -> None:
    class Nothing(Edges):
        def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
            return None

    class Same(Edges):
        def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
            return dojo.fork()

    for neighbourhood in (Nothing(), Same()):
        result = search(start(), TextCosts(), Downhill(), neighbourhood, Budget(10), 1)
        assert result.ending is Ending.EXHAUSTED
        assert len(result.history) == 1
        assert not result.trace.steps


def test_budgets() -> None:
    result = search(start(), TextCosts(pause=0.02), Downhill(), Edges(), Budget(seconds=0.3), 1)
    assert result.ending is Ending.SECONDS
    assert 1 < len(result.history) < 20
    times = [row.seconds for row in result.history]
    assert times == sorted(times)
    assert len(search(start(), TextCosts(), Downhill(), Edges(), Budget(0), 1).history) == 1
    with pytest.raises(UsageError, match="needs a budget"):
        Budget()
    with pytest.raises(UsageError, match="not negative"):
        Budget(-1)
    with pytest.raises(UsageError, match="64 bits"):
        search(start(), TextCosts(), Downhill(), Edges(), Budget(1), 2**63)


def test_a_run_goes_on_without_evaluating_again(tmp_path: Path) -> None:
    whole = find(TextCosts(), 40)
    for part in (0, 1, 7, 39):
        path = tmp_path / f"{part}.sqlite"
        with Database(path) as database:
            find(TextCosts(), part, database=database)
        with Database(path) as database:
            costs = TextCosts()
            resumed = find(costs, 40, database=database)
        assert facts(resumed) == facts(whole)
        assert resumed.trace == whole.trace
        assert len(costs.evaluated) == 40 - part
        assert resumed.progress.known == part + 1


def test_times_go_on_where_they_stopped(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:
        first = find(TextCosts(pause=0.01), 10, database=database)
        again = find(TextCosts(), 20, database=database)
    assert [row.seconds for row in again.history[:11]] == pytest.approx(
        [row.seconds for row in first.history], abs=0.01
    )
    assert again.history[11].seconds >= first.history[-1].seconds


def test_ctrl_c_gives_the_best_so_far(tmp_path: Path) -> None:
    class Interrupted(TextCosts):
        def cost(self, text: str) -> Evaluation:
            if len(self.evaluated) == 26:
                raise KeyboardInterrupt
            return super().cost(text)

    whole = find(TextCosts(), 40)
    with Database(tmp_path / "a.sqlite") as database:
        result = find(Interrupted(), 40, database=database)
        assert result.ending is Ending.INTERRUPTED
        assert 20 <= len(result.history) <= 25
        assert facts(result) == facts(whole)[: len(result.history)]
        assert database.connection.row("SELECT state FROM runs")[0] == "interrupted"  # pyright: ignore
        # The batch that was interrupted is stored as far as it was evaluated.
        costs = TextCosts()
        assert facts(find(costs, 40, database=database)) == facts(whole)
        assert len(costs.evaluated) == 41 - 25
        assert database.connection.row("SELECT state FROM runs")[0] == "finished"  # pyright: ignore


def test_an_error_leaves_the_run_marked(tmp_path: Path) -> None:
    class Broken(TextCosts):
        def confirm(
            self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
        ) -> list[Evaluation]:
            raise RuntimeError("no worker")

    with Database(tmp_path / "a.sqlite") as database:
        with pytest.raises(RuntimeError, match="no worker"):
            find(Broken(), database=database)
        assert database.connection.row("SELECT state FROM runs")[0] == "failed"  # pyright: ignore
        assert database.connection.row("SELECT count(*) FROM measurements")[0] == 1  # pyright: ignore


def test_other_settings_share_nothing(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:
        find(TextCosts(), 10, database=database)
        costs = TextCosts(version=2)
        find(costs, 10, database=database)
        assert len(costs.evaluated) == 11
        costs = TextCosts()
        find(costs, 10, seed=2, database=database)
        assert len(costs.evaluated) < 11


def test_a_run_that_comes_out_differently_replaces_its_log(tmp_path: Path) -> None:
    class Changed(Edges):
        """The same settings, other proposals: as if pdojo had changed."""

        def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
            random.random()
            return super().neighbour(dojo, random)

    with Database(tmp_path / "a.sqlite") as database:
        find(TextCosts(), 20, database=database)
        result = search(start(), TextCosts(), Downhill(), Changed(), Budget(10), 1, database=database)
        rows = database.connection.rows("SELECT number, cost FROM evaluations ORDER BY number")
    assert [(row["number"], row["cost"]) for row in rows] == [
        (row.number, None if row.failure else row.cost) for row in result.history
    ]


def test_progress_is_told() -> None:
    told: list[Progress] = []
    search(start(), TextCosts(pause=0.001), Downhill(), Edges(), Budget(10), 1, listener=told.append)
    assert {progress.doing for progress in told} == {"", "reading"}
    assert [p.evaluations for p in told if not p.doing] == list(range(11))
    last = told[-1]
    assert last.rate > 0
    assert last.best < last.root
    assert {"propose", "store", "evaluate"} <= set(last.spent)


def test_time_is_accounted_for_once() -> None:
    class AtOnce(TextCosts):
        """Gives a batch when all of it is evaluated, and accounts for half of the time."""

        passed = 0.0

        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
            began = perf_counter()
            found = list(super().evaluate(candidates, listener))
            self.passed += perf_counter() - began
            return iter([replace(evaluation, seconds={"run": self.pause / 2}) for evaluation in found])

    costs = AtOnce(pause=0.02)
    spent = search(start(), costs, Downhill(batch=5), Edges(), Budget(20), 1).progress.spent
    assert spent["run"] == pytest.approx(21 * 0.01)
    assert costs.passed <= spent["run"] + spent["evaluate"] < 1.1 * costs.passed + 0.02


def test_a_root_that_fails_is_left_behind() -> None:
    class Heavy(TextCosts):
        def cost(self, text: str) -> Evaluation:
            return Evaluation.failed("OutOfMemory", {}) if text == start().text else super().cost(text)

    result = find(Heavy(), 10)
    assert result.root.cost == inf
    assert result.history[0].failure == "OutOfMemory"
    assert result.best is not None
    assert result.best.cost < inf
    none = find(Heavy(), 0)
    assert none.best is None
    assert not none.trace.steps


def test_a_search_from_a_state_with_moves() -> None:
    dojo = start()
    dojo.step(dojo.moves()[0])
    result = search(dojo, TextCosts(), Downhill(), Edges(), Budget(10), 1)
    assert result.root.fingerprint == dojo.fingerprint
    assert result.root.dojo.trace == dojo.trace


def test_settings_are_part_of_a_run(tmp_path: Path) -> None:
    class Other(Downhill):
        @property
        def settings(self) -> JSON:
            return {"chance": 0.3}

    with Database(tmp_path / "a.sqlite") as database:
        for strategy in (Downhill(), Other(), Downhill(batch=2), Downhill()):
            search(start(), TextCosts(), strategy, Edges(), Budget(5), 1, database=database)
        assert len(database.connection.rows("SELECT hash FROM runs")) == 3
