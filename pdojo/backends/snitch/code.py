"""The code of a function before register allocation: instructions, open loops, code before loops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
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
    """A virtual register, to become any register of its kind or the register named `fixed`.

    Accumulators and pointers are written more than once.
    """

    kind: Kind
    fixed: str | None = None
    """The name of the register that it must become; None: any register."""
    constant: int | None = None
    """The integer that it always holds, which can be recomputed instead of kept; None if the value varies."""
    pinned: bool = False
    """Whether it must not be spilled, because its uses allow no loads and stores beside them."""
    area: Hashable = None
    """The memory area that it points into; pointers into other areas never reach it. None if unknown."""


ZERO = Register("x", "zero")
SP = Register("x", "sp")
STREAMS = tuple(Register("f", f"ft{k}") for k in range(3))
"""The stream registers, while streams are on."""

CONSTANTS = "constants"
"""The area of the table of constants, which nothing writes."""
ARRAYS = "arrays"
ARGUMENT = "argument"
SLOT = "slot"


@dataclass(frozen=True, slots=True)
class FrameOffset:
    """An offset into the stack frame's arrays, slots or arguments, whose position depends on the number of slots."""

    area: Literal["arrays", "argument", "slot"]
    offset: int


Immediate: TypeAlias = int | str | FrameOffset | None


@dataclass(eq=False, slots=True)
class CodeLine:
    """An instruction, a label (`label`), or a mark: `entry`, `frep.end`."""

    name: str
    defs: tuple[Register, ...] = ()
    uses: tuple[Register, ...] = ()
    immediate: Immediate = None

    def __repr__(self) -> str:
        return f"<{self.name} {self.immediate if self.immediate is not None else ''}>"


class RareLabel(str):
    """A label after code that a branch almost always skips."""

    __slots__ = ()


_SCRATCHES = 32
"""Number of slots that `scratch` uses in rotation."""
MARKS = frozenset(("label", "entry", "frep.end"))
"""Pseudo instructions without code."""
BRANCHES = frozenset(("beq", "bne", "blt", "bge", "bltu", "bgeu", "j"))
"""Instructions whose immediate is a label."""
LOADS = frozenset(("lb", "lbu", "lh", "lhu", "lw", "flh", "flw", "fld"))
STORES = frozenset(("sb", "sh", "sw", "fsh", "fsw", "fsd"))
"""Instructions whose uses are the base and then the value."""
COPIES = frozenset(("mv", "fmv.d"))
"""Instructions that copy a whole register."""
ADDING = ("vfmac", "vfmre", "vfsum", "vfdotp")
"""Beginnings of the names of instructions that also read the register that they write."""
EFFECTS = BRANCHES | STORES | MARKS | frozenset(("scfgwi", "csrsi", "csrci", "frep.o", "scfgr", "fence", "ret"))
"""Instructions that are kept even if their results are unused."""


class FrameKind(Enum):
    """The kinds of open frames."""

    NEST = auto()
    """A top-level node of the kernel, which runs once."""
    LOOP = auto()
    IF = auto()
    """Code that is skipped if a guard fails."""
    HARDWARE_LOOP = auto()


@dataclass(frozen=True, slots=True)
class Span:
    """The iterations of a loop with bounds that are computed before it."""

    trips: Register
    """Their number; less than 1 for none."""
    start: Register | None
    """The first one; None for 0."""
    runs: bool
    """Whether there is at least one."""


@dataclass(eq=False)
class Frame:
    """Code under construction: before the frame, and at the start, middle and end of each iteration."""

    kind: FrameKind
    scope: Scope | None
    before: list[CodeLine] = field(default_factory=list[CodeLine])
    head: list[CodeLine] = field(default_factory=list[CodeLine])
    body: list[CodeLine] = field(default_factory=list[CodeLine])
    tail: list[CodeLine] = field(default_factory=list[CodeLine])
    span: Span | None = None
    """The iterations, if the extent alone does not tell."""
    counter: Register | None = None
    """The register with the iteration's number; None if nothing uses it."""
    advancing: list[tuple[Register, int]] = field(default_factory=list[tuple[Register, int]])
    """Pointers, with the non-zero number of bytes by which each iteration advances them."""

    @property
    def extent(self) -> int:
        """Number of iterations."""
        return self.scope.extent if self.scope is not None else 1

    @property
    def depth(self) -> int | None:
        """The depth of the loop's variable; None for a frame that is no loop."""
        return self.scope.depth if self.scope is not None and self.kind is FrameKind.LOOP else None


class SnitchCode:
    """The function under construction. Instructions go to the innermost open frame, or to the list given to `at`."""

    def __init__(self, prefix: str) -> None:
        """`prefix` is the beginning of all label names."""
        self.prefix = prefix
        self.finished: list[CodeLine] = []
        self.frames: list[Frame] = []
        self.slots = 0
        """Number of 8-byte slots in the stack frame."""
        self._labels = 0
        self._scratch: list[FrameOffset] = []
        self._scratches = 0
        self._kept: dict[int, dict[Hashable, Register]] = {}
        self._target: list[CodeLine] | None = None
        self._nearby: dict[Hashable, Register] | None = None
        """The constants of code that hardly ever runs, computed there; None outside of such code."""

    # The place of instructions

    @property
    def place(self) -> list[CodeLine]:
        """The list to which the next instruction is appended."""
        if self._target is not None:
            return self._target
        return self.frames[-1].body if self.frames else self.finished

    @contextmanager
    def at(self, target: list[CodeLine]) -> Generator[None]:
        """A context in which instructions go to another list."""
        previous = self._target
        self._target = target
        yield
        self._target = previous

    @contextmanager
    def rarely(self, what: str, condition: Callable[[str], None]) -> Generator[Mapping[Hashable, Register]]:
        """A context in which appended code hardly ever runs; `condition` appends the branch to its end.

        Its constants are computed in the code itself, so that they take no registers elsewhere; yields them. The first
        use of a constant must not be in a branch inside. `what` becomes part of the label's name.
        """
        behind = RareLabel(self.label(what))
        condition(behind)
        previous, self._nearby = self._nearby, {}
        yield self._nearby
        self._nearby = previous
        self.emit("label", immediate=behind)

    @property
    def hoisted(self) -> list[CodeLine]:
        """The list for values that are constant during the top-level nest."""
        return self.frames[0].before if self.frames else self.finished

    def label(self, what: str) -> str:
        """A new label."""
        self._labels += 1
        return f".L{self.prefix}_{what}{self._labels}"

    def slot(self) -> FrameOffset:
        """A new 8-byte slot in the stack frame."""
        self.slots += 1
        return FrameOffset(SLOT, 8 * (self.slots - 1))

    def scratch(self) -> FrameOffset:
        """A slot for moving bits between kinds of registers; later calls return other slots."""
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
    ) -> CodeLine:
        """Append an instruction."""
        instruction = CodeLine(name, tuple(defs), tuple(uses), immediate)
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

    def keep(self, key: Hashable, make: Callable[[], Register], *, everywhere: bool = False) -> Register:
        """The value that `make` computes before the nest, only once for each key.

        In code that hardly ever runs, `make` computes it there, unless `everywhere`.
        """
        if self._nearby is not None and not everywhere:
            if key not in self._nearby:
                self._nearby[key] = make()
            return self._nearby[key]
        known = self._kept.setdefault(id(self.hoisted), {})
        if key not in known:
            with self.at(self.hoisted):
                known[key] = make()
        return known[key]

    def li(self, value: int) -> Register:
        """A register with a constant, kept for the whole nest; 0 is the register `zero`."""
        value = (value + (1 << 31)) % (1 << 32) - (1 << 31)
        if value == 0:
            return ZERO

        def make() -> Register:
            made = Register("x", constant=value)
            self.emit("li", (made,), (), value)
            return made

        return self.keep(("li", value), make)

    def add_immediate(self, base: Register, value: int, to: Register | None = None) -> Register:
        """A register with `base + value`."""
        if value == 0 and to is None:
            return base
        if -2048 <= value < 2048:
            return self.x("addi", base, immediate=value, to=to)
        return self.x("add", base, self.li(value), to=to)

    def move(self, source: Register, to: Register) -> None:
        """Copy all bits of a register to another one of its kind."""
        if source is not to:
            self.emit("mv" if to.kind == "x" else "fmv.d", (to,), (source,))

    # Frames

    @contextmanager
    def frame(self, kind: FrameKind, scope: Scope | None = None, span: Span | None = None) -> Generator[Frame]:
        """A context in which a frame is open; the caller appends its code with `close_*`."""
        frame = Frame(kind, scope, span=span)
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
        """Append the code of a frame, which a branch to the label `skip` jumps over."""
        place = self.place
        place += [*frame.before, *frame.head, *frame.body, *frame.tail]
        self.emit("label", immediate=skip)

    def close_loop(self, frame: Frame) -> None:
        """Append a loop, controlled by its counter, by a pointer that it advances, or by an extra register."""
        place, extent, span = self.place, frame.extent, frame.span
        label = self.label("loop")
        control: list[CodeLine] = []
        if frame.counter is not None and (span is None or span.start is None):
            end = self.li(extent) if span is None else span.trips
            branch = CodeLine("bne", (), (frame.counter, end), label)
        elif frame.advancing and span is None:
            pointer, step = frame.advancing[0]
            with self.at(frame.before):
                end = self.add_immediate(pointer, step * extent, Register("x"))
            branch = CodeLine("bne", (), (pointer, end), label)
        else:
            count = Register("x")
            with self.at(frame.before):
                if span is None:
                    self.emit("li", (count,), (), extent)
                else:
                    self.move(span.trips, count)
            control.append(CodeLine("addi", (count,), (count,), -1))
            branch = CodeLine("bne", (), (count, ZERO), label)
        place += frame.before
        repeated = [CodeLine("label", immediate=label), *frame.head, *frame.body, *frame.tail, *control, branch]
        if span is None or span.runs:
            place += repeated
            return
        skip = self.label("none")
        self.emit("bge", (), (ZERO, span.trips), skip)
        place += repeated
        self.emit("label", immediate=skip)

    def close_hardware_loop(self, frame: Frame, expected: int, trips: int, machine: str) -> None:
        """Append a hardware loop of `expected` instructions (an inner loop's count once) and `trips` iterations.

        Iteration counts of inner loops are set before the nest. Raises LoweringError if the body's length differs from
        the count in the analysis of hardware loops.
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


def is_repeatable(instruction: CodeLine) -> bool:
    """Whether an instruction only uses the floating-point unit, so that hardware loops can repeat it."""
    registers = (*instruction.defs, *instruction.uses)
    return (
        bool(instruction.defs) and instruction.name not in LOADS and all(register.kind == "f" for register in registers)
    )
