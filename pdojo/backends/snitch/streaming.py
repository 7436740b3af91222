"""Streaming regions as instructions: configuration, the bit that turns streams on, waiting for writes.

Streams and the rest of the core access memory at different times. Turning streams off does not wait for their last
writes, and stores by the floating-point unit may still be in flight when a stream starts to read. So the code waits

- before a region, if one of its streams reads a buffer that the core may have stored to just before;
- after a region for its writes, or before the next top-level node that accesses the same memory or uses the stream if
  no other code of the nest does;
- before a stream register starts to read while it may still be writing (`pdojo.backends.snitch.draining`);
- before the number of reads per element changes, for all earlier floating-point instructions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from pdojo.backends.common.addresses import Address, address_of, layout_of
from pdojo.backends.snitch.addressing import Addresses, Root, in_bytes
from pdojo.backends.snitch.code import STREAMS, ZERO, Register, SnitchCode
from pdojo.backends.snitch.draining import Draining, StreamUse
from pdojo.dialect.affine import const
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.hints import LANE
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.hints import value_of
from pdojo.dialect.rules.stream_patterns import Pattern
from pdojo.dialect.rules.streams import Stream, has_lanes, is_streamed, may_divide, streams_of, walk_of
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Node, Scope, leaves_of
from pdojo.errors import LoweringError

REPEAT, BOUND, STRIDE, READ, WRITE = 1, 2, 6, 24, 28
"""Numbers of a stream's configuration registers; add k for dimension k."""
_CHANGING = -1
"""A mark for a number of reads that varies."""
ALL = 31
"""The lane number that selects all streams."""
STATUS = 0
"""The register whose sign bit tells that a stream has finished."""


@dataclass(frozen=True)
class LaneStream:
    """A stream with its register and its address pattern."""

    stream: Stream
    lane: int
    pattern: Pattern


@dataclass
class Regions:
    """Emits the streaming regions of a kernel."""

    code: SnitchCode
    nest: Nest
    machine: Machine
    stored: set[Buffer] = field(default_factory=set[Buffer])
    """Buffers that the core has stored to without a stream since it last waited for its stores."""
    repeats: dict[int, int] = field(default_factory=dict[int, int])
    """Reads per element, minus one, to which each stream is set."""
    _written: dict[int, set[Buffer]] = field(default_factory=dict[int, "set[Buffer]"])
    """Buffers that each stream has written to since the code last waited for it."""
    _lanes: dict[Scope, list[LaneStream]] = field(default_factory=dict[Scope, list[LaneStream]])
    _uses: dict[Scope, StreamUse] = field(default_factory=dict[Scope, StreamUse])

    def __post_init__(self) -> None:
        self.draining = Draining(self._use)

    def streams(self, region: Scope) -> list[LaneStream]:
        """The streams of a region. Raises LoweringError if the machine has too few streams, or too few dimensions."""
        if region not in self._lanes:
            self._lanes[region] = self._assigned(region)
        return self._lanes[region]

    def _assigned(self, region: Scope) -> list[LaneStream]:
        streams = streams_of(self.nest, region, self.machine)
        if len(streams) > self.machine.snitch.stream_registers:
            raise LoweringError(
                f"a streaming region needs {len(streams)} streams; {self.machine.name} has "
                f"{self.machine.snitch.stream_registers}"
            )
        hinted = [s.access.hints.data.get(LANE) for s in streams]
        lanes = [None if h is None else value_of(h) for h in hinted]
        free = [k for k in range(self.machine.snitch.stream_registers) if k not in lanes]
        found: list[LaneStream] = []
        for stream, lane in zip(streams, lanes, strict=True):
            # An accumulation has one access for reading and writing; its hint is for reading.
            taken = lane is None or any(f.lane == lane for f in found)
            pattern = walk_of(self.nest, stream, region, self.machine)
            found.append(LaneStream(stream, free.pop(0) if taken or lane is None else lane, pattern))
        return found

    def register(self, leaf: Leaf, access: Access, *, writes: bool) -> Register | None:
        """The stream register of an access; None if it is not streamed."""
        region = next((s for s in leaf.chain if s.mapping is Mapping.STREAM), None)
        if region is None or not is_streamed(access):
            return None
        for one in self.streams(region):
            members = one.stream.members
            if one.stream.writes == writes and any(owner is leaf and a.key == access.key for owner, a in members):
                return STREAMS[one.lane]
        return None

    def enter(self, region: Scope, addresses: Addresses, roots: dict[Buffer, Root]) -> None:
        """Configure a region's streams and turn them on."""
        streams = self.streams(region)
        reads = {s.stream.access.array.buffer for s in streams if not s.stream.writes}
        if reads & (self.stored | self._stored_around(region)):
            self.code.emit("fence")
            self.stored.clear()
        turning = {s.lane for s in streams if not s.stream.writes} & set(self.draining.writing)
        # Start reading streams first, so that they run ahead during the set-up of others; start streams that must wait
        # last.
        streams = sorted(streams, key=lambda one: (one.lane in turning, one.stream.writes))
        if region.parent is None:
            self._configure_once(streams, region, addresses, roots)
        else:
            for one in streams:
                self._configure(one, region)
            for one in streams:
                if one.lane in turning:
                    self._wait(one.lane)
                self._start(one, region, addresses, roots)
        self.code.emit("csrsi", immediate=1)

    def leave(self, region: Scope) -> None:
        """Turn the streams off, and wait for writes that other code of the nest may read."""
        self.code.emit("csrci", immediate=1)
        use = self._use(region)
        self.draining.leave(use)
        for one in self.streams(region):
            if one.stream.writes:
                self._written.setdefault(one.lane, set()).add(one.stream.access.array.buffer)
        for lane in sorted(use.drained):
            self._wait(lane)

    def begin(self, node: Node) -> None:
        """Wait before a top-level node for streams that may still write memory that it accesses, or that it uses."""
        regions = self._regions(node)
        used = {one.lane for region in regions for one in self.streams(region)}
        accessed = {access.array.buffer for leaf in leaves_of(node) for access in leaf.accesses}
        for lane in sorted(self.draining.writing):
            if lane in used or self._written[lane] & accessed:
                self._wait(lane)

    def end(self) -> None:
        """Wait at the end of the kernel for streams that may be writing."""
        for lane in sorted(self.draining.writing):
            self._wait(lane)

    def loop(self, scope: Scope) -> None:
        """Wait before a loop for streams that it reads, and record its start."""
        for lane in self.draining.before(scope):
            self._wait(lane)
        self.draining.loop(scope)

    @contextmanager
    def branch(self) -> Generator[None]:
        """A context whose emitted code, including its waits, may be skipped."""
        stored = set(self.stored)
        written = {lane: set(buffers) for lane, buffers in self._written.items()}
        with self.draining.branch():
            yield
        self.stored |= stored
        for lane, buffers in written.items():
            self._written.setdefault(lane, set()).update(buffers)

    def _use(self, region: Scope) -> StreamUse:
        if region not in self._uses:
            streams = self.streams(region)
            written = [one for one in streams if one.stream.writes]
            self._uses[region] = StreamUse(
                frozenset(one.lane for one in streams if not one.stream.writes),
                {one.lane: prod(one.pattern.bounds) for one in written},
                frozenset(one.lane for one in written if self._is_drained(one, region)),
            )
        return self._uses[region]

    def note_store(self, buffer: Buffer) -> None:
        """Record that the core stores to a buffer without a stream."""
        self.stored.add(buffer)

    def may_read(self, buffer: Buffer, leaf: Leaf) -> bool:
        """Whether streams may still read a buffer when a statement runs: in its top-level node, or in an earlier one.

        Floating-point stores wait for earlier instructions, which read the streams; stores of the core do not.
        """
        node = leaf.chain[0] if leaf.chain else leaf
        return any(
            not one.stream.writes and one.stream.access.array.buffer is buffer
            for region in self.nest.scopes
            if region.mapping is Mapping.STREAM and (region.chain[0] is node or region.leaves[0].order < leaf.order)
            for one in self.streams(region)
        )

    def _stored_around(self, region: Scope) -> set[Buffer]:
        """Buffers that statements of the nest store to without streams, possibly just before the region."""
        return {
            leaf.output.array.buffer
            for leaf in region.chain[0].leaves
            if self.register(leaf, leaf.output, writes=True) is None
        }

    def _wait_for_reads(self) -> None:
        """Wait for all earlier floating-point instructions, with another one that has an integer result."""
        code, here = self.code, self.code.label("read")
        value = code.x("fmv.x.w", Register("f", "ft3"))
        code.emit("beq", (), (value, value), here)
        code.emit("label", immediate=here)

    def _wait(self, lane: int) -> None:
        """Wait until a stream has written all elements."""
        code, again = self.code, self.code.label("written")
        number = code.li(STATUS << 5 | lane)
        several = self.draining.drain(lane) > 1
        self._written.pop(lane, None)
        code.emit("label", immediate=again)
        status = code.x("scfgr", number)
        if several:
            # Between two jobs, the status reports the end of the first job for one cycle only.
            status = code.x("and", status, code.x("scfgr", number))
        code.emit("bge", (), (status, ZERO), again)

    def _is_drained(self, one: LaneStream, region: Scope) -> bool:
        """Whether the code waits at a region's end for what a stream writes."""
        is_late = may_divide(one.stream.leaf) and (self._is_overtaken(one, region) or self._delays_lanes(one))
        return is_late or not self._is_alone(one, region)

    def _is_alone(self, one: LaneStream, region: Scope) -> bool:
        """Whether all accesses to the stream's buffer in the nest are writes by the same stream register."""
        buffer = one.stream.access.array.buffer
        for leaf in leaves_of(region.chain[0]):
            if any(a.array.buffer is buffer for a in leaf.reads):
                return False
            if leaf.output.array.buffer is not buffer:
                continue
            if leaf.accumulate is not None or self.register(leaf, leaf.output, writes=True) is not STREAMS[one.lane]:
                return False
        return True

    def _is_overtaken(self, one: LaneStream, region: Scope) -> bool:
        """Whether another region's results for the same stream register may leave the floating-point unit first: writes
        to a stream are not kept in order, and a division takes longer than later instructions.
        """
        return any(
            other.lane == one.lane and other.stream.writes
            for scope in self._regions(region.chain[0])
            if scope is not region
            for other in self.streams(scope)
        )

    def _delays_lanes(self, one: LaneStream) -> bool:
        """Whether scalar quotients for a stream may be in the divider when the kernel divides lanes."""
        return not has_lanes(one.stream.leaf) and any(may_divide(leaf) and has_lanes(leaf) for leaf in self.nest.leaves)

    @staticmethod
    def _regions(node: Node) -> Iterable[Scope]:
        """All regions of a top-level node."""
        found = (next((s for s in leaf.chain if s.mapping is Mapping.STREAM), None) for leaf in leaves_of(node))
        return dict.fromkeys(scope for scope in found if scope is not None)

    # Configuration

    def _settings(self, one: LaneStream) -> dict[int, int]:
        """The constants for a stream's configuration registers, keyed by register."""
        pattern = one.pattern
        bounds = list(reversed(pattern.bounds)) or [1]
        strides = list(reversed(pattern.strides)) or [0]
        settings = {REPEAT: pattern.repeat - 1}
        walked = 0
        for k, (bound, stride) in enumerate(zip(bounds, strides, strict=True)):
            # The generator adds a stride to the last address of the inner dimensions.
            settings[BOUND + k] = bound - 1
            settings[STRIDE + k] = stride - walked
            walked += stride * (bound - 1)
        return settings

    def _configure(self, one: LaneStream, region: Scope) -> None:
        everywhere = self._everywhere(region, one.lane)
        for register, value in self._settings(one).items():
            if everywhere[register] == {value}:
                self.code.keep(("stream", one.lane, register), lambda r=register, v=value: self._set(one.lane, r, v))
            else:
                self._set(one.lane, register, value, alone=False)

    def _configure_once(
        self, streams: Sequence[LaneStream], region: Scope, addresses: Addresses, roots: dict[Buffer, Root]
    ) -> None:
        """Set up and start the streams of a region that is a whole nest; equal settings are written to all at once."""
        values: dict[int, list[int]] = {}
        for one in streams:
            for register, value in self._settings(one).items():
                values.setdefault(register, []).append(value)
        shared = {register for register, found in values.items() if len(found) > 1 and len(set(found)) == 1}
        for register in sorted(shared):
            self._set(ALL, register, values[register][0])
        for one in streams:
            for register, value in self._settings(one).items():
                if register not in shared:
                    self._set(one.lane, register, value)
            self._start(one, region, addresses, roots)

    def _everywhere(self, region: Scope, lane: int) -> dict[int, set[int]]:
        """All values in the nest of a lane's registers; a register with a single value is set before the nest."""
        found: dict[int, set[int]] = {}
        for other in self._regions(region.chain[0]):
            for one in self.streams(other):
                if one.lane == lane:
                    for register, value in self._settings(one).items():
                        found.setdefault(register, set()).add(value)
        return found

    def _set(self, lane: int, register: int, value: int, *, alone: bool = True) -> Register:
        """Set a register; `alone`: the register has no other value in the nest."""
        if register == REPEAT:
            # The number of reads is not part of a job: a change would apply to elements that are still unread.
            lanes = range(self.machine.snitch.stream_registers) if lane == ALL else (lane,)
            if not alone or any(self.repeats.get(k, value) != value for k in lanes):
                self._wait_for_reads()
            self.repeats.update(dict.fromkeys(lanes, value if alone else _CHANGING))
        number = self.code.li(value)
        self.code.emit("scfgwi", (), (number,), lane | register << 5)
        return number

    def _start(self, one: LaneStream, region: Scope, addresses: Addresses, roots: dict[Buffer, Root]) -> None:
        stream = one.stream
        place = addresses.place(roots[stream.access.array.buffer], first_address(self.nest, stream, region))
        pointer = self.code.add_immediate(place.base, place.offset)
        last = max(0, len(one.pattern.bounds) - 1)
        register = (WRITE if stream.writes else READ) + last
        self.code.emit("scfgwi", (), (pointer,), one.lane | register << 5)


def first_address(nest: Nest, stream: Stream, region: Scope) -> Address:
    """The address of a stream's first element, in bytes: the access with the region's variables at 0."""
    layout, leaf = layout_of(nest, stream.access.array.buffer), stream.leaf
    # Streams have no swizzles, and strides that depend on sizes only for variables around the region.
    address = in_bytes(address_of(stream.access, layout, leaf.chain), layout.element_bytes)
    inside = {v: const(0) for v in address.linear.variables() if v >= region.depth}
    return replace(address, linear=address.linear.substitute(inside, leaf.extents) if inside else address.linear)
