"""Threads for parallel scopes: of PyTorch's OpenMP runtime if it is loaded, else pdojo's team, else another runtime."""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pdojo.backends.llvm.team import Team, team
from pdojo.errors import LoweringError, UsageError

FUNCTIONS = (
    "GOMP_parallel",
    "GOMP_loop_dynamic_start",
    "GOMP_loop_dynamic_next",
    "GOMP_loop_end_nowait",
    "omp_get_num_threads",
    "omp_get_thread_num",
)
"""Functions that compiled kernels call."""
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables that say how threads wait; if one is set, it counts."""
_WAITS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
"""Idle threads sleep; threads of libgomp first look for work a thousand times, some 20 us."""
_SONAMES = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so", "libomp.dylib")
_STEMS = ("libgomp", "libomp", "libiomp5")


@dataclass(frozen=True)
class OpenMpRuntime:
    """A loaded OpenMP runtime."""

    path: str
    library: ctypes.CDLL

    def address(self, function: str) -> int:
        """The address of a function of the runtime."""
        return ctypes.cast(getattr(self.library, function), ctypes.c_void_p).value or 0

    def max_threads(self) -> int:
        """Default number of threads of a parallel region (`OMP_NUM_THREADS`, or the number of processors)."""
        return int(self.library.omp_get_max_threads())


@dataclass
class _Forks:
    """Whether the runtime has started threads in this process, and whether a fork has lost them."""

    started: bool = False
    lost: bool = False

    def forked(self) -> None:
        """Record, in the child of a fork, that only the forking thread exists."""
        self.lost |= self.started


_FORKS = _Forks()
os.register_at_fork(after_in_child=_FORKS.forked)


def start_threads(count: int) -> None:
    """Prepare for code with `count` threads. Raises UsageError if a fork has lost the runtime's threads."""
    found = runtime()
    if isinstance(found, Team):
        found.ensure(count)
        return
    if _FORKS.lost:
        raise UsageError(
            "a parallel kernel cannot run: this process was forked after one had run, and the threads of the"
            " OpenMP runtime stayed behind; start processes by spawn (multiprocessing.set_start_method), fork "
            "before the first parallel kernel, or compile with threads=1"
        )
    _FORKS.started = True


@lru_cache(maxsize=1)
def runtime() -> OpenMpRuntime | Team:
    """The threads that run the parallel scopes of this process.

    PyTorch's runtime takes precedence if it is loaded, so that there is one team of threads; then a team of pdojo's;
    then another loaded runtime, the runtime of the system, and that of an installed package. Raises LoweringError if
    there is none.
    """
    loaded = sorted(_loaded(), key=lambda path: "torch" not in path)
    if not (loaded and "torch" in loaded[0]) and (own := team()) is not None:
        return own
    for candidate in (*loaded, *_SONAMES, *_packaged()):
        found = _load(candidate)
        if found is not None:
            return found
    raise LoweringError(
        "no OpenMP runtime found, which parallel scopes (:p) need; install one (libgomp1 on Debian and Ubuntu, libgomp "
        "on Fedora, or the Python package intel-openmp), or take the mapping back (unmap)"
    )


def _load(candidate: str) -> OpenMpRuntime | None:
    try:
        with _sleeping():
            library = ctypes.CDLL(candidate)
        complete = all(hasattr(library, f) for f in FUNCTIONS)
    except OSError:
        return None
    return OpenMpRuntime(candidate, library) if complete else None


@contextmanager
def _sleeping() -> Generator[None]:
    """A context in which a runtime that is loaded learns how long its threads look for work before they sleep.

    The threads of a sequence of kernels then need not be woken for each: squeezenet took 9.3 ms instead of 13.4 on an
    idle machine. On a busy one, threads that look for work for long take the processor from the threads that they wait
    for: a start took 6 ms on average with endless looks, and 0.5 ms with these or with none (AMD EPYC, two processors,
    November 2026). A runtime that another library has loaded stays as it is.
    """
    if any(name in os.environ for name in WAITING):
        yield
        return
    os.environ |= _WAITS
    try:
        yield
    finally:
        for name in _WAITS:
            del os.environ[name]


def _is_runtime(path: Path) -> bool:
    return path.name.split(".")[0].split("-")[0] in _STEMS


def _loaded() -> list[str]:
    """Runtimes that this process has already loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if "/lib" in line and ".so" in line)
    return [p for p in paths if _is_runtime(Path(p))]


def _packaged() -> Iterator[str]:
    """Runtimes of installed packages: `torch/lib`, `<package>.libs`, and the prefix of intel-openmp."""
    site = Path(sysconfig.get_path("platlib"))
    folders = [site / "torch" / "lib", *sorted(site.glob("*.libs")), Path(sys.prefix) / "lib"]
    for folder in folders:
        for path in sorted(folder.glob("lib*omp*")):
            if _is_runtime(path):
                yield str(path)
