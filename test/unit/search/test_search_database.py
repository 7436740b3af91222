"""The memory of searches: what is kept, what a file must be, several writers, kills."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from pdojo.budget import Budget
from pdojo.errors import DatabaseError
from pdojo.files import default_database
from pdojo.kernels import workload
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.progress import HistoryRow, SearchResult
from pdojo.search.contract.racing import Race
from pdojo.search.database import Database, LogEntry, Problem, SearchMemory
from pdojo.search.database.pruning import Pruning, prune
from pdojo.search.database.schema import TABLES, VERSION, canonical
from pdojo.search.engine.costs import LAST
from pdojo.search.engine.search import search
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace
from search_games import Downhill, Edges, TextCosts, start


def find(path: Path, evaluations: int, seed: int = 1, pause: float = 0.0) -> SearchResult:
    with Database(path) as database:
        return search(start(), TextCosts(pause), Downhill(), Edges(), Budget(evaluations), seed, database=database)


def facts(result: SearchResult) -> list[tuple[int, float, str, float, bool]]:
    return [(row.number, row.cost, row.failure, row.best, row.is_best) for row in result.history]


def contents(path: Path, table: str) -> list[dict[str, Any]]:
    with Database(path, create=False) as database:
        return database.connection.rows(f"SELECT * FROM {table}")


def two_programs() -> tuple[Game, Game]:
    one, other = start(), start()
    other.apply(other.moves()[0])
    return one, other


def measured(database: Database, *programs: Game) -> SearchMemory:
    """All cost the same."""
    memory = database.memory(Problem.of(programs[0]), TextCosts())
    for game in programs:
        memory.keep(game.text, game.trace, Evaluation(2.0))
    return memory


def test_evaluations_come_back(tmp_path: Path) -> None:
    game = start()
    environment = {"processor": "some", "huge_page_bytes": 17}
    good = Evaluation(2.5, "", {"kind": "Ok", "samples": [1.0, inf], "environment": environment}, {"run": 0.5})
    bad = Evaluation.failed("Crash", {"reason": "SIGSEGV"}, {"compile": 1.0})
    with Database(tmp_path / "a.sqlite") as database:
        memory = database.memory(Problem.of(game), TextCosts())
        assert memory.find(game.fingerprint) is None
        assert memory.keep(game.text, game.trace, good) is good
        game.apply(game.moves()[0])
        memory.keep(game.text, game.trace, bad)
        # The first measurement counts, whoever else made one.
        assert memory.keep(game.text, game.trace, Evaluation(1.0)) == bad
    with Database(tmp_path / "a.sqlite") as database:
        memory = database.memory(Problem.of(game), TextCosts())
        found = memory.find(start().fingerprint)
        assert found is not None
        assert found == good
        assert found.detail == {"kind": "Ok", "samples": [1.0, "inf"], "environment": environment}
        assert found.seconds == {"run": 0.5}
        again = memory.find(game.fingerprint)
        assert again is not None
        assert again == bad
        assert again.detail == bad.detail
        assert database.memory(Problem.of(game), TextCosts(version=2)).find(game.fingerprint) is None
        machine = replace(game.machine, threads=game.machine.threads + 1)
        assert database.memory(replace(Problem.of(game), machine=machine), TextCosts()).find(game.fingerprint) is None


def raced(*ratios: float) -> Race:
    one, other = ([2.0 * ratio for ratio in ratios], [2.0] * len(ratios))
    return Race(Evaluation(median(one), detail={"samples": one}), Evaluation(2.0, detail={"samples": other}))


BEST = "SELECT p.hash, b.cost FROM best b JOIN programs p ON p.id = b.program"


def test_races_come_back_and_failures_in_them_count() -> None:
    one, other = two_programs()
    with Database.in_memory() as database:
        memory = measured(database, one, other)
        first = raced(0.9, 1.2, 0.8)
        assert memory.keep_race(one.text, other.text, None, first) is first
        assert memory.find_race(one.fingerprint, None, None) is None
        assert memory.find_race(one.fingerprint, other.fingerprint, 0) is None
        found = memory.find_race(one.fingerprint, other.fingerprint, None)
        assert found is not None
        assert found.ratios == pytest.approx(first.ratios)
        assert found.evaluation == first.evaluation
        assert found.other == first.other
        # The first one counts.
        assert memory.keep_race(one.text, other.text, None, raced(3.0)) == found
        assert memory.find(one.fingerprint) == Evaluation(2.0)
        assert not database.connection.rows(BEST)
        memory.keep_incumbent(one.trace, one.text, 1.8, timed=True, over="")
        assert [tuple(row.values()) for row in database.connection.rows(BEST)] == [(one.fingerprint, 1.8)]
        wrong = Race(Evaluation.failed("WrongResult", {"kind": "WrongResult"}), Evaluation(2.1))
        memory.keep_race(one.text, other.text, LAST, wrong)
        assert memory.find(one.fingerprint) == wrong.evaluation
        assert memory.find(one.fingerprint, alone=True) == Evaluation(2.0)
        assert not database.connection.rows(BEST)


def test_a_timed_best_keeps_its_place_until_it_is_beaten() -> None:
    one, other = two_programs()
    with Database.in_memory() as database:
        memory = measured(database, one, other)

        def best() -> tuple[str, float]:
            (row,) = database.connection.rows(BEST)
            found = memory.best()
            assert found is not None
            assert (found.fingerprint, found.cost) == tuple(row.values())
            return found.fingerprint, found.cost

        memory.keep_incumbent(one.trace, one.text, 1.0, timed=True, over="")
        # Faster, in another minute, than somebody else.
        memory.keep_incumbent(other.trace, other.text, 0.5, timed=True, over="somebody else")
        assert best() == (one.fingerprint, 1.0)
        # It beat that in a race, in a slower minute.
        memory.keep_incumbent(other.trace, other.text, 1.1, timed=True, beside=(one.text, 1.2), over=one.fingerprint)
        assert best() == (other.fingerprint, 1.1)
        memory.keep_incumbent(one.trace, one.text, 1.3, timed=True, over=other.fingerprint, once=True)
        assert best() == (other.fingerprint, 1.1)
        memory.keep_incumbent(one.trace, one.text, 1.3, timed=True, over=other.fingerprint)
        assert best() == (one.fingerprint, 1.3)
        # Where the best fails the one before it is the best again.
        memory.keep_race(one.text, None, 0, Race(Evaluation.failed("WrongResult", {})))
        assert best() == (other.fingerprint, 1.1)


def test_the_best_of_what_is_computed_costs_least() -> None:
    one, other = two_programs()
    with Database.in_memory() as database:
        memory = measured(database, one, other)
        for game, cost in ((one, 2.0), (other, 3.0)):
            memory.keep_incumbent(game.trace, game.text, cost, timed=False, over="")
        found = memory.best()
        assert found is not None
        assert (found.fingerprint, found.cost) == (one.fingerprint, 2.0)


def test_what_fails_as_the_best_has_failed() -> None:
    one, other = two_programs()
    with Database.in_memory() as database:
        memory = measured(database, one, other)
        memory.keep_race(one.text, None, 0, Race(Evaluation(1.0)))
        memory.keep_incumbent(one.trace, one.text, 1.0, timed=True, over="")
        memory.keep_race(other.text, one.text, None, Race(Evaluation(1.0), Evaluation.failed("WrongResult", {})))
        found = memory.find(one.fingerprint)
        assert found is not None
        assert found.failure == "WrongResult"
        assert memory.find(other.fingerprint) == Evaluation(2.0)
        assert not database.connection.rows(BEST)
        # Forgetting failures, it may be tried again.
        removed = prune(database.connection, Pruning(failures=True))
        assert (removed["measurements"], removed["races"]) == (1, 2)
        assert memory.find(one.fingerprint) is None


def test_a_run_that_is_under_way_is_not_pruned_and_one_that_was_is_said() -> None:
    game = start()
    with Database.in_memory() as database:
        memory = database.memory(Problem.of(game), TextCosts())
        run = memory.run((game.text, game.trace), "sample", "edges", 0, {})
        run.mark("finished")
        again = memory.run((game.text, game.trace), "sample", "edges", 0, {})
        assert [row["state"] for row in database.connection.rows("SELECT state FROM runs")] == ["running"]
        assert not prune(database.connection, Pruning(older_than=timedelta(0)))["runs"]
        again.mark("finished")
        assert prune(database.connection, Pruning(older_than=timedelta(0)))["runs"] == 1
        # Another run gets the number of the one that is gone.
        memory.run((game.text, game.trace), "sample", "edges", 1, {})
        with pytest.raises(DatabaseError, match="was pruned while it was under way"):
            again.log([LogEntry(HistoryRow(0, 0.0, 1.0, "", 1.0, is_best=True), game.text, game.trace, None)], [])
        assert not database.connection.rows("SELECT * FROM evaluations")


def test_several_traces_lead_to_one_program(tmp_path: Path) -> None:
    result = find(tmp_path / "a.sqlite", 80)
    traces = contents(tmp_path / "a.sqlite", "traces")
    assert len(traces) > len({row["program"] for row in traces}) == 81
    for row in traces[:20]:
        game = start()
        assert not game.become(step.resolved for step in Trace.parse(row["text"]).steps)
        with Database(tmp_path / "a.sqlite") as database:
            program = database.connection.row("SELECT text FROM programs WHERE id = ?", row["program"])
            assert program is not None
            assert game.text == program["text"]
    rows = contents(tmp_path / "a.sqlite", "evaluations")
    assert [(row["number"], row["failure"], row["best"]) for row in rows] == [
        (row.number, row.failure, row.is_best) for row in result.history
    ]
    (best,) = contents(tmp_path / "a.sqlite", "best")
    assert best["cost"] == result.history[-1].best


def test_problems_are_named() -> None:
    found = workload("softmax:32x64")
    game = Game(found.instantiate(), start().machine)
    plain, named = Problem.of(game), Problem.of(game, found)
    assert (plain.kernel, plain.shape, plain.dtype, plain.label) == ("softmax", "32x64", "f32", "")
    assert (named.shape, named.label) == ("32x64", "softmax:32x64")
    with Database.in_memory() as database:
        one, other = (database.memory(problem, TextCosts()).problem for problem in (plain, named))
        assert one == other
        row = database.connection.row("SELECT label FROM problems")
        assert row is not None
        assert row["label"] == "softmax:32x64"


def test_the_tables_are_as_described() -> None:
    with Database.in_memory() as database:
        for name, table in TABLES.items():
            columns = [row["name"] for row in database.connection.rows(f"PRAGMA table_info({name})")]
            assert columns == ["id", *(["hash"] if table.hashed else []), *table.columns]


# What a file must be


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"this is no database, but a text that is long enough to be one" * 100, "it is no SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "cannot be read: it is no SQLite database"),
    ],
)
def test_files_that_are_no_database(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    with pytest.raises(DatabaseError, match=text):
        Database(path)
    assert path.read_bytes() == content


def test_the_name_of_memory_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatabaseError, match="':memory:' is no database here"):
        Database(":memory:")
    assert not list(tmp_path.iterdir())


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    find(path, 20)
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 200] = b"\xa5" * 200
    path.write_bytes(content)
    with pytest.raises(DatabaseError, match="is damaged"):
        find(path, 20)


def test_cells_that_hold_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    find(path, 5)
    for column, value in (("detail", "nonsense"), ("detail", "[1]"), ("cost", "cheap")):
        with sqlite3.connect(path) as connection:
            before = connection.execute(f"SELECT {column} FROM measurements").fetchone()[0]
            connection.execute(f"UPDATE measurements SET {column} = ? WHERE id = 1", (value,))
        connection.close()
        with pytest.raises(DatabaseError, match="where "):
            find(path, 5)
        with sqlite3.connect(path) as connection:
            connection.execute(f"UPDATE measurements SET {column} = ? WHERE id = 1", (before,))
        connection.close()


def test_text_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    find(path, 5)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE programs SET text = CAST(x'80' AS TEXT)")
    connection.close()
    with pytest.raises(DatabaseError, match="Could not decode to UTF-8"):
        contents(path, "programs")


def test_databases_of_others_and_of_the_future(tmp_path: Path) -> None:
    other, future = tmp_path / "other.sqlite", tmp_path / "future.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    find(future, 0)
    connection = sqlite3.connect(future)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(DatabaseError, match="not one of pdojo's"):
        Database(other)
    with pytest.raises(
        DatabaseError, match=f"version {VERSION + 1} of the tables; this pdojo knows version {VERSION}:"
    ):
        Database(future)
    with pytest.raises(DatabaseError, match="there is no database"):
        Database(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()
    with pytest.raises(DatabaseError, match="cannot be used"):
        Database(tmp_path)
    with pytest.raises(DatabaseError, match="cannot be used"):
        Database(tmp_path / "no" / "such" / "folder.sqlite")


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PDOJO_DATABASE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database() == tmp_path / "pdojo" / "search.sqlite"
    Database().close()
    assert default_database().exists()
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_database() == Path.home() / ".local" / "share" / "pdojo" / "search.sqlite"
    monkeypatch.setenv("PDOJO_DATABASE", str(tmp_path / "mine.sqlite"))
    assert default_database() == tmp_path / "mine.sqlite"
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("PDOJO_DATABASE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(DatabaseError, match="cannot make the folder"):
        Database()


def test_one_text_for_equal_values() -> None:
    assert canonical({"b": (1, 2.5), "a": {"x": None}}) == '{"a":{"x":null},"b":[1,2.5]}'
    assert canonical([inf, -inf]) == '["inf","-inf"]'
    assert canonical("\udcff") == '"\\udcff"'


# Several writers, and kills

_SEARCH = """
import sys
from pathlib import Path
from search_games import Downhill, Edges, TextCosts, start
from pdojo.search.database import Database
from pdojo.search.engine.search import search
from pdojo.budget import Budget

class Loud(TextCosts):
    def evaluate(self, candidates, listener=None):
        for candidate in candidates:
            print("begun", flush=True)
            yield from super().evaluate([candidate], listener)


path, evaluations, seed, pause = sys.argv[1:]
print("ready", flush=True)
with Database(path) as database:
    costs = Loud(float(pause))
    result = search(start(), costs, Downhill(), Edges(), Budget(int(evaluations)), int(seed), database=database)
print(len(costs.evaluated), result.progress.known)
"""


def spawn(path: Path, evaluations: int, seed: int, pause: float) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", _SEARCH, str(path), str(evaluations), str(seed), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_four_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    alone = {seed: find(tmp_path / f"{seed}.sqlite", 12, seed) for seed in range(4)}
    processes = [spawn(path, 12, seed, 0.005) for seed in range(4)]
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert out.startswith("ready\n")
    programs = {row["hash"] for seed in alone for row in contents(tmp_path / f"{seed}.sqlite", "programs")}
    assert {row["hash"] for row in contents(path, "programs")} == programs
    assert len(contents(path, "measurements")) == len(programs)
    assert len(contents(path, "runs")) == 4
    assert len(contents(path, "evaluations")) == 4 * 13
    assert contents(path, "PRAGMA_integrity_check")[0]["integrity_check"] == "ok"
    for seed, result in alone.items():
        assert facts(find(path, 12, seed)) == facts(result)


def kill_now_and_then(path: Path, kills: int, evaluations: int, whole: SearchResult) -> None:
    """Kill a search at random moments; each time the file is intact and what was measured is there."""
    chance = random.Random(5)
    stored = 0
    for _ in range(kills):
        process = spawn(path, evaluations, 1, 0.02)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # While it opens the file and repeats what it knows, or while it evaluates.
        begun = chance.randrange(1, 10) if chance.random() < 0.7 else 0
        for _ in range(begun):
            assert process.stdout.readline() == "begun\n"
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
        count = len(contents(path, "measurements"))
        assert count >= stored + max(0, begun - 1)
        stored = count
    # Some of the way was made by processes that were killed, not all of it.
    assert evaluations / 10 < stored <= evaluations
    costs = TextCosts()
    with Database(path) as database:
        result = search(start(), costs, Downhill(), Edges(), Budget(evaluations), 1, database=database)
    assert facts(result) == facts(whole)
    assert result.trace == whole.trace
    assert len(costs.evaluated) == evaluations + 1 - stored


def test_a_search_that_is_killed_goes_on(tmp_path: Path) -> None:
    kill_now_and_then(tmp_path / "a.sqlite", 2, 30, find(tmp_path / "whole.sqlite", 30))


@pytest.mark.slow
def test_a_search_that_is_killed_fifty_times_goes_on(tmp_path: Path) -> None:
    kill_now_and_then(tmp_path / "a.sqlite", 50, 400, find(tmp_path / "whole.sqlite", 400))


def test_what_was_measured_before_the_kill_is_there(tmp_path: Path) -> None:
    """Nothing is lost but the measurement in flight: each is in the file before the next begins."""
    path = tmp_path / "a.sqlite"
    with spawn(path, 60, 1, 0.01) as process:
        assert process.stdout is not None
        seen = "".join(process.stdout.readline() for _ in range(31))
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.read()
    begun = seen.count("begun")
    assert 29 <= begun < 61
    assert begun - 1 <= len(contents(path, "measurements")) <= begun
