"""What changed between two results of the benchmark: the order, what is refused, and which files are stored."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare, origin
from benchmarks.compare import Results, changes, file_name, remarks, stored, suite_of
from benchmarks.held import held_out
from benchmarks.origin import commit, kind_of
from benchmarks.records import FORMAT, OURS
from benchmarks.unseen import unseen_names
from pdojo.backends.measure import Ok, Steady, WrongResult
from pdojo.errors import UsageError
from pdojo.kernels import TABLE_3

EPYC = "AMD EPYC 9554 64-Core Processor"
XEON = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"


def row(library: str, variant: str, seconds: float | None, steady: Steady | None = None) -> dict[str, Any]:
    found = WrongResult("y[0] is 1") if seconds is None else Ok((seconds,), 1, 1, 0.0, 0.0, None, {}, steady)
    return {"library": library, "variant": variant, "outcome": found.to_json()}


def record(label: str, ours: float | None, theirs: float | None, threads: int = 2, **more: Any) -> dict[str, Any]:
    rows = [row(OURS, "heuristic", ours), *([] if theirs is None else [row("torch", "eager", theirs)])]
    return {"label": label, "threads": threads, "cold": False, "rows": rows, "roofline": {"seconds": 1.0}, **more}


def write(path: Path, records: list[dict[str, Any]], processor: str | None = EPYC, **settings: Any) -> Path:
    environment = {} if processor is None else {"processor": processor, "pdojo": "0.1.0"}
    threads = list(dict.fromkeys(each["threads"] for each in records))
    found = {"environment": environment, "threads": threads, "started": "2026-11-21T19:26:50+0000", **settings}
    path.write_text(json.dumps({"format": FORMAT, "settings": found, "summary": {}, "records": records}))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stored results of two processors."""
    monkeypatch.setattr(compare, "RESULTS", tmp_path)
    write(tmp_path / "table3-2-threads-epyc-9554.json", [record("add", 2.0, 4.0), record("mul", 2.0, 3.0)])
    write(tmp_path / "table3-1-thread-epyc-9554.json", [record("add", 4.0, 4.0, 1)])
    write(tmp_path / "shapes-2-threads-epyc-9554.json", [record("add:9x9", 1.0, 2.0)])
    write(tmp_path / "table3-2-threads-xeon-platinum-8481c.json", [record("add", 8.0, 8.0)], XEON)
    return tmp_path


def test_processors_name_files() -> None:
    assert kind_of("AMD EPYC") == "epyc"
    assert kind_of(EPYC) == "epyc-9554"
    assert kind_of(XEON) == "xeon-platinum-8481c"
    assert kind_of("13th Gen Intel(R) Core(TM) i7-1365U") == "13th-gen-core-i7-1365u"
    assert file_name("table3", 2, "AMD EPYC") == "table3-2-threads-epyc.json"
    assert file_name("shapes", 1, "AMD EPYC") == "shapes-1-thread-epyc.json"


def test_shipped_results_have_the_names_of_their_processors() -> None:
    for path in compare.RESULTS.glob("*-thread*-*.json"):
        found = Results.read(path)
        (threads,) = found.settings["threads"]
        suite = suite_of(compare.RESULTS, {record.label for record in found.records})
        assert suite is not None
        assert path.name == file_name(suite, threads, found.settings["environment"]["processor"])


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_tracked_results_stay_small() -> None:
    """The folder keeps pages and what code reads; older data is in the history."""
    listed = subprocess.run(
        ["git", "-C", str(compare.RESULTS), "ls-files", "-z"], check=False, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("no repository here")
    paths = [compare.RESULTS / name for name in listed.stdout.split("\0") if name]
    assert sum(path.stat().st_size for path in paths if path.exists()) < 1_000_000


def test_the_greatest_losses_come_first(tmp_path: Path) -> None:
    before = [record("add", 2.0, 4.0), record("mul", 2.0, 4.0), record("relu", 2.0, None), record("exp", 2.0, 4.0)]
    after = [record("mul", 1.0, 4.0), record("add", 4.0, 4.0), record("relu", 2.5, None), record("exp", None, 4.0)]
    found = changes([Results.read(write(tmp_path / "a", before))], Results.read(write(tmp_path / "b", after)))
    # A lost result, half the ratio, four fifths of the part of the roofline, twice the ratio.
    assert [change.after.label for change in found] == ["exp", "add", "relu", "mul"]
    assert [change.ratio for change in found] == [None, 0.5, None, 2.0]
    assert [change.share for change in found] == [None, 0.5, 0.8, 2.0]


def test_only_equal_conditions_are_compared(tmp_path: Path) -> None:
    before = Results.read(write(tmp_path / "a", [record("add", 2.0, 4.0), record("mul", 2.0, 4.0, 1)]))
    after = Results.read(write(tmp_path / "b", [record("add", 2.0, 4.0, cold=True), record("mul", 2.0, 4.0, 2)]))
    assert changes([before], after) == []


def test_a_file_beside_the_stored_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both numbers of threads of one processor, and no suite of other workloads."""
    records = [record("add", 4.0, 4.0), record("add", 2.0, 4.0, 1), record("relu", 2.0, 4.0)]
    made = {"commit": "0123456789abcdef", "is_changed": True}
    new = write(folder / "bench-20261124-000000.json", records, commit=made, started="2026-11-24T00:00:00+0000")
    assert compare.main([str(new)]) == 0
    shown = capsys.readouterr().out
    assert "before: table3-2-threads-epyc-9554.json: version 0.1.0, commit unknown, 2026-11-21" in shown
    assert "before: table3-1-thread-epyc-9554.json" in shown
    assert "after: bench-20261124-000000.json: version 0.1.0, commit 0123456789ab with changes, 2026-11-24" in shown
    assert "shapes" not in shown
    assert "xeon" not in shown
    lines = [line.split() for line in shown.splitlines() if "│ add" in line]
    assert [[word for word in line if word != "│"][:8] for line in lines] == [
        ["add", "2", "2.00", "1.00", "-50%", "50%", "25%", "-50%"],
        ["add", "1", "1.00", "2.00", "+100%", "25%", "50%", "+100%"],
    ]
    assert "ratio to the fastest peer: times 1.000 by geometric mean over 2 of 2" in shown
    assert "only before: mul (2)" in shown
    assert "only after: relu (2)" in shown
    # The newest one is taken without a name.
    write(folder / "bench-20261123-000000.json", [record("exp", 4.0, 4.0)])
    assert compare.main([]) == 0
    assert capsys.readouterr().out == shown


def test_other_processors_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    epyc, xeon = (str(folder / f"table3-2-threads-{kind}.json") for kind in ("epyc-9554", "xeon-platinum-8481c"))
    assert compare.main([xeon, epyc]) == 2
    error = capsys.readouterr().err
    assert f"results of different processors: '{epyc}' is of {EPYC}, '{xeon}' is of {XEON}" in error
    assert compare.main([xeon, epyc, "--across-processors"]) == 0
    assert f"other processor: {EPYC} before, {XEON} after" in capsys.readouterr().out
    unknown = str(write(folder / "unknown.json", [record("add", 1.0, 1.0)], None))
    for args in ([unknown, epyc], [epyc, unknown], [unknown, unknown], [unknown]):
        assert compare.main(args) == 2
    # The same name of a file, and another processor.
    also = write(folder / "bench-1.json", [record("add", 1.0, 1.0)], EPYC.replace("64-Core", "96-Core"))
    assert compare.main([str(also)]) == 2
    assert "results of different processors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "there is no bench-*.json"),
        (["missing.json"], "cannot read 'missing.json'"),
        (["a.json", "b.json", "--keep"], "leave out BEFORE"),
    ],
)
def test_mistakes_are_one_line(args: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(args) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_without_common_workloads_there_is_nothing_to_compare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = str(write(folder / "new.json", [record("relu", 1.0, 1.0)]))
    assert compare.main([new]) == 2
    assert f"no stored results of these workloads on '{EPYC}'" in capsys.readouterr().err
    assert compare.main([new, str(folder / "table3-2-threads-epyc-9554.json")]) == 2
    assert "no workload is in both" in capsys.readouterr().err
    simulated = str(write(folder / "s.json", [record("relu", 1.0, 1.0)], simulated="snitch"))
    assert compare.main([simulated]) == 2
    assert "simulated cycles" in capsys.readouterr().err


def test_differences_besides_the_code_are_named(tmp_path: Path) -> None:
    steady = [record("add", 1.0, 1.0) | {"rows": [row(OURS, "naive", 1.0, Steady(1.0, 1.0, 0.1, 0))]}]
    before = write(
        tmp_path / "old.json", [record("add", 1.0, 1.0)], versions={"torch": "2.12", "jax": "1"}, expert="naive"
    )
    after = write(tmp_path / "new.json", steady, versions={"torch": "2.13", "jax": "1"}, expert="heuristic")
    assert list(remarks([Results.read(before)], Results.read(after))) == [
        "torch: 2.12 before, 2.13 after (old.json)",
        "--expert: naive before, heuristic after (old.json)",
        "times before are not steady: pauses made calls slower (old.json; docs/measurement.md)",
    ]
    assert list(remarks([Results.read(after)], Results.read(after))) == []


def test_new_results_are_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suites = (("table3", TABLE_3), ("held", held_out()), ("unseen", unseen_names()), ("shapes", ("add:9x9",)))
    for name, labels in suites:
        records = [record(label, 1.0, 2.0, threads) for label in labels for threads in (1, 2)]
        new = write(folder / "bench-2.json", records, database="/home/someone/d.sqlite")
        assert compare.main([str(new), "--keep"]) == 0
        assert "stored as" in capsys.readouterr().out
        for threads in (1, 2):
            found = Results.read(folder / file_name(name, threads, EPYC))
            assert [(each.label, each.threads) for each in found.records] == [(label, threads) for label in labels]
            assert found.settings["threads"] == [threads]
            assert "database" not in found.settings
            assert json.loads(found.path.read_text())["summary"][str(threads)]["workloads"] == len(labels)
        assert [each.path.name for each in stored(folder, Results.read(new))] == [
            file_name(name, threads, EPYC) for threads in (1, 2)
        ]


def test_other_workloads_are_not_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in folder.iterdir())
    new = write(folder / "new.json", [record("relu", 1.0, 1.0)])
    assert compare.main([str(new), "--keep"]) == 2
    assert "neither Table 3 nor the held-out shapes" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "new.json"])
    with pytest.raises(UsageError, match="of which processor"):
        compare.keep(folder, Results.read(write(folder / "new.json", [record("relu", 1.0, 1.0)], None)))


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_the_commit_is_known_in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "repository"
    (repository / "benchmarks").mkdir(parents=True)
    monkeypatch.setattr(origin, "__file__", str(repository / "benchmarks" / "origin.py"))
    assert commit() is None

    def git(*args: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e@e"]
        return subprocess.run(
            ["git", "-C", str(repository), *identity, *args], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    (repository / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "-m", "one")
    assert commit() == {"commit": git("rev-parse", "HEAD"), "is_changed": False}
    (repository / "file").write_text("2")
    assert commit() == {"commit": git("rev-parse", "HEAD"), "is_changed": True}
