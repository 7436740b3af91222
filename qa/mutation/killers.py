"""Ways to notice a defect: the tests of the suite, likeliest first, then random walks."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qa.mutation.mutant import Mutant

LIT = "test/filecheck"
MOVES = f"{LIT}/transforms"

RULES = (
    "test/unit/dialect/test_analysis.py",
    "test/unit/dialect/test_conditions.py",
    "test/unit/dialect/test_origins.py",
    "test/unit/dialect/test_excerpts.py",
    "test/property/test_enumerated.py",
    "test/unit/dialect/test_validate.py",
)
"""Tests of single rules of the analyses, which notice most defects of these in a few seconds."""

RULED = (
    *(f"dialect/flow/{name}.py" for name in ("collision", "coverage", "flows", "origins", "program", "storage_check")),
    *(f"dialect/rules/{name}.py" for name in ("conditions", "frames", "lanes", "races", "special_mappings")),
    *(
        f"dialect/shortcuts/{name}.py"
        for name in ("clobber", "digits", "excerpts", "instances", "iterations", "turns", "values")
    ),
    "dialect/affine.py",
    "dialect/view/storage.py",
)
"""Files that contain these rules."""

FIRST = (
    *RULES,
    "test/unit/dialect/test_planted.py",
    "test/unit/transforms/test_noticed.py",
    "test/unit/dialect/test_mapped_validity.py",
    "test/unit/transforms/test_shifting.py",
    "test/property/test_moves.py::test_regressions",
    "test/property/test_moves.py::test_a_register_stays_in_one_thread",
)
"""Pytest tests that notice most defects in a few seconds."""

ANALYSIS = "test/property/test_fast_paths.py"
"""The test of the fast paths against integer sets on random questions: it takes minutes, so it runs last."""

RUNS_LIT = "test/unit/qa/test_filecheck.py"
"""The test that runs all lit tests; here they run directly."""

UNRELATED = ("mutants", "docs", "docs_map", "measurement", "executable", "fuzz_ends", "tools_run_tune", "start")
"""Unit tests unrelated to moves: of the checkout, of time, of processes."""

SILENT = 600
"""Seconds without output after which a test hangs, which notices the defect."""


@dataclass(frozen=True)
class Stage:
    """A command that fails if it notices the defect."""

    name: str
    command: tuple[str, ...]
    only: str = ""
    """The only test whose failure counts; another failure may mean that the test is gone."""


def asked_before(copy: Path, killer: str) -> list[Stage]:
    """The test that noticed the defect before, if it still exists and is about moves."""
    test = killer.partition("[")[0]
    path = test.partition("::")[0]
    unrelated = Path(path).stem.removeprefix("test_") in UNRELATED
    if "::" in test and (copy / path).is_file() and not unrelated:
        return [replace(pytest("as before", (test,)), only=test)]
    if path.endswith((".pdojo", ".mlir", ".test")) and (copy / LIT / path).is_file():
        return [replace(lit("as before", [f"{LIT}/{path}"]), only=test)]
    return []


def stages(copy: Path, mutant: Mutant, *, quick: bool = False) -> list[Stage]:
    """The stages of the suite for a defect: all tests, or with `quick` those that take seconds."""
    folders = [f"{MOVES}/{move}" for move in mutant.moves if (copy / MOVES / move).is_dir()]
    others = [p.relative_to(copy).as_posix() for p in sorted((copy / MOVES).iterdir()) if p.is_dir()]
    rest = [
        p.relative_to(copy).as_posix() for p in sorted((copy / LIT).iterdir()) if p.is_dir() and p.name != "transforms"
    ]
    skipped = [f"--ignore={path}" for path in (*FIRST, RUNS_LIT) if "::" not in path]
    skipped += [f"--ignore-glob=*/test_{name}.py" for name in UNRELATED]
    rules = [pytest("rules of the analyses", RULES)] if mutant.file in RULED else []
    few = [
        *rules,
        *([lit("lit of the move", folders)] if folders else []),
        pytest("first tests", FIRST),
        lit("lit of moves", [f for f in others if f not in folders]),
    ]
    return (
        few
        if quick
        else [
            *few,
            pytest("unit tests", ("test/unit", *skipped)),
            pytest("properties", ("test/property", f"--ignore={ANALYSIS}")),
            lit("all lit tests", rest),
            pytest("analysis against integer sets", (ANALYSIS,)),
        ]
    )


def lit(name: str, folders: Sequence[str]) -> Stage:
    """A stage of lit tests, up to the first failure."""
    command = Path(sys.executable).parent / "lit"
    return Stage(name, (str(command), "-j1", "-v", "--no-progress-bar", "--max-failures=1", *folders))


def pytest(name: str, paths: Sequence[str]) -> Stage:
    """A stage of pytest, up to the first failure."""
    return Stage(
        name,
        (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=first", *paths),
    )


def walks(mutant: Mutant, minutes: float) -> list[Stage]:
    """A stage of random walks that prefer the defect's moves."""
    preferred = [word for move in mutant.moves for word in ("--prefer", move)]
    fuzz = (sys.executable, "-m", "qa.fuzz", "--minutes", str(minutes), "--processes", "1", *preferred)
    return [Stage("walks", (*fuzz, "--length", "12", "--compile-every", "0"))]


class Runner:
    """Runs stages in copies; `stop` ends them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._passing: dict[str, bool] = {}
        self._lock = threading.Lock()
        self.stopped = False

    def passes(self, copy: Path, test: str) -> bool:
        """Whether a test that noticed a defect passes in a copy without defects; asked once per test."""
        if test not in self._passing:
            self._passing[test] = self.first_failure(copy, asked_before(copy, test)) is None
        return self._passing[test]

    def first_failure(self, copy: Path, stages: Sequence[Stage]) -> tuple[Stage, str] | None:
        """The first failing stage in the copy, and its failed test; None if all succeed."""
        for stage in stages:
            failed = self._fails(copy, stage)
            if failed is not None:
                return stage, failed
        return None

    def _fails(self, copy: Path, stage: Stage) -> str | None:
        # Compiled files of a healthy copy serve its copies, except the defect's file: this halves the time.
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "", "PYTHONUNBUFFERED": "1"}
        with self._lock:
            if self.stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                stage.command,
                cwd=copy,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            output = output_of(process, SILENT)
        finally:
            with self._lock:
                self._running.discard(process)
        if output is None:
            _end(process)
            return f"a test hangs: nothing for {SILENT} s"
        if self.stopped or -process.returncode in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            # Ended by `stop` or from outside: this is no failed test.
            _end(process)
            raise KeyboardInterrupt
        failed = None if process.returncode == 0 else what_failed(output)
        return failed if failed is None or failed.startswith(stage.only) else None

    def stop(self) -> None:
        """End all running stages."""
        with self._lock:
            self.stopped = True
            for process in self._running:
                _end(process)


def output_of(process: subprocess.Popen[bytes], silent: float) -> str | None:
    """The whole output of a process; None if it is silent for `silent` seconds."""
    assert process.stdout is not None
    parts: list[bytes] = []
    with process.stdout as pipe:
        while select.select([pipe], [], [], silent)[0]:
            part = os.read(pipe.fileno(), 1 << 16)
            if not part:
                process.wait()
                return b"".join(parts).decode(errors="replace")
            parts.append(part)
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children, and wait for their end."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        for attempt in range(30):
            time.sleep(0.1)
            os.killpg(process.pid, signal.SIGKILL if attempt else 0)
    except ProcessLookupError:
        return


def what_failed(output: str) -> str:
    """The first failed test in the output of lit, pytest or the walks."""
    for pattern in (
        r"^FAIL: pdojo :: (\S+)",
        r"^(?:TIMEOUT|UNRESOLVED): pdojo :: (\S+)",
        r"^FAILED (\S+)",
        r"^ERROR (\S+)",
        r"(\w+ broken by \S+)",
    ):
        found = re.search(pattern, output, re.MULTILINE)
        if found:
            return found[1]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:100] if lines else "failed without a word"
