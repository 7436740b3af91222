"""Checkpoints of strategies: an interrupted search goes on from its place in the log, as if nothing had happened."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pdojo.budget import Budget
from pdojo.names import STRATEGIES
from pdojo.search.contract.node import Proposal
from pdojo.search.contract.progress import Progress, SearchResult
from pdojo.search.contract.strategy import Saved, Strategy
from pdojo.search.database import Database
from pdojo.search.database.checkpoints import folder_of
from pdojo.search.engine import resuming
from pdojo.search.engine.search import search
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.strategies import states, strategy
from search_games import TextCosts, Weather, facts, start

BUDGET = 30
NAMES = STRATEGIES
"""Those without PyTorch; `test_perfllm_checkpoints.py` is about the other."""


def other_code(*_: str) -> str:
    return "other code"


class Killed(BaseException):
    """The end of a process."""


def made(name: str) -> Strategy:
    if name == "model":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    return strategy(name, BUDGET)


def run(
    name: str,
    path: Path | None,
    costs: TextCosts | Weather | None = None,
    stop: int | None = None,
    budget: int = BUDGET,
    asks: list[int] | None = None,
    kill: int | None = None,
) -> SearchResult:
    """A search; `asks` receives the number of proposals, and `kill` ends it at one of them."""
    searching = made(name)
    ask, proposals = searching.ask, 0

    def counted() -> Proposal | None:
        nonlocal proposals
        proposals += 1
        if proposals == kill:
            raise Killed
        return ask()

    def listen(progress: Progress) -> None:
        if stop is not None and progress.evaluations >= stop and not progress.doing:
            raise KeyboardInterrupt

    searching.ask = counted
    near = neighbourhood("mutate")
    try:
        with Database.in_memory() if path is None else Database(path) as database:
            return search(
                start(), costs or TextCosts(), searching, near, Budget(budget), 3, database=database, listener=listen
            )
    finally:
        if asks is not None:
            asks.append(proposals)


@cache
def uninterrupted(name: str) -> SearchResult:
    return run(name, None)


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after each batch."""
    monkeypatch.setattr(resuming, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(resuming, "SAVE_SHARE", 1e9)


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize(("name", "timed"), [*((name, False) for name in NAMES), ("evolve", True)])
def test_an_interrupted_search_goes_on(name: str, timed: bool, tmp_path: Path) -> None:
    def costs() -> TextCosts | Weather:
        return Weather() if timed else TextCosts()

    assert isinstance(made(name), Saved)
    whole = run(name, None, costs()) if timed else uninterrupted(name)
    path = tmp_path / "search.sqlite"
    for stop in (2, 22):
        run(name, path, costs(), stop=stop)
    asks: list[int] = []
    found = run(name, path, costs(), asks=asks)
    assert facts(found) == facts(whole)
    assert [row.best for row in found.history] == [row.best for row in whole.history]
    assert found.progress.repeated == whole.progress.repeated
    assert asks[0] < BUDGET / 2


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize("name", ["anneal", "evolve"])
def test_a_search_that_is_killed_early_again_and_again_ends(name: str, tmp_path: Path) -> None:
    """Each process makes a few more proposals than a batch has."""
    path = tmp_path / "search.sqlite"
    for _ in range(BUDGET):
        try:
            found = run(name, path, kill=14)
        except Killed:
            continue
        assert facts(found) == facts(uninterrupted(name))
        return
    pytest.fail("the search did not advance")


@pytest.mark.usefixtures("_often")
def test_a_longer_search_goes_on_as_if_it_had_been_long(tmp_path: Path) -> None:
    """The last batch of the shorter one was cut short."""
    path = tmp_path / "search.sqlite"
    run("evolve", path, budget=21)
    assert facts(run("evolve", path)) == facts(uninterrupted("evolve"))


@pytest.mark.usefixtures("_often")
def test_other_code_makes_the_moves_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "search.sqlite"
    run("evolve", path, stop=30)
    monkeypatch.setattr(resuming, "whole_digest", other_code)
    with Database(path) as database, database.connection.transaction() as connection:
        connection.execute("UPDATE evaluations SET trace = (SELECT min(id) FROM traces) WHERE number = 4")
    asks: list[int] = []
    assert facts(run("evolve", path, asks=asks)) == facts(uninterrupted("evolve"))
    assert asks[0] >= BUDGET


@pytest.mark.usefixtures("_often")
def test_a_state_that_other_code_saved_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "search.sqlite"
    run("anneal", path, stop=30)
    monkeypatch.setattr(states, "whole_digest", other_code)
    asks: list[int] = []
    assert facts(run("anneal", path, asks=asks)) == facts(uninterrupted("anneal"))
    assert asks[0] >= BUDGET


@pytest.mark.usefixtures("_often")
def test_a_checkpoint_of_another_version_is_none(tmp_path: Path) -> None:
    path = tmp_path / "search.sqlite"
    run("sample", path, stop=30)
    (saved,) = folder_of(path).iterdir()
    saved.write_bytes(saved.read_bytes().replace(b"pdojo checkpoint 2", b"pdojo checkpoint 1"))
    assert facts(run("sample", path)) == facts(uninterrupted("sample"))
