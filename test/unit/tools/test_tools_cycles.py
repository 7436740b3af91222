"""`pdojo-run`, `pdojo-tune` and `pdojo-play` on a Snitch core: all of it is simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from pdojo_tools import run, tune
from pdojo_tools.playing.generated import code_lines, forms_for
from pdojo_tools.playing.session import PlaySession
from pdojo_tools.playing.stopwatch import PlayStopwatch, PlayTimings, spell_cycles, spell_time
from pdojo_tools.playing.trace_pane import summary
from pdojo_tools.tuning import choices
from pdojo_tools.tuning.choices import USUAL_BUDGET

from pdojo.backends.measure import Simulated, Worker
from pdojo.budget import Budget
from pdojo.dialect.machines.registry import machine
from pdojo.errors import MeasurementError
from pdojo.kernels import workload
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

SNITCH = machine("snitch")
KERNEL = """kernel k(x) -> (y)
machine snitch
x f64 [4, 8] heap
y f64 [4, 8] heap

4 8 y[{0},{1}] = x[{0},{1}] + 1
"""


@pytest.fixture(autouse=True)
def _no_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this runs on this processor."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a Snitch program was measured on this machine")

    monkeypatch.setattr(Worker, "compare", refuse)
    monkeypatch.setattr(Worker, "assemble", refuse)


Said = Callable[[], str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return lambda: capsys.readouterr().out


def test_run(tmp_path: Path, said: Said, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = tmp_path / "arrays.npz"
    assert run.main(["axpy:1x32", "--dtype", "f64", "--machine", "snitch", "--output", str(arrays)]) == 0
    out = said()
    assert "kernel 'axpy' on snitch, simulated\nright: agrees with the interpreter" in out
    assert "the same bits" in out
    assert "cycles (FPU" in out
    with np.load(arrays) as found:
        np.testing.assert_allclose(found["z"], found["a"] * found["x"] + found["y"])
    assert run.main(["relu:4x4", "--machine", "snitch", "--no-check"]) == 0
    assert "right" not in said()
    assert run.main(["relu:4x4", "--machine", "snitch", "--cold"]) == 2
    assert run.main(["softmax:4x4", "--machine", "snitch"]) == 1
    assert "use the machine snitch-xdiv" in capsys.readouterr().err


def test_tune_with_a_report(tmp_path: Path, said: Said) -> None:
    report, database = tmp_path / "report.html", tmp_path / "measured.db"
    command = ["relu:4x8", "--dtype", "f64", "--machine", "snitch", "--pass", "naive"]
    search = ["--search", "sample", "--budget", "6", "--database", str(database), "--report", str(report)]
    assert tune.main([*command, *search]) == 0
    out = said()
    assert "sample, mutate" in out
    assert "FPU busy" in out
    assert "exact" in out
    page = report.read_text()
    assert "lowering and simulator" in page
    assert "The simulated cycles of a call" in page
    assert "pdojo-opt" not in page
    assert "fmax.d" in page
    assert tune.main([*command, *search[:6]]) == 0
    assert "of which 6 evaluations are known" in said()


def test_a_kernel_may_name_its_machine(tmp_path: Path, said: Said) -> None:
    """What suits that machine is taken, as if the command line named it."""
    kernel = tmp_path / "k.pdojo"
    kernel.write_text(KERNEL)
    searching = ["--search", "sample", "--budget", "2", "--database", str(tmp_path / "db"), "--no-measure"]
    assert tune.main([str(kernel), *searching]) == 0
    text = said()
    assert "sample, mutate, seed 0" in text
    assert "cycles" in text


def test_simulated_cores_are_searched(tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--search` a short search begins at the pass's program, and the same command goes on with it."""
    assert USUAL_BUDGET.evaluations == 300
    database = ["--database", str(tmp_path / "db")]
    for budget in (3, 5):
        monkeypatch.setattr(choices, "USUAL_BUDGET", Budget(budget))
        assert tune.main(["relu:4x8", "--dtype", "f64", "--machine", "snitch", *database]) == 0
        text = said()
        assert f"evolve, mutate, seed 0: {budget} evaluations" in text
        assert ("of which 3 evaluations are known" in text) is (budget == 5)
    for others in (["--search", "none"], ["--no-measure"]):
        assert tune.main(["relu:4x8", "--dtype", "f64", "--machine", "snitch", *others]) == 0
        assert "evaluations" not in said()


def test_tune_refuses_other_evaluators(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["relu:4x8", "--search", "sample"]
    for evaluator in ("runtime", "analytical"):
        assert tune.main([*command, "--machine", "snitch", "--evaluator", evaluator]) == 2
        assert "knows nothing about programs for snitch; take cycles" in capsys.readouterr().err
    assert tune.main([*command, "--machine", "host", "--evaluator", "cycles"]) == 2
    assert "knows nothing about programs for host; take runtime, analytical" in capsys.readouterr().err


def test_tune_without_measuring(tmp_path: Path, said: Said) -> None:
    command = ["relu:4x8", "--dtype", "f64", "--machine", "snitch", "--pass", "naive", "--no-measure"]
    database = str(tmp_path / "measured.db")
    assert tune.main([*command, "--search", "sample", "--budget", "3", "--database", database]) == 0
    assert "FPU busy" not in said()


def test_play() -> None:
    game = Game(workload("relu:4x8", "f64").instantiate(), SNITCH).fork()
    session = PlaySession(game)
    stopwatch = PlayStopwatch(SNITCH, session.view.states[0])
    try:
        session.make(Move.parse("stream@y:0"))
        states = list(session.view.states)
        found = stopwatch.measure(states, Event())
        assert all(isinstance(each, Simulated) for each in found)
        times = PlayTimings()
        for moves, (state, outcome) in enumerate(zip(states, found, strict=True)):
            times.add(moves, state, outcome)
        assert times.costs == [each.cycles for each in found if isinstance(each, Simulated)]
        gain = times.gain(times.costs[1], states[0])
        assert gain is not None
        assert gain > 1
        assert f"{times.costs[1]:.0f} cyc ({gain:.3g}x)" in summary(session.view, times, "")
        stopped = Event()
        stopped.set()
        with pytest.raises(MeasurementError, match="given up"):
            stopwatch.measure(states, stopped)
    finally:
        stopwatch.close()


def test_what_play_shows() -> None:
    kernel = workload("relu:4x8", "f64").instantiate()
    assert forms_for(SNITCH) == ["snitch-asm", "c", "mlir"]
    assert forms_for(machine("x86-64-avx2"))[0] == "asm"
    assert any("fmax.d" in line for line in code_lines(kernel, SNITCH, "snitch-asm"))
    assert [spell_cycles(n) for n in (7, 99_999, 123_456, 98_765_432)] == ["7 cyc", "99999 cyc", "123 kcyc", "99 Mcyc"]
    assert spell_time(None) == ""
