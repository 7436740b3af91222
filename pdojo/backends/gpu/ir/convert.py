"""The pass `convert-pdojo-to-gpu`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from pdojo.backends.gpu.devices import device_of
from pdojo.backends.gpu.ir.dialect import complete
from pdojo.backends.gpu.ir.kernel_function import lower_kernel
from pdojo.backends.loops.convert import lower_kernels
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_on

DEFAULT_MACHINE = "nvidia-sm90"
"""The machine of kernels that name no GPU."""


@dataclass(frozen=True)
class ConvertPdojoToGpuPass(ModulePass):
    """Turn every kernel into a `func.func` whose grids are `gpu.launch`, and calls into `func.call`.

    Arguments keep their order and types; the function returns nothing. Raises LoweringError for kernels that the gpu
    dialect cannot express.
    """

    name = "convert-pdojo-to-gpu"

    machine: str = ""
    """Name of the machine; empty: the machine that a kernel names if it is a GPU, else nvidia-sm90."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        described = machine(self.machine) if self.machine else None

        def lower(kernel: KernelOp) -> func.FuncOp:
            device = described or device_of(kernel, DEFAULT_MACHINE)
            return lower_kernel(nest_on(kernel, device), device)

        lower_kernels(op, lower)
        complete(ctx)
