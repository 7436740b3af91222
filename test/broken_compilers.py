"""Compilers that make kernels which fail in one way each, by the kernel's name; given to the worker in tests."""

from __future__ import annotations

import ctypes
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.llvm.executable import Executable
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure import Peer
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError

Run = Callable[[], None]


@dataclass
class Broken:
    """A compiled kernel whose calls fail as `fault` says."""

    executable: Executable
    fault: str
    calls: int = 0

    def bind(self, *arrays: NDArray[Any]) -> Run:
        """A call that fails, or spoils a right result."""
        right = self.executable.bind(*arrays)
        if self.fault == "hoards":
            np.zeros(1 << 44, np.uint8)

        def run() -> None:
            self.calls += 1
            if self.fault == "tires" and self.calls > 5:
                return
            right()
            if self.fault == "strays_once" and self.calls == 5:
                _write_behind(arrays)
            _FAULTS.get(self.fault, _nothing)(arrays)

        return run


def _nothing(arrays: tuple[NDArray[Any], ...]) -> None:
    """No fault."""


def _segfault(arrays: tuple[NDArray[Any], ...]) -> None:
    ctypes.string_at(0)


def _hang(arrays: tuple[NDArray[Any], ...]) -> None:
    time.sleep(3600)


def _bind(arrays: tuple[NDArray[Any], ...]) -> None:
    """Stay on one processor, as OpenMP makes the thread that calls it, and take some time."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    time.sleep(0.1)


def _dawdle(arrays: tuple[NDArray[Any], ...]) -> None:
    time.sleep(0.7)


def _spoil(arrays: tuple[NDArray[Any], ...]) -> None:
    arrays[-1].flat[7] += 1


def _leave_out(arrays: tuple[NDArray[Any], ...]) -> None:
    arrays[-1].flat[3] = np.nan


def _write_behind(arrays: tuple[NDArray[Any], ...]) -> None:
    ctypes.memset(arrays[-1].ctypes.data + arrays[-1].nbytes, 0, 4)


def _read_behind(arrays: tuple[NDArray[Any], ...]) -> None:
    ctypes.string_at(arrays[0].ctypes.data + arrays[0].nbytes, 1)


def _read_before(arrays: tuple[NDArray[Any], ...]) -> None:
    ctypes.string_at(arrays[0].ctypes.data - 1, 1)


def _write_input(arrays: tuple[NDArray[Any], ...]) -> None:
    arrays[0].flat[0] += 1


def _allocate(arrays: tuple[NDArray[Any], ...]) -> None:
    np.zeros(1 << 44, np.uint8)


def _leave(arrays: tuple[NDArray[Any], ...]) -> None:
    os._exit(7)


def _answer(arrays: tuple[NDArray[Any], ...]) -> None:
    """Write what looks like an answer into every pipe."""
    for descriptor in range(3, 64):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b'{"event": "done", "outcomes": []}\n')


def _babble(arrays: tuple[NDArray[Any], ...]) -> None:
    """Write something into every pipe, without an end."""
    for descriptor in range(3, 64):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b"\xff[1")


def _flee(arrays: tuple[NDArray[Any], ...]) -> None:
    """Leave a process behind that is in no group of ours, and has no parent; its number appears whole."""
    fled = Path(os.environ["FLED"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            beside = fled.with_suffix(f".{os.getpid()}")
            beside.write_text(str(os.getpid()))
            beside.rename(fled)
            os.execvp("sleep", ["sleep", "3600"])
        os._exit(0)
    os.wait()
    while not fled.exists():
        time.sleep(0.001)


def _flee_and_crash(arrays: tuple[NDArray[Any], ...]) -> None:
    _flee(arrays)
    os._exit(7)


_FAULTS = {
    "answers": _answer,
    "babbles": _babble,
    "flees": _flee,
    "flees_and_crashes": _flee_and_crash,
    "binds": _bind,
    "segfaults": _segfault,
    "hangs": _hang,
    "dawdles": _dawdle,
    "spoils": _spoil,
    "leaves_out": _leave_out,
    "reads_before": _read_before,
    "reads_behind": _read_behind,
    "writes_behind": _write_behind,
    "writes_input": _write_input,
    "allocates": _allocate,
    "leaves": _leave,
}


def compile_broken(
    kernel: KernelOp, machine: Machine | None, *, threads: int, optimize: Literal["search", "full"]
) -> Broken:
    """A compiler with faults: `refused`, `fails` and `compiles_forever` concern itself, the others the kernel."""
    fault = kernel.sym_name.data
    if fault == "refused":
        raise LoweringError("this kernel is refused")
    if fault == "fails":
        raise AssertionError("a bug of the compiler")
    if fault == "compiles_forever":
        time.sleep(3600)
    return Broken(compile_kernel(kernel, machine, threads=threads, optimize=optimize), fault)


def take_an_hour(name: str) -> Callable[[NDArray[Any]], list[NDArray[Any]]]:
    """A reference that nobody waits for."""
    time.sleep(3600)
    raise AssertionError


def refuse_to_live(name: str) -> Callable[[NDArray[Any]], list[NDArray[Any]]]:
    """A reference that ends the process."""
    return lambda x: os._exit(9)


def double(name: str) -> Callable[[NDArray[Any]], list[NDArray[Any]]]:
    """The reference by name."""
    assert name == "double"
    return lambda x: [2.0 * x.astype(np.float64)]


class Doubler:
    """A peer."""

    def __init__(self, arrays: list[NDArray[Any]], factor: int) -> None:
        self.arrays = arrays
        self.factor = factor
        self.result: NDArray[Any] | None = None

    def __call__(self) -> None:
        """Compute into memory of its own."""
        self.result = self.factor * self.arrays[0]

    def finish(self) -> None:
        """Copy the result."""
        self.arrays[1][...] = self.result


@dataclass
class DoublerBuild:
    """A peer that is built."""

    factor: int

    def bind(self, arrays: list[NDArray[Any]]) -> Doubler:
        """A call on arrays."""
        return Doubler(arrays, self.factor)


def peer(peer: Peer, threads: int) -> DoublerBuild:
    """A right peer and a wrong one."""
    assert (peer.workload, threads) == ("double", 1)
    return DoublerBuild({"right": 2, "wrong": 3}[peer.library])
