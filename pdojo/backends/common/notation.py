"""The target `notation`: every kernel of a module in the textual notation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.dialect.notation import print_notation, print_versions
from pdojo.dialect.ops import KernelOp, VersionsOp


@dataclass(frozen=True)
class NotationTarget(Target):
    """Print the kernels and versions, separated by empty lines; operations without notation are left out."""

    name = "notation"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the text."""
        kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
        versions = [print_versions(op) for op in module.walk() if isinstance(op, VersionsOp)]
        output.write("\n".join([*map(print_notation, kernels), *versions]))
