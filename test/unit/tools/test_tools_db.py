"""`pdojo-db`: what it prints; export and import; merging; pruning; one message per mistake."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools import db
from pdojo_tools.db_tables import run_table, standing_table
from rich.console import Console

from pdojo.budget import Budget
from pdojo.errors import DatabaseError, UsageError
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.progress import SearchResult
from pdojo.search.contract.racing import Race
from pdojo.search.database import Database, Problem
from pdojo.search.database.decisions import DecisionMemory
from pdojo.search.database.exchange import LAYOUT, export_lines, import_lines
from pdojo.search.database.pruning import Pruning, prune
from pdojo.search.database.queries import ProblemStanding, RunSummary, find, runs, standings
from pdojo.search.database.schema import TABLES
from pdojo.search.engine.costs import LAST
from pdojo.search.engine.search import search
from pdojo.transforms.trace import Trace
from search_games import Downhill, Edges, TextCosts, start


class Seconds(TextCosts):
    """Positive costs in seconds."""

    unit = "s"

    def cost(self, text: str) -> Evaluation:
        found = super().cost(text)
        return Evaluation(found.cost * 1e-4 + 0.01, "", found.detail, found.seconds) if found.is_ok else found


def fill(path: Path, evaluations: int = 30, seed: int = 1) -> SearchResult:
    with Database(path) as database:
        memory = database.memory(Problem.of(start()), Seconds())
        DecisionMemory(memory, start().program.nest).keep({"stores": "plain"}, 1.25)
        return search(start(), Seconds(), Downhill(), Edges(), Budget(evaluations), seed, database=database)


def export(path: Path) -> list[str]:
    with Database(path, create=False) as database:
        return list(export_lines(database.connection))


def take(path: Path, lines: list[str]) -> Counter[str]:
    with Database(path) as database:
        return import_lines(database.connection, lines, "lines")


def count(path: Path, table: str) -> int:
    with Database(path) as database:
        return len(database.connection.rows(f"SELECT id FROM {table}"))


def only(path: Path) -> tuple[ProblemStanding, RunSummary]:
    with Database(path) as database:
        (standing,), (run,) = standings(database.connection), runs(database.connection)
    return standing, run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    path = tmp_path_factory.mktemp("filled") / "a.sqlite"
    return path, fill(path)


@pytest.fixture
def copy(filled: tuple[Path, SearchResult], tmp_path: Path) -> Path:
    return Path(shutil.copy(filled[0], tmp_path / "copy.sqlite"))


# The tool


def test_list(
    filled: tuple[Path, SearchResult], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path, result = filled
    assert result.best is not None
    assert db.main(["list", "--database", str(path)]) == 0
    out = capsys.readouterr().out
    for text in ("k", "32x64", "f32", "toy", " threads", f"{result.best.cost * 1e3:.4g} ms", "text"):
        assert text in out
    assert db.main(["list", "--runs", "--database", str(path)]) == 0
    out = capsys.readouterr().out
    for text in ("downhill", "edges", "finished", "30"):
        assert text in out
    assert db.main(["list", "--json", "--kernel", "k", "--database", str(path)]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["cost"] == result.best.cost
    assert found["plain"] == result.root.cost
    assert found["gain"] == pytest.approx(result.root.cost / result.best.cost)
    assert found["moves"] == len(result.trace.steps)
    assert found["programs"] == 31
    assert found["failures"] == sum(row.failure != "" for row in result.history)
    assert db.main(["list", "--kernel", "softmax", "--database", str(path)]) == 2
    assert "nothing is known about a kernel 'softmax'; known: k" in capsys.readouterr().err


def test_tables_fit_80_columns(filled: tuple[Path, SearchResult]) -> None:
    standing, run = only(filled[0])
    names = {
        "kernel": "residual_layernorm",
        "shape": "16384x1024",
        "machine": "x86-64-avx512",
        "evaluator": "analytical",
    }
    best = replace(
        standing,
        **names,
        threads=16,
        cost=0.0123456,
        gain=12.5,
        moves=107,
        programs=1234,
        failures=123,
        runs=12,
        beside="start",
    )
    last = replace(run, **names, strategy="evolve", neighbourhood="heuristic", evaluations=1000, seconds=1234.0)
    for table, texts in (
        (
            standing_table([best]),
            ("12.35 ms", "12.50x start", "107 moves", "16 threads", "1234 in 12 runs", "123 failed"),
        ),
        (
            run_table([last]),
            ("evolve, 1", "heuristic", "1000", ", 1234 s", last.started[:16].replace("T", " "), last.state),
        ),
    ):
        console = Console(width=80, file=io.StringIO(), record=True)
        console.print(table)
        shown = console.export_text()
        for text in ("residual_layernorm", "16384x1024 f32", "analytical", *texts):
            assert text in shown, shown
        assert max(map(len, shown.splitlines())) <= 80


def test_show(
    filled: tuple[Path, SearchResult], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path, result = filled
    assert result.best is not None
    standing, run = only(path)
    assert standing.program is not None
    assert standing.trace is not None
    moves = [str(move) for move in result.trace.moves]
    shown: dict[str, tuple[str, ...]] = {
        "k": (f"problem {standing.problem}", standing.program, *moves, result.best.game.text, "{'tool': 'text'}"),
        "k:32x64": (standing.program,),
        standing.problem[:4]: (f"problem {standing.problem}",),
        standing.program[:12]: (f"program {standing.program}", "match", "told", "evaluation"),
        standing.trace: (f"trace {standing.trace}", *moves, result.best.game.text),
        run.run[:6]: (f"run {run.run}", "downhill over edges, seed 1", "30 evaluations", "Timeout", *moves),
    }
    for word, texts in shown.items():
        assert db.main(["show", word, "--database", str(path)]) == 0
        out = capsys.readouterr().out
        for text in texts:
            assert text in out, word
        assert db.main(["show", word, "--json", "--database", str(path)]) == 0
        assert json.loads(capsys.readouterr().out)["hash"].startswith(word if ":" not in word and word != "k" else "")


def test_show_gives_files(filled: tuple[Path, SearchResult], tmp_path: Path) -> None:
    path, result = filled
    assert result.best is not None
    target = tmp_path / "best"
    for word in ("k", only(path)[1].run):
        arguments = ["show", word, "--database", str(path), "-o", str(target), "--only"]
        assert db.main([*arguments, "trace"]) == 0
        assert Trace.load(target) == result.trace
        assert db.main([*arguments, "program"]) == 0
        assert target.read_text() == result.best.game.text


def test_diff(filled: tuple[Path, SearchResult], capsys: pytest.CaptureFixture[str]) -> None:
    path, result = filled
    standing, _ = only(path)
    assert db.main(["diff", result.root.fingerprint, "k", "--database", str(path)]) == 0
    out = capsys.readouterr().out
    for move in result.trace.moves:
        assert f"+{move}" in out
    assert "+++ the best of k 32x64" in out
    assert db.main(["diff", "k", standing.problem, "--database", str(path)]) == 0
    assert capsys.readouterr().out.count("no difference") == 2


def test_mistakes(filled: tuple[Path, SearchResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(filled[0])
    cases: list[tuple[list[str], str]] = [
        (["list", "--database", str(tmp_path / "none.sqlite")], "there is no database"),
        (["show", "zzzz", "--database", path], "has no kernel 'zzzz', and nothing whose hash begins like that"),
        (["show", "ab", "--database", path], "has no kernel 'ab'"),
        (["show", "k", "-o", "x", "--database", path], "-o goes with --only or --json"),
        (["show", "k", "--only", "trace", "--json", "--database", path], "leave out one of them"),
        (["merge", path, "--database", path], "is the database itself"),
        (["merge", str(tmp_path / "none.sqlite"), "--database", path], "there is no database"),
        (["prune", "--database", path], "say what to forget"),
        (["prune", "--slower-than", "0.5", "--database", path], "at least 1 times as slow"),
        (["prune", "--older-than", "-1", "--database", path], "is no age"),
        (["prune", "--older-than", "old", "--database", path], "'old' is no number of days"),
        (["import", str(tmp_path / "none.jsonl"), "--database", path], "cannot read"),
        (["frobnicate"], "invalid choice"),
        ([], "the following arguments are required: COMMAND"),
    ]
    for args, text in cases:
        assert db.main(args) in (1, 2)
        err = capsys.readouterr().err
        assert text in err
        assert "Traceback" not in err


def test_an_ambiguous_word() -> None:
    game = start()
    with Database.in_memory() as database:
        for threads in (1, 2):
            database.memory(replace(Problem.of(game), machine=replace(game.machine, threads=threads)), TextCosts())
        with pytest.raises(UsageError, match=r"'k' may be any of 2: \w{12} \(32x64 f32 on toy\); "):
            find(database.connection, "k")


def test_export_import_and_merge_by_the_tool(
    filled: tuple[Path, SearchResult],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, _ = filled
    one, other, third = (str(tmp_path / name) for name in ("one.sqlite", "other.sqlite", "third.sqlite"))
    lines = tmp_path / "a.jsonl"
    assert db.main(["export", "--database", str(path), "-o", str(lines)]) == 0
    assert db.main(["import", str(lines), "--database", one]) == 0
    assert "31 measurements" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.read_bytes())))
    assert db.main(["import", "-", "--database", other]) == 0
    assert db.main(["merge", str(path), "--database", third]) == 0
    capsys.readouterr()
    assert db.main(["merge", str(path), "--database", third]) == 0
    assert "nothing" in capsys.readouterr().out
    for target in (one, other, third):
        assert export(Path(target)) == export(path)


def test_prune_by_the_tool(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = export(copy)
    assert db.main(["prune", "--failures", "--dry-run", "--database", str(copy)]) == 0
    assert "would be removed: " in capsys.readouterr().out
    assert export(copy) == before
    assert db.main(["prune", "--failures", "--database", str(copy)]) == 0
    assert "removed: " in capsys.readouterr().out
    assert len(export(copy)) < len(before)


# Exchange


def test_import_is_idempotent_and_keeps_everything(filled: tuple[Path, SearchResult], tmp_path: Path) -> None:
    path, result = filled
    lines = export(path)
    assert json.loads(lines[0]) == {"format": "pdojo searches", "version": LAYOUT}
    target = tmp_path / "b.sqlite"
    added = take(target, lines)
    assert set(added) == set(TABLES)
    assert sum(added.values()) == len(lines) - 1
    assert take(target, lines) == {}
    # A search goes on there as it would here.
    costs = Seconds()
    with Database(target) as database:
        again = search(start(), costs, Downhill(), Edges(), Budget(30), 1, database=database)
    assert not costs.evaluated
    assert [(r.cost, r.best) for r in again.history] == [(r.cost, r.best) for r in result.history]


def test_integers_of_any_size_are_numbers(tmp_path: Path, filled: tuple[Path, SearchResult]) -> None:
    target = tmp_path / "b.sqlite"
    take(target, _changed(export(filled[0]), "measurements", cost=10**20, failure=""))
    with Database(target) as database:
        assert database.connection.row("SELECT 1 FROM measurements WHERE cost = 1e20") is not None


def test_what_two_files_know_is_joined(tmp_path: Path) -> None:
    one, other, both = (tmp_path / name for name in ("one.sqlite", "other.sqlite", "both.sqlite"))
    fill(one, 10, 1)
    fill(other, 20, 1)
    fill(other, 10, 2)
    fill(both, 20, 1)
    fill(both, 10, 2)
    take(one, export(other))
    for table in TABLES:
        assert count(one, table) == count(both, table), table
    (first, second) = (run for run in _runs(one))
    assert (first.evaluations, second.evaluations) == (20, 10)


def _runs(path: Path) -> list[RunSummary]:
    with Database(path) as database:
        return runs(database.connection)


def test_a_log_that_says_something_else_stays(tmp_path: Path, filled: tuple[Path, SearchResult]) -> None:
    lines = [json.loads(line) for line in export(filled[0])]
    logged = [line for line in lines if line.get("table") == "evaluations"]
    logged[3]["program"], logged[4]["program"] = logged[4]["program"], logged[3]["program"]
    target = tmp_path / "b.sqlite"
    fill(target, 10)
    before = [line for line in export(target) if '"table":"evaluations"' in line]
    take(target, [json.dumps(line) for line in lines])
    assert [line for line in export(target) if '"table":"evaluations"' in line] == before


def _changed(lines: list[str], table: str, **values: Any) -> list[str]:
    """The lines with other values in the last row of a table; None removes one."""
    found = [json.loads(line) for line in lines]
    last = [line for line in found if line.get("table") == table][-1]
    for key, value in values.items():
        if value is ...:
            del last[key]
        else:
            last[key] = value
    return [json.dumps(line) for line in found]


def test_malformed_lines_import_nothing(tmp_path: Path, filled: tuple[Path, SearchResult]) -> None:
    lines = export(filled[0])
    last = next(number for number, line in enumerate(lines, 1) if '"table":"measurements"' in line)
    last += count(filled[0], "measurements") - 1
    end = len(lines)
    cases: list[tuple[list[str], str]] = [
        ([], r"lines:1: this is no export of searches"),
        (["[]"], r"lines:1: not a JSON object"),
        (lines[1:], r"lines:1: this is no export of searches"),
        (['{"format":"pdojo searches","version":99}'], r"lines:1: version 99 was exported by another pdojo"),
        ([*lines, "{"], rf"lines:{end + 1}: not JSON"),
        ([*lines, "", '{"table":"users"}'], rf"lines:{end + 2}: 'users' is no table"),
        ([*lines, '{"a":NaN}'], rf"lines:{end + 1}: not JSON: NaN is no number"),
        ([*lines, "[" * 100_000], rf"lines:{end + 1}: not JSON"),
        (_changed(lines, "measurements", cost=...), rf"lines:{last}: a row of 'measurements' has .*'cost' is missing"),
        (_changed(lines, "measurements", extra=1), rf"lines:{last}: .*'extra' is missing or extra"),
        (_changed(lines, "measurements", cost="1"), rf"lines:{last}: 'cost' is no possible number"),
        (_changed(lines, "measurements", cost=True), rf"lines:{last}: 'cost' is no possible number"),
        (_changed(lines, "measurements", cost=10**400), rf"lines:{last}: 'cost' is no possible number"),
        (_changed(lines, "measurements", detail=[]), rf"lines:{last}: 'detail' is no json"),
        (_changed(lines, "measurements", failure=None), rf"lines:{last}: 'failure' is no text"),
        (_changed(lines, "measurements", failure="\udcff"), rf"lines:{last}: 'failure' is no text"),
        (_changed(lines, "measurements", program="00"), rf"lines:{last}: no row of 'programs' before has the hash 00"),
        (_changed(lines, "measurements", cost=None, failure=""), rf"lines:{last}: .* contradicts itself"),
        (_changed(lines, "evaluations", number=2**70), rf"lines:{end}: 'number' is no integer"),
        (_changed(lines, "programs", text="other"), r"lines:\d+: the hash is d9298a10d1b0..., not "),
        (_changed(lines, "programs", hash=5), r"lines:\d+: 'hash' is no text"),
        (_changed(lines, "programs", hash=None), r"lines:\d+: 'hash' is no text"),
        ([*lines, '{"table":[]}'], rf"lines:{end + 1}: '\[\]' is no table"),
    ]
    target = tmp_path / "b.sqlite"
    fill(target, 3)
    before = export(target)
    for given, text in cases:
        with pytest.raises(DatabaseError, match=text) as raised:
            take(target, given)
        assert "nothing was imported" in str(raised.value)
        assert export(target) == before


# Pruning


def test_prune_slow_programs(copy: Path) -> None:
    standing, _ = only(copy)
    assert standing.cost is not None
    with Database(copy) as database:
        removed = prune(database.connection, Pruning(older_than=timedelta(0), slower_than=1.02))
        costs = [row["cost"] for row in database.connection.rows("SELECT cost FROM measurements WHERE failure = ''")]
        assert database.connection.rows("PRAGMA foreign_key_check") == []
    assert removed["measurements"] > 5
    assert removed["programs"] > 0
    assert removed["traces"] > 0
    assert max(costs) <= 1.02 * standing.cost
    (after,) = _standings(copy)
    assert (after.cost, after.program, after.trace) == (standing.cost, standing.program, standing.trace)
    # A search measures again what is forgotten.
    fill(copy)
    assert only(copy)[0].programs == 31


def _standings(path: Path) -> list[ProblemStanding]:
    with Database(path) as database:
        return standings(database.connection)


def test_prune_old_runs(copy: Path) -> None:
    with Database(copy) as database:
        assert not prune(database.connection, Pruning(older_than=timedelta(days=1)))
        assert not prune(database.connection, Pruning(older_than=timedelta.max))
        connection = database.connection
        with connection.transaction() as opened:
            opened.execute("UPDATE runs SET state = 'running'")
        # A run that may be under way stays.
        assert not prune(connection, Pruning(older_than=timedelta(0)))
        with connection.transaction() as opened:
            opened.execute("UPDATE runs SET changed = '2020-01-01T00:00:00'")
        removed = prune(connection, Pruning(older_than=timedelta(days=1)))
        assert removed == {"evaluations": 31, "runs": 1}
        assert len(standings(connection)) == 1


def test_prune_failures(copy: Path) -> None:
    standing, _ = only(copy)
    with Database(copy) as database:
        removed = prune(database.connection, Pruning(failures=True))
    assert removed["measurements"] == standing.failures
    assert _standings(copy)[0].failures == 0


def test_what_failed_in_a_race_is_not_the_best_after_pruning() -> None:
    one, other = start(), start()
    other.apply(other.moves()[0])
    with Database.in_memory() as database:
        memory = database.memory(Problem.of(one), TextCosts())
        for game in (one, other):
            memory.keep(game.text, game.trace, Evaluation(2.0))
        memory.keep_incumbent(one.trace, one.text, 2.0, timed=False, over="")
        memory.keep_incumbent(other.trace, other.text, 1.0, timed=False, over="")
        memory.keep_race(other.text, None, LAST, Race(Evaluation.failed("WrongResult", {})))
        (before,) = standings(database.connection)
        assert before.program == one.fingerprint
        prune(database.connection, Pruning(failures=True))
        (after,) = standings(database.connection)
        assert after.program == one.fingerprint
        assert memory.find(other.fingerprint) is None


def test_a_dry_run_changes_nothing(copy: Path) -> None:
    before = sqlite3.connect(copy)
    dump = list(before.iterdump())
    with Database(copy) as database:
        assert prune(database.connection, Pruning(timedelta(0), 1.0, True), dry_run=True)
    assert list(before.iterdump()) == dump
    before.close()
