"""An entry that fails does not lose the others: they are built and kept, and `--keep-going` makes a library of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools import lib

from loaded_library import build_unproved, require_compiler, small_spec
from pdojo.errors import LoweringError, MeasurementError
from pdojo.library.choosing import Chooser
from pdojo.library.findings import Finding, UnprovedError
from pdojo.library.manifest import MANIFEST
from pdojo.library.programs import BuildListener, Finished
from pdojo.library.verify import verify

ROWS = [{"kernel": "relu", "plain": ["2x4", "3x4"], "rows": True}, {"kernel": "softmax", "plain": ["3x5"]}]
CACHED, MEASURED, OPEN = "relu_f32_1to524287x4", "relu_f32_1to8388608x4", "relu_f32_1to2147483647x4"
SPEC = """
name = "small"
levels = ["host"]
tuning = { measure = false }
operators = [{ kernel = "relu", plain = ["2x4", "3x4"] }]
"""


class Seen(BuildListener):
    """Collects what fails and what is made."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.kept: list[str] = []
        self.new: list[str] = []

    def failed(self, reason: str) -> None:
        self.reasons.append(reason)

    def made(self, finished: Finished) -> None:
        (self.kept if finished.is_kept else self.new).append(finished.job.entry.name)


def _break(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """No program can be chosen for these entries."""
    choose = Chooser.choose

    def chosen(self: Chooser, entry: Any, *rest: Any) -> Any:
        if entry.name in names:
            raise LoweringError("no register is left")
        return choose(self, entry, *rest)

    monkeypatch.setattr(Chooser, "choose", chosen)


def _names(folder: Path) -> list[str]:
    return [entry["name"] for entry in json.loads((folder / MANIFEST).read_text())["entries"]]


def test_the_other_programs_are_made_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    spec, seen = small_spec(operators=ROWS, levels=["host"]), Seen()
    _break(monkeypatch, OPEN, "relu_f32_2x4")
    with pytest.raises(LoweringError, match=r"no register is left; 2 of 6 entries fail; .*--keep-going"):
        build_unproved(spec, tmp_path / "dist", listener=seen)
    assert not (tmp_path / "dist").exists()
    assert [reason.partition(" for ")[0] for reason in seen.reasons] == ["relu_f32_2x4", OPEN]
    made = set(seen.new)
    assert made == {"relu_f32_3x4", CACHED, MEASURED, "softmax_f32_3x5"}
    seen = Seen()
    build_unproved(spec, tmp_path / "dist", listener=seen, keep_going=True)
    assert (set(seen.kept), seen.new) == (made, [])
    assert _names(tmp_path / "dist") == ["relu_f32_3x4", CACHED, MEASURED, "softmax_f32_3x5"]
    assert verify(tmp_path / "dist") == []


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    _break(monkeypatch, "softmax_f32_3x5")
    with pytest.raises(LoweringError, match=r"no register is left$"):
        build_unproved(small_spec(operators=ROWS[1:], levels=["host"]), tmp_path / "dist", keep_going=True)
    assert not (tmp_path / "dist").exists()


def test_entries_whose_proof_fails(tmp_path: Path) -> None:
    require_compiler()
    spec = small_spec(operators=ROWS, levels=["host"])

    def check(folder: Path) -> None:
        if OPEN in _names(folder):
            raise UnprovedError([Finding("wrong result", OPEN)])

    with pytest.raises(MeasurementError, match=f"entry {OPEN}: wrong result"):
        build_unproved(spec, tmp_path / "dist", check=check)
    seen = Seen()
    build_unproved(spec, tmp_path / "dist", check=check, listener=seen, keep_going=True)
    assert seen.reasons == [f"entry {OPEN}: wrong result"]
    assert _names(tmp_path / "dist") == ["relu_f32_2x4", "relu_f32_3x4", CACHED, MEASURED, "softmax_f32_3x5"]

    def whole(_: Path) -> None:
        raise UnprovedError([Finding("another digest", file="LICENSE")])

    with pytest.raises(UnprovedError):
        build_unproved(spec, tmp_path / "dist", check=whole, force=True, keep_going=True)


def test_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    (tmp_path / "spec.toml").write_text(SPEC)
    _break(monkeypatch, "relu_f32_2x4")
    command = ["build", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "dist")]
    assert lib.main(command) == 1
    assert "no register is left; the programs of the others are kept, and --keep-going" in capsys.readouterr().err
    assert lib.main([*command, "--keep-going"]) == 0
    shown = capsys.readouterr().out
    assert "failed: relu_f32_2x4 for " in shown
    assert shown.endswith("; entries that failed are left out\n")
