"""The core's instructions as closures: each call executes the instruction, or returns the cause of a wait."""

from __future__ import annotations

from collections.abc import Callable

from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.program import TEXT_BASE, AssembledProgram
from pdojo.snitch_sim.assembler.registers import (
    BARRIER,
    CYCLE,
    FCSR,
    FFLAGS,
    FRM,
    INSTRET,
    MCYCLE,
    MHARTID,
    MINSTRET,
    SSR,
)
from pdojo.snitch_sim.simulator import causes
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.core import (
    BUFFERED,
    DIRECT,
    DIVIDER,
    LOOP,
    MULTIPLIER,
    STREAM,
    Core,
    CoreStep,
    Offloaded,
)
from pdojo.snitch_sim.simulator.integer import ALU, COMPARE, DIVIDE, IMMEDIATES, LOADS, MASK, MULTIPLY, STORES
from pdojo.snitch_sim.simulator.memory import MemoryRequest, offset_of
from pdojo.snitch_sim.simulator.operation import SIZES, Decoder, FloatOperation

END = 0xFFFF_FFF0
"""The return address of the program's entry."""

Run = Callable[[int], int]


class StepDecoder:
    """Makes closures on one core."""

    def __init__(self, core: Core, decoder: Decoder, configuration: Configuration, program: AssembledProgram) -> None:
        self._core, self._decoder, self._configuration = core, decoder, configuration
        self._count = len(program.instructions)
        self.operations: list[FloatOperation] = []

    def decode(self, index: int, i: Instruction) -> CoreStep:
        """The step of an instruction. Raises SimulationError if it is not modelled."""
        step = CoreStep(index, i)
        letters = i.encoding.operands.split(",")
        reads = [i.rs1 for letter in letters if letter in ("s", "o", "q")]
        reads += [i.rs2 for letter in letters if letter == "t"]
        # The scoreboard takes bits 7 to 11 of every instruction for the number of an integer register (snitch.sv; m).
        step.waits = tuple(r for r in dict.fromkeys((*reads, i.encode() >> 7 & 31)) if r)
        step.run = self._run(step, i, index)
        return step

    def _run(self, step: CoreStep, i: Instruction, index: int) -> Run:
        name = i.name
        if name in ALU or name in IMMEDIATES or name in ("lui", "auipc"):
            step.port = i.rd != 0
            return self._alu(i, index)
        if name in COMPARE:
            return self._branch(i, index)
        if name in ("jal", "jalr"):
            step.port = i.rd != 0
            return self._jump(i, index)
        if name in LOADS:
            return self._load(i, index)
        if name in STORES:
            return self._store(i, index)
        if name in SIZES:
            return self._float_access(i, index)
        if name.startswith("csr"):
            return self._csr(step, i, index)
        if name == "fence":
            return self._fence(index)
        return self._offloaded(i, index)

    def _alu(self, i: Instruction, index: int) -> Run:
        x, rd, rs1, rs2, following = self._core.registers, i.rd, i.rs1, i.rs2, index + 1
        if rd == 0:
            return lambda now: following
        if i.name in ("lui", "auipc"):
            constant = (i.imm << 12) + (TEXT_BASE + 4 * index if i.name == "auipc" else 0) & MASK

            def set_constant(now: int) -> int:
                x[rd] = constant
                return following

            return set_constant
        if i.name == "addi":
            addend = i.imm

            def add_immediate(now: int) -> int:
                x[rd] = x[rs1] + addend & MASK
                return following

            return add_immediate
        if i.name in IMMEDIATES:
            function, immediate = ALU[IMMEDIATES[i.name]], i.imm & MASK

            def with_immediate(now: int) -> int:
                x[rd] = function(x[rs1], immediate)
                return following

            return with_immediate
        function = ALU[i.name]

        def with_registers(now: int) -> int:
            x[rd] = function(x[rs1], x[rs2])
            return following

        return with_registers

    def _target(self, i: Instruction, index: int) -> int:
        target = index + i.imm // 4
        if not 0 <= target <= self._count:
            raise self._core.trap(i, "the target is outside of the program")
        return target

    def _branch(self, i: Instruction, index: int) -> Run:
        x, rs1, rs2, compare = self._core.registers, i.rs1, i.rs2, COMPARE[i.name]
        following, target = index + 1, self._target(i, index)
        return lambda now: target if compare(x[rs1], x[rs2]) else following

    def _jump(self, i: Instruction, index: int) -> Run:
        x, rd, rs1, core = self._core.registers, i.rd, i.rs1, self._core
        link = TEXT_BASE + 4 * (index + 1)
        if i.name == "jal":
            target = self._target(i, index)

            def jump(now: int) -> int:
                if rd:
                    x[rd] = link
                return target

            return jump
        count = self._count

        def jump_to(now: int) -> int:
            address = x[rs1] + i.imm & MASK & ~1
            if rd:
                x[rd] = link
            if address == END:
                return 1 << 30
            target, rest = divmod(address - TEXT_BASE, 4)
            if rest or not 0 <= target < count:
                raise core.trap(i, f"a jump to {address:#x}, which is no instruction of the program")
            return target

        return jump_to

    def _load(self, i: Instruction, index: int) -> Run:
        core, x, rd, rs1 = self._core, self._core.registers, i.rd, i.rs1
        size, is_signed = LOADS[i.name]
        limit, memory_bytes, following = self._configuration.outstanding, self._configuration.memory_bytes, index + 1
        memory = core.memory

        def load(now: int) -> int:
            offset, wrong = offset_of(x[rs1] + i.imm & MASK, size, memory_bytes)
            if wrong:
                raise core.trap(i, wrong)
            if core.in_flight >= limit or len(memory.core_requests) + (memory.core_taken == now) >= 2:
                return -causes.MEMORY
            if core.pending_floats and (offset >> 3, True) in core.pending_floats:
                return -causes.CONSISTENCY
            memory.core_requests.append(MemoryRequest(now + 1, offset, size, False, 0, rd, is_signed, True))
            core.in_flight += 1
            if rd:
                core.ready[rd] = causes.INFINITE
            return following

        return load

    def _store(self, i: Instruction, index: int) -> Run:
        core, x, rs1, rs2 = self._core, self._core.registers, i.rs1, i.rs2
        size, following = STORES[i.name], index + 1
        limit, memory_bytes = self._configuration.outstanding, self._configuration.memory_bytes
        memory = core.memory

        def store(now: int) -> int:
            offset, wrong = offset_of(x[rs1] + i.imm & MASK, size, memory_bytes)
            if wrong:
                raise core.trap(i, wrong)
            if core.in_flight >= limit or len(memory.core_requests) + (memory.core_taken == now) >= 2:
                return -causes.MEMORY
            if core.pending_floats and any(word == offset >> 3 for word, _ in core.pending_floats):
                return -causes.CONSISTENCY
            memory.core_requests.append(MemoryRequest(now + 1, offset, size, True, x[rs2], 0, False, True))
            core.in_flight += 1
            return following

        return store

    def _float_access(self, i: Instruction, index: int) -> Run:
        core, x, rs1, following = self._core, self._core.registers, i.rs1, index + 1
        operation = self._operation(index, i)
        stores, size = i.name.startswith("fs"), SIZES[i.name]
        offload, depth = core.offload, self._configuration.consistency_queue
        memory_bytes = self._configuration.memory_bytes

        def access(now: int) -> int:
            offset, wrong = offset_of(x[rs1] + i.imm & MASK, size, memory_bytes)
            if wrong:
                raise core.trap(i, wrong)
            if core.crowded:
                return -(core.blocked or causes.QUEUE)
            if len(core.pending_floats) >= depth:
                return -causes.CONSISTENCY
            core.pending_floats.append((offset >> 3, stores))
            offload.append(Offloaded(BUFFERED, i, operation, offset, 0))
            return following

        return access

    def _operation(self, index: int, i: Instruction) -> FloatOperation:
        operation = self._decoder.decode(index, i)
        self.operations.append(operation)
        return operation

    def _offloaded(self, i: Instruction, index: int) -> Run:
        core, x, rs1, rs2, rd, following = self._core, self._core.registers, i.rs1, i.rs2, i.rd, index + 1
        operation = None
        if i.name in MULTIPLY:
            kind = MULTIPLIER
        elif i.name in DIVIDE:
            kind = DIVIDER
        elif i.name.startswith("frep"):
            kind = LOOP
        elif i.name in ("scfgwi", "scfgw", "scfgr"):
            kind = STREAM
        elif i.name.startswith(("f", "v")):
            operation = self._operation(index, i)
            kind = DIRECT if operation.direct else BUFFERED
        else:
            raise core.trap(i, "the simulator does not know this instruction")
        offload = core.offload
        letters = i.encoding.operands.split(",")
        result = rd if "d" in letters else 0
        integers = "s" in letters or "t" in letters

        def hand_on(now: int) -> int:
            if core.crowded:
                return -(core.blocked or causes.QUEUE)
            first, second = (x[rs1], x[rs2]) if integers else (0, 0)
            offload.append(Offloaded(kind, i, operation, first, second))
            if result:
                core.ready[result] = causes.INFINITE
            return following

        return hand_on

    def _csr(self, step: CoreStep, i: Instruction, index: int) -> Run:
        core = self._core
        if i.imm == SSR:
            if i.name not in ("csrrsi", "csrrci") or i.rs1 != 1 or i.rd:
                raise core.trap(i, "streams are switched by 'csrrsi zero, ssr, 1' and 'csrrci zero, ssr, 1'")
            return self._switch(i, index)
        changes = i.rs1 != 0 or i.name.startswith("csrrw")
        if i.imm in (FFLAGS, FRM, FCSR, BARRIER) or changes:
            raise core.trap(i, "this control register is not modelled")
        if i.imm not in (MCYCLE, CYCLE, MINSTRET, INSTRET, MHARTID):
            raise core.trap(i, f"there is no control register {i.imm:#x}")
        x, rd, following = core.registers, i.rd, index + 1
        step.port = rd != 0
        steps = core.steps

        def read(now: int) -> int:
            if rd:
                if i.imm == MHARTID:
                    x[rd] = 0
                else:
                    x[rd] = (now if i.imm in (MCYCLE, CYCLE) else sum(s.count for s in steps)) & MASK
            return following

        return read

    def _switch(self, i: Instruction, index: int) -> Run:
        core, following = self._core, index + 1
        operation = self._operation(index, i)
        offload = core.offload

        def switch(now: int) -> int:
            if core.crowded:
                return -(core.blocked or causes.QUEUE)
            offload.append(Offloaded(DIRECT, i, operation, 0, 0))
            return following

        return switch

    def _fence(self, index: int) -> Run:
        core, following = self._core, index + 1
        return lambda now: -causes.MEMORY if core.in_flight or core.pending_floats else following
