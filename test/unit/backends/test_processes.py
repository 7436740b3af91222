"""Calls shared by this process and others."""

from __future__ import annotations

import os

import pytest

from pdojo.backends.common import processes
from pdojo.backends.common.processes import shared_map
from pdojo.errors import MeasurementError


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.0)
    monkeypatch.setattr(processes, "_processors", lambda: 2)


def calls(*texts: str) -> list[str]:
    """Expressions that `eval` computes after 0.2 s: other processes cannot import functions of a test."""
    return [f"(__import__('time').sleep(0.2), {text})[1]" for text in texts]


def test_this_process_and_another_share_the_calls() -> None:
    rows = list(shared_map(eval, calls(*(f"({number}, __import__('os').getpid())" for number in range(30)))))
    assert [number for number, _ in rows] == [*range(30)]
    assert len({process for _, process in rows}) == 2
    assert os.getpid() in {process for _, process in rows}


def test_processes_that_die_end_the_calls_with_an_error() -> None:
    dies = f"__import__('os').getpid() == {os.getpid()} or __import__('os')._exit(1)"
    with pytest.raises(MeasurementError, match="3 processes died"):
        list(shared_map(eval, calls(*[dies] * 60)))


def test_an_exception_comes_in_turn() -> None:
    found = shared_map(eval, ["0", "1", "2", "1 / 0", *map(str, range(4, 30))])
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_one_call_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(processes, "Pool")
    assert list(shared_map(eval, ["1"])) == [1]
