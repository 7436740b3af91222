"""Hardware simulators: commands that take an ELF file and print cycles."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from pdojo.errors import MeasurementError, UsageError

_CYCLES = re.compile(r"^cycles: (\d+)\s*$", re.MULTILINE)
_DIFFERENCES = re.compile(r"^differences: (\d+)\s*$", re.MULTILINE)


def run_external(command: str, path: Path, timeout: float = 3600) -> int:
    """The cycles that `command PATH` prints. Raises MeasurementError if it fails, or memory is wrong."""
    words = shlex.split(command)
    if not words:
        raise UsageError("--snitch-sim needs a command")
    try:
        done = subprocess.run([*words, str(path)], capture_output=True, text=True, timeout=timeout, check=False)
    except OSError as error:
        raise UsageError(f"cannot start '{words[0]}': {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"'{command}' did not end within {timeout:g} s") from None
    found = _CYCLES.findall(done.stdout)
    if done.returncode or not found:
        what = f"ended with code {done.returncode}" if done.returncode else "printed no line 'cycles: N'"
        raise MeasurementError(f"'{command}' {what}:\n{(done.stderr or done.stdout)[-2000:]}")
    differing = [int(n) for n in _DIFFERENCES.findall(done.stdout)]
    if any(differing):
        raise MeasurementError(f"'{command}': {differing[-1]} words of the memory differ from pdojo's simulation")
    return int(found[-1])
