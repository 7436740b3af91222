"""Jobs for a process that uses the GPU, which may crash or hang, and their results in a file."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from benchmarks.origin import JSON, commit
from pdojo.errors import MeasurementError, UsageError
from pdojo.files import read_text, replace_file

LONGEST = {"device": 90.0, "small": 30.0, "check": 90.0, "time": 240.0}
"""Seconds after which a job's process is killed, by kind of job."""
_LARGEST = 16 << 20
"""Greatest size of a file of results in bytes."""


@dataclass(frozen=True)
class Job:
    """Programs of a workload to check, or to time against PyTorch."""

    kind: Literal["device", "small", "time", "check"]
    name: str = ""
    """The workload's name in tables."""
    rows: tuple[int, ...] = ()
    """The numbers of its programs in the file."""
    compiled: bool = False
    """True if torch.compile takes part."""
    autotune: bool = False
    """True if torch.compile in mode max-autotune takes part."""

    @property
    def key(self) -> str:
        """Key of the job within a file of results."""
        return f"{self.kind} {self.name}"


@dataclass
class Results:
    """The results of a run, written whenever one is added."""

    path: Path
    digest: str = ""
    """Digest of the sources that made the programs."""
    device: JSON = field(default_factory=dict[str, Any])
    done: dict[str, JSON] = field(default_factory=dict[str, JSON])
    """Results by job."""
    counters: dict[str, JSON] = field(default_factory=dict[str, JSON])
    """Hardware counters by program; if there are none, the reason in `error`."""
    started: str = ""
    """Date and time of the run's begin."""

    @staticmethod
    def read(path: Path) -> Results:
        """The results in a file. Raises UsageError if there are none."""
        try:
            data = json.loads(read_text(path, _LARGEST))
            parts = (data[name] for name in ("digest", "device", "done", "counters"))
            return Results(path, *parts, started=data.get("started", ""))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} has no results of this benchmark: {error}") from None

    @property
    def failures(self) -> list[str]:
        """The jobs that failed."""
        return [key for key, result in self.done.items() if "error" in result]

    def of(self, kind: str) -> dict[str, JSON]:
        """The results of a kind of job, by workload."""
        start = f"{kind} "
        return {key.removeprefix(start): r for key, r in self.done.items() if key.startswith(start)}

    def add(self, job: Job, result: JSON) -> None:
        """Add a result, and replace the file."""
        self.done[job.key] = result
        self.write()

    def write(self) -> None:
        """Replace the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {"started": self.started, "commit": commit(), "digest": self.digest, "device": self.device}
        data |= {"done": self.done, "counters": self.counters}
        replace_file(self.path, json.dumps(data, indent=1).encode())


class Runner:
    """Runs jobs in a process, which restarts after it dies or a job fails."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    @staticmethod
    def of(file: Path) -> Runner:
        """A runner of a file's programs."""
        return Runner((sys.executable, "-m", "benchmarks.gpu.child", str(file.resolve())))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def device(self) -> JSON:
        """Facts about the device. Raises MeasurementError if there is no usable one."""
        found = self.run(Job("device"))
        if "error" in found:
            raise MeasurementError(str(found["error"]))
        return found

    def run(self, job: Job) -> JSON:
        """The result of a job; it has `error` if the job fails, crashes, or takes too long."""
        found = self._answer(job)
        if "error" in found:
            # After an illegal address, nothing works in that process any more.
            self.close()
        return found

    def close(self) -> None:
        """End the process; the next job starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _answer(self, job: Job) -> JSON:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{json.dumps(asdict(job))}\n")
            process.stdin.flush()
        except OSError:
            return {"error": "the process ended before the job"}
        ready, _, _ = select.select([process.stdout], [], [], LONGEST[job.kind])
        line = process.stdout.readline() if ready else ""
        if line.startswith("{"):
            return dict(json.loads(line))
        return {"error": "the process died" if ready else f"took more than {LONGEST[job.kind]:g} s"}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            # From the root, because xdsl also has a package named `benchmarks`.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                cwd=Path(__file__).parents[2],
            )
        return self._process
