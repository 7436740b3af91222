"""Machine code of one function while registers have no names yet: instructions, open loops, what runs before them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal, TypeAlias

from pdojo.dialect.nest import Scope
from pdojo.errors import LoweringError

Kind: TypeAlias = Literal["x", "f"]
"""Integer or floating-point registers."""


@dataclass(eq=False, slots=True)
class Register:
    """A variable of the code that will live in one register of its kind, or in the one that is named.

    It may be written more than once: accumulators and pointers are.
    """

    kind: Kind
    fixed: str | None = None
    """The name of the register that it has to be."""
    constant: int | None = None
    """The number that it always holds (integers only), which can be made again instead of being kept."""
    pinned: bool = False
    """Whether it must have a register throughout: no load or store may stand beside its uses."""
    area: Hashable = None
    """What memory it points into, which no pointer into another area reaches; None where that is not known."""


ZERO = Register("x", "zero")
SP = Register("x", "sp")
STREAMS = tuple(Register("f", f"ft{k}") for k in range(3))
"""What the stream registers are called while streams are on."""

ARRAYS = "arrays"
ARGUMENT = "argument"
SLOT = "slot"


@dataclass(frozen=True, slots=True)
class FrameOffset:
    """A place in the stack frame, known when all slots are: within the arrays, a slot, or an argument beyond it."""

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
"""Places that bits pass through at the same time."""
MARKS = frozenset(("label", "entry", "frep.end"))
"""What takes no cycle."""
BRANCHES = frozenset(("beq", "bne", "blt", "bge", "bltu", "bgeu", "j"))
"""Instructions whose immediate is a label."""
LOADS = frozenset(("lb", "lbu", "lh", "lhu", "lw", "flh", "flw", "fld"))
STORES = frozenset(("sb", "sh", "sw", "fsh", "fsw", "fsd"))
"""Uses are the base, then the value."""
COPIES = frozenset(("mv", "fmv.d"))
"""Instructions that copy a whole register."""
EFFECTS = BRANCHES | STORES | MARKS | frozenset(("scfgwi", "csrsi", "csrci", "frep.o", "scfgr", "fence", "ret"))
"""What may not be left out where its results are not used."""


class FrameKind(Enum):
    """What an open frame of code is."""

    NEST = auto()
    """A top-level node of the kernel; runs once."""
    LOOP = auto()
    IF = auto()
    """What is skipped where a guard does not hold."""
    HARDWARE_LOOP = auto()


@dataclass(eq=False)
class Frame:
    """A piece of code under construction: what runs before it, at the start of each iteration, in it, at its end."""

    kind: FrameKind
    scope: Scope | None
    before: list[Instruction] = field(default_factory=list[Instruction])
    head: list[Instruction] = field(default_factory=list[Instruction])
    body: list[Instruction] = field(default_factory=list[Instruction])
    tail: list[Instruction] = field(default_factory=list[Instruction])
    counter: Register | None = None
    """The number of the iteration, where something asks for it."""
    advancing: list[tuple[Register, int]] = field(default_factory=list[tuple[Register, int]])
    """Pointers and the bytes by which they go on in an iteration, other than 0."""

    @property
    def extent(self) -> int:
        """How often the body runs."""
        return self.scope.extent if self.scope is not None else 1

    @property
    def depth(self) -> int | None:
        """The depth of the loop's variable; None where the frame has none."""
        return self.scope.depth if self.scope is not None and self.kind is FrameKind.LOOP else None


class Code:
    """The function under construction. Instructions go to the innermost open frame, or to a list that is named."""

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
        """Where the next instruction goes."""
        if self._target is not None:
            return self._target
        return self.frames[-1].body if self.frames else self.finished

    @contextmanager
    def at(self, target: list[Instruction]) -> Generator[None]:
        """Append to another list for a while."""
        previous = self._target
        self._target = target
        yield
        self._target = previous

    @property
    def hoisted(self) -> list[Instruction]:
        """Where values go that are the same throughout the top-level nest."""
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
        """A place through which bits pass between registers of different kinds; the next few times it is another."""
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
        """An instruction with an integer result."""
        result = to or Register("x")
        self.emit(name, (result,), uses, immediate)
        return result

    def f(self, name: str, *uses: Register, immediate: Immediate = None, to: Register | None = None) -> Register:
        """An instruction with a floating-point result."""
        result = to or Register("f")
        self.emit(name, (result,), uses, immediate)
        return result

    def keep(self, key: Hashable, make: Callable[[], Register]) -> Register:
        """The value that `make` computes once before the nest, for whoever asks by the same key."""
        known = self._kept.setdefault(id(self.hoisted), {})
        if key not in known:
            with self.at(self.hoisted):
                known[key] = make()
        return known[key]

    def li(self, value: int) -> Register:
        """A constant, kept for the whole nest; zero is a register of its own."""
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
        """Copy a register to one of its kind; a floating-point one as a whole."""
        if source is not to:
            self.emit("mv" if to.kind == "x" else "fmv.d", (to,), (source,))

    # Frames

    @contextmanager
    def frame(self, kind: FrameKind, scope: Scope | None = None) -> Generator[Frame]:
        """Open a frame; whoever opens it closes it with `close_*`."""
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
        """Append what a branch to the label `skip` jumps over."""
        place = self.place
        place += [*frame.before, *frame.head, *frame.body, *frame.tail]
        self.emit("label", immediate=skip)

    def close_loop(self, frame: Frame) -> None:
        """Append a loop: it counts with its counter, a pointer that goes on, or a register of its own."""
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
        """Append a hardware loop of `expected` instructions, those of loops inside counted once, to run `trips` times.

        How often loops inside run is made known before the nest. Raises LoweringError where the body is not what the
        analysis of hardware loops counted.
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
    """Whether an instruction is of the floating-point unit and touches nothing else."""
    registers = (*instruction.defs, *instruction.uses)
    return (
        bool(instruction.defs) and instruction.name not in LOADS and all(register.kind == "f" for register in registers)
    )
