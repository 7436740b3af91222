"""A GPU for tests: a stand-in for the driver's library, and a compiler whose images it runs, by fibers of the CPU."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from pdojo.backends.gpu.executable import GpuCompiler
from pdojo.backends.gpu.fibers import compile_fibers, compilers, linking
from pdojo.backends.gpu.images import Image, ImageCache, Nvrtc
from pdojo.backends.gpu.resources import Resources
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.vendors import CUDA_VENDOR, HIP_VENDOR

HERE = Path(__file__).parent
WARPS = {"sm_80": 32, "sm_90": 32, "gfx942": 64}
_ENTRY = re.compile(r'^extern "C" __global__ .*\n(\w+)\(', re.MULTILINE)
_CALLS = """
template <size_t... I> struct Numbers {};
template <size_t N, size_t... I> struct Below : Below<N - 1, N - 1, I...> {};
template <size_t... I> struct Below<0, I...> {
  typedef Numbers<I...> type;
};
template <typename... P, size_t... I>
inline void standin_call(const char *name, void (*kernel)(P...), long blocks, long threads, long shared, void **a,
                         Numbers<I...>) {
  pd_launch_named(name, kernel, blocks, threads, shared, *static_cast<P *>(a[I])...);
}
template <typename... P> inline void standin_call(const char *name, void (*kernel)(P...), long blocks, long threads,
                                                  long shared, void **a) {
  standin_call(name, kernel, blocks, threads, shared, a, typename Below<sizeof...(P)>::type());
}
template <typename... P> inline const int *standin_sizes(void (*)(P...), int *count) {
  static const int sizes[] = {int(sizeof(P))..., 0};
  *count = sizeof...(P);
  return sizes;
}
#define STANDIN(K)                                                                                   \\
  PD_EXPORT void K##__call(long blocks, long threads, long shared, void **a) {                       \\
    standin_call(#K, K, blocks, threads, shared, a);                                                 \\
  }                                                                                                  \\
  PD_EXPORT const int *K##__sizes(int *count) { return standin_sizes(K, count); }
"""
_FAULTS = {
    "stray": "((volatile float *)64)[0] = 1;",
    "stray_late": "static long calls; if (calls++ > 1000) ((volatile float *)64)[0] = 1;",
    "hang": "for (volatile int forever = 1; forever;) {}",
    "die": "__builtin_trap();",
    "skip": "if (blockIdx.x == 1) return;",
    "tire": "static long calls; if (calls++ > 1000) return;",
    "overrun": "y[gridDim.x * blockDim.x + 6] = 1;",
    "spoil": "if (blockIdx.x == 5) ((float *)x)[5] = 1;",
}
"""Statements with which kernels of these names begin."""


QUICKLY = ("-O0", "-fno-sanitize=all")
"""Options for `compile_fibers` where the driver is tested, not the code."""
NEEDS = pytest.mark.usefixtures("fibers")
"""For tests that use the stand-in."""


@contextmanager
def installed(folder: Path) -> Generator[Standin]:
    """Both vendors' drivers are the stand-in, within; images are kept in `folder`."""
    standin = Standin()
    # Classes and errors of earlier tests hold memory in cycles.
    gc.collect()
    with pytest.MonkeyPatch.context() as patch:
        for vendor in (CUDA_VENDOR, HIP_VENDOR):
            patch.setenv(vendor.variable, library())
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield standin
        standin.heal()


@cache
def library() -> str:
    """The path of the stand-in's library, built once."""
    path = f"{_temporary_folder()}/standin.so"
    name, command = next(iter(compilers().items()))
    middle = f"{_temporary_folder()}/standin.o"
    options = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fno-exceptions", "-U_FORTIFY_SOURCE"]
    for arguments in (
        [*options, "-c", str(HERE / "driver.cpp"), "-o", middle],
        [*linking(name), middle, "-o", path],
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr}"
    return path


class Standin:
    """The stand-in as tests see it, in this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(library())
        self._library.standin_launches.restype = ctypes.c_char_p
        self._library.standin_count.restype = ctypes.c_long

    def set(self, name: str, value: int) -> None:
        """Change a setting: `devices`, `memory`, `version`, `major` (`major1` is that of the second device), or what a
        call fails with, by the call's name.
        """
        self._library.standin_set(name.encode(), ctypes.c_long(value))

    def heal(self) -> None:
        """Forget all settings, and what a kernel has spoiled."""
        self._library.standin_heal()

    def count(self, kind: str) -> int:
        """How many pieces of memory, streams, events, graphs or modules there are."""
        return self._library.standin_count(kind.encode())

    def launches(self) -> list[str]:
        """The launches that ran since the last call: name, grid, block and shared memory, then integer arguments."""
        found = self._library.standin_launches().decode().splitlines()
        self._library.standin_forget()
        return found


class FiberCompiler:
    """Compiles the fibers' spelling of device code to images of the stand-in."""

    def __init__(
        self, edit: Callable[[str], str] | None = None, resources: Mapping[str, Resources] | None = None
    ) -> None:
        self.spelling = FiberSpelling()
        self.toolkit = (13, 0)
        self.version = f"fibers {os.stat(Path(__file__)).st_mtime_ns}"
        self.edit = edit
        self.resources = resources or {}
        self.compiled = 0

    def compile(self, text: str, processor: str) -> Image:
        """An image: the library, behind what the stand-in asks for."""
        self.compiled += 1
        names = _ENTRY.findall(text)
        text = _with_faults(text if self.edit is None else self.edit(text))
        calls = _CALLS + "".join(f"STANDIN({name})\n" for name in names)
        built = compile_fibers(text + calls, warp=WARPS[processor], options=QUICKLY)
        code = built.library.read_bytes()
        head = b"PDSTANDI" + processor.encode().ljust(16, b"\0") + struct.pack("<Q", len(code))
        return Image(head + code, {name: self.resources.get(name, Resources(registers=32)) for name in names})


def _with_faults(text: str) -> str:
    for name, statement in _FAULTS.items():
        text = re.sub(rf'(extern "C" __global__ .*\n{name}_\d+\([^)]*\) {{)', rf"\1 {statement}", text)
    return text


def _temporary_folder() -> str:
    """A folder that goes with this process."""
    folder = tempfile.mkdtemp(prefix="pdojo-standin-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


if "PDOJO_STANDIN_IMAGES" not in os.environ:
    # Workers find the images of this process.
    os.environ["PDOJO_STANDIN_IMAGES"] = _temporary_folder()
_IMAGES = ImageCache(Path(os.environ["PDOJO_STANDIN_IMAGES"]))
CUDA = GpuCompiler(CUDA_VENDOR, FiberCompiler(), "nvidia-sm90", _IMAGES)
HIP = GpuCompiler(HIP_VENDOR, FiberCompiler(), "amd-gfx942", _IMAGES)


class BrokenNvrtc(Nvrtc):
    """NVRTC, for a real device, of kernels with the faults of their names."""

    def compile(self, text: str, processor: str) -> Image:
        """A cubin."""
        return super().compile(_with_faults(text), processor)


BROKEN_CUDA = GpuCompiler(CUDA_VENDOR, BrokenNvrtc(), "nvidia-sm90", _IMAGES)
