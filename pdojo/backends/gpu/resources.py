"""Resources of a multiprocessor that a kernel takes, and the number of its blocks that fit on one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pdojo.errors import LoweringError

_ERROR_OF_LINE = re.compile(
    r"kernel\.\w+[(:](?P<line>\d+)(?:\)|:\d+): (?:catastrophic |fatal )?error(?: #[\w-]+)?: (?P<message>.*)"
)
"""An error of NVRTC, `FILE(LINE): error: MESSAGE`, or of clang, `FILE:LINE:COLUMN: error: MESSAGE`."""
_ERROR = re.compile(r"(?:.*\b)?(?:error|fatal) *: (?P<message>.*)")
"""An error without a line of the text: of ptxas, `ptxas error : MESSAGE`, or of the linker."""


class MissingTool(LoweringError):
    """A compiler is not installed; the message names the package to install."""


@dataclass(frozen=True)
class Resources:
    """A compiler's resource report for one kernel."""

    registers: int
    """32-bit vector registers per thread. AMD: registers of the unified file, including accumulation registers."""
    spill_stores: int = 0
    """Bytes per thread that are stored to spill registers. AMD reports registers, which count as 4 bytes each."""
    spill_loads: int = 0
    """Bytes per thread that are loaded to restore registers. AMD: the same number as `spill_stores`."""
    shared: int = 0
    """Bytes of static shared memory per block."""
    stack: int = 0
    """Bytes of stack (AMD: scratch memory) per thread; spilled registers are part of it."""
    scalar_registers: int = 0
    """AMD: scalar registers per wave. 0 on NVIDIA's GPUs."""
    scalar_spills: int = 0
    """AMD: scalar registers that are spilled to lanes of vector registers."""

    @property
    def spills(self) -> bool:
        """Whether registers are spilled."""
        return self.spill_stores > 0 or self.spill_loads > 0 or self.scalar_spills > 0


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of a multiprocessor (AMD: compute unit). Warps are AMD's wavefronts, blocks its workgroups."""

    warp: int
    """Threads per warp."""
    partitions: int
    """Parts (AMD: SIMDs) to which the warps are distributed; each has its share of the registers."""
    partition_warps: int
    """Resident warps per partition."""
    registers: int
    """32-bit registers per partition, over all lanes."""
    register_unit: int
    """Allocation unit of a warp's registers."""
    thread_registers: int
    """Registers that one thread can address."""
    blocks: int
    """Most resident blocks, for blocks of one warp."""
    blocks_of_warps: int
    """Most resident blocks, for blocks of several warps."""
    block_threads: int
    """Most threads per block."""
    shared: int
    """Bytes of shared memory."""
    shared_reserved: int
    """Bytes of shared memory per block that the system reserves."""
    shared_unit: int
    """Allocation unit of shared memory in bytes."""
    scalar_registers: int = 0
    """Scalar registers per warp at which a partition is full; with more it holds one warp less. 0: no limit."""


# CG: "CUDA C++ Programming Guide" 13.0, section "Compute Capabilities", table "Technical Specifications per Compute
# Capability", column 9.0. CO: `cuda_occupancy.h` of the CUDA toolkit 13.0, for facts that CG omits.
SM_90 = Multiprocessor(
    warp=32,  # CG: "Warp size"
    partitions=4,  # CG, section "Compute Capability 9.0", Architecture: four warp schedulers
    partition_warps=16,  # CG: 64 resident warps (2048 threads) per SM
    registers=16384,  # CG: 64 K registers of 32 bits per SM
    register_unit=256,  # CO: cudaOccRegAllocationGranularity
    thread_registers=255,  # CG: "Maximum number of 32-bit registers per thread"
    blocks=32,  # CG: "Maximum number of resident blocks per SM"
    blocks_of_warps=32,  # CG: the same
    block_threads=1024,  # CG: "Maximum number of threads per block"
    shared=233472,  # CG: 228 KB per SM
    shared_reserved=1024,  # CG, section "Compute Capability 9.0", Shared Memory: 1 KB per block
    shared_unit=128,  # CO: cudaOccSMemAllocationGranularity
)
# ISA: "AMD Instinct MI300" Instruction Set Architecture Reference Guide (CDNA3), chapter "Kernel State".
# LLVM: `llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp` of LLVM 19, for facts that ISA omits.
GFX942 = Multiprocessor(
    warp=64,  # ISA: wavefronts of 64 work-items
    partitions=4,  # ISA: four SIMDs per compute unit; LLVM: getEUsPerCU
    partition_warps=8,  # LLVM: getMaxWavesPerEU, GFX90A and later
    registers=32768,  # ISA: 512 registers per lane, vector and accumulation registers in one file; times 64 lanes
    register_unit=512,  # ISA: groups of 8 registers per lane; LLVM: getVGPRAllocGranule
    thread_registers=512,  # ISA: 256 vector and 256 accumulation registers
    blocks=32,  # LLVM: getMaxWorkGroupsPerCU, a workgroup of one wave needs no barrier
    blocks_of_warps=16,  # LLVM: getMaxWorkGroupsPerCU, 16 barriers per compute unit
    block_threads=1024,  # LLVM: getMaxFlatWorkGroupSize
    shared=65536,  # ISA: 64 KB of LDS per compute unit
    shared_reserved=0,
    shared_unit=512,  # ISA: LDS is allocated in blocks of 128 dwords
    scalar_registers=100,  # LLVM: getOccupancyWithNumSGPRs, 8 waves up to 100 of at most 102 (ISA), 7 beyond
)
MULTIPROCESSORS = {"sm_90": SM_90, "sm_90a": SM_90, "gfx942": GFX942}
"""Multiprocessors by the name of their processor."""


@dataclass(frozen=True)
class Occupancy:
    """The occupancy of a multiprocessor by the blocks of one kernel."""

    blocks: int
    """Resident blocks; 0 if none fits."""
    share: float
    """Resident warps over the largest number of resident warps, 0 to 1."""
    limit: str
    """The resource that prevents another block: "blocks", "threads", "registers" or "shared memory"."""


def occupancy(resources: Resources, threads: int, machine: Multiprocessor, dynamic_shared: int = 0) -> Occupancy:
    """The occupancy for blocks of `threads` threads, each with `dynamic_shared` bytes of dynamic shared memory."""
    warps = -(-threads // machine.warp)
    most = machine.partitions * machine.partition_warps
    per_block = _multiple(resources.shared + dynamic_shared + machine.shared_reserved, machine.shared_unit)
    fitting = {
        "blocks": machine.blocks if warps == 1 else machine.blocks_of_warps,
        "threads": most // warps if threads <= machine.block_threads else 0,
        "registers": machine.partitions * _partition_warps(resources, machine) // warps,
        "shared memory": machine.shared // per_block if per_block else machine.blocks,
    }
    limit = min(fitting, key=lambda name: fitting[name])
    blocks = fitting[limit]
    return Occupancy(blocks, blocks * warps / most, limit)


def _partition_warps(resources: Resources, machine: Multiprocessor) -> int:
    """Number of warps that fit into a partition's registers; 0 if a thread needs more than it can address."""
    if resources.registers > machine.thread_registers:
        return 0
    per_warp = _multiple(max(resources.registers, 1) * machine.warp, machine.register_unit)
    crowded = 0 < machine.scalar_registers < resources.scalar_registers
    return min(machine.registers // per_warp, machine.partition_warps - crowded)


def refusal(compiler: str, log: str, text: str) -> LoweringError:
    """The first error in a compiler's log, with the line of `text` to which it refers, if any."""
    for line in log.splitlines():
        found = _ERROR_OF_LINE.match(line)
        if found is not None:
            number, message = int(found["line"]), found["message"]
            lines = text.splitlines()
            source = lines[number - 1].strip() if number <= len(lines) else ""
            return LoweringError(f"{compiler} refuses line {number}: {message}\n  {source}")
        found = _ERROR.match(line)
        if found is not None:
            return LoweringError(f"{compiler} refuses the text: {found['message']}")
    return LoweringError(f"{compiler} refuses the text:\n{log.strip()[-2000:]}")


def _multiple(value: int, unit: int) -> int:
    return -(-value // unit) * unit
