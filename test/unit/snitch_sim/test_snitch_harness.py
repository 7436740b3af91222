"""Programs that measure themselves, on a small interpreter with a host: what they print, and what they compare."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pdojo.snitch_sim.assembler import TCDM_BASE, TEXT_BASE, Instruction, assemble
from pdojo.snitch_sim.assembler.build import build
from pdojo.snitch_sim.assembler.harness import CYCLES, DATA_BASE, ENTRY, FROMHOST, TOHOST, harness
from pdojo.snitch_sim.assembler.registers import MCYCLE
from pdojo.snitch_sim.simulator.integer import (
    ALU,
    COMPARE,
    DIVIDE,
    IMMEDIATES,
    LOADS,
    MASK,
    MULTIPLY,
    STORES,
)

KERNEL = """
kernel:  # x[0] = 2 x[0], n times
 fld fa0, 0(a0)
1: fadd.d fa0, fa0, fa0
 addi a1, a1, -1
 bnez a1, 1b
 fsd fa0, 0(a0)
 ret
"""


class Machine:
    """Memory, registers, and a host that answers system calls."""

    def __init__(self, instructions: tuple[Instruction, ...], entry: int, data: bytes) -> None:
        self.instructions = instructions
        self.memory = {DATA_BASE: bytearray(data) + bytearray(4096), TCDM_BASE: bytearray(128 << 10)}
        self.x = [0] * 32
        self.f = [0.0] * 32
        self.pc = entry
        self.steps = 0
        self.printed = b""

    def place(self, address: int) -> tuple[bytearray, int]:
        base = max(b for b in self.memory if b <= address)
        return self.memory[base], address - base

    def load(self, address: int, size: int) -> int:
        memory, at = self.place(address)
        return int.from_bytes(memory[at : at + size], "little")

    def store(self, address: int, value: int, size: int) -> None:
        memory, at = self.place(address)
        memory[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        if address == TOHOST and value != 1:
            call, first, buffer, length = (self.load(value + 8 * k, 8) for k in range(4))
            assert (call, first) == (64, 1)
            memory, at = self.place(buffer)
            self.printed += bytes(memory[at : at + length])
            self.store(FROMHOST, 1, 4)

    def run(self) -> None:
        """Until the program ends by writing 1 to `tohost`."""
        while self.load(TOHOST, 4) != 1:
            i = self.instructions[(self.pc - TEXT_BASE) // 4]
            following = self.execute(i)
            self.pc = self.pc + 4 if following is None else following
            self.x[0] = 0
            self.steps += 1
            assert self.steps < 200_000

    def execute(self, i: Instruction) -> int | None:
        x, name = self.x, i.name
        address = x[i.rs1] + i.imm & MASK
        if name in IMMEDIATES:
            x[i.rd] = ALU[IMMEDIATES[name]](x[i.rs1], i.imm & MASK)
        elif name in ALU or name in MULTIPLY or name in DIVIDE:
            x[i.rd] = ({**ALU, **MULTIPLY, **DIVIDE}[name])(x[i.rs1], x[i.rs2])
        elif name == "lui":
            x[i.rd] = i.imm << 12 & MASK
        elif name in LOADS:
            x[i.rd] = self.load(address, 1 << LOADS[name][0])
        elif name in STORES:
            self.store(address, x[i.rs2], 1 << STORES[name])
        elif name in COMPARE:
            return self.pc + i.imm if COMPARE[name](x[i.rs1], x[i.rs2]) else None
        elif name in ("jal", "jalr"):
            x[i.rd], target = self.pc + 4, address & ~1 if name == "jalr" else self.pc + i.imm
            return target
        elif name == "csrrs":
            x[i.rd] = self.steps if i.imm == MCYCLE else 0
        else:
            self.execute_float(i, address)
        return None

    def execute_float(self, i: Instruction, address: int) -> None:
        match i.name:
            case "fld":
                (self.f[i.rd],) = struct.unpack("<d", self.load(address, 8).to_bytes(8, "little"))
            case "fsd":
                self.store(address, int.from_bytes(struct.pack("<d", self.f[i.rs2]), "little"), 8)
            case "fadd.d":
                self.f[i.rd] = self.f[i.rs1] + self.f[i.rs2]
            case name:
                assert name in ("fence", "fmv.x.w")


@pytest.mark.parametrize("times", [1, 3, 400])
@pytest.mark.parametrize("wrong", [0, 1])
def test_it_prints_cycles_and_differences(times: int, wrong: int, tmp_path: Path) -> None:
    image = struct.pack("<dI", 1.5, 7) + bytes(4)
    expected = struct.pack("<dI", 1.5 * 2**times + wrong, 7) + bytes(4)
    around = harness("kernel", [TCDM_BASE, times], image, expected, TCDM_BASE + 0x20000)
    whole = assemble(KERNEL + around.text)
    machine = Machine(whole.instructions, whole.labels[ENTRY], around.data)
    machine.run()
    # Two loads and stores, a call, a return and three instructions for each round, reading the counter.
    cycles = machine.load(CYCLES, 4)
    assert cycles == 3 * times + 8
    differing = wrong if 1.5 * 2**times + wrong != 1.5 * 2**times else 0
    assert machine.printed == f"cycles: {cycles}\ndifferences: {differing}\n".encode()
    path = tmp_path / "k.elf"
    build(assemble(KERNEL), "kernel", [TCDM_BASE, times], image, expected, path, memory_bytes=0x20000)
    contents = path.read_bytes()
    assert b"".join(word.to_bytes(4, "little") for word in whole.words()) in contents
    assert around.data in contents
