"""The catalogue of planted defects fits the source, and the command that plants them finds what tests notice."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from pdojo.errors import UsageError
from pdojo.transforms.registry import TRANSFORMATION_NAMES
from qa.mutants import judge, main
from qa.mutation.catalogue import MUTANTS, stale
from qa.mutation.copies import checkout
from qa.mutation.drawn import draw
from qa.mutation.killers import Runner, Stage, asked_before, lit, output_of, what_failed
from qa.mutation.mutant import Change, Mutant, family
from qa.mutation.operators import Quoted, answers, never, replaced, returns
from qa.mutation.results import Result, Results

ROOT = checkout()


def test_every_mutant_fits_the_source() -> None:
    assert stale(ROOT) == []
    assert len(MUTANTS) >= 60


def test_every_mutant_names_moves() -> None:
    assert {move for m in MUTANTS for move in m.moves} <= set(TRANSFORMATION_NAMES)
    assert all(m.moves for m in MUTANTS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (never("nothing"), "0 places instead of one: condition 'nothing'"),
        (returns("None"), "2 places instead of one: return ''"),
        (Quoted("conflict = ask(None)", "conflict ="), "is no Python"),
        (replaced("ask(None)", "ask ( None )"), "changes nothing"),
        (answers("storage_after", "nonsense"), "uses a name that transforms/structure/ordering.py lacks: nonsense"),
    ],
)
def test_a_mutant_that_does_not_fit_is_an_error(change: Change, message: str) -> None:
    mutant = family("transforms/structure/ordering.py", "reordered", "join_scopes")("x", "", change)
    with pytest.raises(UsageError, match=f"^mutant 'x' .*{message}"):
        mutant.mutated(ROOT)


@pytest.mark.parametrize(
    ("file", "symbol", "message"),
    [
        (
            "transforms/structure/ordering.py",
            "nothing",
            "does not fit transforms/structure/ordering.py, nothing: there is no 'nothing'",
        ),
        ("transforms/nothing.py", "reordered", "mutant 'x': cannot read 'transforms/nothing.py'"),
    ],
)
def test_a_file_or_a_symbol_that_is_gone_is_an_error(file: str, symbol: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        family(file, symbol, "join_scopes")("x", "", never("conflict")).mutated(ROOT)


def test_drawn_mutants_are_small_changes_of_the_source() -> None:
    drawn = draw(ROOT, "dialect/rules", 40, 1)
    assert drawn == draw(ROOT, "dialect/rules", 40, 1) != draw(ROOT, "dialect/rules", 40, 2)
    for mutant in drawn:
        source = mutant.path(ROOT).read_text(encoding="utf-8")
        changed = mutant.mutated(ROOT)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutant.name
        assert sum(a != b for a, b in zip(changed.splitlines(), source.splitlines(), strict=False)) >= 1
    assert len({mutant.name for mutant in drawn}) == 40


def test_a_mutant_drawn_from_another_version_is_an_error(tmp_path: Path) -> None:
    (mutant,) = draw(ROOT, "dialect/shortcuts/turns.py", 1, 3)
    path = mutant.path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("# another version\n", encoding="utf-8")
    with pytest.raises(UsageError, match="was drawn from another version"):
        mutant.mutated(tmp_path)


def test_mutants_are_drawn_from_the_package_only() -> None:
    with pytest.raises(UsageError, match="there is no 'dialect/analyses' in the package pdojo"):
        draw(ROOT, "dialect/analyses", 1, 0)


SOME = (
    "tile: one iteration too many",
    "collapse: no remainder",
    "guards: in any order",
)


def by_name(name: str) -> Mutant:
    return next(m for m in MUTANTS if m.name == name)


@pytest.mark.parametrize("name", [SOME[0], *(pytest.param(name, marks=pytest.mark.slow) for name in SOME[1:])])
def test_some_are_planted_and_noticed(name: str) -> None:
    before = by_name(name).path(ROOT).read_bytes()
    result = judge(ROOT, Runner(), by_name(name))
    assert (result.outcome, result.stage) == ("suite", "lit of the move")
    assert by_name(name).path(ROOT).read_bytes() == before


def test_the_test_that_noticed_a_defect_before_is_asked_first() -> None:
    killer = "transforms/tile_scope/rewrite.pdojo"
    (stage,) = asked_before(ROOT, killer)
    assert stage.only == killer
    assert judge(ROOT, Runner(), by_name("tile: one iteration too many"), killer=killer).stage == "as before"
    (stage,) = asked_before(ROOT, "test/unit/dialect/test_analysis.py::test_what_a_write_covers[every")
    assert stage.command[-1] == "test/unit/dialect/test_analysis.py::test_what_a_write_covers"
    for gone in (
        "test/unit/nothing.py::test_it",
        "test/unit/tools/test_start.py::test_it",
        "transforms/nothing.pdojo",
        "a test hangs: nothing for 600 s",
        "",
    ):
        assert asked_before(ROOT, gone) == []


def test_a_test_that_is_gone_notices_nothing(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_it.py").write_text("def test_other() -> None: ...\n")
    assert Runner().first_failure(tmp_path, asked_before(tmp_path, "test/test_it.py::test_it")) is None


def test_a_healthy_copy_notices_nothing(tmp_path: Path) -> None:
    assert Runner().first_failure(ROOT, [Stage("nothing", ("true",))]) is None
    failed = Runner().first_failure(tmp_path, [Stage("it", ("sh", "-c", "echo FAILED here::test_it; false"))])
    assert failed is not None
    assert failed[1] == "here::test_it"


def test_a_test_that_fails_without_the_defect_notices_nothing(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_it.py").write_text("def test_good(): ...\ndef test_bad():\n    assert False\n")
    profile = "from hypothesis import settings\nsettings.register_profile('first')\n"
    (tmp_path / "test" / "conftest.py").write_text(profile)
    assert Runner().passes(tmp_path, "test/test_it.py::test_good[a]")
    assert not Runner().passes(tmp_path, "test/test_it.py::test_bad")


def test_what_takes_long_is_no_test_that_hangs() -> None:
    def run(script: str) -> str | None:
        with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
            output = output_of(process, 1.0)
            process.kill()
        return output

    assert run("for k in 1 2 3 4; do echo $k; sleep 0.4; done") == "1\n2\n3\n4\n"
    assert run("echo 1; exec sleep 10") is None


def test_a_stopped_runner_starts_nothing(tmp_path: Path) -> None:
    runner = Runner()
    runner.stop()
    with pytest.raises(KeyboardInterrupt):
        runner.first_failure(tmp_path, [lit("anything", [])])


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("...\nFAIL: pdojo :: transforms/x/refuse.pdojo (1 of 4)\nFAIL: pdojo :: y", "transforms/x/refuse.pdojo"),
        ("FAILED test/unit/test_a.py::test_b - AssertionError", "test/unit/test_a.py::test_b"),
        ("# seed 0, number 3, machine toy: meaning broken by tile@x:0", "meaning broken by tile@x:0"),
        ("\nkilled\n\n", "killed"),
    ],
)
def test_what_failed_is_read_from_the_output(output: str, failed: str) -> None:
    assert what_failed(output) == failed


def test_results_of_other_sources_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    result = Result(MUTANTS[0].name, "suite", "a stage", "a test", 1.0)
    Results(path, "one").add(MUTANTS[0], result)
    assert Results(path, "one").of(MUTANTS[0]) == result
    assert Results(path, "one").of(MUTANTS[1]) is None
    assert Results(path, "two").of(MUTANTS[0]) is None
    assert Results(path, "two").earlier(MUTANTS[0]) == "a test"
    other = Results(path, "two")
    other.add(MUTANTS[1], Result(MUTANTS[1].name, "suite", "a stage", "another test", 1.0))
    assert [Results(path, "three").earlier(m) for m in MUTANTS[:3]] == ["a test", "another test", ""]
    path.write_text("no JSON")
    assert Results(path, "one").of(MUTANTS[0]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nothing like it"], "no mutant has 'nothing like it'"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_mistakes_are_one_message(arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "join: vectors"]) == 0
    assert "1 planted defects" in capsys.readouterr().out
    assert main(["--list", "--only", "join: vectors", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["old"], listed["new"]) == ("site.mapping is Mapping.VECTOR", "(False)")
