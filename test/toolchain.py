"""Compilers, emulators and other programs that tests need: a test is skipped if the attempt to use them fails."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pdojo.backends.gpu.fibers import HEAD, compile_fibers
from pdojo.backends.gpu.hip import Toolchain, compile_hip, toolchains
from pdojo.errors import PdojoError

_LONG = 900
"""Seconds after which a command hangs: the first use of zig compiles a C library."""
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
    faults = {name: program_fault((name,)) for name in ("cc", *C_COMPILERS)}
    found = next((name for name, fault in faults.items() if fault is None), None)
    if found is None:
        pytest.skip("; ".join(map(str, faults.values())))
    return found


@cache
def fibers_fault(compiler: str | None = None) -> str | None:
    """The reason why a C++ compiler (None: any) cannot compile device code for fibers; None if it can."""
    text = 'extern "C" __global__ void one_0(int *x) { x[threadIdx.x] = 1; }\n'
    host = 'extern "C" void one(int *x) { pd_launch(one_0, 1, 32, 0, x); }\n'
    try:
        compile_fibers(HEAD + text + host, warp=32, compiler=compiler)
    except PdojoError as error:
        return str(error)
    return None


def require_fibers(compiler: str | None = None) -> None:
    """Skip the test, with the fault, if no device code can be compiled for fibers."""
    _skip(fibers_fault(compiler))


@cache
def hip_fault(tools: Toolchain) -> str | None:
    """The reason why a clang cannot compile for AMD's GPUs; None if it can."""
    try:
        compile_hip('extern "C" __global__ void one(int *x) { *x = 1; }', tools=tools)
    except PdojoError as error:
        return f"{tools.name}: {error}"
    return None


def hip_toolchain(which: str = "") -> Toolchain:
    """A clang for AMD's GPUs that works, whose name begins so; skips the test, with the faults, if there is none."""
    faults = {tools: hip_fault(tools) for tools in toolchains() if tools.name.startswith(which)}
    found = next((tools for tools, fault in faults.items() if fault is None), None)
    if found is None:
        pytest.skip("; ".join(map(str, faults.values())) or f"no clang for AMD's GPUs is installed ({which or 'any'})")
    return found


def _skip(fault: str | None) -> None:
    if fault is not None:
        pytest.skip(fault)


def _fault(command: Sequence[str]) -> str | None:
    """The reason why a command fails: its last line of errors; None if it ends with exit code 0."""
    # The same text for each folder, so that skips are counted by reason.
    shown = " ".join(Path(word).name if word.startswith("/") else word for word in command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=_LONG)
    except OSError as error:
        return f"'{shown}' cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"'{shown}' does not end"
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
    return f"'{shown}' fails: {lines[-1]}"


C_COMPILERS = [name for name in ("gcc", "clang") if program_fault((name,)) is None]
"""The C compilers of this system whose programs run."""
