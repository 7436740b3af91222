"""Whether two kernels are the same program."""

from __future__ import annotations

from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp


def same_program(first: KernelOp, second: KernelOp) -> bool:
    """Whether both kernels print equally in the notation and in the MLIR form, without ids and SSA name hints."""
    return print_notation(first) == print_notation(second) and plain_mlir(first) == plain_mlir(second)


def plain_mlir(kernel: KernelOp) -> str:
    """The pretty MLIR form with numbered values and sorted facts: a text that depends on the program only."""
    clone = kernel.clone(clone_name_hints=False)
    clone.properties = dict(sorted(clone.properties.items()))
    return str(clone)
