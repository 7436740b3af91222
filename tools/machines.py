"""The machine that a command line names."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import introduce, machine


def named_machine(name: str, *, trust: bool) -> Machine:
    """The machine of a name or file; kernels may name it afterwards."""
    described = machine(name, trust=trust)
    introduce(described)
    return described
