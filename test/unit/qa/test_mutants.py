"""The sample of mutants is drawn from all places alike and repeats; the tests of the configuration exist."""

from __future__ import annotations

import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from pdojo.errors import UsageError
from qa.mutants import CONFIG, ROOT, changed_files, copy_project, draw, main, near, survived

Row = tuple[str, str, int, int, str]


def session_of(path: Path, rows: list[Row]) -> Path:
    """A session with the tables of cosmic-ray, and one result."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table work_items (job_id)")
        database.execute(
            "create table mutation_specs "
            "(job_id, module_path, start_pos_row, start_pos_col, operator_name, occurrence default 0)"
        )
        database.execute("create table work_results (job_id, test_outcome)")
        for row in rows:
            database.execute("insert into work_items values (?)", row[:1])
            database.execute("insert into mutation_specs values (?, ?, ?, ?, ?, 0)", row)
    return path


def jobs(session: Path) -> list[str]:
    with closing(sqlite3.connect(session)) as database:
        names = [
            {job for (job,) in database.execute(f"select job_id from {t}")} for t in ("work_items", "mutation_specs")
        ]
    assert names[0] == names[1]
    return sorted(names[0])


ROWS: list[Row] = [
    *(("a" + name, "pdojo/dialect/rules/races.py", 3, 4, name) for name in "123456789"),
    ("b", "pdojo/dialect/rules/lanes.py", 1, 0, "1"),
    ("c", "pdojo/dialect/rules_of.py", 1, 0, "1"),
]


def test_a_sample_repeats_and_changes_each_place_once(tmp_path: Path) -> None:
    found: list[list[str]] = []
    for number, seed in enumerate((1, 1, 2, 3)):
        session = session_of(tmp_path / f"{number}.sqlite", ROWS if number else ROWS[::-1])
        draw(session, 60, seed)
        found.append(jobs(session))
    assert found[0] == found[1]
    assert all([job[0] for job in each] == ["a", "b", "c"] for each in found)
    assert len({each[0] for each in found}) > 1


def test_a_sample_has_no_excluded_operators(tmp_path: Path) -> None:
    operators = [
        *("core/ReplaceComparisonOperator_Is_Eq", "core/ReplaceComparisonOperator_Lt_Is", "core/RemoveDecorator"),
        *("core/ReplaceComparisonOperator_Is_IsNot", "core/ReplaceComparisonOperator_Lt_LtE", "core/AddNot"),
    ]
    session = session_of(tmp_path / "s.sqlite", [(name, "a.py", k, 0, name) for k, name in enumerate(operators)])
    draw(session, 60, 0)
    assert jobs(session) == sorted(operators[3:])


def test_files_are_those_of_the_configuration_or_of_a_folder() -> None:
    assert {"pdojo/dialect/flow/collision.py", "pdojo/transforms/structure/fusion.py"} < set(changed_files(None))
    assert changed_files("pdojo/dialect/rules/races.py") == ["pdojo/dialect/rules/races.py"]
    assert len(changed_files("pdojo/dialect/rules")) > 5
    with pytest.raises(UsageError, match="there is no Python file in 'pdojo/dialect/nothing'"):
        changed_files("pdojo/dialect/nothing")


def test_moves_near_a_file() -> None:
    folder = "test/filecheck/transforms"
    assert near("pdojo/transforms/structure/fusion.py") == [f"{folder}/join_scopes", f"{folder}/split_scopes"]
    assert set(near("pdojo/transforms/common/ordering.py")) > {f"{folder}/join_scopes", f"{folder}/swap_scopes"}
    assert near("pdojo/dialect/rules/races.py") == []


def test_survivors_are_counted(tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.sqlite", [])
    with closing(sqlite3.connect(session)) as database, database:
        database.executemany("insert into work_results values ('', ?)", [("SURVIVED",), ("KILLED",), (None,)])
    assert survived(session) == 1


def test_the_configuration_names_tests_and_code_that_exist() -> None:
    config = tomllib.loads((ROOT / CONFIG).read_text())["cosmic-ray"]
    tests = re.findall(r"test/[\w/]+(?:\.py)?", config["test-command"])
    assert len(tests) > 8
    assert [path for path in (*tests, *config["module-path"]) if not (ROOT / path).exists()] == []


def test_a_copy_has_what_git_does_not_ignore(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("the project is not in a git repository")
    copy_project(tmp_path)
    assert (tmp_path / "qa" / "mutants.py").read_bytes() == (ROOT / "qa" / "mutants.py").read_bytes()
    assert (tmp_path / "pdojo_tools" / "opt.py").is_file()
    assert not (tmp_path / ".venv").exists()


def test_mistakes_are_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--number", "0"], ["--within", "nothing", "--sessions", str(tmp_path)]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1
