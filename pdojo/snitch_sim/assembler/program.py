"""Assembled programs: instructions, labels, data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pdojo.errors import AssemblyError
from pdojo.snitch_sim.assembler.instruction import Instruction

TEXT_BASE = 0x8000_0000
"""The address of the first instruction, in snitch_cluster's boot memory."""
TCDM_BASE = 0x1000_0000
"""The start of the core's memory (snitch_cluster, default configuration)."""


@dataclass(frozen=True)
class AssembledProgram:
    """An assembled program."""

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """Addresses by label."""
    data: bytes
    """Memory contents from address `TCDM_BASE` on."""
    source: str
    """The name of the text in messages."""
    text: str

    def index(self, entry: str) -> int:
        """The index of the instruction after a label. Raises AssemblyError."""
        address = self.labels.get(entry)
        if address is None:
            known = ", ".join(self.functions) or "none"
            raise AssemblyError(f"{self.source}: there is no label '{entry}'; functions: {known}")
        if not TEXT_BASE <= address < TEXT_BASE + 4 * len(self.instructions):
            raise AssemblyError(f"{self.source}: '{entry}' does not stand before an instruction")
        return (address - TEXT_BASE) // 4

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """Labels of functions, in the text's order: those before an instruction and without a leading `.` or `$`."""
        end = TEXT_BASE + 4 * len(self.instructions)
        return tuple(n for n, a in self.labels.items() if TEXT_BASE <= a < end and not n.startswith((".", "$")))

    def words(self) -> list[int]:
        """The encodings of the instructions."""
        return [i.encode() for i in self.instructions]
