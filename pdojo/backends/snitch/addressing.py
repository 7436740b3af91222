"""Addresses of elements: pointers that loops advance, and index expressions as integers.

A pointer serves all accesses whose addresses differ by a constant that loads and stores can encode. It is set before
the outermost loop that changes it. At the end of each loop's body, one instruction adds the stride of that loop's
variable, minus the distance that the inner loops have already added. A loop whose bounds are computed would add no
constant distance: its pointer is a copy, made before the loop. Divisions of variables, entries of arrays of indices,
and strides that depend on sizes, are computed at the start of the innermost loop whose variable they use.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pdojo.backends.common.addresses import Address, Exchange, Scaled, bind, is_within
from pdojo.backends.snitch.code import CONSTANTS, ZERO, Frame, FrameKind, Register, SnitchCode, Span
from pdojo.backends.snitch.numbers import Numbers
from pdojo.dialect.affine import Atom, Div, Expr, Lookup, Size, atom_variables, const, split_remainders
from pdojo.dialect.functions import byte_width
from pdojo.dialect.table import Outside, Table
from pdojo.errors import LoweringError

_LOW, _HIGH = -2048, 2048
_MOST = (1 << 31) - 1
"""The greatest integer in a register."""
_LOADS = {"i32": "lw", "i16": "lh", "i8": "lb"}


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


def in_bytes(address: Address, width: int) -> Address:
    """The linear and scaled distances of an address in elements of `width` bytes, in bytes."""
    scaled = tuple(replace(each, factor=each.factor * width) for each in address.scaled)
    return Address(address.linear * width, (), scaled)


class Addresses:
    """The pointers of the open frames."""

    def __init__(self, code: SnitchCode, numbers: Numbers, known: Mapping[int, int], extents: Sequence[int]) -> None:
        """`known` has values of variables, `extents` the open scopes' extents; both change during the walk."""
        self.code = code
        self.numbers = numbers
        self.known = known
        self.extents = extents
        self.sizes: dict[str, Register] = {}
        """The registers with the kernel's sizes."""
        self.indices: dict[str, Register] = {}
        """The registers with the addresses of arrays of indices."""
        self._pointers: dict[Hashable, list[_Pointer]] = {}

    def loops(self) -> dict[int, Frame]:
        """The open loops, keyed by depth."""
        return {f.depth: f for f in self.code.frames if f.depth is not None}

    def place(self, root: Root, address: Address) -> OffsetAddress:
        """The place after the start of a buffer, by distances in bytes, without the exchanges of swizzles."""
        bound = bind(address.linear, self.known, self.extents) + root.offset
        indexed = [replace(each, index=bind(each.index, self.known, self.extents)) for each in address.scaled]
        scaled = tuple(each for each in indexed if each.index != const(0))
        sizes = Expr(0, tuple(t for t in bound.terms if not atom_variables(t[0])))
        fixed = tuple(each for each in scaled if not each.index.variables())
        varying = tuple(each for each in scaled if each.index.variables())
        if not sizes.terms and not fixed:
            return self._place(root.base, bound, varying)

        def shifted() -> Register:
            return self.code.x("add", root.base, self._distance(sizes, fixed), to=Register("x", area=root.base.area))

        return self._place(self.code.keep(("sizes", root.base, sizes, fixed), shifted), bound - sizes, varying)

    def _place(self, base: Register, address: Expr, scaled: tuple[Scaled, ...] = ()) -> OffsetAddress:
        constant = address.constant
        if not address.terms and not scaled and _LOW <= constant < _HIGH:
            return OffsetAddress(base, constant)
        key = self._key(base, address, scaled)
        for pointer in self._pointers.setdefault(key, []):
            is_open = pointer.owner is None or pointer.owner in self.code.frames
            if is_open and _LOW <= constant - pointer.anchor < _HIGH:
                return OffsetAddress(pointer.register, constant - pointer.anchor)
        pointer = self._made(base, address, scaled)
        self._pointers[key].append(pointer)
        return OffsetAddress(pointer.register, constant - pointer.anchor)

    def _key(self, base: Register, address: Expr, scaled: tuple[Scaled, ...]) -> Hashable:
        loops = self.loops()
        variables = address.variables().union(*(each.index.variables() for each in scaled))
        used = tuple((depth, loops[depth]) for depth in sorted(variables))
        return base, address.terms, scaled, used

    def _made(self, base: Register, address: Expr, scaled: tuple[Scaled, ...]) -> _Pointer:
        frames = self.code.frames
        position = {f.depth: k for k, f in enumerate(frames) if f.depth is not None}
        computed = [e for a, _ in address.terms if not isinstance(a, int) for e in a.operands]
        computed += [each.index for each in scaled]
        level = max((position[v] for e in computed for v in e.variables()), default=-1)
        steps = {position[a]: c for a, c in address.terms if isinstance(a, int) and position[a] > level}
        first = level + 1 if computed else min(steps, default=0)
        # No constant distance undoes what loops with a number of iterations that varies have added.
        outermost = first - 1 if computed else first
        varying = (k for k in range(max(steps, default=0), outermost, -1) if frames[k].span is not None)
        if (apart := next(varying, None)) is not None:
            return self._copied(base, address, scaled, apart)
        if computed:
            return self._computed(base, address, scaled, level)
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
            self._begin(pointer, frames[first], steps)
        self._advance(pointer, steps, first)
        return _Pointer(pointer, address.constant, frames[first])

    def _begin(self, pointer: Register, frame: Frame, steps: Mapping[int, int]) -> None:
        """Move a pointer to the first iteration of a loop, by the loop's step."""
        step = steps.get(self.code.frames.index(frame), 0)
        if step and frame.span is not None and frame.span.start is not None:
            self.code.x("add", pointer, self._multiple(frame.span.start, step), to=pointer)

    def _copied(self, base: Register, address: Expr, scaled: tuple[Scaled, ...], apart: int) -> _Pointer:
        """A pointer for the loops from the frame `apart` on, set before it from one for the loops around."""
        frames = self.code.frames
        position = {f.depth: k for k, f in enumerate(frames) if f.depth is not None}
        inner = {position[a]: c for a, c in address.terms if isinstance(a, int) and position[a] >= apart}
        outer = tuple((a, c) for a, c in address.terms if not isinstance(a, int) or position[a] < apart)
        near = self._place(base, Expr(address.constant, outer), scaled)
        pointer = Register("x", area=base.area)
        with self.code.at(frames[apart].before):
            self.code.move(near.base, pointer)
            self._begin(pointer, frames[apart], inner)
        self._advance(pointer, inner, apart)
        return _Pointer(pointer, address.constant - near.offset, frames[apart])

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

    def _computed(self, base: Register, address: Expr, scaled: tuple[Scaled, ...], level: int) -> _Pointer:
        frames = self.code.frames
        position = {f.depth: k for k, f in enumerate(frames) if f.depth is not None}
        outer = Expr(
            address.constant, tuple((a, c) for a, c in address.terms if isinstance(a, int) and position[a] <= level)
        )
        others = Expr(0, tuple((a, c) for a, c in address.terms if not isinstance(a, int)))
        steps = {position[a]: c for a, c in address.terms if isinstance(a, int) and position[a] > level}
        near = self._place(base, outer)
        pointer = Register("x", area=base.area)
        with self.code.at(frames[level].head):
            self.code.x("add", near.base, self._distance(others, scaled), to=pointer)
        if steps:
            self._advance(pointer, steps, level + 1)
        return _Pointer(pointer, address.constant - near.offset, frames[level])

    def _distance(self, expression: Expr, scaled: Sequence[Scaled]) -> Register:
        """The sum of an expression and of distances by strides that depend on sizes."""
        parts = [self.value(expression)] if expression.terms else []
        for each in scaled:
            total = self._stride(each.factor, each.extents)
            if each.index != const(1):
                total = self.code.x("mul", self.value(each.index), total)
            parts.append(total)
        return reduce(lambda one, other: self.code.x("add", one, other), parts)

    def _stride(self, factor: int, extents: tuple[Expr, ...]) -> Register:
        """`factor * product(extents)`, whose extents depend on sizes, kept for the nest."""

        def made() -> Register:
            whole = reduce(lambda one, other: self.code.x("mul", one, other), map(self.value, extents))
            return self._multiple(whole, factor)

        return self.code.keep(("stride", factor, extents), made)

    def span(self, extent: int, lows: Sequence[Expr], highs: Sequence[Expr]) -> Span | None:
        """The iterations from the greatest of 0 and `lows` to the least of an extent and `highs`; None if all run.

        The limits are expressions over open loops' variables.
        """
        code, extents = self.code, self.extents
        least, most = ([bind(limit, self.known, extents) for limit in limits] for limits in (lows, highs))
        least = [limit for limit in least if limit.bounds(extents)[1] > 0]
        most = [limit for limit in most if limit.bounds(extents)[0] < extent]
        if not least and not most:
            return None
        latest = max([0, *(limit.bounds(extents)[1] for limit in least)])
        runs = all(limit.bounds(extents)[0] > latest for limit in (*most, const(extent)))
        if all(limit.bounds(extents)[1] > extent for limit in most):
            most.append(const(extent))
        if least and all(limit.bounds(extents)[0] < 0 for limit in least):
            least.append(const(0))
        end, *others = map(self.exact, most)
        for other in others:
            end = self._chosen(end, other, code.x("slt", other, end))
        if not least:
            return Span(end, None, runs)
        start, *others = map(self.exact, least)
        for other in others:
            start = self._chosen(start, other, code.x("slt", start, other))
        return Span(code.x("sub", end, start), start, runs)

    def _chosen(self, one: Register, other: Register, second: Register) -> Register:
        """`one` where `second` is 0, `other` where it is 1."""
        # All bits that differ are exchanged.
        mask = self.code.x("sub", ZERO, second)
        return self.code.x("xor", one, self.code.x("and", self.code.x("xor", one, other), mask))

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
            if isinstance(atom, Size):
                factor, divisor = atom.multiple(factor)
                total = self._plus_multiple(total, self._by(self.sizes[atom.name], divisor), factor)
            else:
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
                if frame.span is not None and frame.span.start is not None:
                    self.code.move(frame.span.start, frame.counter)
                else:
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
        assert not isinstance(atom, Size), "sizes have registers"
        if isinstance(atom, Lookup):
            is_fixed = not atom_variables(atom)
            return self.code.keep(atom, lambda: self._entry(atom)) if is_fixed else self._entry(atom)
        return self._quotient(atom) if isinstance(atom, Div) else self.counter(atom)

    def _entry(self, atom: Lookup) -> Register:
        """An entry of an array of indices, within its range whatever the caller gave."""
        code, table = self.code, atom.table
        if isinstance(table, Table):
            return self._known_entry(table, atom.operands[0])
        position = ZERO
        for operand, extent in zip(atom.operands, table.extents, strict=True):
            place = self.exact(operand)
            if not is_within(operand, extent, self.extents):
                place = self._within(place, 0, extent - 1)
            whole = position if position is ZERO else code.x("mul", position, self.value(extent))
            position = place if whole is ZERO else code.x("add", whole, place)
        base = self.indices[table.name]
        start = code.x("add", base, self._multiple(position, byte_width(table.dtype)), to=Register("x", area=base.area))
        value = self._narrowed(start) if table.dtype == "i64" else code.x(_LOADS[table.dtype], start, immediate=0)
        if table.outside is Outside.WRAP:
            count = self.value(table.last + 1)
            value = code.x("add", value, code.x("and", count, code.x("srai", value, immediate=31)))
        return self._within(value, table.low, table.last)

    def _known_entry(self, table: Table, operand: Expr) -> Register:
        """An entry of a table; iterations that do not run may look outside of it, where it goes on."""
        code, count = self.code, const(len(table.entries))
        place = self.exact(operand)
        if not is_within(operand, count, self.extents):
            place = self._within(place, 0, count - 1)
        start = code.x("add", self.numbers.entries(table), self._multiple(place, 4), to=Register("x", area=CONSTANTS))
        return code.x("lw", start, immediate=0)

    def _narrowed(self, place: Register) -> Register:
        """The integer of 32 bits that is nearest to one of 64 bits in memory."""
        code = self.code
        low, high = (code.x("lw", place, immediate=offset) for offset in (0, 4))
        is_wide = code.x("sltu", ZERO, code.x("xor", high, code.x("srai", low, immediate=31)))
        return self._chosen(low, code.x("xor", code.x("srai", high, immediate=31), code.li(_MOST)), is_wide)

    def _within(self, value: Register, low: int, last: Expr) -> Register:
        """The nearest integer from `low` to `last`, which depends on sizes only."""
        code, least, most = self.code, self.code.li(low), self.value(last)
        value = self._chosen(value, least, code.x("slt", value, least))
        return self._chosen(value, most, code.x("slt", most, value))

    def _quotient(self, atom: Div) -> Register:
        return self._by(self.exact(atom.numerator), atom.divisor)

    def _by(self, value: Register, divisor: int) -> Register:
        """The quotient of a value that is at least 0."""
        if divisor == 1:
            return value
        if divisor & (divisor - 1) == 0:
            return self.code.x("srai", value, immediate=divisor.bit_length() - 1)
        return self.code.x("div", value, self.code.li(divisor))

    def _remainder(self, value: Register, divisor: int) -> Register:
        if divisor & (divisor - 1) == 0 and divisor <= _HIGH:
            return self.code.x("andi", value, immediate=divisor - 1)
        return self.code.x("rem", value, self.code.li(divisor))
