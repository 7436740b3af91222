"""A statement as instructions: scalar, or packed for the lanes of its vector scope."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from pdojo.backends.common.addresses import address_of
from pdojo.backends.common.placement import MemoryPlan
from pdojo.backends.common.walk import lanes_together
from pdojo.backends.snitch.addressing import Addresses, OffsetAddress, Root, in_bytes
from pdojo.backends.snitch.cells import Cells
from pdojo.backends.snitch.code import Register, SnitchCode
from pdojo.backends.snitch.functions import Functions, from_index, has_instruction
from pdojo.backends.snitch.memory import Accesses
from pdojo.backends.snitch.packed import Packed, is_whole, packs
from pdojo.backends.snitch.streaming import Regions
from pdojo.backends.snitch.values import Value, fresh, integer, move
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.rules.hardware_loops import exact_reciprocal
from pdojo.dialect.view.nest import Access, Buffer, Constant, Index, Input, Leaf, Nest, Scope
from pdojo.math.functions import FUNCTIONS
from pdojo.math.values import FORMATS

_UNROLLED = 4
"""Fewest copies that the core makes at a time: a load takes so many cycles."""


@dataclass
class Statements:
    """Emits statements at the current point of the walk through the kernel."""

    code: SnitchCode
    nest: Nest
    plan: MemoryPlan
    roots: dict[Buffer, Root]
    addresses: Addresses
    cells: Cells
    regions: Regions
    functions: Functions
    known: dict[int, int]
    extents: list[int]
    _loaded: dict[Hashable, Value] = field(default_factory=dict[Hashable, Value])
    """Values that the statement has read, by access and lane; equal reads become one."""
    _repeated: bool = False
    """Whether the statement is in a hardware loop."""

    @property
    def accesses(self) -> Accesses:
        """The emitter of loads and stores."""
        return Accesses(self.code)

    def emit(self, leaf: Leaf) -> None:
        """Append one instance of a statement, or all its lanes, which have no guard."""
        self._loaded.clear()
        self._repeated = any(s.mapping is Mapping.FREP for s in leaf.chain)
        lanes = leaf.parent
        if lanes is None or lanes.mapping is not Mapping.VECTOR or lanes.depth in self.known:
            self._scalar(leaf)
        elif self.packs(leaf):
            Packed(self).emit(leaf)
        else:
            self._lanes(leaf, lanes)

    def goes_by_lanes(self, leaf: Leaf) -> bool:
        """Whether a vector statement becomes one statement per lane; no lane reads another lane's output."""
        if any(self.regions.register(leaf, a, writes=a is leaf.output) is not None for a in leaf.accesses):
            return False
        return not self.packs(leaf) and self._whole_cell(leaf.output, leaf) is None

    def packs(self, leaf: Leaf) -> bool:
        """Whether packed instructions can compute a statement in a vector scope."""
        return packs(
            leaf,
            loses_nan=self.functions.loses_nan,
            divides="xdiv_sqrt" in self.functions.features,
            alignment=self.alignment,
        )

    # Copies of a statement

    @contextmanager
    def together(self, leaf: Leaf) -> Generator[None]:
        """A context for the unrolled copies of a statement: one test of arguments for several of them.

        Their results are written after the test. So copies that read the memory that others write are tested one by
        one, like those whose results need further instructions; a read of a register that is still to be written ends
        a group.
        """
        output, lanes, outliers = leaf.output.array, leaf.parent, self.functions.outliers
        moderate = leaf.function is not None and FUNCTIONS[leaf.function].moderate is not None
        vector = lanes is not None and lanes.mapping is Mapping.VECTOR
        packed = vector and self.packs(leaf)
        more = output.dtype not in FORMATS or leaf.accumulate is not None or vector is not packed
        in_parts = output.buffer in self.roots or self.cells.is_packed(leaf.output) is not packed
        meets = in_parts and any(access.array.buffer is output.buffer for access in leaf.reads)
        if not moderate or more or meets or outliers.collects:
            yield
            return
        with outliers.collecting():
            yield

    # Scalars

    def _scalar(self, leaf: Leaf) -> None:
        source = self._copied(leaf)
        if source is not None:
            # Beside hardware loops, the core copies words while the floating-point unit computes.
            self.write(leaf, self.accesses.load_word(self.place(source, leaf)), None)
            return
        operands = [self.operand(i, leaf) for i in leaf.inputs]
        self.functions.outliers.before_reads(operands)
        target = self.target(leaf)
        old = self.read(leaf.output, leaf) if leaf.accumulate is not None else None
        value = self.computed(leaf, operands, old, target)
        self.functions.outliers.finish(target, lambda: self.write(leaf, value, target))

    def _copied(self, leaf: Leaf) -> Access | None:
        """The source of a copy of an f32 that the core can make: from memory to memory, both without streams.

        None for other statements, and if streams may still read the memory that the copy overwrites. One copy at a time
        would wait for its load, so at least as many are unrolled as a load takes cycles.
        """
        (source, *others) = leaf.inputs
        if leaf.function is not None or leaf.accumulate is not None or others or not isinstance(source, Access):
            return None
        around = leaf.parent
        if around is None or around.mapping is not Mapping.UNROLL or around.extent < _UNROLLED:
            return None
        is_word = source.array.dtype == leaf.output.array.dtype == "f32"
        is_loaded = is_word and self._is_in_memory(source, leaf, writes=False)
        is_stored = is_loaded and self._is_in_memory(leaf.output, leaf, writes=True)
        return source if is_stored and not self.regions.may_read(leaf.output.array.buffer, leaf) else None

    def _is_in_memory(self, access: Access, leaf: Leaf, *, writes: bool) -> bool:
        """Whether loads and stores make an access, not streams."""
        return access.array.buffer in self.roots and self.regions.register(leaf, access, writes=writes) is None

    def computed(self, leaf: Leaf, operands: list[Value], old: Value | None, target: Value | None) -> Value:
        """The value that a statement stores; in `target` if the last instruction can write there."""
        dtype = leaf.output.array.dtype
        if leaf.contracted:
            assert old is not None
            return self.functions.apply("math.fma", [*operands, old], (dtype,) * 3, dtype, target)
        last = target if old is None else None
        value = operands[0] if leaf.function is None else self._function(leaf, operands, last)
        if old is None:
            return value
        assert leaf.accumulate is not None
        return self.functions.apply(leaf.accumulate, [old, value], (dtype, dtype), dtype, target)

    def _function(self, leaf: Leaf, operands: list[Value], target: Value | None) -> Value:
        assert leaf.function is not None
        dtype = leaf.output.array.dtype
        dtypes = [i.array.dtype if isinstance(i, Access) else i.dtype for i in leaf.inputs]
        reciprocal = exact_reciprocal(leaf)
        if reciprocal is not None:
            factor = self.functions.numbers.real(reciprocal, dtype)
            return self.functions.apply("arith.mulf", [operands[0], factor], dtypes, dtype, target)
        return self.functions.apply(leaf.function, operands, dtypes, dtype, target)

    def operand(self, value: Input, leaf: Leaf) -> Value:
        """The value of a statement's input."""
        match value:
            case Access():
                return self.read(value, leaf)
            case Constant():
                if is_float(value.dtype):
                    return self.functions.numbers.real(float(value.value), value.dtype)
                return integer(self.code, int(value.value), value.dtype)
            case Index():
                # Narrower integers wrap around.
                exact = is_float(value.dtype) or value.dtype == "i64"
                return from_index(self.functions, self.addresses.number(value.expression, exact=exact), value.dtype)

    def read(self, access: Access, leaf: Leaf) -> Value:
        """The value of an access."""
        # The key includes the values of unrolled variables, because lanes are read one after the other.
        key = access.key, tuple(sorted(self.known.items()))
        if key not in self._loaded:
            self._loaded[key] = self._read(access, leaf)
        return self._loaded[key]

    def _read(self, access: Access, leaf: Leaf) -> Value:
        buffer = access.array.buffer
        if buffer not in self.roots:
            position = self.cells.position(access, leaf)
            cell = self.cells.register(access, position)
            if not self.cells.is_packed(access):
                return cell
            lanes = self.accesses.split(cast(Register, cell), buffer.dtype)
            return lanes[position % len(lanes)]
        stream = self.regions.register(leaf, access, writes=False)
        if stream is not None:
            return self.popped(stream, leaf)
        return self.accesses.load(self.place(access, leaf), buffer.dtype)

    def popped(self, stream: Register, leaf: Leaf) -> Register:
        """The next element of a stream: the stream register if only one instruction reads it, else a copy."""
        return stream if is_single(leaf, loses_nan=self.functions.loses_nan) else self.code.f("fmv.d", stream)

    def target(self, leaf: Leaf) -> Value | None:
        """The register of a statement's output; None if the output is in memory, or is a lane of a register."""
        access = leaf.output
        if access.array.buffer not in self.roots:
            if self.cells.is_packed(access):
                return None
            return self.cells.register(access, self.cells.position(access, leaf))
        return self.regions.register(leaf, access, writes=True)

    def write(self, leaf: Leaf, value: Value, target: Value | None) -> None:
        """Store the output of a statement."""
        access = leaf.output
        buffer = access.array.buffer
        if target is not None:
            move(self.code, value, target)
            if value is target and leaf.function is None and leaf.accumulate is None and self._repeated:
                # Copy a register to itself, because the hardware loop counts this instruction.
                self.code.emit("fmv.d", (cast(Register, target),), (cast(Register, value),))
        elif buffer not in self.roots:
            position = self.cells.position(access, leaf)
            cell = cast(Register, self.cells.register(access, position))
            self.accesses.with_lane(cell, position % (8 // byte_width(buffer.dtype)), value, buffer.dtype)
        else:
            self.regions.note_store(buffer)
            self.accesses.store(value, self.place(access, leaf), buffer.dtype)

    def place(self, access: Access, leaf: Leaf) -> OffsetAddress:
        """The place of an access in memory."""
        buffer = access.array.buffer
        layout = self.plan.placements[buffer].layout
        found = address_of(access, layout, leaf.chain)
        place = self.addresses.place(self.roots[buffer], in_bytes(found, layout.element_bytes))
        for exchange in found.exchanges:
            place = self.addresses.exchanged(place, exchange, layout.element_bytes)
        return place

    def alignment(self, buffer: Buffer) -> int:
        """The alignment of a buffer's start in bytes."""
        return self.plan.placements[buffer].alignment if buffer in self.roots else 8

    # Lanes of streams

    def _lanes(self, leaf: Leaf, lanes: Scope) -> None:
        """Append the lanes one after the other; stream accesses are made once for all lanes."""
        dtype = leaf.output.array.dtype
        operands = [self._lane_values(i, leaf, lanes) for i in leaf.inputs]
        streamed = self.regions.register(leaf, leaf.output, writes=True) is not None
        cell = self._whole_cell(leaf.output, leaf)
        if not streamed and cell is None:
            for k in lanes_together(lanes):
                self.known[lanes.depth] = k
                target = self.target(leaf)
                old = self.read(leaf.output, leaf) if leaf.accumulate is not None else None
                self._loaded.clear()
                self.write(leaf, self.computed(leaf, [o[k] for o in operands], old, target), target)
            del self.known[lanes.depth]
            return
        old = self._lane_values(leaf.output, leaf, lanes) if leaf.accumulate is not None else [None] * lanes.extent
        values: list[Value] = []
        for k in lanes_together(lanes):
            copy = fresh(dtype)
            move(self.code, self.computed(leaf, [o[k] for o in operands], old[k], None), copy)
            values.append(copy)
        target = cell or self.regions.register(leaf, leaf.output, writes=True)
        self.accesses.join(cast("list[Register]", values), dtype, target)

    def _whole_cell(self, access: Access, leaf: Leaf) -> Register | None:
        """The register whose elements are an access's lanes; None if there is none."""
        if access.array.buffer in self.roots or not self.cells.is_packed(access):
            return None
        if not is_whole(access, leaf, self.alignment):
            return None
        return cast(Register, self.cells.register(access, self.cells.position(access, leaf, 0)))

    def _lane_values(self, value: Input, leaf: Leaf, lanes: Scope) -> list[Value]:
        """An input's values in all lanes."""
        if isinstance(value, Access) and value.array.buffer in self.roots:
            stream = self.regions.register(leaf, value, writes=False)
            if stream is not None:
                packed = self.code.f("fmv.d", stream)
                return list(self.accesses.split(packed, value.array.dtype))
        if isinstance(value, Access) and (cell := self._whole_cell(value, leaf)) is not None:
            return list(self.accesses.split(cell, value.array.dtype))
        found: list[Value] = []
        for k in lanes_together(lanes):
            self.known[lanes.depth] = k
            found.append(self.operand(value, leaf))
        del self.known[lanes.depth]
        return found


def is_single(leaf: Leaf, *, loses_nan: bool) -> bool:
    """Whether only one instruction reads each operand of a statement."""
    return all(has_instruction(f, loses_nan=loses_nan) for f in (leaf.function, leaf.accumulate) if f is not None)
