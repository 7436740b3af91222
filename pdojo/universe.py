"""Registration with xDSL (entry point `xdsl.universe`): the dialect, its passes and its targets.

All imports happen at first use, because every xDSL tool loads this module at start.
"""

from __future__ import annotations

from xdsl.universe import Universe

from pdojo.dialect.plugins import lazy
from pdojo.transforms.pass_names import passes_by_name
from pdojo.transforms.registry import TRANSFORMATION_NAMES

PDOJO_UNIVERSE = Universe(
    all_dialects={
        "llvmx": lazy("pdojo.backends.llvm.ops:LLVMX"),
        "pdojo": lazy("pdojo.dialect.ops:PDOJO"),
        "snitchx": lazy("pdojo.backends.snitch.ops:SNITCHX"),
    },
    all_passes={
        "convert-linalg-to-pdojo": lazy("pdojo.frontends.linalg.convert:ConvertLinalgToPdojoPass"),
        "convert-pdojo-to-gpu": lazy("pdojo.backends.gpu.ir.convert:ConvertPdojoToGpuPass"),
        "convert-pdojo-to-llvm": lazy("pdojo.backends.llvm.lowering:ConvertPdojoToLLVMPass"),
        "convert-pdojo-to-loops": lazy("pdojo.backends.loops.convert:ConvertPdojoToLoopsPass"),
        "convert-pdojo-to-snitch": lazy("pdojo.backends.snitch.lowering:ConvertPdojoToSnitchPass"),
        "pdojo-specialise": lazy("pdojo.transforms.versions:SpecialisePass"),
        "pdojo-split-constants": lazy("pdojo.backends.common.binding:PdojoSplitConstantsPass"),
        "pdojo-split-range": lazy("pdojo.transforms.versions:SplitRangePass"),
        **passes_by_name(TRANSFORMATION_NAMES),
    },
    # xDSL has its own target `llvm`; pdojo-opt calls pdojo's targets `llvm`, `asm`, `obj`, ... for short.
    all_targets={
        "dot": lazy("pdojo.backends.common.dot:DotTarget"),
        "notation": lazy("pdojo.backends.common.notation:NotationTarget"),
        "pdojo-asm": lazy("pdojo.backends.llvm.targets:PdojoAsmTarget"),
        "pdojo-c": lazy("pdojo.backends.c.targets:PdojoCTarget"),
        "pdojo-c-header": lazy("pdojo.backends.llvm.targets:PdojoHeaderTarget"),
        "pdojo-cuda": lazy("pdojo.backends.gpu.targets:PdojoCudaTarget"),
        "pdojo-fibers": lazy("pdojo.backends.gpu.targets:PdojoFibersTarget"),
        "pdojo-hip": lazy("pdojo.backends.gpu.targets:PdojoHipTarget"),
        "pdojo-llvm": lazy("pdojo.backends.llvm.targets:PdojoLLVMTarget"),
        "pdojo-obj": lazy("pdojo.backends.llvm.targets:PdojoObjectTarget"),
        "pdojo-snitch-asm": lazy("pdojo.backends.snitch.targets:PdojoSnitchTarget"),
    },
)
"""Dialects, passes and targets that pdojo adds to `xdsl-opt` and `pdojo-opt`."""
