"""Registration with xDSL (entry point `xdsl.universe`): the dialect, its passes and its targets.

All imports happen at first use, because every xDSL tool loads this module at start.
"""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from pdojo.transforms.pass_names import passes_by_name
from pdojo.transforms.registry import TRANSFORMATION_NAMES


def _dialect() -> Dialect:
    from pdojo.dialect.ops import PDOJO

    return PDOJO


def _llvm_dialect() -> Dialect:
    from pdojo.backends.llvm.ops import LLVMX

    return LLVMX


def gpu_dialect() -> Dialect:
    """xDSL's dialect `gpu`, completed. A tool registers it itself: a universe cannot extend a dialect."""
    from pdojo.backends.gpu.ir.dialect import complete_gpu

    return complete_gpu()


def _convert_to_loops() -> type[ModulePass]:
    from pdojo.backends.loops.convert import ConvertPdojoToLoopsPass

    return ConvertPdojoToLoopsPass


def _convert_to_gpu() -> type[ModulePass]:
    from pdojo.backends.gpu.ir.convert import ConvertPdojoToGpuPass

    return ConvertPdojoToGpuPass


def _convert_to_llvm() -> type[ModulePass]:
    from pdojo.backends.llvm.lowering import ConvertPdojoToLLVMPass

    return ConvertPdojoToLLVMPass


def _convert_to_snitch() -> type[ModulePass]:
    from pdojo.backends.snitch.lowering import ConvertPdojoToSnitchPass

    return ConvertPdojoToSnitchPass


def _snitch_dialect() -> Dialect:
    from pdojo.backends.snitch.ops import SNITCHX

    return SNITCHX


def _snitch_asm() -> type[Target]:
    from pdojo.backends.snitch.targets import PdojoSnitchTarget

    return PdojoSnitchTarget


def _llvm() -> type[Target]:
    from pdojo.backends.llvm.targets import PdojoLLVMTarget

    return PdojoLLVMTarget


def _asm() -> type[Target]:
    from pdojo.backends.llvm.targets import PdojoAsmTarget

    return PdojoAsmTarget


def _object() -> type[Target]:
    from pdojo.backends.llvm.targets import PdojoObjectTarget

    return PdojoObjectTarget


def _c() -> type[Target]:
    from pdojo.backends.c.targets import PdojoCTarget

    return PdojoCTarget


def _c_header() -> type[Target]:
    from pdojo.backends.llvm.targets import PdojoHeaderTarget

    return PdojoHeaderTarget


def _cuda() -> type[Target]:
    from pdojo.backends.gpu.targets import PdojoCudaTarget

    return PdojoCudaTarget


def _hip() -> type[Target]:
    from pdojo.backends.gpu.targets import PdojoHipTarget

    return PdojoHipTarget


def _fibers() -> type[Target]:
    from pdojo.backends.gpu.targets import PdojoFibersTarget

    return PdojoFibersTarget


def _dot() -> type[Target]:
    from pdojo.backends.common.dot import DotTarget

    return DotTarget


def _notation() -> type[Target]:
    from pdojo.backends.common.notation import NotationTarget

    return NotationTarget


PDOJO_UNIVERSE = Universe(
    all_dialects={"llvmx": _llvm_dialect, "pdojo": _dialect, "snitchx": _snitch_dialect},
    all_passes={
        "convert-pdojo-to-gpu": _convert_to_gpu,
        "convert-pdojo-to-llvm": _convert_to_llvm,
        "convert-pdojo-to-loops": _convert_to_loops,
        "convert-pdojo-to-snitch": _convert_to_snitch,
        **passes_by_name(TRANSFORMATION_NAMES),
    },
    # xDSL has its own target `llvm`; pdojo-opt calls pdojo's targets `llvm`, `asm`, `obj`, ... for short.
    all_targets={
        "dot": _dot,
        "notation": _notation,
        "pdojo-asm": _asm,
        "pdojo-c": _c,
        "pdojo-c-header": _c_header,
        "pdojo-cuda": _cuda,
        "pdojo-fibers": _fibers,
        "pdojo-hip": _hip,
        "pdojo-llvm": _llvm,
        "pdojo-obj": _object,
        "pdojo-snitch-asm": _snitch_asm,
    },
)
"""Dialects, passes and targets that pdojo adds to `xdsl-opt` and `pdojo-opt`."""
