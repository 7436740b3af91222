"""Streaming regions (`:s`) of Snitch cores: their demands on the code inside.

At the entry of a `:s` scope every access to the heap inside becomes a stream, except accesses with the hint `ordinary`.
Reads run ahead, as early as the entry of the scope. Writes arrive late, at the latest at its end, in the order of their
stream. So no later read in the region may need a value that the region writes, and no two streams may write one cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from pdojo.dialect.affine import atom_variables
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.collision import ANY, BEFORE, EQUAL, Relation
from pdojo.dialect.flow.content import region_content
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.program import Conflict, Program
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.hints import ORDINARY
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.lanes import Stride, known_alignment, stride_over
from pdojo.dialect.rules.stream_patterns import Pattern, address_in_bytes, condensed, joint_walk, pattern_of
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import open_strides, physical_index, physical_shape
from pdojo.math.functions import FUNCTIONS, FUSED

WORD = 8
"""Bytes that a stream moves at once."""
LONGEST = 1 << 17
"""Most elements in a dimension of a stream."""

EXTREMA = frozenset(("arith.maximumf", "arith.minimumf"))
"""Functions whose instructions return the number if one operand is NaN; the kernel has to permit that."""

FPU_FUNCTIONS = frozenset(function.name for function in FUNCTIONS.values() if function.snitch is not None)
"""Functions with one instruction of the floating-point unit each."""

_PIPELINED = frozenset(("arith.addf", "arith.subf", "arith.mulf", *FUSED))
"""Functions of single numbers whose results leave the unit in the order of the instructions: one instruction each, of
equal latency.
"""

DIVISIONS = frozenset(f.name for f in FUNCTIONS.values() if f.snitch in ("fdiv", "fsqrt"))
"""Functions of the unit that need a divider, the feature `xdiv_sqrt`."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One access to the heap in a streaming region, in one direction; or accesses by several statements."""

    leaf: Leaf
    access: Access
    writes: bool
    others: tuple[tuple[Leaf, Access], ...] = ()
    """Accesses to the same array by later statements whose elements are in this stream, too."""

    @property
    def members(self) -> tuple[tuple[Leaf, Access], ...]:
        """Statements and accesses."""
        return ((self.leaf, self.access), *self.others)


def streams_of(nest: Nest, region: Scope, machine: Machine) -> list[Stream]:
    """The streams of a region: one per access if the machine has enough.

    Otherwise reads of one array by several statements share one, if a single stream can deliver all of their elements
    in the order of the reads: the first, second ... read of each statement. So do writes of single numbers that leave
    the floating-point unit in the order of the statements.
    """
    streams = accesses_of(region)
    if len(streams) <= machine.snitch.stream_registers:
        return streams
    alike: dict[object, list[Stream]] = {}
    for stream in streams:
        alike.setdefault(_shared_by(stream, streams), []).append(stream)
    joint = {id(stream): same for same in alike.values() if _are_one(nest, region, same) for stream in same}
    found: list[Stream] = []
    for stream in streams:
        same = joint.get(id(stream))
        if same is None:
            found.append(stream)
        elif stream is same[0]:
            found.append(replace(stream, others=tuple((s.leaf, s.access) for s in same[1:])))
    return found


def _shared_by(stream: Stream, streams: Sequence[Stream]) -> object:
    """The common key of accesses that may share a stream: array, direction, place among the statement's accesses."""
    if not _is_shared(stream):
        return id(stream)
    buffer = stream.access.array.buffer
    same = (stream.leaf, stream.writes, buffer)
    own = [s for s in streams if (s.leaf, s.writes, s.access.array.buffer) == same]
    return buffer, stream.writes, own.index(stream)


def _is_shared(stream: Stream) -> bool:
    """Whether others may join a stream; accumulations and strides that depend on sizes forbid it."""
    leaf = stream.leaf
    if open_strides(stream.access.array.buffer):
        return False
    if stream.access is not leaf.output:
        return True
    return stream.writes and leaf.accumulate is None and leaf.function in _PIPELINED and not has_lanes(leaf)


def _are_one(nest: Nest, region: Scope, streams: Sequence[Stream]) -> bool:
    """Whether one stream can have the elements of several accesses, each by a statement of its own."""
    accesses = {s.leaf: s.access for s in streams}
    if len(accesses) == 1 or len(accesses) < len(streams):
        return False
    return joint_walk(nest, region, accesses) is not None


def walk_of(nest: Nest, stream: Stream, region: Scope, machine: Machine) -> Pattern:
    """The order of a stream's addresses."""
    if not stream.others:
        leaf, access, writes = stream.leaf, stream.access, stream.writes
        return pattern_of(nest, leaf, access, region, writes=writes, most_repeats=machine.snitch.stream_repeats)
    walk = joint_walk(nest, region, dict(stream.members))
    assert walk is not None
    return condensed(walk.loops, writes=stream.writes, most_repeats=machine.snitch.stream_repeats)


def accesses_of(region: Scope) -> list[Stream]:
    """The accesses to be streamed: equal reads of a statement are one access, an accumulation reads and writes."""
    found: dict[object, Stream] = {}
    for leaf in region.leaves:
        for access in leaf.accesses:
            if not is_streamed(access):
                continue
            writes = access is leaf.output
            if not writes or leaf.accumulate is not None:
                found.setdefault((leaf, access.key, False), Stream(leaf, access, writes=False))
            if writes:
                found[leaf, access.key, True] = Stream(leaf, access, writes=True)
    return list(found.values())


def is_streamed(access: Access) -> bool:
    """Whether an access in a region is a stream: on the heap, without the hint `ordinary`."""
    return access.array.buffer.memory is Memory.HEAP and ORDINARY not in access.hints.data


def regions(program: Program) -> Iterator[Scope]:
    """The streaming scopes."""
    return (s for s in program.nest.scopes if s.mapping is Mapping.STREAM)


def may_divide(leaf: Leaf) -> bool:
    """Whether a statement's instructions may use the divider: a division, a root, or a function by a recipe."""
    return leaf.function is not None and (leaf.function in DIVISIONS or leaf.function not in FPU_FUNCTIONS)


def has_lanes(leaf: Leaf) -> bool:
    """Whether a statement is in a vector scope."""
    return leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR


def stream_conflicts(program: Program) -> Iterator[Reason]:
    """Cells that a region writes and reads, or writes by two streams, in an order that streams do not keep."""
    for region in regions(program):
        question = "conflicts of streams", region_content(program.nest, region)
        yield from program.known.remembered.verdict(question, lambda r=region: tuple(_conflicts(program, r)))


def _conflicts(program: Program, region: Scope) -> Iterator[Reason]:
    conflict = _read_after_write(program, region)
    if conflict is not None:
        name = conflict.first_access.array.name
        yield Reason(f"{describe_scope(region)} reads '{name}' ahead, before it is written", str(conflict))
    conflict = _write_after_write(program, region)
    if conflict is not None:
        name = conflict.first_access.array.name
        yield Reason(f"{describe_scope(region)} writes '{name}' by two streams, in no known order", str(conflict))


def _read_after_write(program: Program, region: Scope) -> Conflict | None:
    """A heap read after a write of its cell in one execution of the region, at least one of them by a stream."""
    for writers, readers in ((True, None), (False, True)):
        writes = {leaf: _on_heap(program, leaf, writes=True, streamed=writers) for leaf in region.leaves}
        reads = {leaf: _on_heap(program, leaf, writes=False, streamed=readers) for leaf in region.leaves}
        for first in region.leaves:
            for second in region.leaves:
                for relation in _earlier(region, first, second):
                    found = program.conflict([first], [second], relation, racing=True, uses=writes, seconds=reads)
                    if found is not None:
                        return found
    return None


def _on_heap(program: Program, leaf: Leaf, *, writes: bool, streamed: bool | None) -> tuple[Use, ...]:
    """A statement's writes or reads of the heap: only streams (`streamed`), only loads and stores, or all (None)."""
    uses = (t for t in program.uses[leaf] if t.access.array.buffer.memory is Memory.HEAP)
    wanted = (t for t in uses if streamed is None or is_streamed(t.access) is streamed)
    return tuple(t for t in wanted if (t.writes if writes else t.reads))


def _earlier(region: Scope, first: Leaf, second: Leaf) -> Iterator[Relation]:
    """Relations of instances: `first` runs before `second`, in one execution of the region."""
    depth = common_depth((first, second))
    for k in range(region.depth, depth):
        yield (*(EQUAL,) * k, BEFORE)
    if first.order < second.order:
        yield (EQUAL,) * depth


def _write_after_write(program: Program, region: Scope) -> Conflict | None:
    """Two statements that write one cell in one execution of the region, at least one of them by a stream."""
    everything = {leaf: _on_heap(program, leaf, writes=True, streamed=None) for leaf in region.leaves}
    streamed = {leaf: _on_heap(program, leaf, writes=True, streamed=True) for leaf in region.leaves}
    relation = (*(EQUAL,) * region.depth, ANY)
    for first in region.leaves:
        others = [leaf for leaf in region.leaves if leaf is not first]
        found = program.conflict([first], others, relation, racing=True, uses=streamed, seconds=everything)
        if found is not None:
            return found
    return None


def stream_limits(program: Program) -> Iterator[Reason]:
    """Limits of the machine that the streaming scopes exceed."""
    for region in regions(program):
        question = "limits of streams", region_content(program.nest, region)
        yield from program.known.remembered.verdict(question, lambda r=region: tuple(_own_limits(program, r)))
        yield from _room_problems(program, region)


def region_limits(program: Program, region: Scope) -> Iterator[Reason]:
    """Limits of the machine that a scope would exceed as a streaming one."""
    yield from _own_limits(program, region)
    yield from _room_problems(program, region)


def _own_limits(program: Program, region: Scope) -> Iterator[Reason]:
    """`region_limits` but for the room of all arrays."""
    machine, where = program.machine, describe_scope(region)
    if not machine.snitch.stream_registers:
        yield Reason(f"{where}: {machine.name} has no stream registers")
        return
    guarded = next((s for leaf in region.leaves for s in (region, *leaf.chain[region.depth + 1 :]) if s.guard), None)
    if guarded is not None:
        yield Reason(f"{describe_scope(guarded)} has {guard_of(guarded)}, but streams run over whole boxes")
    streams = streams_of(program.nest, region, machine)
    if len(streams) > machine.snitch.stream_registers:
        yield Reason(f"{where} would need {len(streams)} streams; {machine.name} has {machine.snitch.stream_registers}")
    for stream in streams:
        problems = [_access_problem(program, leaf, access, region) for leaf, access in stream.members]
        problem = next((p for p in problems if p is not None), None) or _walk_problem(program, stream, region)
        if problem is not None:
            yield problem
    scalar = next((s for s in streams if s.writes and may_divide(s.leaf) and not has_lanes(s.leaf)), None)
    if scalar is not None and any(may_divide(leaf) and has_lanes(leaf) for leaf in region.leaves):
        yield Reason(
            f"{where} divides lanes, perhaps while a quotient for {describe_access(scalar.access)} is in the divider, "
            "which mixes up the lanes then"
        )


def _room_problems(program: Program, region: Scope) -> Iterator[Reason]:
    machine = program.machine
    # Model machines have no such limit.
    if not (machine.snitch.stream_registers and machine.architecture):
        return
    used = program.memoised("bytes in the core", lambda: _bytes_in_core(program.nest))
    if used > machine.cache_bytes[-1]:
        yield Reason(
            f"{describe_scope(region)} streams from the memory of the core, which has {machine.cache_bytes[-1]} bytes; "
            f"the arrays take {used}"
        )


def _bytes_in_core(nest: Nest) -> int:
    """Bytes of all buffers that are not in registers."""
    buffers = (buffer for buffer in nest.buffers if buffer.memory is not Memory.REGISTER)
    return sum(prod(physical_shape(nest, buffer)) * byte_width(buffer.dtype) for buffer in buffers)


def _access_problem(program: Program, leaf: Leaf, access: Access, region: Scope) -> Reason | None:
    """The reason why an access cannot be an element of a stream; None if it can."""
    described = describe_access(access)
    buffer = access.array.buffer
    if buffer.swizzles:
        return Reason(f"'{access.array.name}' is swizzled; streams are linear")
    if any(v >= region.depth for index in access.index[: open_strides(buffer)] for v in index.variables()):
        return Reason(
            f"{described} moves in the region over a dimension whose stride depends on {_sizes_of(buffer)}; streams "
            "have constant strides; stream a scope inside"
        )
    # The index of consecutive rows has a division; their address has none.
    for atom, _ in address_in_bytes(program.nest, access, leaf).terms:
        if not isinstance(atom, int) and any(v >= region.depth for v in atom_variables(atom)):
            return Reason(f"{described} divides a variable of the region, or looks one up; streams are linear")
    if not is_float(access.array.dtype):
        return Reason(f"{described} is of type {access.array.dtype}; streams are floating-point registers")
    lanes = leaf.chain[-1] if leaf.chain[-1].mapping is Mapping.VECTOR else None
    return _word_problem(access, leaf, lanes)


def guard_of(scope: Scope) -> str:
    """A scope's guard in messages, with the sizes on which it depends."""
    sizes = ", ".join(size.name for size in sizes_in(scope.guard))
    return f"a guard that depends on {sizes}" if sizes else "a guard"


def _sizes_of(buffer: Buffer) -> str:
    """Names of the sizes on which the strides of a buffer depend; `the caller` for a strided array."""
    return "the caller" if buffer.strides else ", ".join(size.name for size in sizes_in(buffer.sized))


def _walk_problem(program: Program, stream: Stream, region: Scope) -> Reason | None:
    """The reason why no address generator can produce a stream's addresses; None if one can."""
    machine, described = program.machine, describe_access(stream.access)
    pattern = walk_of(program.nest, stream, region, machine)
    if len(pattern.bounds) > machine.snitch.stream_dims:
        return Reason(
            f"{described} needs {len(pattern.bounds)} dimensions in the region; a stream has "
            f"{machine.snitch.stream_dims}"
        )
    longest = max(pattern.bounds, default=1)
    if longest > LONGEST:
        return Reason(f"{described} has {longest} elements in a dimension; streams count to {LONGEST}")
    return None


def _word_problem(access: Access, leaf: Leaf, lanes: Scope | None) -> Reason | None:
    """The reason why an access is not to whole, aligned words; None if it is."""
    described = describe_access(access)
    index, width = physical_index(access, leaf.chain), byte_width(access.array.dtype)
    if lanes is None:
        return (
            None
            if width == WORD
            else Reason(f"{described} is of type {access.array.dtype}; streams move 8 bytes at once")
        )
    if width * lanes.extent != WORD or stride_over(index, lanes.depth) is not Stride.CONTIGUOUS:
        return Reason(f"{described} is no vector of 8 contiguous bytes, which streams move at once")
    if known_alignment(access, leaf, lanes) % WORD:
        return Reason(f"{described} is not known to be aligned to 8 bytes, which streams move at once")
    return None
