"""The benchmark on a GPU without one: programs in a file, jobs that crash and hang, results that are kept, tables."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.gpu import parent, programs
from benchmarks.gpu.__main__ import main, run
from benchmarks.gpu.child import error_of
from benchmarks.gpu.counters import METRICS, added, launches_of
from benchmarks.gpu.parent import Job, Results, Runner
from benchmarks.gpu.programs import Programs, Task, alternatives, prepare, programs_of
from benchmarks.gpu.tables import print_results
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import workload
from pdojo.passes.common.parameters import PassResult, TuningParameter
from pdojo.transforms.game import Game
from standin import gpu as standin

ROOT = Path(__file__).parents[3]
CHILD = """
import json, os, sys, time
for line in sys.stdin:
    job = json.loads(line)
    if job["name"] == "relu":
        os._exit(3)
    if job["name"] == "mul":
        time.sleep(60)
    wrong = {"error": f"CUDA error in {os.getpid()}"} if job["name"] == "wrong" else {}
    print(json.dumps({"name": "a GPU", "job": job["name"], "process": os.getpid(), **wrong}), flush=True)
"""
STUBBED = """
import sys
sys.path.insert(0, {test!r})
from standin import torch_device
sys.modules["benchmarks.gpu.device"] = torch_device
from benchmarks.gpu.child import main
main([{file!r}])
"""
ROW = {
    "warm": {"pdojo: the pass": 2e-5, "pdojo: 64 x 64": 1e-5, "strict": 3e-5},
    "cold": {"pdojo: the pass": 2e-5, "strict": 1e-5},
    "errors": {"pdojo: the pass": 1e-7, "pdojo: 64 x 64": 2e-7, "strict": 1e-4},
    "host": {"pdojo: the pass": 5e-6, "strict": 4e-6},
    "bytes": 5e6,
    "flops": 1e8,
    "rows": [0, 1],
}


def check(name: str) -> Job:
    return Job("check", name)


def test_a_job_that_fails_crashes_or_hangs_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parent.LONGEST, "check", 5.0)
    with Runner((sys.executable, "-c", CHILD)) as runner:
        assert runner.device()["name"] == "a GPU"
        found = [runner.run(check(name)) for name in ("add", "wrong", "exp", "relu", "softmax", "mul", "log")]
    errors = [r.get("error", "").partition(" in ")[0] for r in found]
    assert errors == ["", "CUDA error", "", "the process died", "", "took more than 5 s", ""]
    assert [r["job"] for r in found if "error" not in r] == ["add", "exp", "softmax", "log"]
    # The process of a failed job gets no other one: the context may be lost.
    assert found[0]["process"] == found[1]["process"] != found[2]["process"]


def test_without_a_device_there_is_one_clear_error() -> None:
    failing = (sys.executable, "-c", 'import sys; [print(\'{"error": "no GPU here"}\', flush=True) for _ in sys.stdin]')
    with Runner(failing) as runner, pytest.raises(MeasurementError, match="no GPU here"):
        runner.device()


def test_results_are_kept_and_read_again(tmp_path: Path) -> None:
    results = Results(tmp_path / "gpu.json", "digest", {"name": "a GPU", "copy": 1e12})
    results.add(check("add"), {"largest_error": 1e-7})
    results.add(check("relu"), {"error": "the process died"})
    assert Results.read(results.path) == results
    assert results.failures == ["check relu"]
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(UsageError, match="has no results of this benchmark"):
        Results.read(tmp_path / "other.json")


def test_tables_have_ratios_of_the_fastest_program_and_fit_80_columns() -> None:
    counted = {"launches": 1, "seconds": 1e-5, "dram_bytes": 5e6, "issue": 50.0, "warps": 25.0, "l2_hits": 10.0}
    results = Results(
        Path("x"),
        device={"name": "a GPU", "copy": 1e12},
        done={"time matmul": ROW, "check add": {"largest_error": 0}, "small mul": {"error": "wrong"}},
        counters={"matmul, 64 x 64": {**counted, "bank_conflicts": 7.0}},
    )
    text = io.StringIO()
    print_results(results, Console(file=text, width=80))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "1 of 1 library kernels right" in lines
    assert "0 of 1 small programs right" in lines
    assert "matmul: 2.00 by 64 x 64" in lines
    assert "matmul: errors of strict 1e-04" in lines
    warm, cold, host, counter = [line.split() for line in lines if line.startswith("matmul ")]
    assert warm == ["matmul", "10.0", "50%", "10.0", "2e-07", "3.00"]
    assert cold == ["matmul", "20.0", "25%", "5.0", "1e-07", "0.50"]
    assert host == ["matmul", "5.0", "4.0"]
    assert counter == ["matmul", "1", "10.0", "5.0", "50", "25", "10", "7"]


def test_counters_of_launches_are_added_up() -> None:
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    metrics = list(METRICS.values())
    rows = [f'"{k}","f_{k}","{metric}","","{value}"' for k, value in ((0, "1,000"), (1, "3,000")) for metric in metrics]
    found = launches_of(["==PROF== Connected", head, *rows])
    assert found == [dict.fromkeys(METRICS, 1000.0), dict.fromkeys(METRICS, 3000.0)]
    total = added(found)
    assert total["launches"] == 2
    assert total["seconds"] == total["dram_bytes"] == 4000.0
    assert total["issue"] == pytest.approx((1000 * 1000 + 3000 * 3000) / 4000)
    assert launches_of(['"ID","Metric Name","Metric Unit","Metric Value"', f'"0","{metrics[0]}","ns","2,000"']) == [
        {"seconds": pytest.approx(2e-6)}
    ]


def test_errors_are_relative_to_the_largest_result() -> None:
    exact = np.array([4.0, np.inf, np.nan, -1.0])
    assert error_of(np.array([4.0, np.inf, np.nan, -1.5], np.float32), exact) == pytest.approx(0.125)
    for wrong in ([np.nan, np.inf, np.nan, -1], [4, 4, np.nan, -1], [4, np.inf, 0, -1]):
        assert error_of(np.array(wrong, np.float32), exact) == np.inf


def test_questions_with_the_same_options_get_the_same_answer() -> None:
    p, q = (TuningParameter(f"products of {name}", ("exact", "tf32", "half"), "exact") for name in "pq")
    tile = TuningParameter("tile of p", ("64", "32"), "64")
    assert list(alternatives([p, q, tile])) == [
        {"products of p": "tf32", "products of q": "tf32"},
        {"products of p": "half", "products of q": "half"},
        {"tile of p": "32"},
    ]


def test_answers_that_open_behind_others_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(_: str, __: Game, decisions: Mapping[str, str]) -> PassResult:
        chosen = TuningParameter("products", ("exact", "tf32"), decisions.get("products", "exact"))
        warp = TuningParameter("tile of a warp", ("64", "32"), decisions.get("tile of a warp", "64"))
        return PassResult([], (chosen, warp) if chosen.taken == "tf32" else (chosen,))

    monkeypatch.setattr(programs, "run_pass", play)
    machine = known_machine("nvidia-sm90")
    titles = [title for title, _ in programs_of(workload("mul:3x5"), machine, varied=True)]
    assert titles == ["the pass", "tf32", "tf32; 32"]
    assert [title for title, _ in programs_of(workload("mul:3x5"), machine, varied=False)] == ["the pass"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A file of programs for the stand-in, which is the driver."""
    folder = tmp_path_factory.mktemp("gpu")
    with standin.installed(folder / "cache"):
        path = folder / "programs.xz"
        work = [Task("small", workload("softmax:5x70")), Task("time", workload("layernorm:3x130"))]
        prepare([*work, Task("check", workload("argmax:3x65"))], standin.CUDA, path, 1)
        yield path


def stubbed(file: Path) -> Runner:
    """A runner whose process has a stub for PyTorch."""
    return Runner((sys.executable, "-c", STUBBED.format(test=str(ROOT / "test"), file=str(file))))


@standin.NEEDS
def test_a_run_checks_times_and_prints(prepared: Path, tmp_path: Path) -> None:
    file = Programs.read(prepared)
    results = Results(tmp_path / "r.json", file.digest)
    jobs = [Job(row.group, row.workload.label, (n,), compiled=row.group == "time") for n, row in enumerate(file.rows)]
    text = io.StringIO()
    console = Console(file=text, width=80)
    with stubbed(prepared) as runner:
        results.device = runner.device()
        run(file, prepared, runner, results, console, float("inf"), jobs)
    assert [results.done[key] for key in results.failures] == []
    assert results.done["small softmax:5x70"]["largest_error"] < 1e-6
    row = results.done["time layernorm:3x130"]
    assert row["warm"] == {"pdojo: the pass": 1e-6, "strict": 2e-6, "compile": 3e-6}
    assert row["errors"]["pdojo: the pass"] < 1e-6
    assert Results.read(results.path).done == results.done
    print_results(results, console)
    assert "1 of 1 library kernels right" in text.getvalue()


@standin.NEEDS
def test_a_run_that_is_cut_off_says_what_is_left_and_goes_on(prepared: Path, tmp_path: Path) -> None:
    file = Programs.read(prepared)
    results = Results(tmp_path / "r.json", file.digest, done={"small softmax:5x70": {"largest_error": 0.5}})
    jobs = [Job("small", "softmax:5x70", (0,)), Job("check", "argmax:3x65", (2,))]
    text = io.StringIO()
    with stubbed(prepared) as runner:
        run(file, prepared, runner, results, Console(file=text, width=80), 0.0, jobs)
        assert "the time was over before 1 jobs: check argmax:3x65" in text.getvalue()
        run(file, prepared, runner, results, Console(file=text, width=80), float("inf"), jobs)
    assert results.done == {"small softmax:5x70": {"largest_error": 0.5}, "check argmax:3x65": {"largest_error": 0.0}}


@standin.NEEDS
def test_a_wrong_program_fails_its_check(prepared: Path, tmp_path: Path) -> None:
    file = Programs.read(prepared)
    wrong = replace(file.rows[0], workload=workload("log_softmax:5x70"))
    replace(file, rows=(wrong,)).write(tmp_path / "wrong.xz")
    with stubbed(tmp_path / "wrong.xz") as runner:
        found = runner.run(Job("check", "log_softmax:5x70", (0,)))
    assert "log_softmax:5x70: 'y' is wrong by" in found["error"]


@standin.NEEDS
def test_programs_of_the_same_sources_are_kept(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepared.read_bytes()
    made: list[str] = []
    work = [Task(row.group, row.workload) for row in Programs.read(prepared).rows]
    prepare(work, standin.CUDA, prepared, 1, lambda task, _: made.append(task.workload.label))
    assert made == []
    assert prepared.read_bytes() == before

    def other(*_: str) -> str:
        return "other"

    monkeypatch.setattr(programs, "source_digest", other)
    prepare(work[:1], standin.CUDA, prepared, 1, lambda task, _: made.append(task.workload.label))
    assert made == ["softmax:5x70"]
    prepared.write_bytes(before)


def test_other_files_are_not_overwritten_and_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes")
    for command in ("prepare", "run"):
        assert main([command, str(file), *["add"] * (command == "prepare")]) == 2
        assert f"{file} has no prepared programs" in capsys.readouterr().err
    assert file.read_text() == "my notes"
    assert main(["prepare", str(tmp_path / "x.xz"), "add", "--machine", "host"]) == 2
    assert "'host' is no GPU; known: nvidia-sm90, amd-gfx942" in capsys.readouterr().err


def test_a_checkout_that_is_not_installed_has_its_tools() -> None:
    code = (
        "import importlib.util as u; real = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'pdojo_tools' else real(name, *a); "
        "import benchmarks, sys; print(sys.modules['pdojo_tools'].__path__[0]); import pdojo_tools.command"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == ROOT / "tools"
