"""Machine code of one function before registers have names: instructions, open loops, code before them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal, TypeAlias

from pdojo.dialect.view.nest import Scope
from pdojo.errors import LoweringError

Kind: TypeAlias = Literal["x", "f"]
"""Integer or floating-point registers."""


@dataclass(eq=False, slots=True)
class Register:
    """A variable of the code that will be one register of its kind, or the register named `fixed`.

    It may be written more than once: accumulators and pointers are.
    """

    kind: Kind
    fixed: str | None = None
    """The name of the register that it must be; None: any."""
    constant: int | None = None
    """The integer that it always holds, and which can be made again instead of being kept; None if it varies."""
    pinned: bool = False
    """Whether it must not be spilled: no load or store may be beside its uses."""
    area: Hashable = None
    """The memory that it points into, which pointers into other areas never reach; None if unknown."""


ZERO = Register("x", "zero")
SP = Register("x", "sp")
STREAMS = tuple(Register("f", f"ft{k}") for k in range(3))
"""The stream registers, while streams are on."""

ARRAYS = "arrays"
ARGUMENT = "argument"
SLOT = "slot"


@dataclass(frozen=True, slots=True)
class FrameOffset:
    """An offset in the arrays, slots or arguments of the stack frame, whose place depends on the number of slots."""

    area: Literal["arrays", "argument", "slot"]
    offset: int


Immediate: TypeAlias = int | str | FrameOffset | None


@dataclass(eq=False, slots=True)
class Instruction:
    """An instruction, a label (`label`), or a mark: `entry`, `frep.end`."""

    name: str
    defs: tuple[Register, ...] = ()
    uses: tuple[Register, ...] = ()
    immediate: Immediate = None

    def __repr__(self) -> str:
        return f"<{self.name} {self.immediate if self.immediate is not None else ''}>"


_SCRATCHES = 32
"""Slots that `scratch` uses in turn."""
MARKS = frozenset(("label", "entry", "frep.end"))
"""Pseudo instructions that take no cycle."""
BRANCHES = frozenset(("beq", "bne", "blt", "bge", "bltu", "bgeu", "j"))
"""Instructions whose immediate is a label."""
LOADS = frozenset(("lb", "lbu", "lh", "lhu", "lw", "flh", "flw", "fld"))
STORES = frozenset(("sb", "sh", "sw", "fsh", "fsw", "fsd"))
"""Instructions whose uses are the base, then the value."""
COPIES = frozenset(("mv", "fmv.d"))
"""Instructions that copy a whole register."""
EFFECTS = BRANCHES | STORES | MARKS | frozenset(("scfgwi", "csrsi", "csrci", "frep.o", "scfgr", "fence", "ret"))
"""Instructions that are kept even if nothing uses their results."""


class FrameKind(Enum):
    """The kinds of open frames of code."""

    NEST = auto()
    """A top-level node of the kernel; runs once."""
    LOOP = auto()
    IF = auto()
    """Code that is skipped if a guard does not hold."""
    HARDWARE_LOOP = auto()


@dataclass(eq=False)
class Frame:
    """A piece of code under construction: before it, and at the start, middle and end of each iteration."""

    kind: FrameKind
    scope: Scope | None
    before: list[Instruction] = field(default_factory=list[Instruction])
    head: list[Instruction] = field(default_factory=list[Instruction])
    body: list[Instruction] = field(default_factory=list[Instruction])
    tail: list[Instruction] = field(default_factory=list[Instruction])
    counter: Register | None = None
    """The number of the iteration; None if nothing uses it."""
    advancing: list[tuple[Register, int]] = field(default_factory=list[tuple[Register, int]])
    """Pointers, and the bytes (not 0) by which each iteration advances them."""

    @property
    def extent(self) -> int:
        """Iterations of the body."""
        return self.scope.extent if self.scope is not None else 1

    @property
    def depth(self) -> int | None:
        """The depth of the loop's variable; None if the frame is no loop."""
        return self.scope.depth if self.scope is not None and self.kind is FrameKind.LOOP else None


class Code:
    """The function under construction. Instructions go to the innermost open frame, or to the list of `at`."""

    def __init__(self, prefix: str) -> None:
        """`prefix` begins the names of labels."""
        self.prefix = prefix
        self.finished: list[Instruction] = []
        self.frames: list[Frame] = []
        self.slots = 0
        """Number of places of 8 bytes in the stack frame."""
        self._labels = 0
        self._scratch: list[FrameOffset] = []
        self._scratches = 0
        self._kept: dict[int, dict[Hashable, Register]] = {}
        self._target: list[Instruction] | None = None

    # Where instructions go

    @property
    def place(self) -> list[Instruction]:
        """The list that the next instruction is appended to."""
        if self._target is not None:
            return self._target
        return self.frames[-1].body if self.frames else self.finished

    @contextmanager
    def at(self, target: list[Instruction]) -> Generator[None]:
        """Append to another list within."""
        previous = self._target
        self._target = target
        yield
        self._target = previous

    @property
    def hoisted(self) -> list[Instruction]:
        """The list for values that are the same throughout the top-level nest."""
        return self.frames[0].before if self.frames else self.finished

    def label(self, what: str) -> str:
        """A fresh label."""
        self._labels += 1
        return f".L{self.prefix}_{what}{self._labels}"

    def slot(self) -> FrameOffset:
        """A fresh place of 8 bytes in the stack frame."""
        self.slots += 1
        return FrameOffset(SLOT, 8 * (self.slots - 1))

    def scratch(self) -> FrameOffset:
        """A slot for passing bits between registers of different kinds; the next calls give other slots."""
        if len(self._scratch) < _SCRATCHES:
            self._scratch.append(self.slot())
        self._scratches += 1
        return self._scratch[(self._scratches - 1) % _SCRATCHES]

    # Instructions

    def emit(
        self,
        name: str,
        defs: Sequence[Register] = (),
        uses: Sequence[Register] = (),
        immediate: Immediate = None,
    ) -> Instruction:
        """Append an instruction."""
        instruction = Instruction(name, tuple(defs), tuple(uses), immediate)
        self.place.append(instruction)
        return instruction

    def x(self, name: str, *uses: Register, immediate: Immediate = None, to: Register | None = None) -> Register:
        """Append an instruction with an integer result; returns the result."""
        result = to or Register("x")
        self.emit(name, (result,), uses, immediate)
        return result

    def f(self, name: str, *uses: Register, immediate: Immediate = None, to: Register | None = None) -> Register:
        """Append an instruction with a floating-point result; returns the result."""
        result = to or Register("f")
        self.emit(name, (result,), uses, immediate)
        return result

    def keep(self, key: Hashable, make: Callable[[], Register]) -> Register:
        """The value that `make` computes before the nest, once for each key."""
        known = self._kept.setdefault(id(self.hoisted), {})
        if key not in known:
            with self.at(self.hoisted):
                known[key] = make()
        return known[key]

    def li(self, value: int) -> Register:
        """A constant, kept for the whole nest; zero has its own register."""
        value = (value + (1 << 31)) % (1 << 32) - (1 << 31)
        if value == 0:
            return ZERO

        def make() -> Register:
            made = Register("x", constant=value)
            self.emit("li", (made,), (), value)
            return made

        return self.keep(("li", value), make)

    def add_immediate(self, base: Register, value: int, to: Register | None = None) -> Register:
        """`base + value`."""
        if value == 0 and to is None:
            return base
        if -2048 <= value < 2048:
            return self.x("addi", base, immediate=value, to=to)
        return self.x("add", base, self.li(value), to=to)

    def move(self, source: Register, to: Register) -> None:
        """Copy a register to another of its kind, with all bits."""
        if source is not to:
            self.emit("mv" if to.kind == "x" else "fmv.d", (to,), (source,))

    # Frames

    @contextmanager
    def frame(self, kind: FrameKind, scope: Scope | None = None) -> Generator[Frame]:
        """Open a frame; the caller appends it with `close_*`."""
        frame = Frame(kind, scope)
        self.frames.append(frame)
        previous, self._target = self._target, None
        yield frame
        assert self.frames[-1] is frame
        self.frames.pop()
        self._target = previous

    def close_nest(self, frame: Frame) -> None:
        """Append the code of a top-level nest."""
        self._kept.pop(id(frame.before), None)
        self.finished += [*frame.before, *frame.head, *frame.body, *frame.tail]

    def close_if(self, frame: Frame, skip: str) -> None:
        """Append the code that a branch to the label `skip` jumps over."""
        place = self.place
        place += [*frame.before, *frame.head, *frame.body, *frame.tail]
        self.emit("label", immediate=skip)

    def close_loop(self, frame: Frame) -> None:
        """Append a loop, controlled by its counter, a pointer that it advances, or an extra register."""
        place, extent = self.place, frame.extent
        label = self.label("loop")
        control: list[Instruction] = []
        if frame.counter is not None:
            branch = Instruction("bne", (), (frame.counter, self.li(extent)), label)
        elif frame.advancing:
            pointer, step = frame.advancing[0]
            with self.at(frame.before):
                end = self.add_immediate(pointer, step * extent, Register("x"))
            branch = Instruction("bne", (), (pointer, end), label)
        else:
            count = Register("x")
            with self.at(frame.before):
                self.emit("li", (count,), (), extent)
            control.append(Instruction("addi", (count,), (count,), -1))
            branch = Instruction("bne", (), (count, ZERO), label)
        place += frame.before
        self.emit("label", immediate=label)
        place += [*frame.head, *frame.body, *frame.tail, *control, branch]

    def close_hardware_loop(self, frame: Frame, expected: int, trips: int, machine: str) -> None:
        """Append a hardware loop of `expected` instructions (those of loops inside count once) and `trips` iterations.

        The iterations of loops inside are set before the nest. Raises LoweringError if the body differs from the count
        of the analysis of hardware loops.
        """
        body = [*frame.head, *frame.body, *frame.tail]
        repeated = [i for i in body if i.name not in ("frep.o", "frep.end")]
        outside = next((i for i in repeated if not is_repeatable(i)), None)
        if outside is not None or len(repeated) != expected:
            found = f"'{outside.name}'" if outside is not None else f"{len(repeated)} instructions"
            raise LoweringError(
                f"a hardware loop of {expected} instructions came out with {found} inside: "
                f"its statements cannot be repeated on {machine}"
            )
        self.place.extend(frame.before)
        self.emit("frep.o", (), (self.li(trips - 1),), expected)
        for instruction in body:
            for register in (*instruction.defs, *instruction.uses):
                register.pinned = True
        self.place.extend(body)
        self.emit("frep.end")


def is_repeatable(instruction: Instruction) -> bool:
    """Whether an instruction belongs to the floating-point unit and touches nothing else."""
    registers = (*instruction.defs, *instruction.uses)
    return (
        bool(instruction.defs) and instruction.name not in LOADS and all(register.kind == "f" for register in registers)
    )
