"""The worker process as its parent sees it: started, asked, killed, its death explained."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from pdojo.errors import MeasurementError

_DETAIL_BYTES = 4000
"""How much of the end of standard error is kept."""
_BOOT = """\
import json, sys
settings = json.loads(sys.argv[1])
sys.path.extend(entry for entry in settings["paths"] if entry not in sys.path)
from pdojo.backends.measure.child import main
main(settings)
"""
"""The parent's search path comes behind the interpreter's own: a script's neighbours shadow no standard module."""


class Died(Exception):  # noqa: N818  # an event, handled by the worker
    """The process ended without an answer."""


class LimitReached(Exception):  # noqa: N818  # an event, handled by the worker
    """The process gave no answer in time."""


class WorkerProcess:
    """One child process; `environment` is added to the parent's."""

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        paths = [os.path.abspath(entry) for entry in sys.path]
        boot = [sys.executable, "-P", "-X", "faulthandler", "-c", _BOOT, json.dumps({**settings, "paths": paths})]
        try:
            self._process = subprocess.Popen(
                boot,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise MeasurementError(f"cannot start a worker process: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._buffer = b""
        self._killed = False

    @property
    def pid(self) -> int:
        """The process identifier."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def send(self, message: Mapping[str, Any]) -> None:
        """Ask. Raises Died."""
        try:
            self._requests.write(json.dumps(message).encode() + b"\n")
            self._requests.flush()
        except OSError:
            raise Died from None

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next answer. Raises LimitReached after `seconds`, Died where the process ends first."""
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
        return json.loads(line)

    def kill(self) -> None:
        """End the process and everything that it started, and release what belongs to it."""
        self._killed = True
        # A group that is gone already is reported as missing, or as a lack of permission (macOS).
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """`kill`, and close the pipes."""
        self.kill()
        self._answers.close()
        self._errors.close()
        with suppress(BrokenPipeError):
            self._requests.close()

    def death(self) -> tuple[str, bool, str]:
        """Why it ended: the signal or the exit status, whether memory ran out, the end of its standard error."""
        status = self._process.wait()
        detail = self.errors()
        if status < 0:
            name = signal.Signals(-status).name
            # A SIGKILL that is not ours comes from the system when memory runs out.
            exhausted = name == "SIGKILL" and not self._killed
            exhausted |= name == "SIGABRT" and _mentions_memory(detail)
            return name, exhausted, detail
        return f"exit status {status}", _mentions_memory(detail), detail

    def errors(self) -> str:
        """The end of what it wrote to standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _DETAIL_BYTES))
        return self._errors.read().decode(errors="replace").strip()


def _mentions_memory(text: str) -> bool:
    """Whether a runtime said that it ran out of memory before it gave up (Python, C++, LLVM, libgomp)."""
    lowered = text.lower()
    return any(words in lowered for words in ("memoryerror", "bad_alloc", "out of memory", "cannot allocate memory"))
