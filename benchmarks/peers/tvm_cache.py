"""The cache of MetaSchedule's schedules, and the process that searches for them. Imports no TVM."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from pdojo.backends.measure.environment import environment
from pdojo.errors import MeasurementError
from pdojo.files import cache_folder, data_folder
from pdojo.kernels import Workload

_NAMED = re.compile(r".*, (\d+) trials")


def named(variant: str, trials: int) -> str:
    """The variant's name in tables, for the best of `trials` trials."""
    return f"{variant}, {trials} trials"


def trials_of(name: str) -> int:
    """The number of trials in a variant's name; 0 if it has none."""
    match = _NAMED.fullmatch(name)
    return int(match[1]) if match else 0


def found_path(workload: Workload, threads: int, trials: int) -> Path:
    """The file of the best schedule, by workload, threads, trials, processor and version of TVM."""
    folder = cache_folder("tvm") or data_folder() / "tvm"
    described = [workload.kernel, workload.sizes, workload.element_type]
    key = [*described, threads, trials, environment()["processor"], version("apache-tvm")]
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return folder / f"{workload.kernel}-{digest}.json"


def tune(
    workload: Workload, threads: int, trials: int, processors: Sequence[int], tell: Callable[[str], None]
) -> float:
    """Search for a schedule unless one is cached; returns the seconds spent. Raises MeasurementError."""
    path = found_path(workload, threads, trials)
    if path.exists():
        return float(json.loads(path.read_text())["seconds"])
    arguments = [json.dumps(workload.to_json()), str(threads), str(trials), str(path)]
    # TVM spends seconds on a needless import of PyTorch. Its threads stay on our processors.
    surroundings = {
        **os.environ,
        "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",
        "TVM_NUM_THREADS": str(threads),
        "TVM_BIND_THREADS": "0",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peers.tvm_tuning", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings,
    )
    os.sched_setaffinity(process.pid, processors)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            tell(f"TVM: {line.strip()}")
        _, errors = process.communicate()
    finally:
        process.kill()
        process.wait()
    if process.returncode or not path.exists():
        last = (errors.strip().splitlines() or ["no reason given"])[-1]
        raise MeasurementError(f"TVM found no schedule of {workload.label or workload.kernel}: {last}")
    return float(json.loads(path.read_text())["seconds"])
