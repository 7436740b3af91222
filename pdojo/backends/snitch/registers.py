"""Register allocation by graph colouring, and an independent check of the result.

Values that do not fit are spilled: a constant is recomputed; other values are stored in the stack frame after each
write and loaded before each use. If values in the body of a hardware loop do not fit, the kernel is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pdojo.backends.snitch.code import COPIES, SLOT, SP, CodeLine, FrameOffset, Kind, Register, SnitchCode
from pdojo.backends.snitch.liveness import Flow, Numbering, live_after, tracked
from pdojo.backends.snitch.schedule import Schedule
from pdojo.backends.snitch.simulator.configuration import Timing
from pdojo.errors import LoweringError

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
STREAM_NAMES = frozenset(("ft0", "ft1", "ft2"))
_ROUNDS = 20
_FOREVER = float("inf")


@dataclass(frozen=True)
class Assignment:
    """Code and the names of its registers."""

    code: list[CodeLine]
    names: Mapping[Register, str]

    def name(self, register: Register) -> str:
        """The name of a register."""
        return register.fixed or self.names[register]


def assign(code: list[CodeLine], function: SnitchCode, name: str) -> Assignment:
    """Schedule the code where that adds no spills, and name its registers.

    Raises LoweringError if the registers do not suffice for a hardware loop.
    """
    graph = _scheduled(code)
    for _ in range(_ROUNDS):
        if not graph.spilled:
            assignment = Assignment(graph.code, graph.names)
            check(assignment)
            return assignment
        graph = _Graph(_spill(graph.code, graph.spilled, function, name))
    raise LoweringError(f"kernel '{name}': registers did not suffice after {_ROUNDS} rounds of spilling")


def _scheduled(code: list[CodeLine]) -> _Graph:
    """The scheduled code; blocks whose new order would add spills keep their order."""
    schedule = Schedule(code, Timing())
    graph = _Graph(schedule.code)
    if not graph.spilled:
        return graph
    plain = _Graph(code)
    while graph.spill_cost > plain.spill_cost and schedule.give_way(graph.spilled):
        graph = _Graph(schedule.code)
    return graph


class _Graph:
    """The interference graph: neighbours need different names."""

    def __init__(self, code: list[CodeLine]) -> None:
        self.code = code
        self.numbering = Numbering(code)
        self.count = len(self.numbering.registers)
        self.neighbours = [0] * self.count
        self.in_streams = 0
        self.weights = [0.0] * self.count
        self.partners: dict[int, list[int]] = {}
        self.spilled: list[Register] = []
        self._kinds = {kind: self._mask_of(kind) for kind in ("x", "f")}
        self._build()
        self.names = self._coloured()

    @property
    def spill_cost(self) -> float:
        """The cost of loads and stores of spilled registers; infinite if one of them must not be spilled."""
        return sum(self._cost(self.numbering.bits[r].bit_length() - 1) for r in self.spilled)

    def _mask_of(self, kind: str) -> int:
        return self.numbering.mask([r for r in self.numbering.registers if r.kind == kind])

    def _build(self) -> None:
        numbering, flow = self.numbering, Flow(self.code)
        after = live_after(flow, numbering)
        streaming = False
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
            cost = 10.0 ** min(flow.depths[position], 8)
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
        """Names of registers by colouring; registers without a name are added to `spilled`."""
        names: dict[int, str] = {}
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
            names[number] = next((n for n in allowed if n in wanted), allowed[0])
        return {self.numbering.registers[k]: name for k, name in names.items()}

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


def _spill(code: list[CodeLine], spilled: Sequence[Register], function: SnitchCode, name: str) -> list[CodeLine]:
    """The code with the spilled registers kept in the stack frame, or recomputed before their uses."""
    for register in spilled:
        if register.pinned:
            kind = "floating-point" if register.kind == "f" else "integer"
            raise LoweringError(
                f"kernel '{name}': not enough {kind} registers for a hardware loop and what is kept around it; "
                "unroll less, or keep less in registers"
            )
    chosen = set(spilled)
    slots = {r: function.slot() for r in spilled if r.constant is None}
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
        result += [_reload(r, fresh[r], slots) for r in used]
        instruction.uses = tuple(fresh.get(r, r) for r in instruction.uses)
        instruction.defs = tuple(fresh.get(r, r) for r in instruction.defs)
        result.append(instruction)
        result += [CodeLine("sw" if r.kind == "x" else "fsd", (), (SP, fresh[r]), slots[r]) for r in defined]
    return result


def _reload(register: Register, to: Register, slots: Mapping[Register, FrameOffset]) -> CodeLine:
    if register.constant is not None:
        return CodeLine("li", (to,), (), register.constant)
    assert slots[register].area == SLOT
    return CodeLine("lw" if register.kind == "x" else "fld", (to,), (SP,), slots[register])


State: TypeAlias = tuple[int, int]
"""Two sets, as masks: registers whose value is still in its named register, and registers overwritten since."""


def check(assignment: Assignment) -> None:
    """Trace the values through the named registers. Raises AssertionError if an operand is overwritten before its use.

    An operand that some path to its use does not write is no error, because guards exclude such paths. The check shares
    no code with the allocation, so a mistake there becomes an error and not a wrong result.
    """
    code, flow, numbering = assignment.code, Flow(assignment.code), Numbering(assignment.code)
    sharing: dict[str, int] = {}
    for register, bit in numbering.bits.items():
        name = assignment.name(register)
        sharing[name] = sharing.get(name, 0) | bit
    states: list[State | None] = [None] * len(code)
    states[0] = (0, 0)
    pending = [0]
    while pending:
        position = pending.pop()
        state = states[position]
        assert state is not None
        following = _after(assignment, numbering, sharing, code[position], state)
        for target in flow.successors[position]:
            known = states[target]
            merged = following if known is None else _merged(known, following)
            if merged != known:
                states[target] = merged
                pending.append(target)
    for instruction, state in zip(code, states, strict=True):
        wrong = 0 if state is None else numbering.mask(instruction.uses) & state[1]
        for register in numbering.members(wrong):
            name = assignment.name(register)
            assert register.fixed, f"{instruction} does not find its operand in {name}"
            assert name in ("zero", "sp"), f"{instruction} does not find what was passed in {name}"


def _after(
    assignment: Assignment, numbering: Numbering, sharing: Mapping[str, int], instruction: CodeLine, state: State
) -> State:
    kept, lost = state
    if is_left_out(assignment, instruction):
        # A copy inside one named register overwrites nothing.
        bit = numbering.mask(instruction.defs)
        return kept | bit, lost & ~bit
    for register in tracked(instruction.defs):
        bit = numbering.bits[register]
        overwritten = kept & sharing[assignment.name(register)] & ~bit
        kept, lost = (kept & ~overwritten) | bit, (lost | overwritten) & ~bit
    return kept, lost


def _merged(one: State, other: State) -> State:
    lost = one[1] | other[1]
    return (one[0] | other[0]) & ~lost, lost


def is_left_out(assignment: Assignment, instruction: CodeLine) -> bool:
    """Whether an instruction copies a register to itself, and so is omitted."""
    if instruction.name not in COPIES:
        return False
    return assignment.name(instruction.uses[0]) == assignment.name(instruction.defs[0])
