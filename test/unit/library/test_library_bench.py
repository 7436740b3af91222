"""The benchmark of a library: contests by pairs of samples, and a run on a small library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools import lib
from pdojo_tools.library import comparing

from benchmarks import library as bench
from benchmarks.contests import PROCESS, Contest, chart_of, in_process, peer_of
from benchmarks.records import OURS, Record
from pdojo.backends.measure import CompileError, Ok
from pdojo.library.manifest import MANIFEST
from pdojo.library.plain import plain_kernel
from pdojo.library.replaying import workload_of
from pdojo.library.schema import read_manifest


def _record(**samples: Sequence[float] | None) -> Record:
    """A record with samples by library, one for each turn; None is a failure."""
    names = {"ours": OURS, "process": PROCESS}
    rows: list[dict[str, Any]] = []
    for name, times in samples.items():
        failure = CompileError("no compiler")
        turns = tuple(range(len(times or ())))
        outcome = failure if times is None else Ok(tuple(times), 1, 1, None, 0.0, None, turns=turns)
        rows.append({"library": names.get(name, name), "variant": "v", "outcome": outcome.to_json()})
    return Record.from_json({"label": "an entry", "threads": 1, "cold": False, "rows": rows})


def test_pairs_decide_and_not_medians() -> None:
    # The load doubles in the middle: pairs cancel it.
    record = _record(ours=[1, 1, 1, 2, 2, 2, 2], process=[1] * 7, torch=[1.1, 1.1, 1.1, 2.2, 2.2, 2.2, 2.2])
    contest = Contest.of(record, peer_of(record))
    assert contest is not None
    assert contest.other.library == "torch"
    assert contest.ratio == pytest.approx(1.1)
    assert contest.decided == "faster, 7 of 7 pairs"


def test_few_pairs_decide_nothing() -> None:
    record = _record(ours=[1, 1, 1], torch=[2, 2, 2])
    contest = Contest.of(record, peer_of(record))
    assert contest is not None
    assert contest.decided == "equal, 3 of 3 pairs"


def test_a_slower_entry() -> None:
    record = _record(ours=[2.0] * 10, torch=[1.0] * 10)
    contest = Contest.of(record, peer_of(record))
    assert contest is not None
    assert contest.ratio == pytest.approx(0.5)
    assert contest.decided == "slower, 0 of 10 pairs"


def test_the_fastest_of_other_libraries_is_the_peer() -> None:
    record = _record(ours=[1.0], process=[0.1], torch=[3.0], onnxruntime=[2.0], numpy=None)
    peer, own = peer_of(record), in_process(record)
    assert peer is not None
    assert own is not None
    assert peer.library == "onnxruntime"
    assert own.library == PROCESS


def test_without_a_result_there_is_no_contest() -> None:
    assert Contest.of(_record(ours=None, torch=[1.0]), peer_of(_record(torch=[1.0]))) is None
    alone = _record(ours=[1.0])
    assert Contest.of(alone, peer_of(alone)) is None


def test_charts() -> None:
    settings: dict[str, Any] = {
        "threads": 2,
        "libraries": ["torch"],
        "started": "2026-01-01T00:00:00",
        "environment": {},
    }
    drawn = chart_of([_record(ours=[1.0], torch=[2.0])], settings)
    assert drawn is not None
    assert drawn.startswith("<svg")
    assert ">2.00 <" in drawn
    assert "an entry" in drawn
    assert chart_of([_record(ours=[1.0])], settings) is None


def test_a_package_of_the_same_name_is_not_taken(tmp_path: Path) -> None:
    """xDSL's wheel, for example, installs a package `benchmarks`."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    program = "import sys; from pdojo_tools import lib; sys.exit(lib.main(['bench', 'nowhere']))"
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: 'nowhere' is no generated library: it has no manifest.json\n"


def test_entries_are_found_in_the_operator_library(built: Path) -> None:
    manifest = read_manifest(built)
    for entry in manifest.entries:
        workload = workload_of(entry, plain_kernel(built, entry))
        assert workload is not None
        assert workload.kernel == entry.operator.rpartition("_")[0]
        assert workload.sizes == {n: s if isinstance(s, int) else s[-1] for n, s in entry.sizes.items()}


def test_another_kernel_of_the_same_name_is_none_of_the_library(built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "dist"))
    (entry, *_) = (e for e in read_manifest(folder).entries if e.operator == "softmax_f32")
    kernel = folder / entry.kernel
    kernel.write_text(kernel.read_text().replace("max=", "min="))
    assert workload_of(entry, plain_kernel(folder, entry)) is None


def test_a_small_library_is_measured(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.json"
    arguments = ["--peers", "numpy", "--threads", "1", "--samples", "6", "--budget", "1", "-o", str(output)]
    assert bench.main([str(built), "matmul_f32_6x10x8", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "matmul_f32_6x10x8" in shown
    assert " pairs" in shown
    results = json.loads(output.read_text())
    (record,) = results["records"]
    kinds = {row["library"]: row["outcome"]["kind"] for row in record["rows"]}
    assert kinds == {OURS: "Ok", PROCESS: "Ok", "numpy": "Ok"}
    checks = [row["outcome"]["check"]["error"] for row in record["rows"]]
    assert all(0 <= error <= 1 for error in checks)
    assert results["summary"]["NumPy"] > 0
    assert output.with_suffix(".svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing_f32"], "the library has no entry 'nothing_f32'"),
        (["--peers", "numpie"], "unknown library 'numpie'; did you mean 'numpy'?"),
    ],
)
def test_wrong_arguments(built: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main([str(built), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_tool_needs_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lib.main(["bench", str(tmp_path)]) == 2
    assert f"has no {MANIFEST}" in capfd.readouterr().err
    monkeypatch.setattr(comparing.pdojo, "__file__", str(tmp_path / "pdojo" / "__init__.py"))
    assert lib.main(["bench", str(tmp_path)]) == 2
    assert "needs a checkout of pdojo" in capfd.readouterr().err
