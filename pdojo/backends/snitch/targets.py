"""The target `snitch-asm`: the kernels of a module as assembly of a Snitch core."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.riscv import print_assembly
from xdsl.utils.target import Target

from pdojo.backends.common.placement import plan_memory
from pdojo.backends.snitch.assembly import function_ops
from pdojo.backends.snitch.kernel_code import lower_kernel
from pdojo.backends.snitch.lowering import convert, core_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of


@dataclass(frozen=True)
class PdojoSnitchTarget(Target):
    """Assembly of the code that `convert-pdojo-to-snitch` shows; kernels are lowered first."""

    name = "pdojo-snitch-asm"

    machine: str | None = None
    """Name of the machine; None: the machine that a kernel names if it is a Snitch core, else `snitch`."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the module."""
        lowered = module.clone()
        convert(lowered, None if self.machine is None else machine(self.machine))
        lowered.verify()
        print_assembly(lowered, output)


@dataclass(frozen=True)
class SnitchSource:
    """A kernel as assembly, with the information for callers."""

    name: str
    """The symbol of the function."""
    text: str
    """The assembly text, including constants."""
    arguments: tuple[str, ...]
    """The arrays whose addresses are the first arguments, in order."""
    sizes: tuple[str, ...]
    """The sizes that follow, of 32 bits each; a pointer to the workspace follows if there is one."""
    workspace_bytes: int
    """Bytes of the workspace, whose address must be a multiple of 8."""
    stack_bytes: int
    """Bytes of the function's stack frame."""


def snitch_text(kernel: KernelOp, described: Machine) -> str:
    """The assembly of a kernel; raises LoweringError if the core lacks what it uses."""
    return snitch_source(kernel, described).text


def snitch_source(kernel: KernelOp, described: Machine | None = None) -> SnitchSource:
    """A kernel as assembly; raises LoweringError if the core lacks what it uses."""
    nest = nest_of(kernel)
    function = lower_kernel(nest, described or core_of(kernel))
    module = ModuleOp(function_ops(function))
    module.verify()
    text = StringIO()
    print_assembly(module, text)
    arguments = tuple(b.names[0] for b in nest.buffers if b.op is None)
    workspace = plan_memory(nest).shared_bytes
    return SnitchSource(
        nest.symbol, text.getvalue(), arguments, (*nest.sizes,), workspace, function.facts["stack_bytes"]
    )
