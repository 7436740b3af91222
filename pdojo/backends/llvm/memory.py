"""Loads and stores of single array elements, with alignment and aliasing information for the optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from pdojo.backends.common.addresses import Exchange, Scaled, address_of, known_alignment, spell
from pdojo.backends.common.placement import MemoryPlan, Placement
from pdojo.backends.llvm.code import FunctionCode, memory_type, value_type
from pdojo.backends.llvm.idle import IdleLanes
from pdojo.backends.llvm.ops import element_type, lanes, with_lanes
from pdojo.backends.llvm.vectors import splat_constant
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.hints import AHEAD, PREFETCH
from pdojo.dialect.rules.hints import coming_access, value_of
from pdojo.dialect.view.nest import Access, Buffer, Leaf
from pdojo.errors import LoweringError

PREFETCH_READ, KEEP_CLOSE, DATA = 0, 3, 1
"""Arguments of `llvm.prefetch`."""


@dataclass(frozen=True, eq=False)
class AccessPlace:
    """The accessed element at the current point of the code."""

    access: Access
    leaf: Leaf
    index: Expr
    """Distance from the start of the buffer in elements, with known variables substituted."""
    displacement: SSAValue | None = None
    """Additional distance by swizzles, or by strides that depend on sizes, in elements (i64); None if there is none."""
    step: int = 0
    """A divisor of the displacement."""
    steps: Mapping[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The distances, in elements (i64), between iterations of open scopes by strides that depend on sizes, keyed by
    depth. They are added to those of `index`. A scope is open if all its iterations are emitted at once."""

    @property
    def buffer(self) -> Buffer:
        """The accessed buffer."""
        return self.access.array.buffer

    @property
    def streams(self) -> bool:
        """Whether a hint asks for a non-temporal access."""
        return "nontemporal" in self.access.hints.data

    def __str__(self) -> str:
        return spell(self.access, self.leaf.chain)


IDLE_BYTES = 64
"""Bytes after a buffer in the frame, for the idle lanes of its last vector; masked loads would take longer."""


@dataclass(eq=False)
class Reach:
    """The memory that the function under construction can access."""

    code: FunctionCode
    plan: MemoryPlan
    idle: IdleLanes
    bases: dict[Buffer, SSAValue] = field(default_factory=dict[Buffer, SSAValue])
    """Address of the first element, keyed by buffer."""
    framed: set[Buffer] = field(default_factory=set[Buffer])
    """Buffers in this function's frame."""
    fence: bool = False
    """Whether the function makes non-temporal stores and must end with a fence."""

    def placement(self, buffer: Buffer) -> Placement:
        """The placement of a buffer."""
        return self.plan.placements[buffer]

    def framed_elements(self, buffer: Buffer) -> int:
        """The number of elements of a buffer in a frame, including those after it that only idle lanes access."""
        idle = IDLE_BYTES // byte_width(buffer.dtype) if self.idle.touch(buffer) else 0
        return self.placement(buffer).layout.size + idle

    def place(self, access: Access, leaf: Leaf) -> AccessPlace:
        """Resolve an access. Raises LoweringError if the index of a register depends on variables other than lanes."""
        where = address_of(access, self.placement(access.array.buffer).layout, leaf.chain)
        place = self._displaced(AccessPlace(access, leaf, self.code.bind(where.linear)), where.exchanges)
        place = self._scaled(place, where.scaled)
        if access.array.buffer.memory is Memory.REGISTER:
            self._check_register(place)
        return place

    def _displaced(self, place: AccessPlace, exchanges: Sequence[Exchange]) -> AccessPlace:
        """The place with the distances that swizzles add; they are constant if the variables are known."""
        code = self.code
        for exchange in exchanges:
            left, right = code.bind(exchange.left), code.bind(exchange.right)
            if right == const(0):
                place = replace(place, index=place.index + left * exchange.factor)
            elif left.is_constant and right.is_constant:
                place = replace(place, index=place.index + (left.constant ^ right.constant) * exchange.factor)
            else:
                granule = code.emit(llvm.XOrOp(code.index(left), code.index(right)))
                distance = code.emit(llvm.MulOp(granule, code.integer(exchange.factor)))
                distance = self._sum(place.displacement, distance)
                place = replace(place, displacement=distance, step=gcd(place.step, exchange.factor))
        return place

    def _scaled(self, place: AccessPlace, scaled: Sequence[Scaled]) -> AccessPlace:
        """The place with the distances of dimensions whose strides depend on sizes."""
        for each in scaled:
            index = self.code.bind(each.index)
            for depth in sorted(filter(self._is_open, index.variables())):
                rest, step = index - var(depth) * index.coefficient(depth), place.steps.get(depth)
                assert not rest.uses(depth), "lanes at distances that depend on sizes are linear"
                step = self._sum(step, self.code.scaled(const(index.coefficient(depth)), each.factor, each.extents))
                place = replace(place, steps={**place.steps, depth: step}, step=gcd(place.step, each.divisor))
                index = rest
            if index == const(0):
                continue
            distance = self._sum(place.displacement, self.code.scaled(index, each.factor, each.extents))
            place = replace(place, displacement=distance, step=gcd(place.step, each.divisor))
        return place

    def _is_open(self, depth: int) -> bool:
        """Whether all iterations of a scope are emitted at once: the lanes of a vector, the rows of a square."""
        return depth not in self.code.known and depth not in self.code.variables

    def _sum(self, first: SSAValue | None, second: SSAValue) -> SSAValue:
        return second if first is None else self.code.emit(llvm.AddOp(first, second))

    def start(self, place: AccessPlace) -> SSAValue:
        """The address to which a place's index is relative."""
        base = self.bases[place.buffer]
        if place.displacement is None:
            return base
        return self._behind(base, place)

    def _behind(self, pointer: SSAValue, place: AccessPlace) -> SSAValue:
        assert place.displacement is not None
        element = memory_type(place.buffer.dtype)
        return self.code.emit(llvm.GEPOp.from_mixed_indices(pointer, [place.displacement], element))

    def _check_register(self, place: AccessPlace) -> None:
        if place.buffer not in self.framed:
            raise LoweringError(
                f"{place}: '{place.access.array.name}' is in registers, which another thread cannot reach"
            )
        lane = {s.depth for s in place.leaf.chain if s.mapping.value == "v"}
        moving = sorted(place.index.variables() - lane)
        if moving:
            listed = ", ".join(f"{{{d}}}" for d in moving)
            raise LoweringError(
                f"{place}: '{place.access.array.name}' is in registers, which only constants can index, but the index "
                f"uses {listed}; unroll that scope or move the buffer to the stack"
            )

    def pointer(self, place: AccessPlace, index: Expr) -> SSAValue:
        """The address of the element `index` of the buffer."""
        # The displacement comes last, so that the rest can be computed outside of loops.
        pointer = self.code.pointer(self.bases[place.buffer], index, memory_type(place.buffer.dtype))
        return pointer if place.displacement is None else self._behind(pointer, place)

    def alignment(self, place: AccessPlace, index: Expr) -> int:
        """Bytes that divide the address of the element `index`."""
        placement = self.placement(place.buffer)
        width = byte_width(place.buffer.dtype)
        return known_alignment(index, width, gcd(placement.alignment, place.step * width))

    def load(self, place: AccessPlace) -> SSAValue:
        """The element, in its element type."""
        self.prefetch(place, place.index)
        pointer = self.pointer(place, place.index)
        op = llvm.LoadOp(pointer, memory_type(place.buffer.dtype), self.alignment(place, place.index))
        # The hint has no effect, because no scalar load can be non-temporal.
        annotate(op, place)
        return from_memory(self.code, self.code.emit(op), place.buffer.dtype)

    def store(self, place: AccessPlace, value: SSAValue) -> None:
        """Write the element."""
        pointer = self.pointer(place, place.index)
        value = to_memory(self.code, value, place.buffer.dtype)
        alignment = self.alignment(place, place.index)
        op = llvm.StoreOp(value, pointer, alignment, nontemporal=place.streams)
        self.fence |= place.streams
        annotate(op, place)
        self.code.do(op)

    def prefetch(self, place: AccessPlace, index: Expr) -> None:
        """Prefetch the cache line at the hinted distance (in bytes) after the access, and that of a coming access."""
        code, hints = self.code, place.access.hints.data
        if PREFETCH in hints:
            step = code.integer(value_of(hints[PREFETCH]))
            address = self.pointer(place, index)
            self._fetch(code.emit(llvm.GEPOp.from_mixed_indices(address, [step], memory_type("i8"))))
        coming = coming_access(place.leaf, place.access, value_of(hints[AHEAD])) if AHEAD in hints else None
        if coming is not None:
            # Lanes are fetched with the first one.
            lanes = {s.depth: const(0) for s in place.leaf.chain if self._is_open(s.depth)}
            later = tuple(e.substitute(lanes, place.leaf.extents) for e in coming.index)
            first = self.place(replace(coming, index=later), place.leaf)
            self._fetch(self.pointer(first, first.index))

    def _fetch(self, address: SSAValue) -> None:
        kind = [self.code.integer(a, 32) for a in (PREFETCH_READ, KEEP_CLOSE, DATA)]
        self.code.do(llvm.CallIntrinsicOp("llvm.prefetch.p0", [address, *kind], []))


def annotate(op: Operation, place: AccessPlace, *, nontemporal: bool = False, alignment: int | None = None) -> None:
    """Attach the buffer's alias scope and hints, which the conversion to LLVM turns into metadata."""
    op.attributes["alias_scope"] = StringAttr(place.buffer.names[0])
    if nontemporal:
        op.attributes["nontemporal"] = UnitAttr()
    if alignment is not None:
        op.attributes["alignment"] = IntegerAttr(alignment, 64)


def from_memory(code: FunctionCode, value: SSAValue, dtype: str) -> SSAValue:
    """A loaded value as its element type; an i1 is a byte in memory, true unless 0."""
    if dtype != "i1":
        return value
    return code.compare("ne", value, splat_constant(code, 0, value.type))


def to_memory(code: FunctionCode, value: SSAValue, dtype: str) -> SSAValue:
    """A value in its memory type."""
    if dtype != "i1":
        return value
    assert element_type(value) == value_type("i1")
    return code.emit(llvm.ZExtOp(value, with_lanes(memory_type(dtype), lanes(value))))
