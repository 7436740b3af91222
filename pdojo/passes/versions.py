"""Versions that the expert pass advises for a kernel with sizes."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.versions import narrowed
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.versions import Versions
from pdojo.passes.registry import kind_of_machine


def advised_versions(kernel: KernelOp, machine: Machine) -> Versions | None:
    """The versions of a kernel; None if one program is enough.

    Each is the kernel itself for a part of the ranges of its sizes.
    """
    advise = kind_of_machine(machine).versions
    parts = advise()(kernel) if advise is not None and kernel.known_sizes() else []
    if not parts:
        return None
    versions = [narrowed(kernel, part) for part in parts]
    for number, version in enumerate(versions, 1):
        version.sym_name = StringAttr(f"{kernel.sym_name.data}_{number}")
    return Versions(kernel.sym_name.data, tuple(map(nest_of, versions)))
