"""The team of threads that pdojo starts itself, where no OpenMP runtime is loaded that other libraries use.

It costs less than libgomp on a busy computer (docs/decisions/2026-11-30-team.md). Its code is LLVM IR, `team.ll`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from string import Template
from threading import Lock

from pdojo.backends.common.cores import core_order
from pdojo.backends.llvm import optimize

SPINS = 500
"""Looks for work before a thread lets others have its processor, some 10 to 20 us."""
YIELDS = 500
"""Times that a thread without work lets others have its processor before it sleeps, some 200 us if nobody wants it."""
MOST = 32
"""Most threads of a region."""
_FUTEX = {"x86_64": 202, "aarch64": 98}
"""The number of the system call."""
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


@dataclass
class Team:
    """The threads, and the addresses of the functions that kernels call."""

    addresses: dict[str, int]
    count: int = 1
    """The number of threads, the callers counted once."""
    _lock: Lock = field(default_factory=Lock)

    def address(self, function: str) -> int:
        """The address of a function with a name of libgomp."""
        return self.addresses[function]

    def max_threads(self) -> int:
        """Default number of threads of a parallel region (`OMP_NUM_THREADS`, or the number of processors)."""
        first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return int(first) if first.isdigit() and int(first) else len(os.sched_getaffinity(0))

    def ensure(self, threads: int) -> None:
        """Start threads until there are as many, at most `MOST`; a region takes longer with fewer.

        Each is bound to a processor of its own if `OMP_PROC_BIND` asks for it.
        """
        wanted = min(threads, MOST)
        if wanted <= self.count:
            return
        with self._lock:
            allowed = os.sched_getaffinity(0)
            order = core_order(allowed) if os.environ.get("OMP_PROC_BIND", "false").lower() != "false" else []
            start = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)(self.addresses["pdojo_start"])
            try:
                while self.count < wanted:
                    if order:
                        # A thread runs where the one that starts it may.
                        os.sched_setaffinity(0, {order[self.count % len(order)]})
                    if start(self.count, self.count + 1) == self.count:
                        return
                    self.count += 1
            finally:
                os.sched_setaffinity(0, allowed)

    def prepare(self, *, is_new: bool) -> int:
        """Begin without threads, in a new process or in the child of a fork; returns 0, or the error of the system."""
        self.count, self._lock = 1, Lock()
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(self.addresses["pdojo_prepare"])(is_new)


@lru_cache(maxsize=1)
def team() -> Team | None:
    """The team of this process; None where it is not known how its threads sleep."""
    architecture = optimize.architecture_of(platform.machine())
    if sys.platform != "linux" or architecture not in _FUTEX:
        return None
    declaration, pause = _PAUSE[architecture]
    text = Template(files("pdojo.backends.llvm").joinpath("team.ll").read_text())
    values = {"declarations": declaration, "pause": pause, "futex": _FUTEX[architecture]}
    module = optimize.parse(text.substitute(values, spins=SPINS, yields=YIELDS), jit=True)
    machine = optimize.processor().target_machine("full")
    optimize.run_passes(module, machine, "full")
    names = [function.name for function in module.functions if not function.is_declaration]
    engine = optimize.engine(module, machine)
    engine.finalize_object()
    made = Team({name: engine.get_function_address(name) for name in names})
    # Threads run in the engine's memory until the process ends, when Python frees everything else.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    if made.prepare(is_new=True):
        return None
    os.register_at_fork(after_in_child=lambda: made.prepare(is_new=False))
    return made
