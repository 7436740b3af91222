"""The pass `convert-pdojo-to-llvm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.backends.llvm.dispatch import dispatch_function
from pdojo.backends.llvm.kernel_functions import Lowered, lower_kernel, runtime_declarations
from pdojo.backends.llvm.tensor import declarations
from pdojo.backends.llvm.x86 import Features
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine, machine_of
from pdojo.dialect.ops import CallOp, KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.dialect.view.versions import version_lists, versions_of
from pdojo.errors import LoweringError


@dataclass(frozen=True)
class ConvertPdojoToLLVMPass(ModulePass):
    """Turn every `pdojo.kernel` into functions of the llvm dialect, which contain all code that will run."""

    name = "convert-pdojo-to-llvm"

    machine: str = ""
    """Name of the machine whose instructions may be used; empty: generate code for all processors."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module; raises LoweringError if a kernel uses what a CPU lacks."""
        features: Features = frozenset()
        described: Machine | None = None
        if self.machine:
            from pdojo.backends.llvm.optimize import any_processor

            described = machine(self.machine)
            features = any_processor(described).enabled
        convert(op, features, described)


def convert(op: ModuleOp, features: Features, described: Machine | None = None) -> None:
    """Replace every kernel of a module by functions; raises LoweringError if one cannot be lowered.

    If `described` is None, the instructions that compute whole nests come from the machine that the kernel names.
    """
    for call in op.walk():
        if isinstance(call, CallOp):
            raise LoweringError(
                f"'{call.callee.string_value()}' is called from host IR, which convert-pdojo-to-llvm leaves alone; "
                f"use convert-pdojo-to-loops for a module with pdojo.call"
            )
    lowered: list[Lowered] = []
    for listed in version_lists(op):
        Rewriter.replace_op(listed, dispatch_function(versions_of(listed)))
    for kernel in [k for k in op.body.block.ops if isinstance(k, KernelOp)]:
        lowered.append(_lower_one(kernel, features, described))
        Rewriter.insert_op([*lowered[-1].tables, *lowered[-1].functions], InsertPoint.before(kernel))
        Rewriter.erase_op(kernel)
    _declare(op, lowered)


def lower(*kernels: KernelOp, features: Features = frozenset(), described: Machine | None = None) -> ModuleOp:
    """A new module with the functions of the kernels, which are not changed.

    The processor's `features` enable instructions that give the same results in fewer operations.
    """
    module = ModuleOp([])
    lowered = [_lower_one(kernel, features, described) for kernel in kernels]
    for one in lowered:
        module.body.block.add_ops([*one.tables, *one.functions])
    _declare(module, lowered)
    return module


def _lower_one(kernel: KernelOp, features: Features, described: Machine | None) -> Lowered:
    nest = nest_of(kernel)
    return lower_kernel(nest, features, _intrinsics(nest, described))


def _intrinsics(nest: Nest, described: Machine | None) -> dict[str, Intrinsic]:
    """The intrinsics of a machine, keyed by name; none if the kernel uses none."""
    if not any(scope.intrinsic for scope in nest.scopes):
        return {}
    if described is None:
        described = machine_of(nest.kernel)
    return {i.name: i for i in described.intrinsics}


def _declare(module: ModuleOp, lowered: Sequence[Lowered]) -> None:
    """Declare the functions that the kernels call and the module does not declare."""
    used = {name: intrinsic for one in lowered for name, intrinsic in one.used.items()}
    wanted = [*(runtime_declarations() if any(one.parallel for one in lowered) else ()), *declarations(used.values())]
    present = {f.sym_name.data for f in module.body.block.ops if isinstance(f, llvm.FuncOp)}
    missing = [d for d in wanted if d.sym_name.data not in present]
    if missing:
        Rewriter.insert_op(missing, InsertPoint.at_start(module.body.block))
