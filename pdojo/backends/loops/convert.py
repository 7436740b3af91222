"""The pass `convert-pdojo-to-loops`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from pdojo.backends.loops.emitter import table_op
from pdojo.backends.loops.loop_function import lower_kernel
from pdojo.dialect.ops import CallOp, KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.versions import refuse_versions


@dataclass(frozen=True)
class KernelToFuncPattern(RewritePattern):
    """Rewrites a kernel to a function."""

    lower: Callable[[KernelOp], func.FuncOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: KernelOp, rewriter: PatternRewriter) -> None:
        """Replace the kernel; its tables become global constants."""
        tables = [table_op(op.sym_name.data, table) for table in op.known_tables().values()]
        rewriter.replace(op, [*tables, self.lower(op)], [])


class CallToFuncCallPattern(RewritePattern):
    """Rewrites a call of a kernel to a call of its function."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, rewriter: PatternRewriter) -> None:
        """Replace the call."""
        rewriter.replace(op, func.CallOp(op.callee, op.arguments, ()))


def lower_kernels(module: ModuleOp, lower: Callable[[KernelOp], func.FuncOp]) -> None:
    """Rewrite all kernels of a module to functions, and their calls to calls of the functions."""
    refuse_versions(module, "a conversion to functions")
    patterns = GreedyRewritePatternApplier([KernelToFuncPattern(lower), CallToFuncCallPattern()])
    PatternRewriteWalker(patterns, apply_recursively=False).rewrite_module(module)


@dataclass(frozen=True)
class ConvertPdojoToLoopsPass(ModulePass):
    """Turn every kernel into a `func.func` over `scf`, `arith`, `math` and `memref`, and calls into `func.call`.

    Arguments keep their order and types; the function returns nothing. Raises LoweringError for kernels without a loop
    form.
    """

    name = "convert-pdojo-to-loops"

    sequential: bool = False
    """Write parallel scopes as `scf.for` instead of `scf.parallel`, for flows that lower no parallel loops."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        lower_kernels(op, lambda kernel: lower_kernel(nest_of(kernel), sequential=self.sequential))
