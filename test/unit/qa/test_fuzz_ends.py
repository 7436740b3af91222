"""A fuzz run that is cut short, by Ctrl-C, by kill -9 or by the code that it tests, loses nothing that it found."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CRASHING = """
import os, signal
from qa import compiled

def machine_code_differs(program, number):
    os.kill(os.getpid(), signal.SIGSEGV)

compiled.machine_code_differs = machine_code_differs
"""
BREAKING = """
import time
from qa.fuzzing import jobs as fuzz_jobs
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names, transformation

for name in transformation_names():
    transformation(name).inverse = lambda self, program, site: Move.parse("unmap@nothing:0")

def shrunk(failed, check):
    time.sleep(1000)

fuzz_jobs.shrunk = shrunk
"""
MAIN = """
from qa.fuzz import main

if __name__ == "__main__":
    raise SystemExit(main())
"""


def script(folder: Path, sabotage: str) -> str:
    """The tool with a part replaced, in its processes too: these import the script."""
    path = folder / "sabotaged.py"
    path.write_text(sabotage + MAIN)
    return str(path)


@contextmanager
def fuzzing(*args: str) -> Generator[subprocess.Popen[str]]:
    """The tool in a session of its own, as a terminal starts it: Ctrl-C goes to all of its processes."""
    with subprocess.Popen(
        [sys.executable, *args, "--processes", "2", "--minutes", "5", "--machine", "toy"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A script finds what is beside it, not what is in the current folder.
        env={**os.environ, "COLUMNS": "120", "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        # A shell's background jobs ignore the signal, and what they start inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def started_by(process: subprocess.Popen[str]) -> list[int]:
    """The processes that walk."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [pid for pid in map(int, children) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def until(holds: Callable[[], bool], what: str) -> None:
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(f"after five minutes: {what}")


def walkers(process: subprocess.Popen[str]) -> list[int]:
    until(lambda: len(started_by(process)) == 2, "no two processes were started")
    return started_by(process)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def spent(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def walking(process: subprocess.Popen[str], seconds: float) -> list[int]:
    """The processes that walk, after each has used some seconds of processor time."""
    started = walkers(process)
    until(lambda: min(map(spent, started)) >= seconds, "the processes do not work")
    return started


@pytest.mark.parametrize("seconds", [0.0, 7.0])
def test_ctrl_c(seconds: float) -> None:
    """While processes start, or later: one summary, no traceback, no process stays."""
    with fuzzing("-m", "qa.fuzz") as process:
        started = walking(process, seconds)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    (moves,) = re.findall(r"toy: (\d+) moves in .* 0 failures, interrupted", " ".join(err.split()))
    assert int(moves) > 0 or not seconds
    assert not any(map(is_alive, started))


def test_ctrl_c_while_failures_are_shrunk(tmp_path: Path) -> None:
    failures = tmp_path / "failures.txt"
    with fuzzing(script(tmp_path, BREAKING), "--failures", str(failures)) as process:
        until(lambda: failures.exists() and failures.read_text().count("to be shrunk") == 2, "no failures are kept")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "2 failures, interrupted" in " ".join(err.split())
    assert err.count("inverse is broken; shrinking it") == 2
    assert out.count(": inverse broken by ") == 2
    assert "Traceback" not in err
    assert out in failures.read_text()


def test_a_crash_of_compiled_code(tmp_path: Path) -> None:
    """The trace up to the move that the process did not survive."""
    failures = tmp_path / "failures.txt"
    options = ["--compile-every", "3", "--number", "3", "--failures", str(failures)]
    with fuzzing(script(tmp_path, CRASHING), *options) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert "# seed 0, number 3, machine toy: no crash broken by " in out
    assert "ended with code -11" in out
    assert out.count("--apply='") == 3
    assert "\nkernel " in out
    assert out == failures.read_text()


def test_a_process_that_is_killed() -> None:
    with fuzzing("-m", "qa.fuzz") as process:
        os.kill(walkers(process)[0], signal.SIGKILL)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "ended with code -9" in out
    assert "1 failures" in " ".join(err.split())
    assert "Traceback" not in err


def test_no_process_outlives_a_run_that_is_killed() -> None:
    with fuzzing("-m", "qa.fuzz") as process:
        started = walking(process, 3)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not any(map(is_alive, started)), "processes go on without the run that started them")
