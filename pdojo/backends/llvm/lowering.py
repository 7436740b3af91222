"""The pass `convert-pdojo-to-llvm`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.backends.llvm.kernel import lower_kernel, runtime_declarations
from pdojo.backends.llvm.x86 import Features
from pdojo.dialect.nest import nest_of
from pdojo.dialect.ops import CallOp, KernelOp
from pdojo.errors import LoweringError


@dataclass(frozen=True)
class ConvertPdojoToLLVMPass(ModulePass):
    """Turn every `pdojo.kernel` into functions of the llvm dialect, which show everything that will run."""

    name = "convert-pdojo-to-llvm"

    machine: str = ""
    """Name of the machine whose instructions may be used; code for all processors where it is left out."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module; raises LoweringError where a kernel asks for what a CPU cannot do."""
        features: Features = frozenset()
        if self.machine:
            from pdojo.backends.llvm.optimize import processor
            from pdojo.dialect.machine import machine

            features = processor(machine(self.machine)).enabled
        convert(op, features)


def convert(op: ModuleOp, features: Features) -> None:
    """Replace every kernel of a module by functions; raises LoweringError where one cannot be."""
    for call in op.walk():
        if isinstance(call, CallOp):
            raise LoweringError(
                f"'{call.callee.string_value()}' is called from host IR, which convert-pdojo-to-llvm leaves alone; "
                f"use convert-pdojo-to-loops for a module with pdojo.call"
            )
    kernels = [k for k in op.body.block.ops if isinstance(k, KernelOp)]
    parallel = False
    for kernel in kernels:
        functions, calls_runtime = lower_kernel(nest_of(kernel), features)
        parallel |= calls_runtime
        Rewriter.insert_op(functions, InsertPoint.before(kernel))
        Rewriter.erase_op(kernel)
    declared = {f.sym_name.data for f in op.body.block.ops if isinstance(f, llvm.FuncOp)}
    if parallel:
        missing = [d for d in runtime_declarations() if d.sym_name.data not in declared]
        Rewriter.insert_op(missing, InsertPoint.at_start(op.body.block))


def lower(*kernels: KernelOp, features: Features = frozenset()) -> ModuleOp:
    """A new module with the functions of the kernels; the kernels stay as they are.

    `features` of the processor allow instructions that give the same results in fewer operations.
    """
    module = ModuleOp([])
    parallel = False
    for kernel in kernels:
        functions, calls_runtime = lower_kernel(nest_of(kernel), features)
        parallel |= calls_runtime
        module.body.block.add_ops(functions)
    if parallel:
        first = module.body.block.first_op
        assert first is not None
        module.body.block.insert_ops_before(runtime_declarations(), first)
    return module
