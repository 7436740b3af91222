"""The fuzzing tool: same seed, same run; broken promises are found, shrunk, printed and kept; traces come back."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from pdojo.backends.measure import Trap
from pdojo.backends.snitch import session
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.kernels.random_kernels import features_for, random_text
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game, Skipped
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation
from qa.fuzz import arguments as parsed
from qa.fuzz import fuzzer_for, main
from qa.fuzzing.jobs import Found, FuzzPlan, run
from qa.fuzzing.summary import Totals
from qa.inverses import lost_on_the_way_back
from qa.kernel_coverage import TABLE_2, features_of


def found(plan: FuzzPlan, numbers: int) -> list[Found]:
    return list(islice(run(plan, 0, 1), numbers))


def test_generated_kernels_are_valid_and_have_every_feature() -> None:
    features: set[str] = set()
    for name in FuzzPlan().machines:
        toy = machine(name)
        for seed in range(60):
            (kernel,) = parse_notation(random_text(seed, features_for(toy)))
            validate(Program(kernel, toy))
            features |= features_of(nest_of(kernel))
    assert set(TABLE_2) < features
    wanted = {f"mapping :{m}" for m in "upvgbwsf"} | {
        "slots :N",
        "slots :Nk",
        "shared buffer",
        "buffer shared with the caller",
        "guard",
        "cast",
    }
    wanted |= {"several writers of an array", "mixed element types", "size that is no power of two"}
    assert wanted <= features
    accumulations = {name.removeprefix("accumulation ") for name in features if name.startswith("acc")}
    assert {"addf", "mulf", "maximumf", "minimumf", "addi", "muli", "maxsi", "minsi", "maxui", "minui"} <= {
        name.partition(".")[2] for name in accumulations
    }


def test_traces_come_back_to_the_letter() -> None:
    totals = Totals()
    for one in found(FuzzPlan(traces=True, length=12, seed=11), 10):
        totals.add(one)
    assert totals.failures == []
    counts = totals.counts
    assert (counts["traces", ""], counts["edited", ""]) == (10, 10 - counts["lengths", "0"])
    assert min(counts[what, ""] for what in ("replayed", "executed", "kept")) > 0


def test_the_same_seed_gives_the_same_walks() -> None:
    plan = FuzzPlan(length=4, seed=3, sets_every=2)
    first, again = ([f.counts for f in found(plan, 3)] for _ in range(2))
    assert first == again
    assert sum(counts.of("sets").total() for counts in first) > 3


def broken_inverse(self: object, program: Program, site: object) -> Move:
    del self, program, site
    return Move.parse("unmap@nothing:0")


@pytest.mark.parametrize("traces", [False, True])
def test_a_broken_promise_becomes_a_lit_test(traces: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformation("unroll"), "inverse", broken_inverse)
    undo = Game.undo
    if traces:

        def first(game: Game, _: int = -1) -> list[Skipped]:
            return undo(game, 0)

        monkeypatch.setattr(Game, "undo", first)
    plan = FuzzPlan(traces=traces, length=8, seed=1, machines=("toy",))
    reports = (one.failure for one in islice(run(plan, 0, 1), 12))
    report = next(r for r in reports if r and r.promise == ("undo all" if traces else "inverse"))
    assert traces or "unroll@" in report.move
    assert report.lit.count("--undo=" if traces else "--apply='unroll@") >= 1
    assert report.lit.startswith("# RUN: pdojo-opt %s --machine toy")
    assert "\nkernel k(" in report.lit or "\nkernel " in report.lit
    assert f"# seed 1, number {report.number}, machine toy: " in str(report)


def test_several_processes_a_file_of_failures_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = tmp_path / "summary.json"
    failures = tmp_path / "failures.txt"
    options = ["--traces", "4", "--processes", "2", "--json", str(summary), "--failures", str(failures)]
    assert main(options) == 0
    data = json.loads(summary.read_text(encoding="utf-8"))
    assert data["traces"]["traces"] >= 4
    assert (data["failures"], data["processes"], failures.exists()) == ([], 2, False)
    assert capsys.readouterr().out == ""


def test_code_for_snitch_cores_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trap, like a wrong result, is a broken promise."""
    plan = FuzzPlan(machines=("snitch-xdiv",), length=3, compile_every=1, seed=5, prefer=("stream", "frep"))
    totals = Totals()
    for one in found(plan, 2):
        totals.add(one)
    assert totals.failures == []
    assert totals.counts["compiled", ""] > 2
    assert {"stream", "frep"} & totals.counts.of("moves").keys()

    def fall(*_: object) -> Trap:
        return Trap("it fell down")

    monkeypatch.setattr(session, "_run", fall)
    broken = next(one.failure for one in run(plan, 0, 1) if one.failure is not None)
    assert (broken.promise, broken.machine) == ("simulation", "snitch-xdiv")
    assert "it fell down" in broken.detail


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--moves", "0"], "take positive numbers"),
        (["--sets-every", "-1"], "--sets-every and --compile-every"),
        (["--moves", "5", "--traces", "5"], "--moves or --traces, not both"),
        (["--walks", "5", "--traces", "5"], "--walks or --traces, not both"),
        (["--random", "softmax"], "give kernels or --random, not both"),
        (["softmax", "other.pdojo"], "kernels of the library or files, not both"),
        (["missing.pdojo"], "cannot read 'missing.pdojo'"),
        (["--machine", "toi"], "unknown machine 'toi'"),
    ],
)
def test_mistakes_on_the_command_line(options: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fuzzer_for(parsed(options))


def test_a_rule_that_a_move_mends_is_not_broken_by_its_inverse() -> None:
    """A vector that is misaligned on the machine may be taken back for ever; an aligned one is restored."""
    text = "kernel k() -> (y)\ny f32 [4, 2] heap{}\n\n4:g 2:v y[{{0}},{{1}}] = 0\n"
    moved = Move("unmap", "y:1")
    for declared in ("", " align 8"):
        program = Program(parse_notation(text.format(declared))[0], machine("nvidia-sm90"))
        assert bool(conditions_of(program).problems) == (not declared)
        made = apply(program, moved)
        assert (made.inverse is None) == (not declared)
        assert lost_on_the_way_back(program, made.program, made.inverse) is None
        assert (lost_on_the_way_back(program, made.program, None) is None) == (not declared)
        elsewhere = Move("vectorize", "y:0")
        assert "does not apply" in (lost_on_the_way_back(program, made.program, elsewhere) or "")
