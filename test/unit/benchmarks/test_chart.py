"""docs/table3.svg and the first figures of README.md are those of the stored results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any
from xml.etree import ElementTree

import pytest
from pdojo_tools.outputs import replaced

from benchmarks import chart
from benchmarks.chart import CHART, drawn, panel_of, shown_files
from benchmarks.gpu.tables import INEXACT
from benchmarks.page import BEGIN, END, README, figures
from benchmarks.records import OURS
from pdojo.errors import UsageError
from pdojo.kernels import TABLE_3


def ratios(path: Path) -> list[float]:
    """The fastest peer's time over ours, for each workload, from the file as it is stored.

    Of a processor: the medians, ours that of our last row. Of a GPU: warm; our fastest program, PyTorch without TF32.
    """
    found: list[float] = []
    stored = json.loads(path.read_text())
    for key, result in stored.get("done", {}).items():
        if key.startswith("time "):
            warm = result["warm"]
            ours = min(seconds for name, seconds in warm.items() if name.startswith("pdojo: "))
            found.append(min(warm["strict"], warm["compile"]) / ours)
    for record in stored.get("records", []):
        rows = [row for row in record["rows"] if row["outcome"]["kind"] == "Ok"]
        ours = [row for row in rows if row["library"] == OURS][-1]
        peers = min(middle(row) for row in rows if row["library"] != OURS)
        found.append(peers / middle(ours))
    return found


def middle(row: dict[str, Any]) -> float:
    return median(row["outcome"]["samples"])


def test_every_program_of_the_gpu_is_right() -> None:
    """Every job of the stored run ended well, and no timed program of ours has an error of TF32's size."""
    stored = json.loads(shown_files()[-1].read_text())
    assert len(stored["done"]) == 33 + len(TABLE_3) + 62
    for key, result in stored["done"].items():
        assert "error" not in result, key
        assert all(error < INEXACT for name, error in result.get("errors", {}).items() if name.startswith(OURS)), key


def texts(svg: str) -> list[str]:
    return [" ".join(element.itertext()) for element in ElementTree.fromstring(svg) if element.tag.endswith("text")]


def test_the_chart_is_that_of_the_stored_results() -> None:
    assert CHART.read_text() == drawn([panel_of(path) for path in shown_files()]), "run python -m benchmarks.chart"


def test_the_chart_names_all_ratios_and_their_means() -> None:
    shown = texts(CHART.read_text())
    assert set(TABLE_3) <= set(shown)
    named = [text.split()[0] for text in shown if re.fullmatch(r"\d\.\d\d  ?\S.*", text)]
    assert named == [f"{ratio:.2f}" for path in shown_files() for ratio in ratios(path)]
    means = [text.split()[2] for text in shown if "geometric mean" in text]
    assert means == [f"{geometric_mean(ratios(path)):.2f}" for path in shown_files()]


def test_the_readme_has_the_figures_of_the_stored_results() -> None:
    readme = README.read_text(encoding="utf-8")
    assert readme == replaced(readme, BEGIN, figures(), END), "run python -m benchmarks.page"
    for path in shown_files():
        assert f"**{geometric_mean(ratios(path)):.2f}**, least {min(ratios(path)):.2f} " in readme
    *_, newest, device = shown_files()
    assert json.loads(device.read_text())["device"]["name"] in readme
    assert f"programs are {geometric_mean(ratios(newest)):.2f} times as fast as the fastest" in readme


def test_results_of_other_workloads_have_no_common_chart(tmp_path: Path) -> None:
    whole = json.loads(shown_files()[0].read_text())
    part = tmp_path / "part.json"
    part.write_text(json.dumps({**whole, "records": whole["records"][:3]}))
    with pytest.raises(UsageError, match="different workloads"):
        drawn([panel_of(shown_files()[0]), panel_of(part)])
    assert chart.main([str(part), "-o", str(tmp_path / "part.svg")]) == 0
    assert texts((tmp_path / "part.svg").read_text()).count(TABLE_3[0]) == 1
