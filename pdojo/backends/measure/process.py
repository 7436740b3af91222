"""The parent's side of the worker process: starting it, sending requests, killing it, explaining why it ended."""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

from pdojo.errors import MeasurementError

FAMILY = "PDOJO_WORKER"
"""The environment variable that marks a worker and its child processes."""
_ENDS_WITHIN = 5.0
"""Seconds to wait for a killed process to end, as the system may be slow to clean up."""
_DETAIL_BYTES = 4000
"""Bytes kept from the end of standard error."""
_BOOT = """\
import json, sys
settings = json.loads(sys.argv[1])
own, paths = sys.path, settings["paths"]
standard = own[: next((k for k, entry in enumerate(own) if entry.endswith("-packages")), len(own))]
sys.path[:] = dict.fromkeys([*standard, *paths, *own])
from pdojo.backends.measure.child import main
main(settings)
"""
"""The program of the child. The parent's search path comes after the standard library, so that files beside a script
do not shadow its modules; all other modules resolve as in the parent."""


class Died(Exception):
    """The process ended without an answer, or was killed after an invalid answer."""


class LimitReached(Exception):
    """The process gave no answer in time."""


class WorkerProcess:
    """One child process; it has the parent's environment variables and those in `environment`."""

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        paths = [os.path.abspath(entry) for entry in sys.path]
        self._seal = token_hex(16)
        started_with = json.dumps({**settings, "paths": paths, "seal": self._seal})
        boot = [sys.executable, "-P", "-X", "faulthandler", "-c", _BOOT, started_with]
        try:
            self._process = subprocess.Popen(
                boot,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **environment, FAMILY: self._seal},
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise MeasurementError(f"cannot start a worker process: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._buffer = b""
        self._killed = self._garbled = False

    @property
    def pid(self) -> int:
        """The process identifier."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def send(self, request: object) -> None:
        """Send a request. Raises Died if the process has ended."""
        try:
            self._requests.write(base64.b64encode(pickle.dumps(request)) + b"\n")
            self._requests.flush()
        except OSError:
            raise Died from None

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next answer. Raises LimitReached after `seconds`, Died if the process ends or sends an invalid answer."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise LimitReached
            data = os.read(self._answers.fileno(), 1 << 16)
            if not data:
                raise Died
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        seal, _, answer = line.partition(b" ")
        if seal != self._seal.encode():
            self.kill()
            self._garbled = True
            raise Died
        return json.loads(answer)

    def kill(self) -> None:
        """End the process and its children, and release its resources."""
        self._killed = True
        # For a group that has ended, the system reports that it is missing, or that permission is lacking (macOS).
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        kill_family(self._seal)

    def close(self) -> None:
        """`kill`, and close the pipes."""
        self.kill()
        self._answers.close()
        self._errors.close()
        with suppress(BrokenPipeError):
            self._requests.close()

    def death(self) -> tuple[str, bool, str]:
        """The reason why the process ended: signal or exit status, lack of memory, the end of its standard error."""
        status = self._process.wait()
        detail = self.errors()
        if self._garbled:
            return "it wrote into the worker's answers", False, detail
        if status < 0:
            name = signal.Signals(-status).name
            # A SIGKILL that this process did not send comes from the system when memory runs out.
            exhausted = name == "SIGKILL" and not self._killed
            exhausted |= name == "SIGABRT" and _mentions_memory(detail)
            return name, exhausted, detail
        return f"exit status {status}", _mentions_memory(detail), detail

    def errors(self) -> str:
        """The end of the process's standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _DETAIL_BYTES))
        return self._errors.read().decode(errors="replace").strip()


def kill_family(seal: str) -> None:
    """Kill all other processes that have a worker's seal in their environment, in any session."""
    wanted = f"{FAMILY}={seal}".encode()
    deadline = time.monotonic() + _ENDS_WITHIN
    while found := [pid for pid in _processes() if pid != os.getpid() and wanted in _environment(pid)]:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        # A killed process keeps its environment for a moment, and may have started a child before.
        time.sleep(0.001)


def _processes() -> list[int]:
    """The identifiers of all processes; none if the system does not list them (other than Linux)."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _environment(pid: int) -> list[bytes]:
    """The initial environment of a process; empty if it has ended or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _mentions_memory(text: str) -> bool:
    """Whether a runtime reported that memory ran out (Python, C++, LLVM, libgomp)."""
    lowered = text.lower()
    return any(words in lowered for words in ("memoryerror", "bad_alloc", "out of memory", "cannot allocate memory"))
