"""The table of public ONNX files: what a row says, and that the page is the stored results'."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pdojo_tools.outputs import replaced

pytest.importorskip("onnx", reason="needs onnx")

from benchmarks import public_models
from benchmarks.origin import JSON
from benchmarks.public_models import BEGIN, END, PAGE, names, newest, table
from benchmarks.records import Record
from pdojo.errors import UsageError

SETTINGS: JSON = {
    "threads": 2,
    "started": "2026-11-30T19:00:00+0000",
    "versions": {"onnxruntime": "1.32.0"},
    "environment": {"processor": "P"},
}
CASE = "onnxruntime/logreg_iris"


def row(library: str, *samples: float) -> JSON:
    return public_models.row_of(library, "", samples)


def record(**facts: object) -> Record:
    known: JSON = {
        "megabytes": 0.5,
        "nodes": 3,
        "exporter": "me 1",
        "seconds": 1.25,
        "kernels": 4,
        "steps": [],
        "error": 1e-7,
    }
    rows = [row("pdojo", 0.001, 0.002), row("onnxruntime", 0.002, 0.004)]
    data: JSON = {
        "label": CASE,
        "threads": 2,
        "rows": rows,
        "facts": {**known, "steps": list[str](), "right": True, "moved": None, **facts},
    }
    return Record.from_json(data)


def test_a_row_says_what_was_found() -> None:
    *_, line = table([record()], SETTINGS).splitlines()
    assert line == f"| `{CASE}` | tabular | me 1 | 0.5 | 1.25 | 4 | 1.0e-07 | 1.5 | 2.00 |"
    assert "1 files of 1 packages: 1 ran, 1 of them with ONNX Runtime's results" in table([record()], SETTINGS)


def test_a_wrong_result_and_one_within_what_the_peer_varies() -> None:
    wrong = table([record(right=False, moved=1e-5, error=0.5)], SETTINGS)
    assert "| 5.0e-01 **wrong** (1.0e-05) |" in wrong
    assert "1 ran, 0 of them with" in wrong
    assert "| 8.0e-03 (1.2e-02) |" in table([record(error=8e-3, moved=1.2e-2)], SETTINGS)


def test_a_refused_file_has_its_reason() -> None:
    failed = {"kind": "CompileError", "message": "error: node 'x'\n(Loop): why", "detail": ""}
    data: JSON = {"label": CASE, "threads": 2, "rows": [{"library": "pdojo", "variant": "", "outcome": failed}]}
    *_, line = table([Record.from_json(data)], SETTINGS).splitlines()
    assert line.startswith(f"| `{CASE}` | tabular | | | | refused: ")
    assert "node 'x'" in line


def test_errors_are_relative_to_the_largest_element() -> None:
    found, wanted = np.array([1.0, 10.0005], np.float32), np.array([1.0, 10.0], np.float32)
    assert public_models.errors_of([found], [wanted]) == (pytest.approx(5e-5, rel=0.01), True)
    assert public_models.errors_of([found * 1e-9], [wanted * 1e-9 + 1e-9]) == (pytest.approx(1e-7, rel=0.1), True)
    assert public_models.errors_of([np.array([1, 2, 4])], [np.array([1, 2, 3])]) == (pytest.approx(1 / 3), False)
    assert not public_models.errors_of([np.array([np.nan], np.float32)], [np.array([1], np.float32)])[1]


def test_files_are_named_and_described() -> None:
    for case in public_models.cases().values():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", case["package"])
        assert re.fullmatch(r"[0-9a-f]{64}", case["sha256"])
        assert case["path"].endswith(".onnx")
    with pytest.raises(UsageError, match="no public model has 'no-such-word' in its name"):
        names(["no-such-word"])


def test_the_page_is_that_of_the_stored_results() -> None:
    settings, records = newest()
    page = Path(PAGE).read_text(encoding="utf-8")
    assert page == replaced(page, BEGIN, table(records, settings), END), "run python -m benchmarks.public_models"
