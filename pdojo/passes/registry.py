"""The kinds of machine by a backend's name."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.plugins import KINDS, find
from pdojo.errors import PluginError, UsageError
from pdojo.passes.kind import MachineKind

_OWN = {
    "": "pdojo.passes.cpu.kind:CPU",
    "cuda": "pdojo.passes.gpu.kind:GPU",
    "hip": "pdojo.passes.gpu.kind:GPU",
    "llvm": "pdojo.passes.cpu.kind:CPU",
    "snitch": "pdojo.passes.snitch.kind:SNITCH",
}


def kind_of_machine(machine: Machine) -> MachineKind:
    """The kind of a machine. Raises UsageError if there is none, PluginError if its plugin is invalid."""
    name = machine.backend
    found = find(KINDS, name, _OWN)
    if found is None:
        raise UsageError(f"nothing is known of tuning for {machine.name}: there is no kind '{name}'")
    if not isinstance(found, MachineKind):
        raise PluginError(f"the kind of machine '{name}' is a {type(found).__name__}; it must be a MachineKind")
    return found
