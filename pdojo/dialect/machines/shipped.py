"""The machines that pdojo brings."""

from __future__ import annotations

from functools import cache

from pdojo.dialect.machines import FOLDER
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import read_machine


@cache
def shipped_machine(name: str) -> Machine:
    """The shipped machine description called `name`."""
    return read_machine(FOLDER / f"{name}.toml", shipped_machine, trusted=True)
