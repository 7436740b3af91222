"""The text of GPU kernels on a CPU: one fiber per thread, to test generated code without a GPU.

`fibers.h` is the runtime. It reports undefined behaviour of a GPU: barriers that only some threads reach, addresses
outside of arrays, misaligned vectors. A missing barrier gives a wrong result in some order of the threads; a missing
wait gives one if asynchronous copies land late.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pdojo.backends.gpu.resources import MissingTool, refusal
from pdojo.errors import SimulationError
from pdojo.files import write_file

HEAD = '#include "fibers.h"\n'
"""The first line of a text for `compile_fibers`, which also accepts the contents of the file instead."""
REMEDY = "install g++ or clang++, or pip install ziglang"
OPTIONS = (
    *("-std=c++17", "-O1", "-g1", "-fPIC", "-w", "-nostdinc++"),
    # Contract products and sums only where the text says so (fmaf).
    *("-ffp-contract=off", "-fno-fast-math"),
    # Type-based alias analysis is off, as in the compilers of GPUs.
    *("-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti"),
    *("-ftrivial-auto-var-init=pattern", "-fstack-clash-protection"),
    *("-fsanitize=bounds,alignment,object-size", "-fno-sanitize-recover=all"),
)
ALIGNMENT = 64
"""Alignment in bytes of each array."""
Order: TypeAlias = Literal["ascending", "descending"] | int
"""The order in which threads of a block run between barriers: by number, or shuffled by a seed."""
WAYS: tuple[tuple[bool, Order], ...] = tuple(
    (late, order) for late in (True, False) for order in ("ascending", "descending", 1)
)
"""Ways to run a kernel, (late, order), that together show races and missing waits."""
_CANARY = 0xFF
"""The byte that surrounds arrays: NaN in floating-point types."""
_REPORTED = 3
"""The exit status after an error that the runtime has reported."""
_LONG = 2.0
"""Seconds of compiling after which `notice` is called."""
_LATER = 10.0
"""Seconds after the limit at which a process is killed that did not end by itself."""
_CHILD = """\
import ctypes, os, sys
library, symbol, limit, *words = sys.argv[1:]
late, order, seed, file, *places = map(int, words)
library = ctypes.CDLL(library)
library.pd_fiber_array.restype = ctypes.c_void_p
arguments = []
for first in range(0, len(places), 5):
    *place, writable = places[first : first + 5]
    if place[0] < 0:
        arguments.append(ctypes.c_int64(place[1]))
        continue
    address = library.pd_fiber_array(first // 5, file, *map(ctypes.c_long, place), writable)
    arguments.append(ctypes.c_void_p(address))
function = getattr(library, symbol)
function.restype = None
library.pd_fiber_setup(late, order, ctypes.c_uint64(seed), ctypes.c_double(float(limit)))
function(*arguments)
os._exit(0)
"""


class FiberError(SimulationError):
    """A kernel has undefined behaviour on a GPU; the message names kernel, block and thread."""


@dataclass(frozen=True)
class _MappedArray:
    """The place of an array in the file that both processes map. Padded to ALIGNMENT, it ends at a page's end."""

    offset: int
    """Offset of the first page in the file, in bytes."""
    length: int
    """Bytes of all pages."""
    start: int
    """Offset of the array in the first page, in bytes."""
    size: int
    """Bytes of the array."""
    writable: bool

    @property
    def words(self) -> tuple[int, ...]:
        """The numbers from which the process maps it."""
        return self.offset, self.length, self.start, self.size, self.writable


@dataclass(frozen=True, eq=False)
class Fibers:
    """A compiled text for fibers."""

    text: str
    folder: Path
    """The temporary folder of the library, removed with this object."""

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def run(
        self,
        symbol: str,
        arguments: Sequence[npt.NDArray[Any] | int],
        *,
        late: bool,
        order: Order = "ascending",
        seconds: float = 60.0,
    ) -> None:
        """Call `extern "C" void SYMBOL(void *array, ...)` in a process of its own, with a pointer for each array.

        Integers are passed as `int64_t`.

        Asynchronous copies land at the wait that forces them if `late`, otherwise at once. The function writes into the
        arrays; arrays that NumPy marks as not writeable are read-only for the function, too. Raises FiberError for
        errors in the kernel, and if it runs longer than `seconds`; then the arrays are unchanged.
        """
        arrays = [each for each in arguments if not isinstance(each, int)]
        places = _places(arrays)
        with _shared_file(max(1, sum(place.length for place in places))) as (file, memory):
            views = [
                np.ndarray(array.shape, array.dtype, memory, place.offset + place.start)
                for array, place in zip(arrays, places, strict=True)
            ]
            np.frombuffer(memory, np.uint8)[:] = _CANARY
            for view, array in zip(views, arrays, strict=True):
                view[...] = array
            number = {"ascending": 0, "descending": 1}.get(str(order), 2)
            numbers = [late, number, order if isinstance(order, int) else 0, file]
            following = iter(places)
            for argument in arguments:
                numbers += [-1, argument, 0, 0, 0] if isinstance(argument, int) else next(following).words
            self._call(symbol, seconds, numbers, file)
            _check_canaries(memory, places)
            for view, array in zip(views, arrays, strict=True):
                if array.flags.writeable:
                    array[...] = view

    @property
    def library(self) -> Path:
        """The path of the shared library."""
        return self.folder / "kernel.so"

    def _call(self, symbol: str, seconds: float, numbers: Sequence[int], file: int) -> None:
        """Run the child process. Raises FiberError."""
        words = [str(self.library), symbol, str(seconds), *(str(int(number)) for number in numbers)]
        command = [sys.executable, "-I", "-S", "-c", _CHILD, *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, pass_fds=[file], timeout=seconds + _LATER, check=False
            )
        except subprocess.TimeoutExpired:
            raise FiberError(f"'{symbol}' still runs after {seconds:g} s") from None
        if done.returncode == _REPORTED:
            raise FiberError(self._explain(done.stdout))
        if done.returncode:
            status = done.returncode
            cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            detail = f"{done.stdout[-1000:]}{done.stderr[-1000:]}".strip()
            raise FiberError(f"'{symbol}' ended with {cause}: {detail}")

    def _explain(self, message: str) -> str:
        """A message of the runtime, with the lines of the text that its addresses stand for."""
        message = re.sub(r" \(code (\w+)\)", lambda found: self._line_of(found[1]), message)
        # Compilers print types differently.
        message = re.sub(r"\bstruct | (?=\[)", "", message)
        lines = self.text.splitlines()
        numbers = sorted({int(number) for number in re.findall(r"\bline (\d+)", message)})
        quoted = [f"\n  {n}: {lines[n - 1].strip()}" for n in numbers if 0 < n <= len(lines)]
        return message + "".join(quoted)

    def _line_of(self, address: str) -> str:
        """` at line N` for an address in the library; empty if the line is unknown."""
        tool = shutil.which("addr2line")
        if tool is None:
            return ""
        command = [tool, "-e", str(self.library), address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"kernel\.cpp:(\d+)", done.stdout)
        return "" if found is None else f" at line {found[1]}"


def compilers() -> dict[str, list[str]]:
    """Commands of the installed C++ compilers, keyed by name, without file arguments."""
    found = {name: [path] for name in ("g++", "clang++") if (path := shutil.which(name)) is not None}
    if find_spec("ziglang") is not None:
        found["zig"] = [sys.executable, "-m", "ziglang", "cc"]
    return found


def linking(compiler: str) -> list[str]:
    """The arguments for linking a shared library; without them, zig would build the C++ library first."""
    # Not used for compiling: without its libraries, zig also drops the C library's headers.
    return ["-shared", *(["-nostdlib"] if compiler == "zig" else [])]


def compile_fibers(
    text: str,
    *,
    warp: int,
    compiler: str | None = None,
    options: Sequence[str] = (),
    notice: Callable[[], None] | None = None,
) -> Fibers:
    """Compile a text for warps of 32 or 64 threads, by the compiler named `compiler` (None: any).

    The text begins with HEAD. `options` follow OPTIONS. `notice` is called once if a compiler takes more than two
    seconds. Raises MissingTool if there is no such compiler, LoweringError with the first error and its line if the
    compiler rejects the text.
    """
    commands = compilers()
    if not commands or compiler not in (None, *commands):
        raise MissingTool(f"there is no {compiler or 'C++ compiler'} to run kernels on a CPU: {REMEDY}")
    name = next(iter(commands)) if compiler is None else compiler
    compiled = Fibers(text, Path(tempfile.mkdtemp(prefix="pdojo-fibers-")))
    source, middle = (str(compiled.folder / f"kernel.{end}") for end in ("cpp", "o"))
    write_file(Path(source), text)
    include = str(Path(__file__).parent)
    for arguments in (
        # Do not link the sanitizers' library: the runtime defines the functions that instrumented code calls.
        [*OPTIONS, *options, f"-DPD_WARP={warp}", "-I", include, "-c", source, "-o", middle],
        [*linking(name), middle, "-o", str(compiled.library), "-lm"],
    ):
        status, log = _run([*commands[name], *arguments], notice)
        notice = None  # Call `notice` only once.
        if status:
            raise refusal(name, log.replace(source, Path(source).name), text)
    return compiled


def _run(command: Sequence[str], notice: Callable[[], None] | None) -> tuple[int, str]:
    """The exit status and the standard error of a compiler."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, log = process.communicate(timeout=_LONG)
        except subprocess.TimeoutExpired:
            if notice is not None:
                notice()
            _, log = process.communicate()
    return process.returncode, log


def _places(arrays: Sequence[npt.NDArray[Any]]) -> list[_MappedArray]:
    places: list[_MappedArray] = []
    offset = 0
    for array in arrays:
        rounded = -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        length = -(-rounded // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        places.append(_MappedArray(offset, length, length - rounded, array.nbytes, bool(array.flags.writeable)))
        offset += length
    return places


def _check_canaries(memory: mmap.mmap, places: Sequence[_MappedArray]) -> None:
    """Raise FiberError if a kernel wrote outside an array but inside the array's own pages."""
    data = np.frombuffer(memory, np.uint8)
    for number, place in enumerate(places):
        pages = data[place.offset : place.offset + place.length]
        for first, last in ((0, place.start), (place.start + place.size, place.length)):
            damaged = np.flatnonzero(pages[first:last] != _CANARY)
            if damaged.size:
                byte = first + int(damaged[0]) - place.start
                raise FiberError(f"a kernel wrote byte {byte} of array {number}, which has {place.size} bytes")


@contextmanager
def _shared_file(size: int) -> Generator[tuple[int, mmap.mmap]]:
    """An unnamed file and its memory."""
    if sys.platform == "linux":
        file = os.memfd_create("pdojo-fibers")
    else:
        with tempfile.TemporaryFile() as opened:
            file = os.dup(opened.fileno())
    try:
        os.truncate(file, size)
        yield file, mmap.mmap(file, size)
    finally:
        os.close(file)
