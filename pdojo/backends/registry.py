"""The backends by name.

A machine names its backend (`Machine.backend`). A backend is a folder here, or an entry point of the group
`pdojo.backends`; both name an object with the attributes of `Backend`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Never, cast

from pdojo.backends.backend import Arrays, Backend, Listing
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import BACKENDS, find, plugins
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError, PluginError, UsageError


class _NoBackend:
    """The backend of machines that name none: it generates no code and runs nothing."""

    unit = "s"
    is_simulated = False

    def __init__(self, name: str) -> None:
        self._why = f"no backend generates code for {name}"

    @property
    def listings(self) -> Mapping[str, Listing]:
        return {}

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Accept every kernel: there is no code to lower to."""

    def check_runs_here(self, machine: Machine) -> None:
        raise LoweringError(self._why)

    def runs(self) -> Never:
        raise UsageError(self._why)

    def compilers(self, count: int | None = None) -> Never:
        raise UsageError(self._why)

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        raise UsageError(self._why)

    def environment(self) -> Mapping[str, Any]:
        return {}


_OWN = {
    "cuda": "pdojo.backends.gpu.backend:CUDA",
    "hip": "pdojo.backends.gpu.backend:HIP",
    "llvm": "pdojo.backends.llvm.backend:LLVM",
    "snitch": "pdojo.backends.snitch.backend:SNITCH",
}


def backend_of(machine: Machine) -> Backend:
    """The backend of a machine. Raises UsageError for an unknown name, PluginError for a plugin that is no Backend."""
    name = machine.backend
    if not name:
        return _NoBackend(machine.name)
    found = find(BACKENDS, name, _OWN)
    if found is None:
        known = ", ".join((*_OWN, *plugins(BACKENDS, _OWN)))
        raise UsageError(f"machine '{machine.name}' names the backend '{name}'; known are {known}")
    if name in _OWN:
        # Checking attributes may import all of the backend's code generator, so only plugins are checked.
        return cast("Backend", found)
    if not isinstance(found, Backend):
        raise PluginError(f"the backend '{name}' is a {type(found).__name__}, which lacks attributes of a Backend")
    return found
