"""Register allocation by graph colouring.

Values that do not fit are spilled: a constant is recomputed; other values are stored in the stack frame after each
write and loaded before each use, and share slots if they are never live together. If values in the body of a hardware
loop do not fit, the kernel is rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pdojo.backends.snitch.assignment import Assignment, check, is_left_out
from pdojo.backends.snitch.code import COPIES, SLOT, SP, CodeLine, FrameOffset, Kind, Register, SnitchCode
from pdojo.backends.snitch.false_dependences import false_dependences
from pdojo.backends.snitch.liveness import ControlFlow, Numbering, bodies, frequency, live_after, rarities, tracked
from pdojo.backends.snitch.rotation import rotated
from pdojo.backends.snitch.schedule import Schedule
from pdojo.errors import LoweringError
from pdojo.snitch_sim.assembler.registers import FLOAT, INTEGER
from pdojo.snitch_sim.simulator.configuration import Timing

TEMPORARY: dict[Kind, tuple[str, ...]] = {
    "x": tuple(f"a{k}" for k in range(8)) + tuple(f"t{k}" for k in range(7)),
    "f": tuple(f"ft{k}" for k in range(3, 12)) + tuple(f"fa{k}" for k in range(8)) + ("ft0", "ft1", "ft2"),
}
"""Registers that a function may overwrite, in order of preference."""
SAVED: dict[Kind, tuple[str, ...]] = {
    "x": tuple(f"s{k}" for k in range(12)),
    "f": tuple(f"fs{k}" for k in range(12)),
}
"""Registers that a function must preserve."""
NEAR_SLOTS = 2048 - 8 * sum(len(names) for names in SAVED.values())
"""Bytes of slots that loads and stores reach from the stack pointer; the saved registers lie below the slots."""
STREAM_NAMES = frozenset(("ft0", "ft1", "ft2"))
_ROUNDS = 20
_FOREVER = float("inf")
_RARE = 1e-9
"""The cost of an instruction that hardly ever runs, relative to others."""
_TOLERATED = 0.5
"""The cost of spills that is less than any in other code."""


def assign(code: list[CodeLine], function: SnitchCode, name: str) -> Assignment:
    """Schedule the code where that adds no spills, and name its registers.

    Raises LoweringError if the registers do not suffice for a hardware loop.
    """
    graph = _scheduled(code)
    for _ in range(_ROUNDS):
        if not graph.spilled:
            graph.settle()
            assignment = Assignment(graph.code, graph.names)
            check(assignment)
            return assignment
        graph = _Graph(_spill(graph.code, graph.spilled, graph.slots(function), name))
    raise LoweringError(f"kernel '{name}': registers did not suffice after {_ROUNDS} rounds of spilling")


def _scheduled(code: list[CodeLine]) -> _Graph:
    """The code in the order that costs least, with loops rotated or not."""
    best, least = _ordered(code)
    turned = rotated(code, Timing())
    if len(turned) == len(code):
        return best
    schedule = Schedule(turned, Timing())
    graph = _Graph(schedule.code)
    return graph if graph.spill_cost + schedule.cost < least else best


def _ordered(code: list[CodeLine]) -> tuple[_Graph, float]:
    """The code in the order that costs least, and the cost.

    Costs are cycles of the blocks, and loads and stores of values without registers.
    """
    schedule = Schedule(code, Timing())
    best = graph = _Graph(schedule.code)
    least = graph.spill_cost + schedule.cost
    if not graph.spilled:
        return graph, least
    plain = _Graph(code)
    while graph.spill_cost > plain.spill_cost + _TOLERATED and schedule.give_way(graph.spilled):
        graph = _Graph(schedule.code)
        cost = graph.spill_cost + schedule.cost
        if cost < least:
            best, least = graph, cost
    unordered = plain.spill_cost + schedule.cost_of_text
    return (best, least) if least < unordered else (plain, unordered)


class _Graph:
    """The interference graph: neighbours need different names."""

    def __init__(self, code: list[CodeLine]) -> None:
        self.code = code
        self.flow = ControlFlow(code)
        self.numbering = Numbering(code)
        self.count = len(self.numbering.registers)
        self.neighbours = [0] * self.count
        self.in_streams = 0
        self.weights = [0.0] * self.count
        self.partners: dict[int, list[int]] = {}
        self.apart: dict[Register, set[Register | int]] = {}
        """Registers and numbers that a register's number should not equal, so that the core does not wait for it."""
        self.spilled: list[Register] = []
        self._kinds = {kind: self._mask_of(kind) for kind in ("x", "f")}
        self._build()
        self._separate(())
        self.names = self._coloured()
        if self.spilled and self.apart:
            self.apart.clear()
            self.names = self._coloured()

    def settle(self) -> None:
        """Name the registers again, now that copies inside one register are known, if numbers still meet.

        The offsets of branches depend on these copies.
        """
        assignment, before = Assignment(self.code, self.names), self.names
        repeated = bodies(self.code)
        self._separate(
            {i for i, kept in zip(self.code, repeated, strict=True) if not kept and is_left_out(assignment, i)}
        )
        met = self._met()
        if met:
            self.names = self._coloured()
            if self.spilled or self._met() >= met:
                self.names = before
                self.spilled.clear()

    def slots(self, function: SnitchCode) -> dict[Register, FrameOffset]:
        """New slots in the stack frame for the spilled registers; registers that are never live together share one."""
        found: dict[Register, FrameOffset] = {}
        held: dict[FrameOffset, int] = {}
        for register in self.spilled:
            if register.constant is None:
                bit = self.numbering.bits[register]
                near, same = self.neighbours[bit.bit_length() - 1], self._kinds[register.kind]
                free = (slot for slot, members in held.items() if members & same and not members & near)
                slot = next(free, None) or function.slot()
                held[slot] = held.get(slot, 0) | bit
                found[register] = slot
        return found

    def _separate(self, left_out: Collection[CodeLine]) -> None:
        self.apart = {}
        for register, other in false_dependences(self.code, self.flow, left_out, Timing()):
            self.apart.setdefault(register, set()).add(other)
            if isinstance(other, Register):
                self.apart.setdefault(other, set()).add(register)

    def _met(self) -> int:
        """The number of false dependences."""
        names = self.names
        return sum(
            _number(names[register]) == (_number(names[other]) if isinstance(other, Register) else other)
            for register, others in self.apart.items()
            for other in others
        )

    @property
    def spill_cost(self) -> float:
        """The cost of loads and stores of spilled registers; infinite if one of them must not be spilled."""
        return sum(self._cost(self.numbering.bits[r].bit_length() - 1) for r in self.spilled)

    def _mask_of(self, kind: str) -> int:
        return self.numbering.mask([r for r in self.numbering.registers if r.kind == kind])

    def _build(self) -> None:
        numbering, flow = self.numbering, self.flow
        after = live_after(flow, numbering)
        streaming, rare = False, rarities(self.code)
        for position, instruction in enumerate(self.code):
            live = after[position]
            defined = numbering.mask(instruction.defs)
            copied = numbering.mask(instruction.uses) if instruction.name in COPIES else 0
            for register in tracked(instruction.defs):
                number = numbering.bits[register].bit_length() - 1
                same = self._kinds[register.kind]
                self.neighbours[number] |= (live | defined) & same & ~numbering.bits[register] & ~copied
                if copied:
                    self._pair(number, copied.bit_length() - 1)
            if instruction.name == "csrsi":
                streaming = True
            if streaming:
                self.in_streams |= live | defined | numbering.mask(instruction.uses)
            if instruction.name == "csrci":
                streaming = False
            cost = frequency(flow.depths[position]) * (_RARE if rare[position] else 1)
            for register in tracked((*instruction.defs, *instruction.uses)):
                self.weights[numbering.bits[register].bit_length() - 1] += cost
        self._symmetric()

    def _pair(self, one: int, other: int) -> None:
        self.partners.setdefault(one, []).append(other)
        self.partners.setdefault(other, []).append(one)

    def _symmetric(self) -> None:
        for number in range(self.count):
            bit, mask = 1 << number, self.neighbours[number]
            while mask:
                low = mask & -mask
                self.neighbours[low.bit_length() - 1] |= bit
                mask ^= low

    def _allowed(self, number: int) -> tuple[str, ...]:
        kind = self.numbering.registers[number].kind
        names = (*TEMPORARY[kind], *SAVED[kind])
        return tuple(n for n in names if n not in STREAM_NAMES) if self.in_streams >> number & 1 else names

    def _coloured(self) -> dict[Register, str]:
        """Names of registers by colouring; registers without a name become `spilled`."""
        names: dict[int, str] = {}
        self.spilled.clear()
        free = [k for k, r in enumerate(self.numbering.registers) if r.fixed is None]
        for number, register in enumerate(self.numbering.registers):
            if register.fixed is not None:
                names[number] = register.fixed
        for number in reversed(self._order(free)):
            taken = {names[n] for n in self._members(self.neighbours[number]) if n in names}
            allowed = [n for n in self._allowed(number) if n not in taken]
            if not allowed:
                self.spilled.append(self.numbering.registers[number])
                continue
            wanted = {names[p] for p in self.partners.get(number, ()) if p in names}
            avoided = self._avoided(number, names)
            names[number] = allowed[0]
            if wanted or avoided:
                names[number] = min(allowed, key=lambda n: (n not in wanted, _number(n) in avoided))
        return {self.numbering.registers[k]: name for k, name in names.items()}

    def _avoided(self, number: int, names: Mapping[int, str]) -> set[int]:
        """The numbers that a register should not have."""
        found: set[int] = set()
        for other in self.apart.get(self.numbering.registers[number], ()):
            if isinstance(other, int):
                found.add(other)
            elif (name := names.get(self.numbering.bits[other].bit_length() - 1)) is not None:
                found.add(_number(name))
        return found

    def _order(self, free: list[int]) -> list[int]:
        """The order in which registers are removed from the graph; they are named in reverse order."""
        remaining = sum(1 << k for k in free)
        fixed = ~remaining
        room = {k: len(self._allowed(k)) - (self.neighbours[k] & fixed).bit_count() for k in free}
        degree = {k: (self.neighbours[k] & remaining).bit_count() for k in free}
        easy = [k for k in free if degree[k] < room[k]]
        order: list[int] = []
        while remaining:
            number = self._next_easy(easy, remaining)
            if number is None:
                number = min(self._members(remaining), key=lambda k: (self._cost(k) / (degree[k] + 1), k))
            remaining ^= 1 << number
            order.append(number)
            for neighbour in self._members(self.neighbours[number] & remaining):
                degree[neighbour] -= 1
                if degree[neighbour] == room[neighbour] - 1:
                    easy.append(neighbour)
        return order

    @staticmethod
    def _next_easy(easy: list[int], remaining: int) -> int | None:
        while easy:
            number = easy.pop()
            if remaining >> number & 1:
                return number
        return None

    def _cost(self, number: int) -> float:
        register = self.numbering.registers[number]
        if register.pinned:
            return _FOREVER
        return self.weights[number] * (0.5 if register.constant is not None else 1.0)

    @staticmethod
    def _members(mask: int) -> list[int]:
        found: list[int] = []
        while mask:
            low = mask & -mask
            found.append(low.bit_length() - 1)
            mask ^= low
        return found


def _number(name: str) -> int:
    return FLOAT[name] if name in FLOAT else INTEGER[name]


def _spill(
    code: list[CodeLine], spilled: Sequence[Register], slots: Mapping[Register, FrameOffset], name: str
) -> list[CodeLine]:
    """The code with the spilled registers kept in their slots of the stack frame, or recomputed before their uses."""
    for register in spilled:
        if register.pinned:
            kind = "floating-point" if register.kind == "f" else "integer"
            raise LoweringError(
                f"kernel '{name}': not enough {kind} registers for a hardware loop and the values kept across "
                "it; unroll less, or keep less in registers"
            )
    chosen = set(spilled)
    result: list[CodeLine] = []
    for instruction in code:
        used = [r for r in dict.fromkeys(instruction.uses) if r in chosen]
        defined = [r for r in dict.fromkeys(instruction.defs) if r in chosen]
        if not used and not defined:
            result.append(instruction)
            continue
        if instruction.name == "li" and defined and defined[0].constant is not None:
            continue
        fresh = {r: Register(r.kind, pinned=True) for r in (*used, *defined)}
        for register in used:
            result += _reload(register, fresh[register], slots)
        instruction.uses = tuple(fresh.get(r, r) for r in instruction.uses)
        instruction.defs = tuple(fresh.get(r, r) for r in instruction.defs)
        result.append(instruction)
        for register in defined:
            result += _access("sw" if register.kind == "x" else "fsd", (), (fresh[register],), slots[register])
    return result


def _reload(register: Register, to: Register, slots: Mapping[Register, FrameOffset]) -> list[CodeLine]:
    if register.constant is not None:
        return [CodeLine("li", (to,), (), register.constant)]
    return _access("lw" if register.kind == "x" else "fld", (to,), (), slots[register])


def _access(name: str, defs: tuple[Register, ...], stored: tuple[Register, ...], slot: FrameOffset) -> list[CodeLine]:
    """A load or store of a slot; the address of a slot that is far from the stack pointer has its own register."""
    assert slot.area == SLOT
    if slot.offset < NEAR_SLOTS:
        return [CodeLine(name, defs, (SP, *stored), slot)]
    address = Register("x", pinned=True)
    return [CodeLine("addi", (address,), (SP,), slot), CodeLine(name, defs, (address, *stored), 0)]
