"""The target `c`: the kernels of a module as C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.backends.c.dispatch import dispatch_text
from pdojo.backends.c.kernel_text import kernel_text
from pdojo.backends.c.prelude import Prelude
from pdojo.backends.c.spelling import CSpelling
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine, machine
from pdojo.dialect.ops import CallOp, KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.dialect.view.versions import version_lists, versions_of
from pdojo.errors import LoweringError


@dataclass(frozen=True)
class PdojoCTarget(Target):
    """C11 with GNU vectors and OpenMP, for human readers and any compiler."""

    name = "pdojo-c"

    machine: str | None = None
    """Name of the machine whose instructions may be used; None: the machine that the kernel names."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the kernels of the module."""
        kernels = printed_kernels(module, self.name)
        output.write(c_text(*kernels, machine=None if self.machine is None else machine(self.machine)))
        for listed in version_lists(module):
            output.write(f"\n{dispatch_text(versions_of(listed), CSpelling())}")


def printed_kernels(module: ModuleOp, target: str) -> list[KernelOp]:
    """The kernels of a module, for targets that cannot print other IR. Raises LoweringError for calls of them."""
    for call in module.walk():
        if isinstance(call, CallOp):
            raise LoweringError(
                f"'{call.callee.string_value()}' is called from host IR, which the target {target} does not "
                f"print; use convert-pdojo-to-loops for a module with pdojo.call"
            )
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def c_text(*kernels: KernelOp, machine: Machine | None = None, spelling: CSpelling | None = None) -> str:
    """A file with a function per kernel, in the C of `spelling` (None: C11).

    Raises LoweringError for mappings and memories that a CPU lacks, and for instructions without a C template.
    """
    prelude = Prelude(spelling or CSpelling())
    nests = [nest_of(kernel) for kernel in kernels]
    intrinsics = [_intrinsics(nest, machine) for nest in nests]
    functions = [kernel_text(nest, prelude, found) for nest, found in zip(nests, intrinsics, strict=True)]
    return "\n".join([prelude.text(), *functions])


def _intrinsics(nest: Nest, described: Machine | None) -> dict[str, Intrinsic]:
    """The intrinsics of a machine, keyed by name; none if the kernel uses none."""
    if not any(scope.intrinsic for scope in nest.scopes):
        return {}
    if described is None:
        named = nest.kernel.machine
        described = known_machine("host" if named is None else named.data)
    return {i.name: i for i in described.intrinsics}
