"""Addresses of elements: pointers that loops advance, and index expressions as integers.

A pointer serves all accesses whose addresses differ by a constant that loads and stores can encode. It is set before
the outermost loop that changes it. At the end of each loop's body, one instruction adds the stride of that loop's
variable, minus the distance that the inner loops have already added. Divisions of variables are computed at the start
of the innermost loop whose variable they use.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from pdojo.backends.common.addresses import Exchange, bind
from pdojo.backends.snitch.code import ZERO, Frame, FrameKind, Register, SnitchCode
from pdojo.dialect.affine import Atom, Div, Expr, Lookup, Size, split_remainders
from pdojo.errors import LoweringError

_LOW, _HIGH = -2048, 2048
_MOST = (1 << 31) - 1
"""The greatest integer in a register."""


@dataclass(frozen=True, slots=True)
class Root:
    """The start of a buffer: a number of bytes after the address in a register."""

    base: Register
    offset: int


@dataclass(frozen=True, slots=True)
class OffsetAddress:
    """The address of a load or store: a number of bytes after the address in a register."""

    base: Register
    offset: int


@dataclass(eq=False)
class _Pointer:
    register: Register
    anchor: int
    """The constant part of the address in the register."""
    owner: Frame | None
    """The frame whose code sets the pointer, which is valid while that frame is open; None: always valid."""


class Addresses:
    """The pointers of the open frames."""

    def __init__(self, code: SnitchCode, known: Mapping[int, int], extents: Sequence[int]) -> None:
        """`known` has values of variables, `extents` the open scopes' extents; both change during the walk."""
        self.code = code
        self.known = known
        self.extents = extents
        self._pointers: dict[Hashable, list[_Pointer]] = {}

    def loops(self) -> dict[int, Frame]:
        """The open loops, keyed by depth."""
        return {f.depth: f for f in self.code.frames if f.depth is not None}

    def place(self, root: Root, expression: Expr) -> OffsetAddress:
        """The place `expression` bytes after the start of a buffer."""
        bound = bind(expression, self.known, self.extents) + root.offset
        return self._place(root.base, bound)

    def _place(self, base: Register, address: Expr) -> OffsetAddress:
        constant = address.constant
        if not address.terms and _LOW <= constant < _HIGH:
            return OffsetAddress(base, constant)
        key = self._key(base, address)
        for pointer in self._pointers.setdefault(key, []):
            is_open = pointer.owner is None or pointer.owner in self.code.frames
            if is_open and _LOW <= constant - pointer.anchor < _HIGH:
                return OffsetAddress(pointer.register, constant - pointer.anchor)
        pointer = self._made(base, address)
        self._pointers[key].append(pointer)
        return OffsetAddress(pointer.register, constant - pointer.anchor)

    def _key(self, base: Register, address: Expr) -> Hashable:
        loops = self.loops()
        used = tuple((depth, loops[depth]) for depth in sorted(address.variables()))
        return base, address.terms, used

    def _made(self, base: Register, address: Expr) -> _Pointer:
        frames = self.code.frames
        position = {f.depth: k for k, f in enumerate(frames) if f.depth is not None}
        divided = [a for a, _ in address.terms if isinstance(a, Div)]
        if divided:
            level = max(position[v] for a in divided for v in a.numerator.variables())
            return self._divided(base, address, level)
        steps = {position[a]: c for a, c in address.terms if isinstance(a, int)}
        if not steps:
            # An address too far from the base is computed once, before the nest.
            key = ("address", base, address.constant)
            register = self.code.keep(key, lambda: self._far(base, address.constant))
            return _Pointer(register, address.constant, frames[0] if frames else None)
        first = min(steps)
        pointer = Register("x", area=base.area)
        with self.code.at(frames[first].before):
            if address.constant:
                self.code.add_immediate(base, address.constant, pointer)
            else:
                self.code.move(base, pointer)
        self._advance(pointer, steps, first)
        return _Pointer(pointer, address.constant, frames[first])

    def _far(self, base: Register, offset: int) -> Register:
        return self.code.add_immediate(base, offset, Register("x", area=base.area))

    def _advance(self, pointer: Register, steps: Mapping[int, int], first: int) -> None:
        """Append code in each open frame from `first` on that adds the frame's stride to the pointer."""
        added = 0
        for position in range(len(self.code.frames) - 1, first - 1, -1):
            frame, step = self.code.frames[position], steps.get(position, 0)
            if frame.kind is FrameKind.HARDWARE_LOOP and step:
                raise LoweringError("a hardware loop would have to change an address; stream what it accesses")
            if step - added:
                with self.code.at(frame.tail):
                    self.code.add_immediate(pointer, step - added, pointer)
            if step:
                frame.advancing.append((pointer, step))
            added = frame.extent * step

    def _divided(self, base: Register, address: Expr, level: int) -> _Pointer:
        frames = self.code.frames
        position = {f.depth: k for k, f in enumerate(frames) if f.depth is not None}
        outer = Expr(
            address.constant, tuple((a, c) for a, c in address.terms if isinstance(a, int) and position[a] <= level)
        )
        quotients = Expr(0, tuple((a, c) for a, c in address.terms if isinstance(a, Div)))
        steps = {position[a]: c for a, c in address.terms if isinstance(a, int) and position[a] > level}
        near = self._place(base, outer)
        pointer = Register("x", area=base.area)
        with self.code.at(frames[level].head):
            self.code.x("add", near.base, self.value(quotients), to=pointer)
        if steps:
            self._advance(pointer, steps, level + 1)
        return _Pointer(pointer, address.constant - near.offset, frames[level])

    def exchanged(self, place: OffsetAddress, exchange: Exchange, width: int) -> OffsetAddress:
        """The place after adding a swizzle's exchange; elements have `width` bytes."""
        code = self.code
        granule = code.x("xor", self.number(exchange.left), self.number(exchange.right))
        return OffsetAddress(code.x("add", place.base, self._multiple(granule, exchange.factor * width)), place.offset)

    # Index expressions as integers

    def number(self, expression: Expr, *, exact: bool = False) -> Register:
        """The current value of an index expression, modulo 2^32 unless `exact`."""
        bound = bind(expression, self.known, self.extents)
        return self.exact(bound) if exact else self.value(bound)

    def exact(self, bound: Expr) -> Register:
        """The value of an expression over open loops' variables. Raises LoweringError if it may overflow."""
        low, high = bound.bounds(self.extents)
        if low < -_MOST - 1 or high > _MOST:
            raise LoweringError(
                f"the index expression '{bound.render('{{{}}}'.format)}' goes from {low} to {high}, and integers of a "
                f"Snitch core have 32 bits"
            )
        return self.value(bound)

    def value(self, bound: Expr) -> Register:
        """The value of an expression over open loops' variables, modulo 2^32; dividends are exact.

        Raises LoweringError for a dividend that may overflow 32 bits.
        """
        rest, remainders = split_remainders(bound)
        # Numerators in canonical form are never negative, so rounding down and rounding to zero agree.
        total: Register | None = None
        for atom, factor in rest.terms:
            total = self._plus_multiple(total, self._atom(atom), factor)
        for numerator, divisor, factor in remainders:
            total = self._plus_multiple(total, self._remainder(self.exact(numerator), divisor), factor)
        if total is None:
            return self.code.li(rest.constant)
        return self.code.add_immediate(total, rest.constant)

    def counter(self, depth: int) -> Register:
        """The variable of an open loop, kept in a register from the first request on."""
        frame = self.loops()[depth]
        if frame.counter is None:
            frame.counter = Register("x")
            with self.code.at(frame.before):
                self.code.emit("li", (frame.counter,), (), 0)
            with self.code.at(frame.tail):
                self.code.x("addi", frame.counter, immediate=1, to=frame.counter)
        return frame.counter

    def _plus_multiple(self, total: Register | None, value: Register, factor: int) -> Register:
        code = self.code
        if factor == -1 and total is not None:
            return code.x("sub", total, value)
        scaled = self._multiple(value, factor)
        return scaled if total is None else code.x("add", total, scaled)

    def _multiple(self, value: Register, factor: int) -> Register:
        if factor == 1:
            return value
        if factor == -1:
            return self.code.x("sub", ZERO, value)
        if factor > 0 and factor & (factor - 1) == 0:
            return self.code.x("slli", value, immediate=factor.bit_length() - 1)
        return self.code.x("mul", value, self.code.li(factor))

    def _atom(self, atom: Atom) -> Register:
        assert not isinstance(atom, Lookup | Size), "kernels with lookups or sizes are refused"
        return self._quotient(atom) if isinstance(atom, Div) else self.counter(atom)

    def _quotient(self, atom: Div) -> Register:
        value = self.exact(atom.numerator)
        if atom.divisor & (atom.divisor - 1) == 0:
            return self.code.x("srai", value, immediate=atom.divisor.bit_length() - 1)
        return self.code.x("div", value, self.code.li(atom.divisor))

    def _remainder(self, value: Register, divisor: int) -> Register:
        if divisor & (divisor - 1) == 0 and divisor <= _HIGH:
            return self.code.x("andi", value, immediate=divisor - 1)
        return self.code.x("rem", value, self.code.li(divisor))
