"""Tasks in processes: failures, processors of their own, timed tasks alone, deadlines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import Processes, Task, expected

WORK = """
import os, time
from pdojo.errors import PdojoError

def obey(word, tell):
    start = time.monotonic()
    if word == "dies" or (word == "dies once" and not os.path.exists(__file__ + word)):
        open(__file__ + word, "w").close()
        os._exit(3)
    if word == "fails":
        raise PdojoError("it does not work")
    tell("at it")
    time.sleep(0.5)
    return {"word": word, "processors": sorted(os.sched_getaffinity(0)), "span": [start, time.monotonic()]}
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Task]:
    """Makes tasks that do what their name says; new processes find their module, unlike those of tests."""
    (tmp_path / "obedient_work.py").write_text(WORK)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "obedient_work", raising=False)
    obey = import_module("obedient_work").obey

    def make(word: str, *, is_timed: bool = False) -> Task:
        return Task(word, partial(obey, word), ("kernel", word), is_timed)

    return make


def run(tasks: list[Task], count: int, runner: Processes | None = None) -> tuple[list[dict[str, Any]], list[str]]:
    found: list[dict[str, Any]] = []
    told: list[str] = []
    (runner or Processes(count)).run(
        tasks, lambda task, result, _: found.append({"task": task.title} | result), told.append
    )
    return found, told


def test_a_task_that_fails_costs_only_itself_and_one_that_dies_begins_again(task: Callable[..., Task]) -> None:
    found, told = run([task(word) for word in ("dies", "dies once", "fails", "two")], 1)
    errors = {each["task"]: each["error"] for each in found if "error" in each}
    assert errors == {"dies": "its process died (exit code 3)", "fails": "it does not work"}
    assert [each["word"] for each in found if "word" in each] == ["dies once", "two"]
    again = [f"{word}: its process died (exit code 3); it begins again" for word in ("dies", "dies once")]
    assert told == [*again, "dies once: at it", "two: at it"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_tasks_have_processors_of_their_own_and_timed_ones_run_alone(task: Callable[..., Task]) -> None:
    tasks = [task("a"), task("b"), task("timed", is_timed=True), task("c"), task("d")]
    before = os.sched_getaffinity(0)
    found, _ = run(tasks, 2)
    assert os.sched_getaffinity(0) == before
    assert len(found) == 5
    for one in found:
        assert (len(one["processors"]) == 1) == (one["word"] != "timed")
        for other in found:
            if one is not other and one["span"][0] < other["span"][1] and other["span"][0] < one["span"][1]:
                assert "timed" not in (one["word"], other["word"])
                assert one["processors"] != other["processors"]


def test_no_task_begins_that_would_end_too_late(task: Callable[..., Task]) -> None:
    late = Processes(1, time.monotonic() + 40)
    late.seconds.append((("kernel", "a"), 50.0))
    assert run([task("a")], 1, late) == ([], [])
    assert late.is_cut
    early = Processes(1, time.monotonic() + 1000)
    early.seconds.append((("kernel", "a"), 50.0))
    assert [each["word"] for each in run([task("a")], 1, early)[0]] == ["a"]
    assert not early.is_cut


def test_expected_seconds() -> None:
    kind = ("axpy", "edges")
    assert expected(kind, []) == 0
    assert expected(kind, [(("dot", "other"), 7.0)]) == 7
    assert expected(kind, [(("dot", "other"), 7.0), (("axpy", "other"), 5.0)]) == 5
    finished = [(("axpy", "other"), 5.0), (("dot", "edges"), 3.0)]
    assert expected(kind, finished) == 3
    assert expected(kind, [*finished, (kind, 1.0), (kind, 2.0)]) == 2
