"""The search loop: batches, memory, budgets, interruption, going on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from time import perf_counter

import pytest

from pdojo.budget import Budget
from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.contract.node import Proposal
from pdojo.search.contract.progress import Ending, Progress
from pdojo.search.database import Database
from pdojo.search.engine.search import search
from pdojo.transforms.game import Game
from search_games import Downhill, Edges, TextCosts, facts, find, start


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


def test_strategies_are_told_in_the_order_of_asking() -> None:
    asked: list[str] = []

    class Watching(Downhill):
        def ask(self) -> Proposal | None:
            found = super().ask()
            assert found is not None
            asked.append(found.game.fingerprint)
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
        def neighbour(self, game: Game, random: Random) -> Game | None:
            return None

    class Same(Edges):
        def neighbour(self, game: Game, random: Random) -> Game | None:
            return game.fork()

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
    with pytest.raises(UsageError, match="at least 0"):
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
        assert database.connection.row("SELECT state FROM runs")["state"] == "interrupted"  # pyright: ignore
        # The batch that was interrupted is stored as far as it was evaluated.
        costs = TextCosts()
        assert facts(find(costs, 40, database=database)) == facts(whole)
        assert len(costs.evaluated) == 41 - 25
        assert database.connection.row("SELECT state FROM runs")["state"] == "finished"  # pyright: ignore


def test_an_error_leaves_the_run_marked(tmp_path: Path) -> None:
    class Broken(TextCosts):
        def check(self, candidate: Candidate) -> Evaluation:
            raise RuntimeError("no worker")

    with Database(tmp_path / "a.sqlite") as database:
        with pytest.raises(RuntimeError, match="no worker"):
            find(Broken(), database=database)
        assert database.connection.row("SELECT state FROM runs")["state"] == "failed"  # pyright: ignore
        assert database.connection.row("SELECT count(*) AS n FROM measurements")["n"] == 1  # pyright: ignore


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

        def neighbour(self, game: Game, random: Random) -> Game | None:
            random.random()
            return super().neighbour(game, random)

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
    assert {progress.doing for progress in told} == {"", "reading", "checking a new best"}
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
    game = start()
    game.apply(game.moves()[0])
    result = search(game, TextCosts(), Downhill(), Edges(), Budget(10), 1)
    assert result.root.fingerprint == game.fingerprint
    assert result.root.game.trace == game.trace


def test_settings_are_part_of_a_run(tmp_path: Path) -> None:
    class Other(Downhill):
        @property
        def settings(self) -> JSON:
            return {"chance": 0.3}

    with Database(tmp_path / "a.sqlite") as database:
        for strategy in (Downhill(), Other(), Downhill(batch=2), Downhill()):
            search(start(), TextCosts(), strategy, Edges(), Budget(5), 1, database=database)
        assert len(database.connection.rows("SELECT hash FROM runs")) == 3
