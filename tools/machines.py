"""The machine named on a command line."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import introduce, machine


def named_machine(name: str, *, trust: bool) -> Machine:
    """The machine of a name or file; kernels may then refer to it by name."""
    described = machine(name, trust=trust)
    introduce(described)
    return described
