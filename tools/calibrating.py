"""Measures the processor once, and keeps the numbers for all later runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pdojo_tools.outputs import check_writable, write_output
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pdojo.dialect.machines.host import UNCALIBRATED, calibration_file, detect, parent_of_host, uncalibrated
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.writing import machine_text
from pdojo.errors import UsageError

COMMAND = "pdojo-machine calibrate"


def calibrate_once(console: Console, *, wanted: bool = True) -> None:
    """Measure this processor unless measurements exist, or cannot be kept because the user has no home folder.

    PDOJO_UNCALIBRATED in the environment prevents it too. Raises MeasurementError if it cannot be measured, UsageError
    if the numbers cannot be kept.
    """
    file = calibration_file(uncalibrated())
    if not wanted or os.environ.get(UNCALIBRATED) or file is None or file.is_file():
        return
    console.print(
        f"measuring this processor, once, in some 20 seconds; {UNCALIBRATED}=1 in the environment prevents it"
    )
    keep(measured(uncalibrated(), COMMAND, "calibrated"))
    console.print(f"kept in {file}; {COMMAND} measures again")


def measured(here: Machine, command: str, name: str) -> Machine:
    """The description of this processor with fresh measurements; progress goes to the terminal."""
    from pdojo.backends.calibration.processor import calibrate

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("calibrating", total=1.0)
        found = calibrate(here, lambda what, done: progress.update(task, description=what, completed=done), command)
    return replace(here, name=name, description=found.processor, measured=found)


def place() -> Path:
    """The file of measurements in the user's cache. Raises UsageError if there is no cache."""
    file = calibration_file(uncalibrated())
    if file is None:
        raise UsageError("no folder is known for the user's cache of measurements; set HOME or XDG_CACHE_HOME")
    return file


def keep(described: Machine) -> Path:
    """Store measurements of this processor in the user's cache, for the machine `host`; returns the file.

    Raises UsageError if they cannot be kept.
    """
    file = place()
    file.parent.mkdir(parents=True, exist_ok=True)
    check_writable(str(file))
    write_output(machine_text(described, parent_of_host()), str(file))
    detect.cache_clear()
    return file
