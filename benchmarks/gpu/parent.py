"""Jobs for a process that uses the GPU, which may crash or hang, and their results in a file."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from benchmarks.origin import commit
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import Workload

JSON: TypeAlias = dict[str, Any]
LONGEST = {"device": 90.0, "check": 90.0, "time": 240.0}
"""Seconds that a job may take before its process is killed."""


@dataclass(frozen=True)
class Job:
    """A kernel to check, or to time beside PyTorch."""

    kind: Literal["check", "time", "device"]
    workload: Workload | None
    compiled: bool = False
    """Whether torch.compile takes part."""
    autotune: bool = False
    """Whether torch.compile in mode max-autotune takes part."""

    @property
    def key(self) -> str:
        """The job, within a file of results."""
        return f"{self.kind} {self.workload}"

    def to_json(self) -> JSON:
        """As plain data, for the process."""
        return {**asdict(self), "workload": None if self.workload is None else self.workload.to_json()}


@dataclass
class Results:
    """The results of a run, written whenever one is added."""

    path: Path
    device: JSON = field(default_factory=dict[str, Any])
    done: dict[str, JSON] = field(default_factory=dict[str, JSON])
    """Results by job."""

    @staticmethod
    def read(path: Path) -> Results:
        """The results in a file. Raises UsageError if it has none."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return Results(path, data["device"], data["done"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} has no results of this benchmark: {error}") from None

    @property
    def failures(self) -> list[str]:
        """The jobs that failed."""
        return [key for key, result in self.done.items() if "error" in result]

    def add(self, job: Job, result: JSON) -> None:
        """Add a result, and replace the file."""
        self.done[job.key] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {"commit": commit(), "device": self.device, "done": self.done}
        with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False, encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        os.replace(file.name, self.path)


class Runner:
    """Runs jobs in a process, which is started again when it dies."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "benchmarks.gpu.child")) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def device(self) -> JSON:
        """Facts of the device. Raises MeasurementError if there is none that PyTorch and pdojo can use."""
        found = self.run(Job("device", None))
        if "error" in found:
            raise MeasurementError(str(found["error"]))
        return found

    def run(self, job: Job) -> JSON:
        """The result of a job; one with `error` if it fails, crashes, or takes too long."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{json.dumps(job.to_json())}\n")
            process.stdin.flush()
        except OSError:
            self.close()
            return {"error": "the process ended before the job"}
        ready, _, _ = select.select([process.stdout], [], [], LONGEST[job.kind])
        line = process.stdout.readline() if ready else ""
        if line.startswith("{"):
            return dict(json.loads(line))
        why = f"took more than {LONGEST[job.kind]:g} s" if not ready else "the process died"
        self.close()
        return {"error": why}

    def close(self) -> None:
        """End the process; the next job starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
        return self._process
