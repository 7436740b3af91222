"""The benchmark: arguments, files that survive an interruption, ratios, the roofline; no other library is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench, job, kernels
from benchmarks.peers import LIBRARIES, as_text, build, peers_of, ranges_of, reference
from benchmarks.records import (
    FORMAT,
    Partial,
    Record,
    Row,
    fastest,
    geometric_mean,
    read_results,
    summary,
)
from benchmarks.work import Work, peak_type, roofline, work_of
from pdojo.backends.calibration.bandwidth import copy_bandwidth, read_bandwidth
from pdojo.backends.calibration.peak import arithmetic_peak, peak_kernel
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import Ok, Peer, WrongResult
from pdojo.backends.measure.outcome import Check
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import kernel_names, workload
from pdojo.search.database import Database


def ok(*samples: float) -> dict[str, Any]:
    return Ok(samples, 1, 1, 0.0, 0.0, Check("float64 NumPy", 0.1, 1e-7, 1e-8)).to_json()


WRONG = WrongResult("y[0] is 1").to_json()


def record(rows: dict[tuple[str, str], dict[str, Any]], label: str = "add", threads: int = 1, **more: Any) -> Record:
    listed = [{"library": a, "variant": b, "outcome": outcome} for (a, b), outcome in rows.items()]
    return Record.from_json({"label": label, "threads": threads, "cold": False, "rows": listed, **more})


MEASURED = {
    ("pdojo", "heuristic"): ok(2.0, 2.0, 8.0),
    ("torch", "eager"): ok(9.0),
    ("torch", "eager, out"): ok(4.0, 3.0, 5.0),
    ("jax", "jit"): ok(6.0),
    ("numpy", "fresh"): WRONG,
}


# Ratios


def test_the_ratio_is_against_the_fastest_variant_of_the_fastest_library() -> None:
    found = record(MEASURED)
    assert found.fastest_peer is not None
    assert found.fastest_peer.title == "torch: eager, out"
    assert found.ratio == 2.0
    assert found.ratio_of_minima == 1.5


def test_what_is_wrong_does_not_count() -> None:
    alone = record({("pdojo", "heuristic"): ok(2.0), ("numpy", "fresh"): WRONG})
    assert alone.fastest_peer is None
    assert alone.ratio is None
    assert alone.ratio_of_minima is None
    ours = record({("pdojo", "heuristic"): WRONG, ("torch", "eager"): ok(1.0)})
    assert ours.median is None
    assert ours.ratio is None
    assert summary([ours])["1"]["without_result"] == ["add"]


def test_geometric_means_say_of_how_many() -> None:
    slower = record({("pdojo", "heuristic"): ok(2.0), ("torch", "eager"): ok(1.0)}, "mul")
    means = summary([record(MEASURED), slower, record(MEASURED, threads=2)])
    assert list(means) == ["1", "2"]
    assert means["1"]["fastest_peer"] == {"geometric_mean": pytest.approx(1.0), "workloads": 2, "least": 0.5}
    assert means["1"]["libraries"]["jax"] == {
        "geometric_mean": pytest.approx(3.0),
        "workloads": 1,
        "least": 3.0,
    }
    assert means["1"]["libraries"]["numpy"] == {"geometric_mean": None, "workloads": 0, "least": None}
    assert means["1"]["variants"]["torch: eager"]["geometric_mean"] == pytest.approx(1.5)
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_what_a_search_found_is_ours() -> None:
    found = record(
        {("pdojo", "heuristic"): ok(4.0, 3.0, 5.0), ("pdojo", "evolve"): ok(2.0), ("torch", "eager"): ok(6.0)}
    )
    assert found.median == 2.0
    assert found.ratio == 3.0
    assert found.gain == 2.0
    assert found.gain_of_minima == 1.5
    means = summary([found, record(MEASURED)])["1"]
    assert means["pass"] == {"geometric_mean": pytest.approx(2.0), "workloads": 1, "least": 2.0}
    assert means["pass_by_minima"]["geometric_mean"] == pytest.approx(1.5)


def test_without_a_search_nothing_was_gained() -> None:
    found = record(MEASURED)
    assert found.passed is None
    assert found.gain is None
    assert found.gain_of_minima is None


def test_rows_of_equal_times_have_an_order() -> None:
    rows = record({("a", "b"): ok(1.0), ("c", "d"): ok(1.0)}).rows
    assert fastest(rows) == Row("a", "b", rows[0].outcome)


def test_the_share_of_the_roofline() -> None:
    found = record(MEASURED, roofline={"seconds": 1.0, "bound": "memory"})
    assert found.share_of_roofline(found.ours) == 0.5
    assert found.share_of_roofline(found.fastest_peer) == 0.25
    assert record(MEASURED).share_of_roofline(found.ours) is None


# The roofline


def test_roofline_of_known_numbers() -> None:
    # Bound by arithmetic: 1000 operations at 100 a second take longer than 80 bytes at 10 a second.
    assert roofline(Work(1000, 40, 40), 100.0, 10.0, 5.0).seconds == 10.0
    assert roofline(Work(1000, 40, 40), 100.0, 10.0, 5.0).bound == "arithmetic"
    # A copy: its bandwidth alone counts.
    assert roofline(Work(1, 40, 40), 100.0, 10.0, 1000.0).seconds == 8.0
    # An add: a written byte is paired with one that is read, the other one is read.
    assert roofline(Work(1, 80, 40), 100.0, 10.0, 20.0).seconds == 8.0 + 2.0
    # A reduction, where copies are faster than reading: nobody is slower than the best that was seen.
    assert roofline(Work(1, 80, 0), None, 10.0, 5.0).seconds == 8.0
    assert roofline(Work(1, 80, 0), None, 10.0, 5.0).bound == "memory"


@pytest.mark.parametrize(
    ("text", "operations", "read", "written"),
    [
        ("matmul:3x5x7", 2 * 3 * 5 * 7, 4 * (3 * 5 + 5 * 7), 4 * 3 * 7),
        ("bmm:2x3x5x7", 2 * 2 * 3 * 5 * 7, 4 * 2 * (15 + 35), 4 * 2 * 21),
        ("swiglu:1x3x5x7", 4 * 3 * 5 * 7, 4 * (15 + 2 * 35), 4 * 21),
        ("conv:1x2x3x4x5x3", 2 * 2 * 3 * 2 * 3 * 9, 4 * (60 + 54), 4 * 12),
        # Padding by one: 4 + 2 * 3 pairs of rows and taps, where 5 rows and 3 taps have 15 less 2.
        ("conv:1x1x1x5x5x3,P=1", 2 * 13 * 13, 4 * (25 + 9), 4 * 25),
        # Two groups of 2 channels and of 3 outputs each.
        ("grouped_conv:1x6x4x4x5x3,G=2,P=0", 2 * 6 * 2 * 2 * 3 * 9, 4 * (80 + 108), 4 * 36),
        # Of 4 rows and 3 taps, the first and the last pair are cut off.
        ("conv_transpose:1x1x1x4x4x3,S=2,OP=0", 2 * 10 * 10, 4 * (16 + 9), 4 * 49),
        # Windows at 0, 2 and 4 of 6 elements: the last one has two in the image.
        ("maxpool_ceil:1x1x6x6x3,P=0", 8 * 8, 4 * 36, 4 * 9),
        ("causal_softmax:2x3", 5 * 12, 4 * 12, 4 * 18),
        ("colmean:3x5", 15 + 5, 4 * 15, 4 * 5),
        ("add:3x5", 15, 4 * 30, 4 * 15),
        ("reducemean:3x5", 15 + 3, 4 * 15, 4 * 3),
        ("cross_entropy:3x5", 7 * 15 + 5 * 3, 4 * 15 + 8 * 3, 4 * 3),
    ],
)
def test_what_a_workload_needs(text: str, operations: int, read: int, written: int) -> None:
    found = workload(text)
    assert work_of(found) == Work(operations, read, written)


def test_every_kernel_has_operations() -> None:
    for name in kernel_names():
        found = workload(name)
        work = work_of(found)
        assert work.operations > 0 or name in ("transpose", "fill", "copy"), name


def test_peaks_that_bound() -> None:
    assert peak_type(workload("add")) == "f32"
    assert peak_type(workload("add", "f64")) == "f64"
    assert peak_type(workload("add", "bf16")) == "f32"
    assert peak_type(workload("matmul_bf16")) is None


@pytest.mark.parametrize("lanes", [1, 4])
def test_the_peak_kernel_computes_what_it_counts(lanes: int) -> None:
    nest = nest_of(parse_notation(peak_kernel("f32", 2, 3, lanes, steps=5))[0])
    (x, _) = parameters_of(nest)
    import numpy as np

    (y,) = interpret(nest, {"x": np.full(x.shape, 2, np.float32)}).values()
    assert (y == 5 * 4).all()
    assert y.size == 2 * 3 * lanes


def test_bandwidth_and_peak_are_measured() -> None:
    with CpuWorker() as worker:
        assert copy_bandwidth(1 << 16, 1, worker, samples=2).footprint == 1 << 16
        read = read_bandwidth(1 << 16, 1, worker, samples=2)
        peak = arithmetic_peak("f32", 1, worker, samples=2)
    assert read.footprint == 1 << 16
    assert read.variant.startswith("reading")
    assert read.bytes_per_second > 1e8
    assert peak.flops_per_second > 1e8


# Files


SETTINGS: dict[str, Any] = {"libraries": [], "threads": [1]}


def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path) -> None:
    output = tmp_path / "r.json"
    partial = Partial.create(output, SETTINGS)
    partial.add(record(MEASURED).data)
    with partial.path.open("a") as file:
        file.write('{"label": "mul", "thr')
    again, where = Partial.resume(partial.path)
    assert where == output
    assert again.settings == SETTINGS
    assert again.has("add", 1)
    assert not again.has("add", 2)
    again.add(record(MEASURED, "mul").data)
    assert [r.label for r in Partial.resume(partial.path)[0].records] == ["add", "mul"]
    again.finish(output)
    assert not partial.path.exists()
    settings, records = read_results(output)
    assert settings == SETTINGS
    assert [r.ratio for r in records] == [2.0, 2.0]
    assert json.loads(output.read_text())["summary"]["1"]["fastest_peer"]["geometric_mean"] == pytest.approx(2)


def test_an_interrupted_run_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partial = Partial.create(tmp_path / "r.json", SETTINGS)
    partial.add(record(MEASURED).data)
    assert bench.main(["--show", str(partial.path)]) == 0
    assert "PyTorch: eager, out" in capsys.readouterr().out
    assert len(Partial.resume(partial.path)[0].records) == 1


def test_what_is_whole_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark that goes on from elsewhere writes where it would have; its only copy is never opened for writing."""
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    partial = Partial.create(Path("out") / "r.json", SETTINGS)
    partial.add(record(MEASURED).data)
    file = tmp_path / "out" / "r.partial.jsonl"
    before, made = file.read_bytes(), file.stat().st_mtime_ns
    monkeypatch.chdir("out")
    again, where = Partial.resume(Path("r.partial.jsonl"))
    assert where == tmp_path / "out" / "r.json"
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (before, made)
    again.finish(where)
    assert where.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no file of an interrupted benchmark"),
        ("[1]\n", "no file of an interrupted benchmark"),
        ('{"format": 1, "settings": {}, "output": "x"}\n', "has format 1"),
        (f'{{"format": {FORMAT}, "settings": {{}}, "output": "x"}}\n{{"label": 1}}\n', "is damaged"),
    ],
)
def test_files_that_are_no_partial_results(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.partial.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        Partial.resume(path)


def test_files_that_are_no_results(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with pytest.raises(UsageError, match="cannot read"):
        read_results(path)
    path.write_text("{}")
    with pytest.raises(UsageError, match="no results"):
        read_results(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="no text"):
        read_results(path)


# The command


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["softmx"], "unknown kernel 'softmx'"),
        (["softmax:3y"], "'3y' is no shape"),
        (["--held", "softmax"], "--held has workloads of its own"),
        (["--held", "--unseen"], "--held has workloads of its own"),
        (["--unseen", "softmax"], "unknown kernel 'softmax'; did you mean 'softmax_first'"),
        (["--unseen", "--dtype", "f64"], "--unseen has sizes and a type of its own"),
        (["--unseen", "mish", "mish"], "workload 'mish' is given twice"),
        (["--show", "missing", "--unseen"], "leave out unseen"),
        (["softmax", "softmax"], "workload 'softmax' is given twice"),
        (["conv:1x1x1x2x2x5"], "workload 'conv:1x1x1x2x2x5': the size OH is -2"),
        (["--peers", "eigen"], "unknown library 'eigen'"),
        (["--threads", "0"], "is no number from 1"),
        (["--threads", "100000"], "100000 threads do not fit"),
        (["--budget", "-1"], "invalid"),
        (["--dtype", "f33", "softmax"], "f33"),
        (["-o", "results.csv"], "name the file 'results.json'"),
        (["-o", "no/such/folder/r.json", "--peers", "none"], "cannot write"),
        (["--resume", "missing"], "cannot read 'missing'"),
        (["--resume", "missing", "--cold"], "leave out cold"),
        (["--show", "missing", "softmax"], "leave out workloads"),
        (["--resume", "missing", "--search", "evolve"], "leave out search"),
        (["--search", "climb"], "invalid choice: 'climb'"),
        (["--evaluations", "9"], "--evaluations is for searches: add --search"),
        (["--database", "d"], "--database is for searches: add --search"),
        (["--machine", "snitch", "--search", "evolve"], "--search is for processors that are measured"),
        (["--show", "a", "--resume", "b"], "not both"),
        (["--seed", "-1", "softmax"], "a seed is a number from 0 to 2^62, not '-1'"),
        (["--machine", "snitch", "--evaluations", "9"], "name `search` among the --strategies"),
        (["softmax", "--peers", "none", "-o", "/proc/r.json"], "cannot write '/proc/r.json'"),
    ],
)
def test_mistakes_are_one_line(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bench.main(args) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_run_without_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "r.json"
    assert bench.main(["add:8x16", *QUICK, "-o", str(target)]) == 0
    assert "roofline" in capsys.readouterr().out
    settings, records = read_results(target)
    assert settings["expert"] == "heuristic"
    (found,) = records
    assert found.label == "add:8x16"
    assert found.median is not None
    assert found.ratio is None
    assert found.data["roofline"]["seconds"] > 0
    assert found.data["trace"]
    assert bench.main(["--show", str(target)]) == 0
    assert "add:8x16" in capsys.readouterr().out


QUICK = ["--peers", "none", "--samples", "1", "--budget", "0.01", "--no-plots", "--threads", "1"]


def test_a_search_is_beside_the_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, database = tmp_path / "r.json", tmp_path / "d.sqlite"
    wanted = ["--search", "sample", "--evaluations", "1", "--database", str(database)]
    assert bench.main(["add:8x16", *QUICK, *wanted, "-o", str(target)]) == 0
    shown = capsys.readouterr().out
    assert "pdojo: sample, 1 evaluations" in shown
    assert "looked for" in shown
    settings, (found,) = read_results(target)
    assert (settings["search"], settings["evaluations"]) == ("sample", 1)
    # Results are for others, who have no such file.
    assert str(tmp_path) not in target.read_text()
    assert database.exists()
    assert [row.variant for row in found.rows] == ["heuristic", "sample, 1 evaluations"]
    assert found.passed is not None
    assert found.gain is not None
    assert found.passed.tuning_seconds is None
    assert found.rows[1].tuning_seconds is not None
    assert found.rows[1].tuning_seconds > 0
    assert found.data["rows"][1]["trace"].startswith("# pdojo trace")
    with Database(str(database)) as kept:
        assert len(kept.connection.rows("SELECT id FROM measurements")) >= 2


def test_a_search_needs_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, database = tmp_path / "r.json", tmp_path / "no" / "d.sqlite"
    assert bench.main(["add:8x16", *QUICK, "--search", "sample", "--database", str(database), "-o", str(target)]) == 1
    assert f"the database '{database}' cannot be used" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_search_without_result_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: object) -> None:
        raise MeasurementError("no program of the search could be run")

    monkeypatch.setattr(job, "searched_here", searched)
    target = tmp_path / "r.json"
    database = ["--database", str(tmp_path / "db")]
    assert bench.main(["add:8x16", *QUICK, "--search", "sample", *database, "-o", str(target)]) == 1
    assert "our program has no result: add:8x16 on 1 threads: " in capsys.readouterr().err
    _, (found,) = read_results(target)
    assert isinstance(found.rows[0].outcome, Ok)
    assert found.median is None


def test_a_program_without_result_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*_: object, **__: object) -> dict[str, Any]:
        return record({("pdojo", "heuristic"): WRONG}).data

    monkeypatch.setattr(kernels, "measure", measure)
    target = tmp_path / "r.json"
    assert bench.main(["add", "--peers", "none", "--threads", "1", "--no-plots", "-o", str(target)]) != 0
    assert "our program has no result: add on 1 threads: wrong result" in capsys.readouterr().err
    assert target.exists()


def test_a_killed_run_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "r.json"
    partial = tmp_path / "r.partial.jsonl"
    command = [sys.executable, "-m", "benchmarks.bench", "add:8x16", "mul:8x16"]
    quick = ["--peers", "none", "--samples", "1", "--budget", "0.01", "--threads", "1", "-o", str(target)]
    with subprocess.Popen([*command, *quick], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 100
        while not partial.exists() or partial.read_text().count("\n") < 2:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert not target.exists()
    kept = partial.read_text().count("\n")
    assert bench.main(["add", *quick]) == 2
    assert "go on with --resume" in capsys.readouterr().err
    assert bench.main(["--resume", str(partial), "--no-plots"]) == 0
    _, records = read_results(target)
    assert [r.label for r in records] == ["add:8x16", "mul:8x16"]
    assert kept >= 2


def test_a_run_is_not_resumed_on_another_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "r.json"
    settings: dict[str, Any] = {"libraries": [], "environment": {"processor": "Z80"}, "versions": {}}
    partial = Partial.create(output, settings)
    assert bench.main(["--resume", str(partial.path)]) == 2
    assert "cannot resume: processor was Z80" in capsys.readouterr().err


def test_processors_lie_on_cores_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def affinity(_: int) -> set[int]:
        return {0, 1, 2, 3}

    def core(processor: int) -> int:
        return processor // 2

    monkeypatch.setattr(os, "sched_getaffinity", affinity)
    monkeypatch.setattr(job, "_core", core)
    assert job.processors(1) == [0]
    assert job.processors(2) == [0, 2]
    assert job.processors(3) == [0, 1, 2]


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from benchmarks.plots import draw, figures_of

    facts: dict[str, Any] = {"operations": 100, "read_bytes": 40, "written_bytes": 40}
    limit = {"seconds": 1.0, "bound": "memory", "peak": {"flops_per_second": 200.0}}
    records = [record(MEASURED, roofline=limit, **facts), record({("pdojo", "heuristic"): WRONG}, "mul", **facts)]
    paths = draw(figures_of(records), tmp_path / "r.json")
    assert [p.name for p in paths] == ["r-1-threads-bars.png", "r-1-threads-roofline.png"]
    assert all(p.stat().st_size > 1000 for p in paths)


# Peers, without the libraries


def test_peers_are_known_without_importing_them() -> None:
    heavy = "{'torch', 'onnxruntime', 'jax', 'matplotlib'}"
    script = f"import sys, benchmarks.demo, benchmarks.bench; sys.exit(bool({heavy} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_unknown_peers() -> None:
    text = as_text(workload("add"))
    with pytest.raises(UsageError, match="unknown library 'eigen'"):
        build(Peer("eigen", text), 1)
    with pytest.raises(UsageError, match="PyTorch has no 'tensor cores' of 'add'; its variants: eager, eager, out"):
        build(Peer("torch", text, "tensor cores"), 1)
    with pytest.raises(UsageError, match="NumPy has no 'fresh' of 'gelu'; it is not compared on it"):
        build(Peer("numpy", as_text(workload("gelu")), "fresh"), 1)


def test_every_library_has_the_rows_of_table_3() -> None:
    from pdojo.kernels import TABLE_3

    for name in LIBRARIES:
        for text in TABLE_3:
            assert peers_of(name, workload(text)), (name, text)


def test_workloads_reach_the_reference() -> None:
    import numpy as np

    (y,) = reference(as_text(workload("maxpool:1x1x4x4x2,S=2,P=0")))(np.arange(16.0).reshape(1, 1, 4, 4))
    assert y.tolist() == [[[[5, 7], [13, 15]]]]


def test_inputs_that_make_sense() -> None:
    assert ranges_of(workload("cross_entropy:4x9")) == (("t", 0, 9),)
    assert ranges_of(workload("add")) == ()
