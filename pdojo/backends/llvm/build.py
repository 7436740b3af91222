"""A kernel as LLVM IR text (`emit`), and that text as machine code in this process (`build`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import llvmlite.binding as llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.llvm import FuncOp

from pdojo.backends.llvm import optimize
from pdojo.backends.llvm.convert import convert_module
from pdojo.backends.llvm.kernel_functions import SHARED_BYTES, THREAD_BYTES
from pdojo.backends.llvm.lowering import lower
from pdojo.backends.llvm.openmp import FUNCTIONS, runtime
from pdojo.backends.llvm.optimize import Effort, Processor
from pdojo.backends.llvm.tensor import called, link
from pdojo.backends.llvm.tiles import FEATURE, permit_tiles
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.dialect.names import symbol
from pdojo.dialect.ops import KernelOp


@dataclass(frozen=True)
class KernelIR:
    """A kernel as LLVM IR for a processor; equal kernels give equal texts."""

    name: str
    """Symbol of the kernel's function."""
    text: str
    processor: Processor
    shared_bytes: int
    thread_bytes: int
    parallel: bool
    """Whether the kernel calls an OpenMP runtime."""
    tiles: bool = False
    """Whether the kernel needs permission to use AMX tiles."""


@dataclass(frozen=True, eq=False)
class Native:
    """Machine code in this process. The code lives as long as the engine and the module, which are kept here."""

    source: KernelIR
    effort: Effort
    address: int
    module: llvm.ModuleRef
    engine: llvm.ExecutionEngine

    @cached_property
    def optimized_ir(self) -> str:
        """The LLVM IR after the passes."""
        return str(self.module)

    @cached_property
    def asm(self) -> str:
        """The assembly text."""
        return self.source.processor.target_machine(self.effort).emit_assembly(optimize.parse(self.optimized_ir))


def emit(kernel: KernelOp, machine: Machine | None = None) -> KernelIR:
    """Lower a kernel to LLVM IR; raises LoweringError if it uses what the machine lacks."""
    target = optimize.processor(machine)
    module = lower(kernel, features=target.enabled, described=machine or host())
    function = next(f for f in module.body.block.ops if isinstance(f, FuncOp) and SHARED_BYTES in f.attributes)
    names = {f.sym_name.data for f in module.body.block.ops if isinstance(f, FuncOp)}
    return KernelIR(
        symbol(kernel.sym_name.data),
        module_text(module, target, machine),
        target,
        _integer(function, SHARED_BYTES),
        _integer(function, THREAD_BYTES),
        FUNCTIONS[0] in names,
        any(FEATURE in i.features for i in _called(module, machine)),
    )


def module_text(module: ModuleOp, target: Processor, machine: Machine | None = None) -> str:
    """A module of the llvm dialect as LLVM IR, with the templates of the machine's intrinsics that it calls."""
    layout = str(target.target_machine("full").target_data)
    text = str(convert_module(module, target.triple, layout))
    intrinsics = _called(module, machine)
    return link(text, intrinsics) if intrinsics else text


def _called(module: ModuleOp, machine: Machine | None) -> list[Intrinsic]:
    """The machine's intrinsics that a module calls."""
    names = called(module)
    known = {i.name: i for i in (machine or host()).intrinsics} if names else {}
    return [known[name] for name in names]


def build(source: KernelIR, effort: Effort = "full") -> Native:
    """Compile in process.

    Raises LoweringError if a parallel kernel finds no OpenMP runtime, or the system refuses permission to use tiles.
    """
    if source.tiles:
        permit_tiles()
    machine = source.processor.target_machine(effort)
    module = optimize.parse(source.text, jit=True)
    optimize.run_passes(module, machine, effort)
    engine = optimize.engine(module, machine)
    if source.parallel:
        library = runtime()
        # Passes may have removed dead code that called the runtime or used tiles.
        kept = {function.name for function in module.functions}
        for name in kept.intersection(FUNCTIONS):
            engine.add_global_mapping(module.get_function(name), library.address(name))
    engine.finalize_object()
    return Native(source, effort, engine.get_function_address(source.name), module, engine)


def _integer(function: FuncOp, attribute: str) -> int:
    value = function.attributes[attribute]
    assert isinstance(value, IntegerAttr)
    return value.value.data
