"""`pdojo-tune --search`: arguments, searches that the model judges, going on, Ctrl-C, several kernels, a real run."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import NoReturn

import pytest
from pdojo_tools import tune
from pdojo_tools.tuning import session
from pdojo_tools.tuning.limits import budget_text, cost_text, duration, times_text
from pdojo_tools.tuning.live import Display, best_text, seconds_left
from pdojo_tools.tuning.result_files import Targets
from rich.console import Console

from pdojo.backends.measure import Ok
from pdojo.backends.registry import backend_of
from pdojo.budget import Budget
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, UsageError
from pdojo.kernels import Workload
from pdojo.passes import tuned
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.passes.verification import verify as deciding
from pdojo.passes.verification.verify import Verification
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.progress import Progress
from pdojo.search.contract.racing import Race
from pdojo.search.database import Database, Problem
from pdojo.search.tuning import stored_measurement
from pdojo.search.tuning import workflow as flow
from pdojo.search.tuning.run import Baselines, SearchConfig, SearchOutcome
from pdojo.search.tuning.timing import Timed
from pdojo.transforms.trace import Trace
from search_games import Weather, best_in, find, start
from tuned_kernels import ADD, MACHINE, SOFTMAX, model


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    path = tmp_path / "softmax.pdojo"
    path.write_text(SOFTMAX)
    return path


# Arguments


def test_budgets() -> None:
    assert Budget.parse("1000") == Budget(1000)
    assert Budget.parse("90s") == Budget(seconds=90)
    assert Budget.parse("15m") == Budget(seconds=900)
    assert Budget.parse("1.5h") == Budget(seconds=5400)
    assert Budget.parse("1000, 15m") == Budget.parse("15m,1000") == Budget(1000, 900)
    assert budget_text(Budget(1000, 900)) == "1000 evaluations or 15:00 min"
    for text in ("", "ten", "10,20", "1m,2m", "10d", "-5", "1000,", "1e3"):
        with pytest.raises(UsageError, match="is no budget: write evaluations"):
            Budget.parse(text)
    with pytest.raises(UsageError, match="'0s' leaves nothing to do"):
        Budget.parse("0s")


def test_words_for_numbers() -> None:
    assert [duration(seconds) for seconds in (0.4, 59, 61, 3599, 9000)] == [
        "0 s",
        "59 s",
        "1:01 min",
        "59:59 min",
        "2:30 h",
    ]
    assert cost_text(0.00123456, "s") == "1.235 ms"
    assert cost_text(1234567, "cycles") == "1,234,567 cycles"
    assert cost_text(float("inf"), "s") == "-"
    assert times_text(3.0, 2.0) == "1.50"
    assert times_text(float("inf"), 2.0) == times_text(1.0, 0.0) == "-"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["softmax", "--search", "smaple"], "unknown strategy 'smaple'; did you mean 'sample'?"),
        (
            ["softmax", "--search", "sample", "--neighbourhood", "edge"],
            "unknown neighbourhood 'edge'; did you mean 'edges'?",
        ),
        (["softmax", "--search", "sample", "--budget", "soon"], "'soon' is no budget: write evaluations (1000)"),
        (["softmax", "--search", "sample,anneal"], "--search takes one name; several are for --compare"),
        (["softmax", "--budget", "10"], "--budget belongs to a search; say which one with --search"),
        (["softmax", "--seeds", "3"], "--seeds belongs to --compare"),
        (["softmax", "--seed", "-1"], "a seed is a number from 0 to 2^62, not '-1'"),
        (["softmax", "--search", "sample", "--fresh", "--seed", "1"], "--fresh takes one that had none"),
        (["softmax", "--search", "sample", "--why"], "leave out --search"),
        (["softmax", "--why", "-o", "a.trace"], "--why only prints the moves of the pass; leave out --output"),
        (["softmax", "--compare", "--trace", "a.trace"], "would leave out the moves of --trace; add --start pass"),
        (["softmax", "-o", "/proc/a.trace"], "cannot write '/proc/a.trace'"),
        (["softmax", "--search", "sample", "--no-measure", "--evaluator", "runtime"], "--evaluator runtime measures"),
        (["softmax", "--search", "sample", "--start", "plain", "--trace", "a.trace"], "--start plain would leave out"),
        (
            ["softmax", "add", "--shape", "64x64"],
            "--shape is for one kernel, and there are 2; write sizes behind each name",
        ),
        (["softmax", "softmax"], "kernel 'softmax' is given twice"),
        (["softmax", "--report", "a.txt"], "a report is HTML; name the file 'a.html', not 'a.txt'"),
        (["softmax", "--report", "no/such/a.html"], "there is no folder 'no/such'"),
        (["softmax", "-o", "folder"], "'folder' is a folder; name a file"),
        (["softmax:4x64", "add:4x64", "-o", "file"], "'file' is a file; the results of several kernels need a folder"),
        (["softmax:4x64", "add:4x64", "--emit", "-"], "--emit -: the results of several kernels need a folder"),
        (["softmax", "--compare", "--report", "a.html"], "--compare and --report do not go together"),
        (["softmax", "--compare", "--budget", "3m"], "--compare counts evaluations"),
        (["softmax", "--ray", "local"], "--ray belongs to a search; say which one with --search"),
        (["softmax", "--search", "sample", "--workers", "2"], "--workers belongs to --ray"),
        (["softmax", "--compare", "--ray", "local"], "--compare and --ray do not go together"),
        (["softmax", "--search", "sample", "--ray", "local", "--evaluator", "analytical"], "a model needs no cluster"),
    ],
)
def test_mistakes(
    args: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("")
    small = [f"{word}:4x64" if word == "softmax" and "--shape" not in args else word for word in args]
    small = args if "twice" in text else small
    assert tune.main([*small, "--pass", "none"]) == 2
    err = capsys.readouterr().err
    assert text in err
    assert err.count("\n") == 1


def test_the_learned_model_needs_its_package(
    softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    assert tune.main(model(softmax, database=tmp_path / "db", search="model")) == 2
    assert "scikit-learn" in capsys.readouterr().err


def test_a_database_that_is_none(softmax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(model(softmax, database=softmax)) == 1
    err = capsys.readouterr().err
    assert str(softmax) in err
    assert "Traceback" not in err


# Searching


@pytest.mark.parametrize("search", ["sample", "anneal", "evolve"])
def test_search_verifies_and_stores(
    search: str, softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, program = tmp_path / "best.trace", tmp_path / "best.pdojo"
    args = model(softmax, database=tmp_path / "db", search=search)
    assert tune.main([*args, "-o", str(trace), "--emit", str(program)]) == 0
    out = capsys.readouterr().out
    assert f"softmax.pdojo: {search}, mutate, seed 0: 20 evaluations" in re.sub(r"\S*/", "", out)
    assert re.search(r"search: 20 evaluations in .*, the budget of evaluations is used up; best [\d.,]+ cycles", out)
    assert "times as fast as plain" in out
    assert "exact oracle" in out
    assert "time: " in out
    kernel = with_alignment(parse_notation(SOFTMAX)[0], 64)
    again = make_moves(kernel, machine(MACHINE), None, Trace.load(trace))
    assert print_notation(again.after) == program.read_text()


def test_a_search_from_the_plain_kernel(softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = model(softmax, database=tmp_path / "db", near="heuristic", budget="1")
    assert tune.main([*args, "--start", "plain", "--pass", "heuristic"]) == 0
    # The first proposal of the heuristic neighbourhood is what the pass makes.
    assert "1.00 times as fast as the pass" in capsys.readouterr().out


def best_of(out: str) -> str:
    (found,) = re.findall(r"^search: .*(best [\d.,]+ cycles)", out, re.MULTILINE)
    return found


def test_a_run_goes_on_and_fresh_ones_begin_anew(
    softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(name: str, budget: str, *more: str) -> str:
        assert tune.main([*model(softmax, database=tmp_path / name, budget=budget), *more]) == 0
        return capsys.readouterr().out

    first = found("parts", "8")
    assert "going on" not in first
    second = found("parts", "25")
    assert "going on with the run of seed 0, of which 8 evaluations are known" in second
    whole = found("whole", "25")
    assert best_of(second) == best_of(whole)
    fresh = found("parts", "8", "--fresh")
    assert "going on" not in fresh
    assert "seed 1" in fresh
    # Without a seed, the run that was last goes on; with one, that run.
    assert "going on with the run of seed 1, of which 8" in found("parts", "9")
    assert "going on with the run of seed 0, of which 25" in found("parts", "25", "--seed", "0")


def test_what_is_stored_is_the_best_that_is_known(
    softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By all runs in the database, and by the file that is there; a search that found less replaces nothing."""
    trace = tmp_path / "best.trace"

    def stored(database: str, budget: str, *more: str) -> str:
        args = model(softmax, database=tmp_path / database, budget=budget)
        assert tune.main([*args, "-o", str(trace), *more]) == 0
        kernel = with_alignment(parse_notation(SOFTMAX)[0], 64)
        return print_notation(make_moves(kernel, machine(MACHINE), None, Trace.load(trace)).after)

    best = stored("db", "20")
    said = "a better program is known, from another search or the file that is there"
    assert said not in capsys.readouterr().out
    trace.unlink()
    assert stored("db", "1", "--fresh") == best
    assert said in capsys.readouterr().out
    # Another database knows nothing of it, but the file does.
    assert stored("other", "1") == best
    assert said in capsys.readouterr().out
    # What is there is no trace of this kernel, or no trace.
    for text in ("tile_scope@nothing:0{size=3}\n", "nonsense"):
        trace.write_text(text)
        assert stored("third", "1") != best
        assert said not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("costs", "said", "stays"),
    [
        ([0.9] * 9, "", True),
        ([1.2] * 9, "that is reported and stored", False),
        # Slower by the median, and by the mean; but the pairs do not decide.
        ([0.5] * 4 + [1.2] * 5, "does not decide", True),
        ([1.2] * 4, "does not decide", True),
    ],
)
def test_the_last_measurement_decides(
    softmax: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    costs: list[float],
    said: str,
    stays: bool,
) -> None:
    """By pairs, whatever the load."""
    turns = tuple(range(len(costs)))

    def measured(programs: Sequence[tuple[str, KernelOp, int]], *_: object) -> list[Timed]:
        samples = ([3.0], [1.0] * len(costs), costs)
        return [
            Timed(title, Ok(tuple(each), 1, 1, 1.5, 0.0, None, turns=turns[: len(each)]), moves)
            for (title, _, moves), each in zip(programs, samples, strict=True)
        ]

    monkeypatch.setattr(flow, "measure", measured)
    trace = tmp_path / "best.trace"
    args = [each for each in model(softmax, database=tmp_path / "db", budget="10") if each != "--no-measure"]
    assert tune.main([*args, "-o", str(trace)]) == 0
    out = capsys.readouterr().out
    assert said in out
    assert ("that is reported and stored" in out) != stays
    assert f"faster in {sum(each < 1 for each in costs)} of {len(costs)} pairs" in out
    kernel = with_alignment(parse_notation(SOFTMAX)[0], 64)
    passed = make_moves(kernel, machine(MACHINE), "naive")
    again = make_moves(kernel, machine(MACHINE), None, Trace.load(trace))
    assert (print_notation(again.after) == print_notation(passed.after)) != stays


def test_a_second_call_takes_the_measurement_of_the_first(
    softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the same programs; `--no-plain` and `--fresh` measure others, and again."""
    measured: list[list[str]] = []

    def measure(programs: Sequence[tuple[str, KernelOp, int]], *_: object) -> list[Timed]:
        measured.append([title for title, _, _ in programs])
        turns = tuple(range(5))
        return [
            Timed(title, Ok((2.0 - 0.5 * (title == "after"),) * 5, 1, 1, 0.0, 0.0, None, turns=turns), moves)
            for title, _, moves in programs
        ]

    monkeypatch.setattr(flow, "measure", measure)
    args = [str(softmax), "--pass", "naive", "--no-calibrate", "--database", str(tmp_path / "db")]
    said = (
        "1.33 times as fast as before, by the median of the pairs (1.33 by the fastest samples; faster in 5 of 5 pairs"
    )
    judged: list[str] = []

    def decide(tuning: ScheduledKernel, source: Workload | str | None = None) -> Verification:
        judged.append(print_notation(tuning.after))
        return deciding.verify_moves(tuning, source)

    def other_code(_: str) -> str:
        return "other code"

    monkeypatch.setattr(tuned, "verify_moves", decide)
    for number in range(3):
        assert tune.main(args) == 0
        assert (len(measured), len(judged)) == (1, 1)
        out = capsys.readouterr().out
        assert said in out
        assert ("verified at" in out) == (number > 0)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(stored_measurement, "source_digest", other_code)
            assert tune.main(args) == 0
        assert (len(measured), len(judged)) == (1, 2), "other code judges anew, once"
    capsys.readouterr()
    assert tune.main([*args, "--no-plain"]) == 0
    assert measured[-1] == ["after"]
    assert "measured at" not in capsys.readouterr().out
    assert tune.main([*args, "--no-plain"]) == 0
    assert "measured at" in capsys.readouterr().out
    assert tune.main([*args, "--no-plain", "--fresh"]) == 0
    assert len(measured) == 3


def test_the_last_measurement_is_remembered(tmp_path: Path) -> None:
    """By later searches too, which would find the same again."""
    path = tmp_path / "a.sqlite"
    costs = Weather()
    with Database(path) as database:
        result = find(costs, 30, database=database)
        memory = database.memory(Problem.of(start()), costs)
        keys = memory.problem, memory.settings
    assert result.best is not None
    assert result.best is not result.root
    plan = SearchConfig("sample", "edges", Budget(30), "runtime", "pass")
    found = SearchOutcome(plan, 1, "s", Baselines(1.0, 1.0, "pass"), result, {}, str(path), keys)
    turns = tuple(range(5))
    best, passed = (Timed("", Ok((each,) * 5, 1, 1, 0.0, 0.0, None, turns=turns), 0) for each in (1.1, 1.0))
    race = best.beside(passed)
    assert race is not None
    found.store_last(ScheduledKernel(result.best.game), start(), race)
    with Database(path) as database:
        assert best_in(database) == [start().fingerprint]
        again = find(Weather(), 30, database=database)
        assert again.best is not None
        # That measurement is the last match of the two.
        assert again.best.fingerprint == start().fingerprint
        assert again.known is not None
        assert again.known.game.fingerprint == start().fingerprint
        assert best_in(database) == [start().fingerprint]


def test_ctrl_c_behind_the_last_measurement_stores_what_it_decided(
    softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(programs: Sequence[tuple[str, KernelOp, int]], *_: object) -> list[Timed]:
        slower = (3.0, 1.0, 1.2)
        return [
            Timed(title, Ok((seconds,) * 3, 1, 1, 0.0, 0.0, None), moves)
            for (title, _, moves), seconds in zip(programs, slower, strict=True)
        ]

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(flow, "measure", measured)
    monkeypatch.setattr(session, "prefixes_of", interrupted)
    trace = tmp_path / "best.trace"
    args = [each for each in model(softmax, database=tmp_path / "db", budget="10") if each != "--no-measure"]
    assert tune.main([*args, "-o", str(trace), "--report", str(tmp_path / "report.html")]) == 130
    assert "that is reported and stored" in capsys.readouterr().out
    passed = make_moves(with_alignment(parse_notation(SOFTMAX)[0], 64), machine(MACHINE), "naive")
    assert Trace.load(trace).moves == passed.game.trace.moves


def test_several_kernels(softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "traces"
    args = model(softmax, "add:64x64", database=tmp_path / "db", budget="4")
    assert tune.main([*args, "-o", str(folder), "--emit", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "add:64x64 ====" in out
    stored = sorted(path.name for path in folder.iterdir())
    assert stored == ["add-64x64.pdojo", "add-64x64.trace", "softmax.pdojo", "softmax.trace"]


def test_a_kernel_that_fails_leaves_the_others(
    softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The heuristic neighbourhood knows nothing of this machine.
    strange = tmp_path / "strange.pdojo"
    strange.write_text(ADD.replace("x f32", "machine nvidia-sm90\nx f32", 1))
    args = model(strange, softmax, database=tmp_path / "db", budget="4", near="heuristic")
    cut = args.index("--machine")
    assert tune.main([*args[:cut], *args[cut + 2 :], "--pass", "none"]) == 1
    said = capsys.readouterr()
    assert f"{strange}: the neighbourhood 'heuristic' has no proposals for nvidia-sm90" in said.out
    assert f"1 of 2 kernels have no result: {strange}" in said.err
    assert f"{softmax}: sample, heuristic" in said.out


def test_names_of_files_differ(tmp_path: Path) -> None:
    class Named:
        slug, family = "softmax", ""

    targets = Targets.of(str(tmp_path), None, None, [Named(), Named()])  # pyright: ignore[reportArgumentType]
    assert targets.names == ("softmax", "softmax-2")


def test_a_real_run(softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    report = tmp_path / "report.html"
    args = [str(softmax), "--search", "sample", "--neighbourhood", "mutate", "--budget", "4", "--pass", "naive"]
    assert tune.main([*args, "--threads", "1", "--database", str(tmp_path / "db"), "--report", str(report)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"search: 4 evaluations .*; best (faster than|[\d.]+ times as fast as) the pass", out)
    for title in ("plain", "pass", "best"):
        assert re.search(rf"{title}\s+│\s+\d+ │", out)
    assert out.count("right") >= 3
    assert "times as fast as pass" in out
    text = report.read_text()
    assert "The median time of a call after each move" in text
    assert "<svg" in text


def test_a_machine_that_this_is_not_is_not_searched_for(softmax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = "aarch64-neon" if host().architecture == "x86_64" else "x86-64-avx2"
    assert tune.main([str(softmax), "--search", "sample", "--budget", "1h", "--machine", foreign]) == 2
    err = capsys.readouterr().err
    assert f"machine '{foreign}' is of the architecture" in err
    assert "--evaluator analytical estimates what it cannot run" in err


def test_a_search_that_measures_nothing_estimates(
    softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [str(softmax), "--search", "sample", "--budget", "4", "--database", str(tmp_path / "db"), "--no-measure"]
    assert tune.main(args) == 0
    out = capsys.readouterr().out
    assert re.search(r"search: 4 evaluations .*; best [\d,.]+ cycles", out)
    assert "nothing was timed" not in out  # as was asked for


@pytest.mark.parametrize("kind", ["processor", "nvidia-sm90"])
def test_a_search_for_another_machine_ends_with_estimates(
    kind: str, softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_driver(machine: object) -> NoReturn:
        raise LoweringError("there is no driver for NVIDIA's GPUs here")

    foreign = "aarch64-neon" if host().architecture == "x86_64" else "x86-64-avx2"
    if kind != "processor":
        foreign = kind
        monkeypatch.setattr(type(backend_of(machine(kind))), "check_runs_here", staticmethod(no_driver))
    report = tmp_path / "report.html"
    args = [str(softmax), "--search", "sample", "--budget", "4", "--evaluator", "analytical", "--machine", foreign]
    assert tune.main([*args, "--database", str(tmp_path / "db"), "--report", str(report)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"nothing was timed, the model says [\d,.]+ cycles: (there is no driver|.*architecture)", out)
    assert report.exists()


# Ctrl-C


def test_ctrl_c_in_the_last_measurement_keeps_what_was_found(
    softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    trace, program, report = (tmp_path / name for name in ("best.trace", "best.pdojo", "report.html"))
    stored = ["-o", str(trace), "--emit", str(program), "--report", str(report)]
    monkeypatch.setattr(session, "prefixes_of", interrupted)
    assert tune.main([*model(softmax, database=tmp_path / "db", budget="5"), *stored]) == 130
    assert "the best so far is kept; go on with" in capsys.readouterr().out
    assert Trace.load(trace).steps
    assert program.read_text().startswith("kernel")
    assert "softmax" in report.read_text()


def test_ctrl_c_keeps_the_best(softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, database = tmp_path / "best.trace", tmp_path / "db"
    report = tmp_path / "report.html"
    args = model(softmax, database=database, budget="100000")
    command = [sys.executable, "-m", "pdojo_tools.tune", *args, "-o", str(trace), "--report", str(report)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        # A shell's background jobs ignore the signal, and what they start inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        said = ""
        while not re.search(r"^[1-9]\d* evaluations", said, re.MULTILINE):
            line = process.stdout.readline()
            assert line, process.communicate()
            said += line
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    # Long phases show themselves before.
    assert (process.returncode, err.splitlines()[-1]) == (130, "interrupted"), out
    assert "it was interrupted" in out
    assert "the best so far is kept; go on with: pdojo-tune" in out
    assert Trace.load(trace).steps
    assert "it was interrupted" in report.read_text()
    known = re.search(r"search: (\d+) evaluations", out)
    assert known is not None
    # It goes on, and finds what a search finds that nobody interrupted.
    budget = str(int(known[1]) + 5)
    assert tune.main(model(softmax, database=database, budget=budget)) == 0
    resumed = capsys.readouterr().out
    assert "going on with the run of seed 0" in resumed
    assert tune.main(model(softmax, database=tmp_path / "other", budget=budget)) == 0
    assert best_of(resumed) == best_of(capsys.readouterr().out)


# The display


def progress(evaluations: int, best: float, doing: str = "", rate: float = 2.0) -> Progress:
    return Progress(
        evaluations, 3, 0, 10.0 * evaluations, rate, best, 2.0, best, True, None, {"Timeout": 2}, {"run": 1.0}, doing
    )


def test_what_is_timed_is_compared_with_what_it_was_timed_beside() -> None:
    """No product of ratios of different minutes; a ratio comes with what decides it."""
    now = progress(3, 1.0)
    both = "best 1000 ms, 4.00 times as fast as plain, 2.00 times as fast as the pass"
    assert best_text(Baselines(4.0, 2.0), now, "s") == both
    # By the root's cost, which is 2.
    assert best_text(Baselines(4.0, 3.0, "pass"), now, "s") == "best 2.00 times as fast as the pass"
    assert best_text(Baselines(5.0, 3.0, "plain"), now, "s") == "best 2.00 times as fast as plain"
    match = Race(*(Evaluation(1.0, detail={"samples": [each] * 9}) for each in (1.0, 2.0)))
    assert best_text(Baselines(5.0, 3.0, "plain"), replace(now, match=match), "s") == (
        "best 2.00 times as fast as plain, by the median of the pairs (2.00 by the fastest samples; "
        "faster in 9 of 9 pairs, which decide)"
    )
    busy = best_text(Baselines(4.0, 2.0, "pass"), replace(now, is_measured=False), "s")
    assert busy == "best faster than the pass, by how much could not be measured"
    assert best_text(Baselines(4.0, 2.0, "pass"), replace(now, best=inf), "s") == "best -"
    fails = best_text(Baselines(inf, 2.0, "plain"), replace(now, root=inf, is_measured=False), "s")
    assert fails == "best 1000 ms; plain could not be run"


def test_plain_lines_come_with_every_new_best_and_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 0.0, 1.0, 2.0, 40.0])
    display = Display(Console(), "softmax", Budget(100), "s", Baselines(4.0, 2.0), clock=lambda: next(times))
    with display:
        for evaluations, best in ((1, 2.0), (2, 2.0), (3, 1.0), (4, 1.0)):
            display(progress(evaluations, best))
    assert capsys.readouterr().out.splitlines() == [
        "softmax: 100 evaluations",
        "1 evaluation, 10 s, 2 failed: best 2000 ms, 2.00 times as fast as plain, 1.00 times as fast as the pass",
        "3 evaluations, 30 s, 2 failed: best 1000 ms, 4.00 times as fast as plain, 2.00 times as fast as the pass",
        "4 evaluations, 40 s, 2 failed: best 1000 ms, 4.00 times as fast as plain, 2.00 times as fast as the pass",
    ]


def test_a_terminal_is_drawn_once_a_second_at_most() -> None:
    seconds = 0.0
    console = Console(force_terminal=True, width=100)
    with (
        console.capture() as capture,
        Display(console, "add", Budget(100), "s", Baselines(), lambda: seconds) as display,
    ):
        for doing in ("one", "two", "three"):
            display(progress(10, 1.0, doing))
            seconds += 0.6
    drawn = capture.get()
    assert "now: one" in drawn
    assert "now: two" not in drawn
    assert "now: three" in drawn
    assert "10 of 100 evaluations (3 known before), 2.0 a second, 1:40 min, about 45 s left" in drawn
    assert "failed: 2 Timeout" in drawn


def test_time_left() -> None:
    assert seconds_left(progress(10, 1.0), Budget(100)) == 45
    assert seconds_left(progress(10, 1.0), Budget(100, 120)) == 20
    assert seconds_left(progress(10, 1.0, rate=0.0), Budget(100)) is None
