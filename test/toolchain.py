"""Compilers, emulators and other programs that tests need: a test is skipped if the attempt to use them fails."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_PROGRAM = """
#include <math.h>
#include <stdio.h>
int main(int count, char **words) { return words[0] == NULL || printf("%g\\n", sqrt(count)) < 0; }
"""
_LIBRARY = """
#include <math.h>
double root(double x);
double root(double x) { return sqrt(x); }
"""


def program_fault(compiler: Sequence[str], runner: Sequence[str] = ()) -> str | None:
    """The reason why no C program can be compiled by a command and then run by another one; None if it can."""
    return _program_fault(tuple(compiler), tuple(runner))


@cache
def _program_fault(compiler: tuple[str, ...], runner: tuple[str, ...]) -> str | None:
    with TemporaryDirectory() as folder:
        source, program = Path(folder) / "program.c", str(Path(folder) / "program")
        source.write_text(_PROGRAM)
        return _fault([*compiler, str(source), "-o", program, "-lm"]) or _fault([*runner, program])


@cache
def library_fault(compiler: tuple[str, ...]) -> str | None:
    """The reason why a command cannot compile and link a shared library; None if it can."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "library.c"
        source.write_text(_LIBRARY)
        return _fault([*compiler, "-shared", "-fPIC", str(source), "-o", str(Path(folder) / "library.so"), "-lm"])


@cache
def tool_fault(*command: str) -> str | None:
    """The reason why a command fails; None if it ends with exit code 0."""
    return _fault(command)


def require_program(compiler: Sequence[str], runner: Sequence[str] = ()) -> None:
    """Skip the test, with the fault, if C programs cannot be compiled by a command and run by another one."""
    _skip(program_fault(compiler, runner))


def require_tool(*command: str) -> None:
    """Skip the test, with the fault, if a command fails."""
    _skip(tool_fault(*command))


def c_compiler() -> str:
    """A C compiler of this system whose programs run; skips the test, with the faults, if there is none."""
    faults = {name: program_fault((name,)) for name in ("cc", "gcc", "clang")}
    found = next((name for name, fault in faults.items() if fault is None), None)
    if found is None:
        pytest.skip("; ".join(map(str, faults.values())))
    return found


def _skip(fault: str | None) -> None:
    if fault is not None:
        pytest.skip(fault)


def _fault(command: Sequence[str]) -> str | None:
    """The reason why a command fails: its last line of errors; None if it ends with exit code 0."""
    # The same text for each folder, so that skips are counted by reason.
    shown = " ".join(Path(word).name if word.startswith("/") else word for word in command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=120)
    except OSError as error:
        return f"'{shown}' cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"'{shown}' takes more than two minutes"
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
    return f"'{shown}' fails: {lines[-1]}"
