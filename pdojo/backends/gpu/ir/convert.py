"""The pass `convert-pdojo-to-gpu`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from pdojo.backends.gpu.devices import device_of
from pdojo.backends.gpu.ir.dialect import complete
from pdojo.backends.gpu.ir.kernel_function import lower_kernel
from pdojo.backends.loops.convert import CallToFuncCallPattern
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_on

DEFAULT_MACHINE = "nvidia-sm90"
"""The machine of kernels that name no GPU."""


@dataclass(frozen=True)
class KernelToLaunchesPattern(RewritePattern):
    """Rewrites a kernel to a function that launches it."""

    machine: Machine | None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: KernelOp, rewriter: PatternRewriter) -> None:
        """Replace the kernel."""
        described = self.machine or device_of(op, DEFAULT_MACHINE)
        rewriter.replace(op, lower_kernel(nest_on(op, described), described))


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
        patterns = GreedyRewritePatternApplier([KernelToLaunchesPattern(described), CallToFuncCallPattern()])
        PatternRewriteWalker(patterns, apply_recursively=False).rewrite_module(op)
        complete(ctx)
