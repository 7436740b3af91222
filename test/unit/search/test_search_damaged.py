"""Databases that are damaged, read-only or made to mislead: one clear error, and nothing for a terminal to obey."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pdojo_tools import db
from pdojo_tools.db_tables import print_details, run_table, standing_table
from rich.console import Console

from pdojo.errors import DatabaseError, PdojoError, UsageError
from pdojo.search.database import Database, Problem
from pdojo.search.database.details import details
from pdojo.search.database.exchange import export_lines, import_lines
from pdojo.search.database.pruning import Pruning, prune
from pdojo.search.database.queries import KINDS, FoundRow, runs, standings, stored_program
from pdojo.search.database.schema import TABLES, digest
from pdojo.transforms.trace import Trace
from search_games import TextCosts, Weather, find, start


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "a.sqlite"
    with Database(path) as database:
        find(TextCosts(), 6, database=database)
        find(Weather(1, 0.1, 0.01), 6, database=database)
    # All in one file.
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def read_all(path: Path) -> None:
    """Everything that reads: what the tool prints, an export, a dry run of pruning."""
    with Database(path) as database:
        connection = database.connection
        console = Console(file=StringIO())
        console.print(standing_table(standings(connection)))
        console.print(run_table(runs(connection)))
        for kind in KINDS:
            for row in connection.rows(f"SELECT hash FROM {kind}"):
                found = FoundRow(kind, row["hash"])
                print_details(console, details(connection, found))
                stored_program(connection, found)
        list(export_lines(connection))
        prune(connection, Pruning(slower_than=1.5, failures=True), dry_run=True)


@pytest.mark.parametrize("flips", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_flipped_bits_are_harmless_or_one_clear_error(flips: int, filled: Path, tmp_path: Path) -> None:
    """Whatever a file holds, tools end with a message, and a search goes on, or ends with one."""
    content = filled.read_bytes()
    read_all(filled)
    random = Random(7)
    noticed: Counter[str] = Counter()
    for flip in range(flips):
        # Half of them where SQLite keeps its own, at the beginning of pages.
        place = random.randrange(len(content))
        if flip % 2:
            place -= place % 4096 - random.randrange(100)
        damaged = bytearray(content)
        damaged[place] ^= 1 << random.randrange(8)
        path = tmp_path / f"{flip}.sqlite"
        path.write_bytes(damaged)
        for action in (read_all, go_on) if flip % 8 == 0 else (read_all,):
            try:
                action(path)
            except PdojoError as error:
                noticed[type(error).__name__] += 1
        path.unlink()
    assert noticed["DatabaseError"] >= flips / 10


def go_on(path: Path) -> None:
    with Database(path) as database:
        find(TextCosts(), 6, database=database)


VALUES = (
    None, 0, -1, 2**62, 1.5, float("inf"), -1e308, "", "x", "{}", "[]", "null", '{"a":1}', "[" * 3000, '{"a":' * 3000,
    '{"a":"\\ud800"}', b"\xff\xfe", b"", "9" * 5000, '{"threads": 1e999, "samples": "x"}', '{"environment": 3}',
    '{"environment": {"a": []}, "samples": [1, "x"]}', '{"propose": "x"}', '{"propose": NaN}', "9999-99-99",
)  # fmt: skip
"""Cells that a file may hold, whatever the column."""


def test_cells_of_other_types_are_harmless_or_one_clear_error(filled: Path, tmp_path: Path) -> None:
    """SQLite takes any value in any column."""
    random = Random(11)
    noticed = 0
    for number in range(25):
        path = Path(shutil.copy(filled, tmp_path / f"{number}.sqlite"))
        table = random.choice(list(TABLES))
        column = random.choice([*TABLES[table].columns, "hash"] if TABLES[table].hashed else [*TABLES[table].columns])
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        with suppress(sqlite3.Error), connection:
            connection.execute(f"UPDATE {table} SET {column} = ?", (random.choice(VALUES),))
        connection.close()
        for action in (read_all, go_on) if number % 12 == 0 else (read_all,):
            try:
                action(path)
            except PdojoError:
                noticed += 1
        path.unlink()
    assert noticed > 6


def test_a_file_that_may_only_be_read(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(filled, tmp_path / "a.sqlite"))
    before = path.read_bytes()
    allowed = os.access

    def access(file: Path, mode: int) -> bool:
        return mode != os.W_OK and allowed(file, mode)

    monkeypatch.setattr(os, "access", access)
    assert db.main(["list", "--database", str(path)]) == 0
    assert db.main(["export", "--database", str(path)]) == 0
    capsys.readouterr()
    assert db.main(["prune", "--failures", "--database", str(path)]) == 1
    assert "may be read only" in capsys.readouterr().err
    with Database(path) as database, pytest.raises(DatabaseError, match="may be read only: copy it"):
        find(TextCosts(), 6, database=database)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    with pytest.raises(DatabaseError, match="has version 4 of the tables; this pdojo knows version 1"):
        Database(path)
    assert path.read_bytes()[:4096] != before[:4096]
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_file_that_may_only_be_read_while_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they wrote is in the log beside it."""
    path = tmp_path / "a.sqlite"
    with Database(path) as writer:
        find(TextCosts(), 6, database=writer)
        assert Path(f"{path}-wal").stat().st_size > 0
        allowed = os.access

        def access(file: Path, mode: int) -> bool:
            return mode != os.W_OK and allowed(file, mode)

        monkeypatch.setattr(os, "access", access)
        with Database(path) as database:
            assert [standing.programs for standing in standings(database.connection)] == [7]


def test_names_do_not_reach_the_terminal_as_orders(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    path = Path(shutil.copy(filled, tmp_path / "a.sqlite"))
    order = "\x1b]0;owned\x07\x9b2J\u202e"
    connection = sqlite3.connect(path)
    for table, column in (("problems", "kernel"), ("problems", "shape"), ("runs", "strategy"), ("programs", "text")):
        connection.execute(f"UPDATE {table} SET {column} = {column} || ?", (order,))
    connection.execute("UPDATE measurements SET detail = ?", (json.dumps({"kind": "Crash", "reason": order}),))
    connection.commit()
    (problem,) = connection.execute("SELECT hash FROM problems").fetchone()
    connection.close()
    for arguments in (["list"], ["list", "--runs"], ["list", "--json"], ["show", problem], ["export"]):
        assert db.main([*arguments, "--database", str(path)]) == 0
        out = capsys.readouterr().out
        assert not set("\x1b\x07\x9b\u202e") & set(out)
    assert db.main(["list", "--kernel", "none", "--database", str(path)]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_trace_is_written_through_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that others may write to, where they expect us."""
    monkeypatch.chdir(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".a.trace.{os.getpid()}").symlink_to(victim)
    Trace().save("a.trace")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "a.trace").is_symlink()
    # Nothing else is left, also where it cannot be written.
    (tmp_path / "folder.trace").mkdir()
    with pytest.raises(UsageError, match=r"cannot write the trace 'folder\.trace'"):
        Trace().save("folder.trace")
    names = {f".a.trace.{os.getpid()}", "a.trace", "folder.trace", "victim"}
    assert {each.name for each in tmp_path.iterdir()} == names


# Imports


def changed(lines: list[str], table: str, **values: Any) -> list[str]:
    """The export, with the first row of a table that has such columns changed."""
    rows = [json.loads(line) for line in lines]
    for row in rows:
        if row.get("table") == table and all(row.get(name) is not None for name in values):
            row.update({name: value(row[name]) if callable(value) else value for name, value in values.items()})
            return [json.dumps(row) for row in rows]
    raise AssertionError(table)


def samples(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def apply(detail: dict[str, Any]) -> dict[str, Any]:
        change(detail)
        return detail

    return apply


IMPORTS: list[tuple[str, dict[str, Any], str]] = [
    ("measurements", {"cost": -1.0}, "'cost' is no possible number"),
    ("measurements", {"cost": 0.0}, "'cost' is no possible number"),
    ("evaluations", {"cost": -1e-9}, "'cost' is no possible number"),
    ("evaluations", {"seconds": -1.0}, "'seconds' is no possible number"),
    ("incumbents", {"cost": -5.0}, "'cost' is no possible number"),
    ("incumbents", {"gain": 0.0}, "'gain' is no possible number"),
    ("incumbents", {"cost": 1e-9}, "the measurements contradict this row"),
    ("incumbents", {"program": digest("another")}, "no row of 'programs' before"),
    ("races", {"detail": {"samples": [-1.0]}}, "not taken in the same turns"),
    ("races", {"detail": {"samples": ["nan"]}}, "not taken in the same turns"),
    ("races", {"detail": {"samples": {"0": 1}}}, "not taken in the same turns"),
    ("races", {"against": str, "detail": samples(lambda d: d["samples"].pop())}, "not taken in the same turns"),
    ("problems", {"kernel": "a\x1b[2J"}, "'kernel' is no text"),
]


@pytest.mark.parametrize(("table", "values", "text"), IMPORTS)
def test_imports_that_contradict_what_was_measured(
    filled: Path, tmp_path: Path, table: str, values: dict[str, Any], text: str
) -> None:
    with Database(filled) as database:
        lines = list(export_lines(database.connection))
    with Database(tmp_path / "b.sqlite") as database:
        with pytest.raises(DatabaseError, match=rf"lines:\d+: .*{text}.*; nothing was imported"):
            import_lines(database.connection, changed(lines, table, **values), "lines")
        assert not database.connection.rows("SELECT * FROM machines")
        assert import_lines(database.connection, lines, "lines")["races"] > 5


def test_numbers_that_json_does_not_have(filled: Path, tmp_path: Path) -> None:
    with Database(filled) as database:
        lines = list(export_lines(database.connection))
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        wrong = [line.replace('"table":"measurements"', f'"table":"measurements","cost":{word}') for line in lines]
        with Database(tmp_path / "b.sqlite") as database, pytest.raises(DatabaseError, match="nothing was imported"):
            import_lines(database.connection, [*wrong], "lines")


def test_an_import_takes_no_timed_best_from_its_place(filled: Path, tmp_path: Path) -> None:
    """Whatever it says: the two did not race."""
    with Database(filled) as database:
        lines = list(export_lines(database.connection))
        memory = database.memory(Problem.of(start()), Weather(1, 0.1, 0.01))
        held = memory.best()
    assert held is not None
    path = tmp_path / "b.sqlite"
    with Database(path) as database:
        find(Weather(1, 0.1, 0.01), 5, seed=9, database=database)
        memory = database.memory(Problem.of(start()), Weather(1, 0.1, 0.01))
        before = memory.best()
        assert before is not None
        assert before.fingerprint != held.fingerprint
        import_lines(database.connection, changed(lines, "incumbents", cost=1e-9, gain=9.0, measured="9999"), "lines")
        assert memory.best() == before
        assert not import_lines(database.connection, lines, "lines")["incumbents"]
        # It races with the best of the next search that finds it.
        assert memory.find(held.fingerprint) is not None
