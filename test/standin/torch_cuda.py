"""CUDA tensors for tests without a GPU: PyTorch's CPU build with the stand-in driver, in a process of its own.

`outcomes` runs the functions `case_*` of a module in such a process, since PyTorch asks for its accelerator once.
`python -m standin.torch_cuda MODULE` is that process.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pdojo.backends import registry
from pdojo.backends.gpu.backend import GpuBackend
from pdojo.backends.gpu.driver import driver_of
from pdojo.backends.gpu.vendors import CUDA_VENDOR
from standin import gpu
from standin.gpu import HERE, Standin

_LIBRARY = "PDOJO_STANDIN_TORCH"
_TIMEOUT = 800


class Device:
    """The stand-in of CUDA's part of PyTorch."""

    def __init__(self, standin: Standin) -> None:
        self.driver = standin
        self._library = ctypes.CDLL(os.environ[_LIBRARY])
        self._library.standin_torch_current.restype = ctypes.c_void_p
        self._library.standin_torch_count.restype = ctypes.c_long
        self._library.standin_torch_stream.argtypes = [ctypes.c_int, ctypes.c_void_p]

    def open(self) -> None:
        """Let PyTorch use the driver."""
        torch: Any = import_module("torch")
        self._library.standin_torch_open(gpu.library().encode())
        torch.cuda._lazy_init = lambda: None
        torch._C._cuda_getCurrentRawStream = self.current_stream

    def current_stream(self, device: int = 0) -> int:
        """The current stream of a device in this thread."""
        return self._library.standin_torch_current(device) or 0

    @contextmanager
    def stream(self, handle: int, device: int = 0) -> Generator[None]:
        """A stream is the current one, within."""
        before = self.current_stream(device)
        self._library.standin_torch_stream(device, handle)
        try:
            yield
        finally:
            self._library.standin_torch_stream(device, before)

    def captured(self, call: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        """The results of a call that is captured in a graph, and a function that runs the graph and waits for it."""
        context = driver_of(CUDA_VENDOR).gpu()
        stream = context.stream()
        made: list[Any] = []

        def record(handle: int) -> None:
            self._library.standin_torch_pool(1)
            try:
                with self.stream(handle):
                    made.append(call())
            finally:
                self._library.standin_torch_pool(0)

        graph = stream.capture(record)

        def replay() -> None:
            graph.launch(stream.handle)
            stream.synchronize()

        return made[0], replay

    def count(self, what: str) -> int:
        """How often PyTorch has allocated (`allocations`) and waited (`waits`), or the bytes of tensors (`held`)."""
        return self._library.standin_torch_count(what.encode())

    def empty_cache(self) -> None:
        """Give all memory back that no tensor has."""
        self._library.standin_torch_empty_cache()


def outcomes(module: str) -> dict[str, str]:
    """The failures of a module's cases, keyed by the names of functions; '' for a case that passed.

    Skips the test, with the reason, if the stand-in cannot be built.
    """
    environment = {**os.environ, _LIBRARY: library()}
    environment["LD_PRELOAD"] = environment[_LIBRARY]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-W", "error", "-m", "standin.torch_cuda", module]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if line.startswith("case "):
            name, failure = json.loads(line.removeprefix("case "))
            found[name] = failure
    found[""] = "" if done.returncode == 0 else f"the process ended with {done.returncode}:\n{done.stderr[-3000:]}"
    return found


@cache
def library() -> str:
    """The path of the library with CUDA tensors, built once."""
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
    if torch.version.cuda is not None or torch.version.hip is not None or sys.platform != "linux":
        pytest.skip("the stand-in of CUDA tensors is for PyTorch's build for CPUs on Linux")
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("the stand-in of CUDA tensors needs g++ or clang++")
    folder = Path(torch.__file__).parent
    path = f"{tempfile.mkdtemp(prefix='pdojo-standin-torch-')}/torch_cuda.so"
    headers = [f"-I{folder}/include", f"-I{folder}/include/torch/csrc/api/include"]
    links = [f"-L{folder}/lib", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{folder}/lib"]
    command = [compiler, "-std=c++20", "-O0", "-fPIC", "-shared", *headers, str(HERE / "torch_cuda.cpp"), "-o", path]
    done = subprocess.run([*command, *links], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the stand-in of CUDA tensors cannot be built here: {done.stderr[-1000:]}")
    return path


BACKEND = GpuBackend("standin.gpu:CUDA")


def _run(module: str) -> None:
    """Run all cases of a module, each with an empty cache and a healthy device."""
    # Processes that compile kernels have no CUDA tensors.
    os.environ.pop("LD_PRELOAD", None)
    torch: Any = import_module("torch")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch")
    registry._OWN["cuda"] = "standin.torch_cuda:BACKEND"  # pyright: ignore[reportPrivateUsage]
    with gpu.installed(Path(tempfile.mkdtemp(prefix="pdojo-standin-cache-"))) as standin:
        device = Device(standin)
        device.open()
        for name, case in [*vars(import_module(module)).items()]:
            if not name.startswith("case_"):
                continue
            failure = ""
            torch._dynamo.reset()
            torch.manual_seed(0)
            standin.launches()
            try:
                case(device)
            except BaseException:  # noqa: BLE001  # reported to the test
                failure = traceback.format_exc()
            standin.heal()
            print(f"case {json.dumps([name, failure])}", flush=True)  # noqa: T201


if __name__ == "__main__":
    _run(sys.argv[1])
