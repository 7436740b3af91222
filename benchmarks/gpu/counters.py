"""Hardware counters, by Nsight Compute, for the fastest program of each timed workload."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import which

from benchmarks.gpu.programs import Programs
from benchmarks.origin import JSON
from pdojo.errors import MeasurementError

METRICS = {
    "seconds": "gpu__time_duration.sum",
    "dram_bytes": "dram__bytes.sum",
    "instructions": "smsp__inst_executed.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l2_hits": "lts__t_sector_hit_rate.pct",
}
"""Counters of a launch by our names. `issue`, `warps` and `l2_hits` are in percent."""
SUMS = ("seconds", "dram_bytes", "instructions", "bank_conflicts")
"""Counters that are summed over the launches of a call; the others are means, weighted by time."""


def counters(file: Path, numbers: Sequence[int], seconds: float) -> dict[int, JSON]:
    """The counters of one call of each program, by its number in the file.

    Raises MeasurementError if there is no `ncu`, or if it cannot read the counters within `seconds`.
    """
    if which("ncu") is None:
        raise MeasurementError("there is no ncu (Nsight Compute) here")
    options = ["--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(METRICS.values())]
    child = [sys.executable, "-m", "benchmarks.gpu.child", str(file), *map(str, numbers)]
    try:
        done = subprocess.run(["ncu", *options, *child], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"ncu took more than {seconds:.0f} s") from None
    launches = launches_of(done.stdout.splitlines())
    sequences = [len(Programs.read(file).rows[number].compiled["sequence"]) for number in numbers]
    if len(launches) != sum(sequences):
        last = next(iter(reversed((done.stdout + done.stderr).strip().splitlines())), "")
        raise MeasurementError(f"ncu saw {len(launches)} of {sum(sequences)} launches: {last[:300]}")
    found: dict[int, JSON] = {}
    for number, count in zip(numbers, sequences, strict=True):
        found[number] = added(launches[:count])
        del launches[:count]
    return found


def launches_of(lines: Iterable[str]) -> list[dict[str, float]]:
    """The counters of each launch in the CSV that ncu prints, in order."""
    table = csv.DictReader(line for line in lines if line.startswith('"'))
    names = {metric: name for name, metric in METRICS.items()}
    found: dict[str, dict[str, float]] = {}
    for row in table:
        value = float(row["Metric Value"].replace(",", "")) * (1e-9 if row["Metric Unit"] in ("ns", "nsecond") else 1)
        found.setdefault(row["ID"], {})[names[row["Metric Name"]]] = value
    return list(found.values())


def added(launches: Sequence[dict[str, float]]) -> JSON:
    """The counters of a call with several launches."""
    total = sum(each["seconds"] for each in launches)
    found: JSON = {name: sum(each[name] for each in launches) for name in SUMS}
    for name in METRICS.keys() - set(SUMS):
        found[name] = sum(each[name] * each["seconds"] for each in launches) / total
    return {"launches": len(launches), **found}
