"""`python -m benchmarks.perfllm`: the grid, cells, results that survive a kill, statistics, tables, mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.perfllm import __main__ as tool
from benchmarks.perfllm.cell import improvements, kernel_of, reference, searched
from benchmarks.perfllm.experiment import version_facts
from benchmarks.perfllm.grid import GRIDS, METHODS, QUICK, Cell, Grid, Task, with_encoders, with_policy
from benchmarks.perfllm.results import Done
from benchmarks.perfllm.sampling import FILES, PARTS
from benchmarks.perfllm.statistics import Findings, contests, holm, interval, sign_test, standings
from benchmarks.records import Partial, Record, read_results, results_of
from pdojo.errors import UsageError
from pdojo.search.contract.progress import HistoryRow

ROOT = Path(__file__).parents[3]
AXPY = Task("axpy:1x256", "snitch", "cycles", 10)
EDGES = next(method for method in METHODS if method.name == "anneal-edges")
SMALL = Grid("snitch", (AXPY,), (EDGES,), (0, 1, 2))


# The grid


def test_no_method_knows_an_expert() -> None:
    """None uses the neighbourhood of expert knowledge, a demonstration, or what was learned before."""
    for grid in GRIDS.values():
        assert len({method.name for method in grid.methods}) == len(grid.methods)
        for method in grid.methods:
            assert method.neighbourhood in ("edges", "mutate")
            settings = method.settings
            assert (settings is not None) == (method.strategy == "perfllm")
            assert settings is None or not (settings.demonstrations or settings.policy or settings.screen)


def test_names_say_what_agents_do() -> None:
    for method in METHODS:
        if method.family == "perfllm":
            assert method.settings is not None
            assert method.name == f"perfllm-{method.settings.target}-{method.settings.granularity}"
    assert sum(method.family == "perfllm" for method in METHODS) == 12
    more = with_encoders(GRIDS["snitch"], ["hf:some/model"]).methods[len(METHODS) :]
    assert [method.name for method in more] == [f"perfllm-max-{g}-hf:some/model" for g in ("single", "edits")]
    assert all(method.settings is not None and method.settings.encoder == "hf:some/model" for method in more)
    more = with_policy(GRIDS["snitch"], "some/policy").methods[len(METHODS) :]
    assert [method.name for method in more] == [f"perfllm-max-{g}-trained" for g in ("single", "edits")]
    assert all(method.settings is not None and method.settings.policy == "some/policy" for method in more)
    assert [method.settings.fresh for method in more if method.settings is not None] == [False, True]


def test_a_cut_grid_is_balanced() -> None:
    """All cells of a seed come before those of the next, and all methods of a task before the next task."""
    grid = GRIDS["snitch"]
    cells = grid.cells()
    assert len({cell.key for cell in cells}) == len(cells) == len(grid.tasks) * len(grid.methods) * len(grid.seeds)
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    first = cells[: len(grid.methods)]
    assert {cell.task for cell in first} == {grid.tasks[0]}
    assert [cell.method for cell in first] == list(grid.methods)


def test_every_task_is_there() -> None:
    for name, grid in GRIDS.items():
        for task in grid.tasks:
            _, machine, _ = kernel_of(task)
            assert machine.threads == 1 or machine.backend == "snitch"
        assert grid.with_only(QUICK[name], [], [0], 60).cells()


def test_parts_of_a_grid() -> None:
    grid = GRIDS["snitch"].with_only(["softmax", "dot:1x256"], ["anneal", "evolve-mutate"], [3, 3], 7)
    assert [task.kernel for task in grid.tasks] == ["dot:1x256", "softmax:16x16"]
    assert [method.name for method in grid.methods] == ["anneal-edges", "anneal-mutate", "evolve-mutate"]
    assert (grid.seeds, {task.evaluations for task in grid.tasks}) == ((3,), {7})
    with pytest.raises(UsageError, match="'sotfmax' is no kernel of this grid"):
        GRIDS["snitch"].with_only(["sotfmax"], [], None, None)
    timed = GRIDS["cpu"].with_only(["matmul"], [], None, None, ["runtime"])
    assert [task.label for task in timed.tasks] == ["matmul:256x256x256, runtime"]
    with pytest.raises(UsageError, match="'cycles' is no evaluator of this grid"):
        GRIDS["cpu"].with_only([], [], None, None, ["cycles"])
    with pytest.raises(UsageError, match="'perfllm-min-single' is no method of this grid"):
        GRIDS["snitch"].with_only([], ["perfllm-min-single"], None, None)


# A cell


@pytest.mark.parametrize("name", ["anneal-edges", "perfllm-max-single"])
def test_equal_seeds_give_equal_histories(name: str) -> None:
    if name.startswith("perfllm"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    method = next(method for method in METHODS if method.name == name)
    cell = Cell(replace(AXPY, evaluations=3), method, 1)
    one, two = (searched(cell, lambda _: None) for _ in range(2))
    for result in (one, two):
        result["history"] = [[number, cost] for number, _, cost in result["history"]]
        assert result["made"] == 3
        assert sum(result["parts"].values()) == pytest.approx(1, abs=1e-3)
        assert set(result["parts"]) == set(PARTS)
        assert 0 < result["spent"]["propose"] <= result["seconds"]
        assert result["processor_seconds"] > 0
    varying = ("seconds", "processor_seconds", "spent", "parts")
    one, two = ({key: value for key, value in result.items() if key not in varying} for result in (one, two))
    assert one == two
    other = searched(replace(cell, seed=2), lambda _: None)
    assert other["trace"] != one["trace"] or [[n, c] for n, _, c in other["history"]] != one["history"]


def test_the_reference_is_the_root() -> None:
    """Plain programs of references and of searches cost the same, and the expert's is faster."""
    found = reference(AXPY)
    assert found["unit"] == "cycles"
    assert found["plain"] > 2 * found["expert"] > 0
    assert searched(Cell(replace(AXPY, evaluations=1), EDGES, 0), lambda _: None)["root"] == found["plain"]


def test_a_cell_of_a_cpu() -> None:
    task = Task("softmax:64x32", "x86-64-avx512", "analytical", 3)
    known, found = reference(task), searched(Cell(task, EDGES, 0), lambda _: None)
    assert found["root"] == known["plain"] > known["expert"] > 0
    assert found["made"] == 3


def test_parts_of_the_time_are_known_by_files_that_exist() -> None:
    assert set(FILES.values()) < set(PARTS)
    assert [name for name in FILES if name != "/sklearn/" and not (ROOT / name[1:]).exists()] == []


def test_improvements() -> None:
    bests = [inf, 8.0, 8.0, 4.0, 4.0]
    rows = [HistoryRow(k, float(k), 9.0, "", best, is_best=False) for k, best in enumerate(bests)]
    assert improvements(rows) == [[0, 0.0, None], [1, 1.0, 8.0], [3, 3.0, 4.0]]


# Killed and begun again


def command(path: Path, seeds: str) -> list[str]:
    words = ["--kernels", "axpy", "--methods", "anneal-edges", "--evaluations", "3", "--jobs", "1"]
    return [sys.executable, "-m", "benchmarks.perfllm", *words, "--seeds", seeds, "-o", str(path)]


def lines_of(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_killed_experiment_goes_on(tmp_path: Path) -> None:
    """Kill -9 in the middle of a cell: no process survives, no finished cell is lost or made again."""
    path, partial = tmp_path / "out.json", tmp_path / "out.partial.jsonl"
    process = subprocess.Popen(command(path, "0,1"), cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(lines_of(partial)) >= 3)
        seen: list[psutil.Process] = []
        wait_for(lambda: bool(seen.extend(psutil.Process(process.pid).children(recursive=True)) or seen))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(lambda: all(map(has_ended, seen)))
    before = lines_of(partial)
    with partial.open("a") as file:
        file.write('{"kind": "cell", "task": "axpy')
    resume = [sys.executable, "-m", "benchmarks.perfllm", "--resume", str(partial)]
    done = subprocess.run(resume, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{len(before) - 1} of 3 records are in" in done.stdout
    settings, records = read_results(path)
    assert [record.data for record in records[: len(before) - 1]] == [json.loads(line) for line in before[1:]]
    assert [record.data["kind"] for record in records] == ["reference", "cell", "cell"]
    assert [record.data["seed"] for record in records[1:]] == [0, 1]
    assert len(Findings.of(settings, records).done) == 2
    assert path.with_suffix(".html").exists()


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    partial = tmp_path / "out.partial.jsonl"
    wanted = command(tmp_path / "out.json", ",".join(map(str, range(40))))
    process = subprocess.Popen(
        wanted,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Processes that a shell starts in the background ignore Ctrl-C, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: len(lines_of(partial)) >= 3)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert "go on with --resume" in out
    wait_for(lambda: all(map(has_ended, children)))
    assert 1 <= len(Partial.resume(partial)[0].records) < 40


# Statistics and tables


def cell_line(task: str, method: str, seed: int, history: list[list[float]], **facts: object) -> dict[str, Any]:
    known = {
        "budget": 400,
        "made": 400,
        "seconds": 40.0,
        "processor_seconds": 30.0,
        "jobs": 2,
        "failures": {"Timeout": 40},
    }
    spent = {"propose": 20.0, "simulate": 10.0}
    parts = dict.fromkeys(PARTS, 0.0) | {"moves": 0.5, "evaluate": 0.5}
    commit = {"commit": "0123456789abcdef", "is_changed": False}
    line = {"kind": "cell", "task": task, "method": method, "seed": seed, "root": 1000.0, "history": history}
    return {**line, **known, "spent": spent, "parts": parts, "commit": commit, **facts}


def handmade() -> tuple[dict[str, Any], list[Record]]:
    """Two kernels, three methods, six seeds: `perfllm-max-single` ends at 0.5 of the expert, `best` at 1."""
    found: list[dict[str, Any]] = []
    for task in ("dot:1x256, cycles", "relu:16x16, cycles"):
        costs = {"unit": "cycles", "plain": 1000.0, "expert": 100.0, "moves": 9}
        found.append({"kind": "reference", "task": task, **costs})
        for seed in range(6):
            slow = [[0, 0.1, 1000.0], [90, 9.0, 250.0], [300, 30.0, 200.0 + seed]]
            found.append(cell_line(task, "perfllm-max-single", seed, slow))
            found.append(cell_line(task, "best", seed, [[0, 0.1, 1000.0], [350, 2.0, 100.0 + seed]]))
            found.append(cell_line(task, "same", seed, slow))
    settings: dict[str, Any] = {
        "benchmark": "perfllm",
        "grid": {"name": "snitch"},
        "environment": {"processor": "a processor"},
    }
    frame: dict[str, Any] = {"threads": 1, "cold": False, "rows": []}
    return settings, [Record.from_json({"label": str(k), **frame, **data}) for k, data in enumerate(found)]


def test_tables_of_a_handmade_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps(results_of(*handmade(), {})))
    assert tool.main(["--show", str(path)]) == 0
    out = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert ["best", "2 of 2", "12 of 12", "350", "350"] in rows
    assert ["perfllm-max-single", "0 of 2", "0 of 12", "-", "-"] in rows
    # After 100 and 400 evaluations, after 10 and 30 seconds.
    shares = ["0.40 (0.40 to 0.40)", "0.49 (0.49 to 0.50)", "0.40 (0.40 to 0.40)", "0.49 (0.49 to 0.50)"]
    assert rows.count(["perfllm-max-single", "6", *shares, "40 s"]) == 2
    shares = ["0.10 (0.10 to 0.10)", *["0.98 (0.95 to 1.00)"] * 3]
    assert rows.count(["best", "6", *shares, "40 s"]) == 2
    (contest,) = (row for row in rows if row[0] == "best" and row[-1] in ("faster", "not separable"))
    # 2 / 2^12, twice for two methods.
    assert contest[1:6] == ["12", "0", "0", "0.00098", "1.976"]
    assert contest[7] == "faster"
    (contest,) = (row for row in rows if row[0] == "same" and row[-1] in ("faster", "not separable"))
    assert contest[1:] == ["0", "0", "12", "1", "1.000", "1.000 to 1.000", "not separable"]
    assert ["best", "10.0", "100", "75", "10%", "50%", "25%", "25%"] in rows
    assert ["best", "50%", "0%", "0%", "50%", "0%", "0%"] in rows
    assert "2 of the searches ran at once" in out
    assert "a processor, commit 0123456789ab" in out
    html = (tmp_path / "out.html").read_text()
    assert html.count("<svg") >= 2
    assert html.count("<h3>dot:1x256, cycles</h3>") == 1
    for word in ("<script", "http://", "https://", "<link", "nan", "inf"):
        assert word not in html, word
    assert tool.main(["--show", str(path), "--against", "best"]) == 0
    assert "Beside best" in capsys.readouterr().out


def test_one_seed_decides_nothing() -> None:
    table = Findings.of(*handmade())
    table.done = {key: done for key, done in table.done.items() if done.seed == 0}
    (best, _) = contests(table, "perfllm-max-single")
    assert (best.better, best.worse, best.verdict) == (2, 0, "not separable")
    assert best.ratio == pytest.approx(2)
    assert [(each.method, each.reached) for each in standings(table)] == [
        ("perfllm-max-single", 0),
        ("best", 2),
        ("same", 0),
    ]


def test_tests_and_intervals() -> None:
    assert sign_test(8, 0) == sign_test(0, 8) == pytest.approx(2 / 256)
    assert sign_test(3, 3) == sign_test(0, 0) == 1
    assert holm([0.04, 0.01, 0.5]) == pytest.approx([0.08, 0.03, 0.5])
    assert holm([0.5, 0.5]) == [1, 1]
    assert interval([[2.0, 2.0], [2.0]]) == pytest.approx((2, 2))
    low, high = interval([[1.0, 4.0], [1.0, 4.0]])
    assert 1 <= low < 2 < high <= 4


def test_a_program_that_never_ran_is_no_division_by_zero(tmp_path: Path) -> None:
    done = Done.from_json(cell_line("a", "b", 0, [[0, 0.1, None]], root=None))  # type: ignore[list-item]
    assert (done.after(400), done.at(40)) == (0, 0)


# Mistakes


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--kernels", "sofmax"], "'sofmax' is no kernel of this grid; "),
        (["--methods", "perfllm-max"], "'perfllm-max' is no method of this grid; "),
        (["--encoders", "bert"], "unknown encoder 'bert'"),
        (["--seeds", "0,x"], "argument --seeds: "),
        (["--evaluations", "0"], "argument --evaluations: "),
        (["--jobs", "100000"], "--jobs 100000: there "),
        (["--against", "x"], "--against is for tables: add --show FILE.json"),
        (["-o", "out.jsonl"], "results are JSON; name the file 'out.json', not 'out.jsonl'"),
        (["--show", "missing.json"], "cannot read 'missing.json': No such file or directory"),
        (["--show", "missing.json", "--quick"], "--show takes everything from its file; leave out quick"),
        (["--grid", "gpu"], "argument --grid: invalid choice"),
    ],
)
def test_mistakes(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--encoders" in words:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.chdir(tmp_path)
    assert tool.main(words) == 2
    found = capsys.readouterr().err
    assert found.startswith("error: ")
    assert error in found
    assert not list(tmp_path.iterdir())


def test_what_is_not_comparable_is_in_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"benchmark": "perfllm", "grid": SMALL.to_json(), "jobs": 1, **version_facts(SMALL)}
    settings["evaluators"] = {"cycles": "older"}
    partial = Partial.create(tmp_path / "out.json", json.loads(json.dumps(settings)))
    assert tool.main(["--resume", str(partial.path)]) == 2
    assert "cannot resume: cycles was older and is " in capsys.readouterr().err


def test_files_without_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    settings, records = handmade()
    path.write_text(json.dumps(results_of(settings, records[:1], {})))
    assert tool.main(["--show", str(path)]) == 2
    assert "no finished searches" in capsys.readouterr().err
    path.write_text(
        json.dumps(results_of(settings, [Record("x", 1, (), {"label": "x", "threads": 1, "rows": []})], {}))
    )
    assert tool.main(["--show", str(path)]) == 2
    assert "is of no experiment" in capsys.readouterr().err
