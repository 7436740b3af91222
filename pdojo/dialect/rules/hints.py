"""The hints that a machine can use, and their places. Hints never change meaning, but a useless hint is refused."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from pdojo.dialect.affine import IndexArray, atom_variables, var
from pdojo.dialect.attributes import Intent, Mapping, Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.hints import (
    AHEAD,
    FARTHEST,
    LANE,
    LAUNCH_BOUNDS,
    MOST_BLOCKS,
    NONTEMPORAL,
    ORDINARY,
    PERSISTENT,
    PREFETCH,
    READONLY,
    STREAMING,
)
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.lanes import Stride, known_alignment, lane_stride
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Scope, fact

ACCESS_HINTS = (NONTEMPORAL, PREFETCH, AHEAD, STREAMING, READONLY, LANE, ORDINARY)
SCOPE_HINTS = (LAUNCH_BOUNDS,)
BUFFER_HINTS = (PERSISTENT,)

_MAPPED = (STREAMING, READONLY, LANE)
"""Hints of accesses that are valid only inside certain mappings."""


def value_of(hint: Attribute | None) -> int:
    """The integer of a hint; -1 if it has none, or if `hint` is None."""
    return hint.value.data if isinstance(hint, IntegerAttr) else -1


def access_misfit(program: Program, leaf: Leaf, number: int, kind: str, value: int) -> Reason | None:
    """The reason why an access (0 the output, then the reads) cannot carry a hint; None if it can."""
    if kind not in ACCESS_HINTS:
        return Reason(f"'{kind}' is no hint of an access; known are {', '.join(ACCESS_HINTS)}")
    access = leaf.accesses[number]
    if access.array.buffer.memory is Memory.REGISTER:
        return Reason(f"'{access.array.name}' is in registers")
    if value > FARTHEST:
        return Reason(f"'value' must be at most {FARTHEST}, a distance in bytes")
    match kind:
        case "prefetch" | "ahead":
            return _fetch_misfit(leaf, number, kind, value)
        case "nontemporal":
            if number != 0 or leaf.accumulate is not None or value != -1:
                return Reason("only plain stores are non-temporal (access=0, no value)")
            lanes = leaf.parent
            return None if lanes is None or lanes.mapping is not Mapping.VECTOR else streaming_misfit(leaf, lanes)
        case "lane":
            return _lane_misfit(program, leaf, number, value)
        case "ordinary":
            return _ordinary_misfit(program, access, value)
        case _:
            return _cache_misfit(program, leaf, number, kind, value)


def _fetch_misfit(leaf: Leaf, number: int, kind: str, value: int) -> Reason | None:
    needed = number > 0 and value > 0
    if kind == PREFETCH:
        text = "a prefetch needs a read access (access=1 ...) and a distance in bytes (value=...)"
        return None if needed else Reason(text)
    if needed and coming_access(leaf, leaf.accesses[number], value) is not None:
        return None
    return Reason(
        "a load ahead needs a read access (access=1 ...) at an entry of an array of indices that a loop chooses, and a "
        "number of its iterations (value=...)"
    )


def coming_access(leaf: Leaf, access: Access, iterations: int) -> Access | None:
    """An access so many iterations ahead, in the innermost loop that chooses an entry; None if no loop does.

    Its entries may be beyond the array of indices: code takes the nearest ones.
    """
    entries = [found for found in lookups_in(access.index) if isinstance(found.table, IndexArray)]
    loops = [s for s in leaf.chain if s.mapping in (Mapping.SEQUENTIAL, Mapping.PARALLEL)]
    chosen = [s for s in loops if any(s.depth in atom_variables(found) for found in entries)]
    if not chosen:
        return None
    later = {chosen[-1].depth: var(chosen[-1].depth) + iterations}
    return Access(access.array, tuple(e.substitute(later, leaf.extents) for e in access.index), access.hints)


def streaming_misfit(leaf: Leaf, lanes: Scope, access: Access | None = None) -> Reason | None:
    """The reason why these lanes cannot bypass the caches with whole-vector instructions; None if they can.

    If `access` is None, it is the store.
    """
    access = access or leaf.output
    stride = lane_stride(access.index, access.array.shape, lanes.depth)
    if stride is Stride.BROADCAST and access is not leaf.output:
        return None  # one element
    if any(g.uses(lanes.depth) for g in lanes.guard):
        return Reason(f"a guard masks lanes of {describe_access(access)}")
    if stride is not Stride.CONTIGUOUS:
        return Reason(f"the lanes of {describe_access(access)} are not contiguous")
    size, known = lanes.extent * byte_width(access.array.dtype), known_alignment(access, leaf, lanes)
    if known % size:
        return Reason(
            f"vectors of {size} bytes of {describe_access(access)} are only known to be aligned to {known} bytes"
        )
    return None


def _lane_misfit(program: Program, leaf: Leaf, number: int, value: int) -> Reason | None:
    region = next((s for s in leaf.chain if s.mapping is Mapping.STREAM), None)
    access = leaf.accesses[number]
    if region is None or access.array.buffer.memory is not Memory.HEAP or ORDINARY in access.hints.data:
        return Reason(f"{describe_access(access)} is no stream: only streams have a lane")
    if not 0 <= value < program.machine.snitch.stream_registers:
        return Reason(
            f"'value' must be the number of a stream register, less than {program.machine.snitch.stream_registers}"
        )
    for other in region.leaves:
        for position, another in enumerate(other.accesses):
            if (other, position) != (leaf, number) and value_of(another.hints.data.get(LANE)) == value:
                return Reason(f"{describe_access(another)} takes lane {value} of the region already")
    return None


def _ordinary_misfit(program: Program, access: Access, value: int) -> Reason | None:
    if not program.machine.snitch.stream_registers:
        return Reason(f"{program.machine.name} has no streams, to which '{ORDINARY}' applies")
    if access.array.buffer.memory is not Memory.HEAP:
        return Reason(f"'{access.array.name}' is not on the heap, the only memory that is streamed")
    return None if value == -1 else Reason(f"'{ORDINARY}' has no value")


def _cache_misfit(program: Program, leaf: Leaf, number: int, kind: str, value: int) -> Reason | None:
    access = leaf.accesses[number]
    if not any(s.mapping is Mapping.GRID for s in leaf.chain):
        return Reason(f"'{kind}' is a cache policy of grids")
    if access.array.buffer.memory is not Memory.HEAP:
        return Reason(f"'{access.array.name}' is not on the heap, the only memory that is cached")
    if value != -1:
        return Reason(f"'{kind}' has no value")
    if kind == READONLY and (number == 0 or _is_written(program, access)):
        return Reason(f"'{access.array.name}' is written by the kernel: it cannot be read through the read-only cache")
    return None


def _is_written(program: Program, access: Access) -> bool:
    buffer = access.array.buffer
    return buffer.intent is not Intent.IN or any(leaf.output.array.buffer is buffer for leaf in program.nest.leaves)


def scope_misfit(program: Program, scope: Scope, kind: str, value: int) -> Reason | None:
    """The reason why a scope cannot carry a hint; None if it can."""
    if kind not in SCOPE_HINTS:
        return Reason(f"'{kind}' is no hint of a scope; known are {', '.join(SCOPE_HINTS)}")
    if scope.mapping is not Mapping.GRID or any(s.mapping is Mapping.GRID for s in scope.chain[:-1]):
        return Reason(f"{describe_scope(scope)} is no outermost grid scope: only launches have launch bounds")
    if not 1 <= value <= MOST_BLOCKS:
        return Reason(
            f"'value' must be between 1 and {MOST_BLOCKS}, the blocks that a multiprocessor should hold at once"
        )
    return None


def buffer_misfit(program: Program, array: Array, kind: str) -> Reason | None:
    """The reason why a buffer cannot carry a hint; None if it can."""
    if kind not in BUFFER_HINTS:
        return Reason(f"'{kind}' is no hint of a buffer; known are {', '.join(BUFFER_HINTS)}")
    if array.buffer.memory is not Memory.HEAP:
        return Reason(f"'{array.name}' is not on the heap, the only memory that is cached")
    if not program.machine.gpu.block_threads:
        return Reason(f"{program.machine.name} cannot keep a buffer in its caches")
    return None


def _mapped_accesses(program: Program) -> Iterator[tuple[Leaf, int, str, int]]:
    if "hinted statement" not in program.nest.traits:
        return
    for leaf in program.nest.leaves:
        if "hints" not in leaf.op.properties:
            continue
        for number, access in enumerate(leaf.accesses):
            for kind, value in access.hints.data.items() if access.hints.data else ():
                if kind in _MAPPED:
                    yield leaf, number, kind, value_of(value)


def owned_hints(program: Program) -> dict[str, Attribute]:
    """The hints of scopes, keyed by identifier, and of buffers, by name."""
    scopes = program.nest.scopes if "hinted scope" in program.nest.traits else ()
    found: dict[str, Attribute] = {f"scope %{s.id}": s.hints for s in scopes if s.hints.data}
    return found | {f"buffer '{b.names[0]}'": b.hints for b in _hinted_buffers(program)}


def _hinted_buffers(program: Program) -> list[Buffer]:
    buffers = program.nest.buffers
    return fact(program.nest.of_declarations, "hinted", lambda: [b for b in buffers if b.hints.data])


def is_hinted(program: Program) -> bool:
    """Whether some hint is valid only inside certain mappings, or could be lost by a move."""
    is_owned = "hinted scope" in program.nest.traits or bool(_hinted_buffers(program))
    return is_owned or next(_mapped_accesses(program), None) is not None


def unusable_hints(program: Program) -> Iterator[Reason]:
    """Hints that no machine can use at their place: on accesses to registers, on vectors with unsuitable lanes.

    No move leads to such a hint, and removing one could not be undone, so no game starts with one.
    """
    for leaf in program.nest.leaves if "hinted statement" in program.nest.traits else ():
        for access in leaf.accesses:
            if access.hints.data and access.array.buffer.memory is Memory.REGISTER:
                yield Reason(f"{describe_access(access)} has hints, which registers cannot honour; take them out")
        lanes = leaf.parent
        if lanes is None or lanes.mapping is not Mapping.VECTOR:
            continue
        for access in leaf.accesses:
            if NONTEMPORAL in access.hints.data and (misfit := streaming_misfit(leaf, lanes, access)) is not None:
                yield Reason(f"{misfit}, which the hint 'nontemporal' needs; take it out, or declare 'align'")


def hint_problems(program: Program) -> Iterator[Reason]:
    """Hints that are useless at their place."""
    for leaf, number, kind, value in _mapped_accesses(program):
        problem = access_misfit(program, leaf, number, kind, value)
        if problem is not None:
            yield Reason(f"hint '{kind}' would no longer apply: {problem}")
    for scope in program.nest.scopes:
        for kind, value in scope.hints.data.items():
            problem = scope_misfit(program, scope, kind, value_of(value))
            if problem is not None:
                yield Reason(f"hint '{kind}' would no longer apply: {problem}")
    for buffer in program.nest.buffers:
        yield from _buffer_problems(program, buffer)


def _buffer_problems(program: Program, buffer: Buffer) -> Iterator[Reason]:
    for kind in buffer.hints.data:
        problem = buffer_misfit(program, program.nest.arrays[buffer.names[0]], kind)
        if problem is not None:
            yield Reason(f"hint '{kind}' would no longer apply: {problem}")
