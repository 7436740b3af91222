"""LLVM itself: parse and verify a module, run passes, generate code for a processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import llvmlite.binding as llvm

from pdojo.dialect.machine import Machine, host
from pdojo.errors import LoweringError

Effort: TypeAlias = Literal["search", "full"]
"""`search`: promotion to registers, redundancy, loop-invariant motion; `full`: LLVM's O3."""


@dataclass(frozen=True)
class Processor:
    """A target of code generation."""

    triple: str
    name: str
    features: str

    @property
    def enabled(self) -> frozenset[str]:
        """The instruction set features that it has."""
        return frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))

    def target_machine(self, effort: Effort) -> llvm.TargetMachine:
        """LLVM's description of the processor, for code that is loaded into this process."""
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.name, features=self.features, opt=3 if effort == "full" else 2, jit=True
        )


@lru_cache(maxsize=1)
def _initialise() -> dict[str, bool]:
    """Prepare LLVM for the processor that this runs on; its features by name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return dict(llvm.get_host_cpu_features())


def processor(machine: Machine | None = None) -> Processor:
    """The processor to generate code for: the host, restricted to the features that `machine` has.

    Raises LoweringError where the machine has another architecture, or features that the host lacks. A machine without
    features (a model for tests) stands for the host.
    """
    present = _initialise()
    triple = llvm.get_process_triple()
    own = triple.split("-")[0]
    if machine is not None and machine.architecture not in ("", own):
        raise LoweringError(
            f"machine '{machine.name}' is of the architecture {machine.architecture}; code for this process is {own}: "
            f"compile for 'host'"
        )
    if machine is None or not machine.features or machine.features == host().features:
        return Processor(triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    missing = [f for f in machine.features if not present.get(f)]
    if missing:
        raise LoweringError(
            f"machine '{machine.name}' has {', '.join(missing)}, which this processor lacks; "
            f"compile for 'host', or run on such a machine"
        )
    generic = {"x86_64": "x86-64", "aarch64": "generic", "riscv64": "generic-rv64"}.get(own, "")
    return Processor(triple, generic, ",".join(f"+{f}" for f in machine.features))


def parse(text: str) -> llvm.ModuleRef:
    """Parse and verify LLVM IR; an error here is a bug of the lowering."""
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, effort: Effort) -> None:
    """Optimise in place. What the program does not say is not done: LLVM neither vectorises nor unrolls on its own."""
    options = llvm.create_pipeline_tuning_options(speed_level=3 if effort == "full" else 1)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = False
    with llvm.create_pass_builder(machine, options) as builder, builder.getModulePassManager() as passes:
        passes.run(module, builder)
