"""`pdojo-tune --ray`: kernels searched at once on a private cluster of this machine, and how that is shown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pdojo_tools import tune
from pdojo_tools.tuning.on_cluster import Board
from rich.console import Console

from cluster_alone import needs_ray, processors_alone
from pdojo.errors import MeasurementError
from pdojo.search.contract.progress import Progress
from pdojo.search.engine.campaign import Task, TaskStage, TaskStanding
from pdojo.transforms.trace import Trace


@pytest.fixture
def alone() -> Iterator[None]:
    with processors_alone():
        yield


@needs_ray
@pytest.mark.usefixtures("alone")
def test_kernels_are_searched_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, report = tmp_path / "traces", tmp_path / "report.html"
    stored = ["--database", str(tmp_path / "db"), "-o", str(folder), "--report", str(report)]
    search = ["--search", "sample", "--neighbourhood", "mutate", "--budget", "5", "--threads", "1"]
    command = ["relu:64x64", "exp:64x64", *search, "--ray", "local", "--workers", "1", *stored]
    assert tune.main(command) == 0
    out = capsys.readouterr().out
    assert "1 worker at local" in out
    assert len(re.findall(r"search: 5 evaluations in .*, the budget of evaluations is used up; best", out)) == 2
    assert out.count("times as fast as pass") == 2
    for name in ("relu-64x64", "exp-64x64"):
        assert Trace.load(folder / f"{name}.trace").steps
    page = report.read_text()
    assert "relu:64x64" in page
    assert "exp:64x64" in page
    # The plain program is not timed here; the column of the pass's has what was said.
    gains = re.findall(r"([\d.]+) times as fast as pass", out)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page.split("</table>")[0])
    assert cells[2::4] == ["-", "-"]
    assert cells[3::4] == gains
    # What is known is not measured again, and the searches end at once.
    assert tune.main(command) == 0
    assert capsys.readouterr().out.count("going on with the run of seed 0, of which 5 evaluations are known") == 2


@needs_ray
def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(["softmax:4x64", "--search", "sample", "--ray", "nowhere"]) == 2
    assert "'nowhere' is no address of a Ray cluster" in capsys.readouterr().err


def standing(name: str, stage: TaskStage, best: float | None = None) -> TaskStanding[None]:
    progress = None
    if best is not None:
        progress = Progress(7, 0, 0, 61.0, 2.5, best, 1.0, best, True, None, {"Timeout": 1}, {}, "timing")
    error = MeasurementError("it crashed") if stage is TaskStage.FAILED else None
    return TaskStanding(Task(name, lambda _: None), stage, progress, error=error)


def test_plain_lines_where_there_is_no_terminal() -> None:
    text, now = io.StringIO(), [0.0]
    board = Board(Console(file=text), lambda: now[0])
    with board:
        board([standing("a", TaskStage.RUNNING), standing("b", TaskStage.WAITING)])
        board([standing("a", TaskStage.RUNNING, 0.5), standing("b", TaskStage.WAITING)])
        now[0] = 40.0
        board([standing("a", TaskStage.RUNNING, 0.25), standing("b", TaskStage.FAILED)])
        board([standing("a", TaskStage.RUNNING, 0.125), standing("b", TaskStage.FAILED)])
    assert text.getvalue().splitlines() == [
        "a: running",
        "a: running, 4.00 times its start, 7 evaluations, 2.5 a second, 1:01 min, 1 failed, timing",
        "b: failed",
    ]


def test_a_table_on_terminals() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=140)
    with Board(console, lambda: 0.0) as board:
        board([standing("a[b]", TaskStage.RUNNING, 0.25), standing("c", TaskStage.WAITING)])
    shown = text.getvalue()
    for word in ("a[b]", "4.00", "times its", "7 evaluations", "waiting", "timing"):
        assert word in shown
