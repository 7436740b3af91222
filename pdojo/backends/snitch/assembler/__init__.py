"""An assembler for Snitch: text to programs for the simulator, to text for ordinary assemblers, and to ELF files."""

from __future__ import annotations

from pdojo.backends.snitch.assembler.assemble import assemble
from pdojo.backends.snitch.assembler.instruction import Instruction
from pdojo.backends.snitch.assembler.program import TCDM_BASE, TEXT_BASE, AssembledProgram
from pdojo.backends.snitch.assembler.rewrite import rewrite

__all__ = ["TCDM_BASE", "TEXT_BASE", "AssembledProgram", "Instruction", "assemble", "rewrite"]
