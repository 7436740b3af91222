"""The code that backends generate for a program."""

from __future__ import annotations

from collections.abc import Mapping

from pdojo.backends.backend import Listing
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError


def forms_for(machine: Machine) -> list[str]:
    """The forms of code for a machine, named as in `pdojo-opt -t`; the first one is its machine code."""
    return list(_forms(machine))


def _forms(machine: Machine) -> Mapping[str, Listing]:
    return {**backend_of(machine).listings, "mlir": lambda kernel, _: str(kernel)}


def code_lines(kernel: KernelOp, machine: Machine, form: str) -> list[str]:
    """The lines of the code; if the backend refuses the program or the machine, its reasons."""
    try:
        text = _forms(machine)[form](kernel, machine)
    except PdojoError as error:
        return [f"there is no {form} for this program on {machine.name}:", *str(error).splitlines()]
    return text.expandtabs(8).splitlines()
