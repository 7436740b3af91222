"""The benchmark on a GPU without one: jobs that crash and hang, results that are kept, tables."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.gpu import parent
from benchmarks.gpu.parent import Job, Results, Runner
from benchmarks.gpu.tables import geometric_mean, print_tables
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import workload

CHILD = """
import json, os, sys, time
for line in sys.stdin:
    job = json.loads(line)
    name = (job["workload"] or {}).get("kernel")
    if name == "relu":
        os._exit(3)
    if name == "mul":
        time.sleep(60)
    print(json.dumps({"name": "a GPU", "copy": 1e12, "kind": job["kind"], "kernel": name}), flush=True)
"""
COMMAND = (sys.executable, "-c", CHILD)
ROW = {
    "warm": {"pdojo: the pass": 2e-5, "pdojo: tile of c: 64 x 64": 1e-5, "torch, strict": 3e-5},
    "cold": {"pdojo: the pass": 2e-5, "torch, strict": 1e-5},
    "errors": {"pdojo: the pass": 1e-7, "pdojo: tile of c: 64 x 64": 2e-7, "torch, strict": 1e-6},
    "bytes": 5e6,
    "flops": 1e8,
}


def job(name: str) -> Job:
    return Job("check", workload(name))


def test_a_job_that_crashes_or_hangs_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parent.LONGEST, "check", 1.0)
    with Runner(COMMAND) as runner:
        assert runner.device()["name"] == "a GPU"
        found = [runner.run(job(name)) for name in ("add", "relu", "softmax", "mul", "exp")]
    assert [r.get("kernel") for r in found] == ["add", None, "softmax", None, "exp"]
    assert [r.get("error") for r in found] == [None, "the process died", None, "took more than 1 s", None]


def test_without_a_device_there_is_one_clear_error() -> None:
    failing = (sys.executable, "-c", 'import sys; [print(\'{"error": "no GPU here"}\', flush=True) for _ in sys.stdin]')
    with Runner(failing) as runner, pytest.raises(MeasurementError, match="no GPU here"):
        runner.device()


def test_results_are_kept_and_read_again(tmp_path: Path) -> None:
    results = Results(tmp_path / "gpu.json", {"name": "a GPU", "copy": 1e12})
    results.add(job("add"), {"largest_error": 1e-7})
    results.add(job("relu"), {"error": "the process died"})
    again = Results.read(results.path)
    assert again.done == results.done
    assert again.device == results.device
    assert again.failures == [job("relu").key]
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(UsageError, match="has no results of this benchmark"):
        Results.read(tmp_path / "other.json")


def test_the_table_has_ratios_of_the_fastest_program() -> None:
    results = Results(
        Path("x"), {"name": "a GPU", "copy": 1e12}, {"time matmul": ROW, "check add": {"largest_error": 0}}
    )
    text = io.StringIO()
    print_tables(results, Console(file=text, width=200))
    assert "a GPU: 1 of 1 kernels right" in text.getvalue()
    warm = next(line for line in text.getvalue().splitlines() if "matmul" in line)
    assert "3.00 (1e-06)" in warm
    assert "50%" in warm
    assert "tile of c: 64 x 64" in warm
    assert geometric_mean([4.0, 1.0]) == pytest.approx(2.0)
