"""An assembler for Snitch: text to programs for the simulator, to text for ordinary assemblers, and to ELF files."""

from __future__ import annotations

from pdojo.snitch_sim.assembler.assemble import assemble
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.program import TCDM_BASE, TEXT_BASE, AssembledProgram
from pdojo.snitch_sim.assembler.rewrite import rewrite

__all__ = ["TCDM_BASE", "TEXT_BASE", "AssembledProgram", "Instruction", "assemble", "rewrite"]
