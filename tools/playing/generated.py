"""The code that backends generate for a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError


def _asm(kernel: KernelOp, machine: Machine) -> str:
    from pdojo.backends.llvm.targets import asm_text

    return asm_text(kernel, machine)


def _llvm(kernel: KernelOp, machine: Machine) -> str:
    from pdojo.backends.llvm.targets import llvm_text

    return llvm_text(kernel, machine)


def _c(kernel: KernelOp, machine: Machine) -> str:
    from pdojo.backends.c.targets import c_text

    return c_text(kernel, machine=machine)


def _mlir(kernel: KernelOp, machine: Machine) -> str:
    return str(kernel)


def _snitch(kernel: KernelOp, machine: Machine) -> str:
    from pdojo.backends.snitch.targets import snitch_text

    return snitch_text(kernel, machine)


FORMS: Mapping[str, Callable[[KernelOp, Machine], str]] = {
    "asm": _asm,
    "llvm": _llvm,
    "snitch-asm": _snitch,
    "c": _c,
    "mlir": _mlir,
}
"""What a program can be shown as, by the name of `pdojo-opt -t`."""


def forms_for(machine: Machine) -> list[str]:
    """The forms of programs for a machine; the first one is its machine code."""
    others = ("asm", "llvm") if machine.snitch.stream_registers else ("snitch-asm",)
    return [form for form in FORMS if form not in others]


def code_lines(kernel: KernelOp, machine: Machine, form: str) -> list[str]:
    """The code, line by line; where a backend refuses the program or the machine, its reasons."""
    try:
        text = FORMS[form](kernel, machine)
    except PdojoError as error:
        return [f"there is no {form} for this program on {machine.name}:", *str(error).splitlines()]
    return text.expandtabs(8).splitlines()
