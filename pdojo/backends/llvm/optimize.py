"""LLVM's tools: parse and verify a module, run passes, generate code for a processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.errors import LoweringError

Effort: TypeAlias = Literal["search", "full"]
"""Pass pipelines. `search`: promotion to registers, redundancy, loop-invariant motion; `full`: LLVM's O3."""


_UNUSED = {"x86_64": ("sse4a",)}
"""Features that no code uses.

SSE4A has no instructions on AVX's registers. Among AVX instructions, an `extrq`, which LLVM selects for masks of bytes,
took some 300 cycles (AMD EPYC, Zen 3)."""
_ABI = {"riscv64": "lp64d"}
"""Calling conventions that LLVM does not select itself; these pass floats in floating-point registers."""
_TRIPLES = {a: f"{a}-unknown-linux-gnu" for a in ("aarch64", "riscv64", "x86_64")}
"""Triples of the architectures for which any processor can compile kernels."""
_GENERIC = {"x86_64": "x86-64", "aarch64": "generic", "riscv64": "generic-rv64"}


_CALLS_BY_TABLE = """
!llvm.module.flags = !{!1000000}
!1000000 = !{i32 7, !"RtLibUseGOT", i32 1}
"""
"""The flag with which LLVM calls functions of the C library, such as `memset`, at addresses in a table."""


@dataclass(frozen=True)
class Processor:
    """A processor that code is generated for."""

    triple: str
    name: str
    features: str

    @property
    def enabled(self) -> frozenset[str]:
        """The enabled instruction set features."""
        return frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))

    @property
    def architecture(self) -> str:
        """The instruction set, by its name in machine descriptions."""
        return architecture_of(self.triple)

    def target_machine(self, effort: Effort, *, jit: bool = True) -> llvm.TargetMachine:
        """LLVM's target machine, for code in this process (`jit`) or for position-independent object files."""
        target = llvm.Target.from_triple(self.triple)
        # Code and constants are near each other (`engine`). LLVM's model for code in this process needs a register for
        # the address of each constant, and loops with many of them load them in every iteration.
        is_near = not jit or self.architecture == "x86_64"
        unused = [f"-{feature}" for feature in _UNUSED.get(self.architecture, ())]
        return target.create_target_machine(
            cpu=self.name,
            features=",".join(filter(None, [self.features, *unused])),
            opt=3 if effort == "full" else 2,
            reloc="pic" if is_near else "default",
            codemodel="small" if is_near else "jitdefault",
            jit=jit,
            abiname=_ABI.get(self.architecture, ""),
        )


def engine(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> llvm.ExecutionEngine:
    """LLVM's engine, which puts all sections of a module next to each other."""
    return llvm.create_mcjit_compiler(module, machine, use_lmm=True)


def architecture_of(triple: str) -> str:
    """The instruction set of a triple, by its name in machine descriptions."""
    own = triple.split("-")[0]
    return "aarch64" if own == "arm64" else own


@lru_cache(maxsize=1)
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@lru_cache(maxsize=1)
def _initialise_others() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def processor(machine: Machine | None = None) -> Processor:
    """The processor for code that runs on this computer: the host, restricted to the features of `machine`.

    Raises LoweringError if the machine has another architecture, or features that the host lacks. A machine without
    features (a test model) stands for the host.
    """
    own = architecture_of(llvm.get_process_triple())
    if machine is not None and machine.architecture not in ("", own):
        raise LoweringError(
            f"machine '{machine.name}' is of the architecture {machine.architecture}; code for this process is {own}: "
            f"compile for 'host'"
        )
    if machine is not None:
        missing = [f for f in machine.features if f not in host().features]
        if missing:
            raise LoweringError(
                f"machine '{machine.name}' has {', '.join(missing)}, which this processor lacks; "
                f"compile for 'host', or run on such a machine"
            )
    return any_processor(machine)


def any_processor(machine: Machine | None = None) -> Processor:
    """The processor for code that need not run on this computer.

    Raises LoweringError if the backend has no code for the machine's architecture.
    """
    _initialise()
    triple = llvm.get_process_triple()
    own = architecture_of(triple)
    if machine is None or not machine.architecture or machine.features == host().features:
        return _own(triple)
    described = _triple(machine)
    if machine.architecture != own:
        _initialise_others()
        triple = described
    elif not machine.features:
        return _own(triple)
    return _described(triple, machine)


def _own(triple: str) -> Processor:
    """The processor of the machine `host`: this computer's processor, or a restricted one."""
    present = llvm.get_host_cpu_features()
    if host().features == tuple(sorted(name for name, there in present.items() if there)):
        return Processor(triple, llvm.get_host_cpu_name(), present.flatten())
    return _described(triple, host())


def described_processor(machine: Machine) -> Processor:
    """The processor that a machine description alone determines, on whatever computer it is compiled.

    Raises LoweringError if the backend has no code for the machine's architecture.
    """
    _initialise()
    _initialise_others()
    return _described(_triple(machine), machine)


def _triple(machine: Machine) -> str:
    """The triple of an architecture for which any processor can compile. Raises LoweringError for others."""
    if machine.architecture not in _TRIPLES:
        raise LoweringError(
            f"machine '{machine.name}' is of the architecture {machine.architecture}, which the LLVM backend does not "
            f"generate code for; it does for {', '.join(sorted(_TRIPLES))}"
        )
    return _TRIPLES[machine.architecture]


def _described(triple: str, machine: Machine) -> Processor:
    name = machine.processor or _GENERIC[machine.architecture]
    return Processor(triple, name, ",".join(f"+{f}" for f in machine.features))


def parse(text: str, *, jit: bool = False) -> llvm.ModuleRef:
    """Parse and verify LLVM IR; an error is a bug of the lowering.

    With `jit`, code calls functions of other modules at addresses in a table, for which an engine has memory beside the
    code: it has none for stubs.
    """
    module = llvm.parse_assembly(text + _CALLS_BY_TABLE if jit else text)
    module.verify()
    if jit:
        for function in module.functions:
            if function.is_declaration and not function.name.startswith("llvm."):
                function.add_function_attribute("nonlazybind")
    return module


def run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, effort: Effort) -> None:
    """Optimise in place. LLVM's own vectorising and unrolling are off, because the program determines both."""
    options = llvm.create_pipeline_tuning_options(speed_level=3 if effort == "full" else 1)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = False
    with llvm.create_pass_builder(machine, options) as builder, builder.getModulePassManager() as passes:
        try:
            passes.run(module, builder)
        finally:
            # llvmlite 0.50 never frees a pass manager: `ObjectRef._dispose` shadows its `_dispose`.
            ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
            passes.detach()
