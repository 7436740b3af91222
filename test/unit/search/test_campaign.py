"""Campaigns: several searches at once, interrupted, failed, gone on with."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from pdojo.budget import Budget
from pdojo.errors import MeasurementError, UsageError
from pdojo.search.contract.progress import Ending, SearchResult
from pdojo.search.database import Database
from pdojo.search.engine.campaign import Task, TaskStage, TaskStanding, campaign, search_task
from pdojo.search.engine.search import search
from pdojo.transforms.game import Game
from search_games import Downhill, Edges, TextCosts, start


def task(name: str, seed: int, costs: TextCosts, evaluations: int = 20) -> Task[SearchResult]:
    return search_task(name, start, lambda _, __: costs, Downhill(), Edges(), Budget(evaluations), seed)


def facts(result: SearchResult | None) -> list[tuple[int, float, str, float, bool]]:
    assert result is not None
    return [(row.number, row.cost, row.failure, row.best, row.is_best) for row in result.history]


def alone(seed: int, evaluations: int = 20) -> SearchResult:
    return search(start(), TextCosts(), Downhill(), Edges(), Budget(evaluations), seed)


def test_each_search_finds_what_it_finds_alone() -> None:
    running: list[str] = []
    most: list[int] = []

    class Watched(TextCosts):
        def close(self) -> None:
            running.pop()

    def begun(_: Game, __: threading.Event) -> TextCosts:
        running.append("")
        most.append(len(running))
        return Watched(pause=0.002)

    tasks = [search_task(str(seed), start, begun, Downhill(), Edges(), Budget(20), seed) for seed in range(5)]
    told: list[Sequence[TaskStanding[SearchResult]]] = []
    found = campaign(tasks, 2, listener=told.append)
    assert [standing.task.name for standing in found] == ["0", "1", "2", "3", "4"]
    assert {standing.stage for standing in found} == {TaskStage.ENDED}
    assert [facts(standing.result) for standing in found] == [facts(alone(seed)) for seed in range(5)]
    assert max(most) == 2
    assert not running
    assert list(told[-1]) == found
    assert not campaign([], 2)


def test_a_search_that_fails_does_not_end_the_others() -> None:
    def broken(_: Game, __: threading.Event) -> TextCosts:
        raise MeasurementError("no worker starts")

    tasks = [search_task("broken", start, broken, Downhill(), Edges(), Budget(5), 1), task("fine", 1, TextCosts())]
    first, second = campaign(tasks, 1)
    assert first.stage is TaskStage.FAILED
    assert str(first.error) == "no worker starts"
    assert facts(second.result) == facts(alone(1))


def test_a_bug_is_raised() -> None:
    def broken(_: Game, __: threading.Event) -> TextCosts:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        campaign([search_task("broken", start, broken, Downhill(), Edges(), Budget(5), 1)], 1)


def test_nothing_at_once() -> None:
    with pytest.raises(UsageError, match="at least one search at once, not 0"):
        campaign([], 0)


def test_ctrl_c_gives_the_bests_so_far_and_the_campaign_goes_on_later(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"

    interrupted: list[str] = []

    def interrupt(standings: Sequence[TaskStanding[SearchResult]]) -> None:
        if not interrupted and all(s.progress is not None and s.progress.evaluations >= 5 for s in standings[:2]):
            interrupted.append("")
            raise KeyboardInterrupt

    first = [TextCosts(pause=0.02) for _ in range(3)]
    found = campaign([task(str(k), k, costs, 40) for k, costs in enumerate(first)], 2, path, interrupt)
    assert [s.stage for s in found] == [TaskStage.ENDED, TaskStage.ENDED, TaskStage.WAITING]
    for seed, standing in enumerate(found[:2]):
        assert standing.result is not None
        assert standing.result.ending is Ending.INTERRUPTED
        assert standing.result.best is not None
        assert 3 <= len(standing.result.history) < 41
        assert facts(standing.result) == facts(alone(seed, 40))[: len(standing.result.history)]
    second = [TextCosts() for _ in range(3)]
    found = campaign([task(str(k), k, costs, 40) for k, costs in enumerate(second)], 3, path)
    assert [facts(s.result) for s in found] == [facts(alone(seed, 40)) for seed in range(3)]
    # The three are one problem: what one measured, the others know.
    evaluated = [fingerprint for costs in (*first, *second) for fingerprint in costs.evaluated]
    with Database(path) as database:
        stored = database.connection.row("SELECT count(*) AS count FROM measurements")
    assert stored is not None
    assert stored["count"] == len(set(evaluated))


def test_what_waits_is_told_to_stop() -> None:
    class Hanging(TextCosts):
        def __init__(self, stop: threading.Event) -> None:
            super().__init__()
            self.stop = stop

        def cost(self, text: str) -> None:  # pyright: ignore
            self.stop.wait()
            raise KeyboardInterrupt

    interrupted: list[str] = []

    def interrupt(_: Sequence[TaskStanding[SearchResult]]) -> None:
        if not interrupted:
            interrupted.append("")
            raise KeyboardInterrupt

    tasks = [search_task("k", start, lambda _, stop: Hanging(stop), Downhill(), Edges(), Budget(5), 1)]
    (found,) = campaign(tasks, 1, listener=interrupt)
    assert found.stage is TaskStage.INTERRUPTED
    assert found.result is None
