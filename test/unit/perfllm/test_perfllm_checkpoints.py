"""Checkpoints of the agent: an interrupted search goes on as if it had not been interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from pdojo.budget import Budget
from pdojo.errors import DatabaseError, UsageError
from pdojo.passes.passes import run_pass
from pdojo.perfllm import storing
from pdojo.perfllm.agent import Moment
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.strategy import PerfLLM
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.node import Proposal
from pdojo.search.contract.progress import Progress, SearchResult
from pdojo.search.contract.strategy import Saved
from pdojo.search.database import Database
from pdojo.search.database.checkpoints import folder_of
from pdojo.search.database.pruning import Pruning, prune
from pdojo.search.engine import resuming
from pdojo.search.engine.search import search
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from search_games import TextCosts, facts, start

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")
SETTINGS = Settings(horizon=6, successors=4, batch=8, updates=2, sync=5, width=16)
EDITS = Settings.parse("granularity=edits,successors=4,batch=8,updates=2,sync=5,width=16,elites=3,patience=12")
BUDGET = 30


class PositiveCosts(TextCosts):
    """The same order of programs, with costs that rewards c/T can be made of."""

    def cost(self, text: str) -> Evaluation:
        found = super().cost(text)
        return replace(found, cost=exp(found.cost / 10)) if found.is_ok else found


class Counting(PerfLLM):
    """Counts what it is asked for."""

    asked = 0
    looks = 0

    def ask(self) -> Proposal | None:
        self.asked += 1
        return super().ask()

    def _look(
        self,
        game: Game,
        mates: Sequence[Sequence[Move]] = (),
        again: int | None = None,
        evaluations: int | None = None,
    ) -> Moment:
        self.looks += 1
        return super()._look(game, mates, again, evaluations)


def run(
    path: Path | None, costs: PositiveCosts | None = None, stop: int | None = None, strategy: PerfLLM | None = None
) -> SearchResult:
    def listen(progress: Progress) -> None:
        if stop is not None and progress.evaluations >= stop and not progress.doing:
            raise KeyboardInterrupt

    with Database.in_memory() if path is None else Database(path) as database:
        return search(
            start(),
            costs or PositiveCosts(),
            strategy or PerfLLM(BUDGET, SETTINGS),
            neighbourhood("mutate"),
            Budget(BUDGET),
            3,
            database=database,
            listener=listen,
        )


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after each program."""
    monkeypatch.setattr(resuming, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(resuming, "SAVE_SHARE", 1e9)


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize(
    "settings",
    [
        # The tests below have the simple settings.
        *(pytest.param(settings, marks=pytest.mark.slow) for settings in (SETTINGS, EDITS)),
        replace(SETTINGS, demonstrations=True, granularity="both"),
        replace(EDITS, demonstrations=True, horizon=3),
    ],
)
def test_an_interrupted_agent_goes_on(settings: Settings, tmp_path: Path) -> None:
    uninterrupted = Counting(BUDGET, settings)
    whole = run(None, strategy=uninterrupted)
    path = tmp_path / "search.sqlite"
    run(path, stop=20, strategy=PerfLLM(BUDGET, settings))
    strategy, costs = Counting(BUDGET, settings), PositiveCosts()
    found = run(path, costs, strategy=strategy)
    assert facts(found) == facts(whole)
    assert [row.best for row in found.history] == [row.best for row in whole.history]
    assert found.progress.repeated == whole.progress.repeated
    # Only what came after the last checkpoint was proposed again.
    assert strategy.asked <= uninterrupted.asked - 15
    assert len(costs.evaluated) <= BUDGET - 19


def test_edits_lead_to_new_programs() -> None:
    """With edits no evaluation is asked for twice, and what was drawn in a state is chosen from again."""
    strategy = Counting(BUDGET, EDITS)
    found = run(None, strategy=strategy)
    assert found.progress.repeated == 0
    assert strategy.asked <= BUDGET + 1
    assert found.history[-1].best < found.history[0].best
    assert strategy.looks < 0.8 * BUDGET


@pytest.mark.parametrize("settings", [SETTINGS, EDITS])
def test_a_demonstration_is_the_pass_s(settings: Settings, tmp_path: Path) -> None:
    """The first programs are those on the way of the expert pass, and each is learned from."""
    game = start()
    run_pass("heuristic", game)
    moves = [step.resolved for step in game.trace.steps]
    strategy = PerfLLM(BUDGET, replace(settings, demonstrations=True))
    result = run(tmp_path / "search.sqlite", strategy=strategy)
    state, wanted = start(), list[str]()
    for move in moves:
        state.apply(move)
        wanted.append(state.fingerprint)
    with Database(tmp_path / "search.sqlite") as database:
        rows = database.connection.rows(
            "SELECT p.hash FROM evaluations e JOIN programs p ON p.id = e.program ORDER BY e.number"
        )
    found = [row["hash"] for row in rows][1:]
    assert len(moves) > 2
    assert found[: len(set(wanted))] == list(dict.fromkeys(wanted))
    assert len(result.history) == BUDGET + 1


def test_a_strategy_is_its_saved_state(tmp_path: Path) -> None:
    """Saving and restoring at once changes nothing in what is proposed later."""
    one, other = PerfLLM(BUDGET, SETTINGS), PerfLLM(BUDGET, SETTINGS)
    assert isinstance(one, Saved)
    assert facts(run(None, strategy=one)) == facts(run(tmp_path / "search.sqlite", strategy=other))
    assert one.save() == other.save()


@pytest.mark.usefixtures("_often")
def test_a_checkpoint_that_does_not_fit_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If moves lead elsewhere than when the log was written, everything is proposed again."""
    whole = run(None)
    path = tmp_path / "search.sqlite"
    run(path, stop=20)
    with Database(path) as database, database.connection.transaction() as connection:
        connection.execute("UPDATE evaluations SET trace = (SELECT min(id) FROM traces) WHERE number = 4")
    monkeypatch.setattr(resuming, "MOVES", ("errors.py",))  # other code
    strategy = Counting(BUDGET, SETTINGS)
    assert facts(run(path, strategy=strategy)) == facts(whole)
    assert strategy.asked >= BUDGET


@pytest.mark.usefixtures("_often")
def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "search.sqlite"
    run(path, stop=5)
    (saved,) = folder_of(path).iterdir()
    saved.write_bytes(saved.read_bytes()[:-1] + b"?")
    with pytest.raises(DatabaseError, match="is damaged: delete it"):
        run(path)
    saved.unlink()
    assert facts(run(path)) == facts(run(None))


def test_checkpoints_of_pruned_runs_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "search.sqlite"
    run(path)
    with Database(path) as database:
        assert prune(database.connection, Pruning())["checkpoints"] == 0
        assert list(folder_of(path).iterdir())
        with database.connection.transaction() as connection:
            connection.execute("DELETE FROM evaluations")
            connection.execute("DELETE FROM runs")
        assert prune(database.connection, Pruning())["checkpoints"] == 1
    assert not list(folder_of(path).iterdir())


CHILD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
sys.path.insert(0, {str(Path(__file__).parent)!r})
from dataclasses import replace
from math import exp
from pathlib import Path
from pdojo.search.engine import resuming
from test_perfllm_checkpoints import PositiveCosts, run
resuming.SAVE_EVERY, resuming.SAVE_SHARE = 0.05, 1e9
run(Path(sys.argv[1]), PositiveCosts(pause=0.01))
print("done")
"""


def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    """A search that is killed ends like one that is not, and measures no program twice."""
    path = tmp_path / "search.sqlite"
    known: set[str] = set()
    command = [sys.executable, "-c", CHILD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while len(known) < 12 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
            known = measured(path)
        os.kill(process.pid, signal.SIGKILL)
    assert known <= measured(path)
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout == "done\n"
    costs = PositiveCosts()
    assert facts(run(path, costs)) == facts(run(None))
    assert not costs.evaluated


def measured(path: Path) -> set[str]:
    """The programs whose costs are in the database."""
    if not path.exists():
        return set()
    try:
        with Database(path, create=False) as database:
            rows = database.connection.rows("SELECT p.hash FROM measurements m JOIN programs p ON p.id = m.program")
    except DatabaseError:
        return set()
    return {row["hash"] for row in rows}


# The format


def test_trees_survive() -> None:
    tree = {"a": [1, 2.5, None, "text"], "b": {3: torch.arange(4), "c": [torch.zeros(0, 2)]}, "d": True}
    found = storing.load(storing.dump(tree, {"kind": "test"}), object)
    assert found["a"] == tree["a"]
    assert found["d"] is True
    assert found["b"][3].tolist() == [0, 1, 2, 3]
    assert found["b"]["c"][0].shape == (0, 2)
    assert storing.stamp_of(storing.dump(tree, {"kind": "test"}))["kind"] == "test"


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 something else", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "])
def test_other_data_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        storing.load(data, object)
    with pytest.raises(UsageError):
        storing.load(storing.dump({"a": torch.ones(9)})[:-3], object)
