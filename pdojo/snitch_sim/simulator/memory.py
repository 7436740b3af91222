"""The TCDM: banks, ports and arbitration (snitch_tcdm_interconnect, tcdm_mux, fair rr_arb_tree)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from pdojo.snitch_sim.assembler.program import TCDM_BASE
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.lane import Lane
from pdojo.snitch_sim.simulator.rounding import bits
from pdojo.snitch_sim.simulator.scalar import boxed


class MemoryRequest(NamedTuple):
    """A memory access of the core or the FP subsystem. Addresses are offsets in the memory."""

    time: int
    """The cycle from which the request register shows the request."""
    offset: int
    size: int
    """log2 of the number of bytes."""
    store: bool
    value: float | int
    """The value to store."""
    register: int
    """The destination register of a load."""
    signed: bool
    first: bool
    """Whether the core counts the access; repetitions in a hardware loop are not counted."""


class Response(NamedTuple):
    """The response to a request."""

    time: int
    register: int
    value: float | int
    store: bool
    first: bool
    floating: bool
    """Whether it is for the FP subsystem."""


@dataclass
class RoundRobin:
    """A fair round-robin arbiter of two requesters. A requester that was chosen but not served keeps the turn."""

    next: int = 0
    locked: int | None = None

    def choose(self, first: bool, second: bool) -> int:
        """The chosen requester, 0 or 1; at least one must request."""
        if self.locked is not None:
            return self.locked
        if first and second:
            return self.next
        return 0 if first else 1

    def served(self, chosen: int, first: bool, second: bool) -> None:
        """Record that the chosen requester was served."""
        self.locked = None
        self.next = 1 - chosen if first and second else chosen


class SimulatedMemory:
    """The memory's words and pending requests. Lane 0 shares a port with the core and the FP subsystem's accesses."""

    __slots__ = (
        "_bank_mask",
        "_bank_turns",
        "_between",
        "_depth",
        "_port",
        "bytes",
        "conflicts",
        "core_requests",
        "core_responses",
        "core_taken",
        "doubles",
        "float_requests",
        "float_taken",
        "halves",
        "responses",
        "running",
        "trace",
        "words",
    )

    def __init__(self, configuration: Configuration, contents: bytearray) -> None:
        view = memoryview(contents)
        self.bytes = view
        self.halves = view.cast("H")
        self.words = view.cast("I")
        self.doubles = view.cast("d")
        self.running: list[Lane] = []
        """Lanes with a job."""
        self.core_requests: deque[MemoryRequest] = deque()
        self.float_requests: deque[MemoryRequest] = deque()
        self.responses: deque[Response] = deque()
        """Responses of the port of core and FP subsystem. They leave in order: one that waits for a write port delays
        all later ones (lsu_to_tcdm.sv, reqrsp_mux.sv; m).
        """
        self.core_responses: deque[Response] = deque()
        """Responses in the core's response register, of two entries."""
        self.core_taken = self.float_taken = -1
        """The cycles in which the latest requests left their registers."""
        self._depth = configuration.stream_fifo
        self._bank_mask = configuration.banks - 1
        self._bank_turns = [0] * configuration.banks
        self._between = RoundRobin()
        """Arbiter between core (0) and FP subsystem (1)."""
        self._port = RoundRobin()
        """Arbiter between lane 0 (0) and the winner of core and FP subsystem (1)."""
        self.conflicts = 0
        self.trace: list[tuple[int, str, int, int]] | None = None

    def step(self, now: int) -> bool:
        """Run one cycle; returns whether any request was served."""
        depth = self._depth
        wanting = [
            lane
            for lane in self.running
            if lane.start <= now and (lane.ready(now) if lane.writes or lane.turning else len(lane.fifo) < depth)
        ]
        if self.core_requests or self.float_requests:
            return self._with_core(wanting, now)
        if not wanting:
            return False
        mask = self._bank_mask
        if len(wanting) == 1 or _distinct(wanting, mask):
            turns = self._bank_turns
            for lane in wanting:
                turns[lane.next & mask] = lane.number
                lane.grant(now)
        else:
            self._arbitrate({lane.number: lane.next & mask for lane in wanting}, wanting, None, now)
        return True

    def _with_core(self, wanting: list[Lane], now: int) -> bool:
        core = bool(self.core_requests) and self.core_requests[0].time <= now
        floating = bool(self.float_requests) and self.float_requests[0].time <= now
        lane0 = bool(wanting) and wanting[0].number == 0
        path = core or floating
        if not path and not wanting:
            return False
        port = self._port.choose(lane0, path) if lane0 or path else 0
        self.conflicts += lane0 and path
        who = self._between.choose(core, floating) if path else 0
        request = None
        banks = {lane.number: lane.next & self._bank_mask for lane in wanting}
        if path and port == 1:
            request = (self.float_requests if who else self.core_requests)[0]
            banks[0] = request.offset >> 3 & self._bank_mask
        served = self._arbitrate(banks, wanting, request, now)
        if lane0 or path:
            if 0 in served:
                self._port.served(port, lane0, path)
            else:
                self._port.locked = port
        if request is not None and 0 in served:
            self._between.served(who, core, floating)
            self._serve(request, now, who)
        elif path:
            self._between.locked = who
        return bool(served)

    def _arbitrate(
        self, banks: dict[int, int], wanting: list[Lane], request: MemoryRequest | None, now: int
    ) -> set[int]:
        """Serve one port of each bank; returns the served ports."""
        served: set[int] = set()
        for bank in dict.fromkeys(banks.values()):
            ports = sorted(p for p, b in banks.items() if b == bank)
            turn = self._bank_turns[bank]
            served.add(_winner(ports, turn))
            above = [p for p in ports if p > turn]
            self._bank_turns[bank] = above[0] if above else ports[0]
            self.conflicts += len(ports) - 1
        for lane in wanting:
            if lane.number in served and not (lane.number == 0 and request is not None):
                lane.grant(now)
        return served

    def _serve(self, request: MemoryRequest, now: int, who: int) -> None:
        value: float | int = 0
        if request.store:
            self._store(request)
        else:
            value = self._load(request, floating=who == 1)
        if who:
            self.float_requests.popleft()
            self.float_taken = now
        else:
            self.core_requests.popleft()
            self.core_taken = now
        self.responses.append(Response(now + 1, request.register, value, request.store, request.first, who == 1))

    def _store(self, request: MemoryRequest) -> None:
        word = bits(request.value) if isinstance(request.value, float) else request.value
        offset = request.offset
        match request.size:
            case 0:
                self.bytes[offset] = word & 0xFF
            case 1:
                self.halves[offset >> 1] = word & 0xFFFF
            case 2:
                self.words[offset >> 2] = word & 0xFFFFFFFF
            case _:
                assert isinstance(request.value, float)
                self.doubles[offset >> 3] = request.value

    def _load(self, request: MemoryRequest, *, floating: bool) -> float | int:
        offset = request.offset
        match request.size:
            case 0:
                word, width = self.bytes[offset], 8
            case 1:
                word, width = self.halves[offset >> 1], 16
            case 2:
                word, width = self.words[offset >> 2], 32
            case _:
                return self.doubles[offset >> 3]
        if floating:
            return boxed(word, width)
        return word | 0x100000000 - (1 << width) if request.signed and word >> width - 1 else word


def _distinct(lanes: list[Lane], mask: int) -> bool:
    """Whether two or three lanes request words in different banks."""
    first, second = lanes[0].next & mask, lanes[1].next & mask
    if len(lanes) == 2:
        return first != second
    return first != second and lanes[2].next & mask not in (first, second)


def _winner(ports: list[int], turn: int) -> int:
    """The port (0 to 2) that a two-level tree serves; the bits of `turn` break ties."""
    left = [p for p in ports if p < 2]
    if 2 in ports and (not left or turn & 2):
        return 2
    return left[0] if len(left) == 1 else turn & 1


def offset_of(address: int, size: int, memory_bytes: int) -> tuple[int, str]:
    """The offset of an address in the memory, and an error message, which is empty for a valid address."""
    offset = address - TCDM_BASE
    if address & (1 << size) - 1:
        return offset, f"the address {address:#x} is no multiple of {1 << size}"
    if not 0 <= offset < memory_bytes:
        end = TCDM_BASE + memory_bytes - 1
        return offset, f"the address {address:#x} is outside of the memory, {TCDM_BASE:#x} to {end:#x}"
    return offset, ""
