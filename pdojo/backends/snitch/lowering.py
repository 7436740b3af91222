"""The pass `convert-pdojo-to-snitch`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.backends.snitch.assembly import function_ops
from pdojo.backends.snitch.kernel_code import lower_kernel
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine, machine
from pdojo.dialect.ops import CallOp, KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.versions import refuse_versions
from pdojo.errors import LoweringError

DEFAULT_MACHINE = "snitch"


@dataclass(frozen=True)
class ConvertPdojoToSnitchPass(ModulePass):
    """Turn every `pdojo.kernel` into a `riscv_func.func` with named registers and all code that will run."""

    name = "convert-pdojo-to-snitch"

    machine: str = ""
    """Name of the machine; empty: the machine that a kernel names if it is a Snitch core, else `snitch`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module; raises LoweringError if a kernel uses what the core lacks."""
        convert(op, machine(self.machine) if self.machine else None)


def convert(op: ModuleOp, described: Machine | None = None) -> None:
    """Replace every kernel of a module by a function; raises LoweringError if one cannot be lowered."""
    for call in op.walk():
        if isinstance(call, CallOp):
            raise LoweringError(
                f"'{call.callee.string_value()}' is called from host IR, which convert-pdojo-to-snitch leaves alone; "
                f"use convert-pdojo-to-loops for a module with pdojo.call"
            )
    refuse_versions(op, "convert-pdojo-to-snitch")
    for kernel in [k for k in op.body.block.ops if isinstance(k, KernelOp)]:
        function = lower_kernel(nest_of(kernel), described or core_of(kernel))
        Rewriter.insert_op(function_ops(function), InsertPoint.before(kernel))
        Rewriter.erase_op(kernel)


def core_of(kernel: KernelOp) -> Machine:
    """The machine that a kernel names if it is a Snitch core, else the default one."""
    named = None if kernel.machine is None else known_machine(kernel.machine.data)
    return named if named is not None and named.snitch.frep_instructions else known_machine(DEFAULT_MACHINE)
