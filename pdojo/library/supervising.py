"""Runs of a library's entries in processes of their own: a crash is a finding, and the other entries go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pdojo.library.findings import Finding, Listener
from pdojo.library.manifest import Manifest
from pdojo.library.model_running import ModelCase
from pdojo.library.running import Case, cases_of

LIMIT = 900.0
"""Seconds that a case may take, with its reference result."""
_RUNNING = "pdojo.library.running"


def run_entries(
    folder: Path, library: Path, manifest: Manifest, levels: Sequence[str], listener: Listener, limit: float = LIMIT
) -> list[Finding]:
    """Run every entry of the shared library `library` at some levels; `folder` has its manifest. Returns the faults."""
    cases = cases_of(folder, manifest, levels)
    found: list[Finding] = []
    first = 0
    while first < len(cases):
        process = _Process(cases, listener, limit)
        is_finished = process.run([str(folder), str(library), ",".join(levels), str(first)], first)
        found += process.found
        # After a crash, the other cases of the entry would probably crash too.
        rest = range(process.at, len(cases)) if not is_finished else ()
        first = next((k for k in rest if cases[k].name != cases[process.at].name), len(cases))
    return found


class _Process:
    """A process that runs cases until it has run all, or ends early."""

    def __init__(self, cases: Sequence[Case | ModelCase], listener: Listener, limit: float) -> None:
        self.found: list[Finding] = []
        self.at = 0
        """The number of the latest case."""
        self._cases = cases
        self._listener = listener
        self._limit = limit
        self._is_late = False

    def run(self, arguments: Sequence[str], first: int) -> bool:
        """Run cases from number `first` on; returns whether all were run."""
        self.at = first
        paths = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-X", "faulthandler", "-m", _RUNNING, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
            )
            try:
                is_finished = self._follow(process)
                code = process.wait()
            finally:
                process.kill()
                process.wait()
            if not is_finished:
                self._report(self._ending(code, errors))
        return is_finished

    def _follow(self, process: subprocess.Popen[str]) -> bool:
        """Read the messages of the process; returns whether it has run all cases."""
        assert process.stdout is not None
        is_finished = False
        watch = self._watch(process)
        with process.stdout:
            for line in process.stdout:
                watch.cancel()
                watch = self._watch(process)
                message = json.loads(line)
                is_finished |= "end" in message
                if "case" in message:
                    self.at = int(message["case"])
                    case = self._cases[self.at]
                    self._listener.step(f"running {self.at + 1} of {len(self._cases)}, {case.name}: {case}")
                if "fault" in message:
                    self._report(message["fault"])
        watch.cancel()
        return is_finished

    def _watch(self, process: subprocess.Popen[str]) -> threading.Timer:
        """A timer that kills the process if its next message is late."""

        def kill() -> None:
            self._is_late = True
            process.kill()

        watch = threading.Timer(self._limit, kill)
        watch.daemon = True
        watch.start()
        return watch

    def _report(self, what: str) -> None:
        case = self._cases[self.at]
        self.found.append(Finding(f"{what} ({case})", case.name))

    def _ending(self, code: int, errors: IO[bytes]) -> str:
        """The end of a process in words."""
        if self._is_late:
            return f"a call took more than {self._limit:g} s"
        if code in (-signal.SIGSEGV, -signal.SIGBUS):
            return f"a call touched memory outside of its arrays, or wrote an input: {signal.Signals(-code).name}"
        if code < 0:
            return f"a call ended the process: {signal.Signals(-code).name}"
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        return f"the entry could not be run: {lines[-1] if lines else f'exit status {code}'}"
