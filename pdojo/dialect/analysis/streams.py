"""Streaming regions (`:s`) and hardware loops (`:f`) of Snitch cores: what they ask of the code inside.

At the entry of a `:s` scope every access to the heap inside becomes a stream: reads run ahead, as early as the entry of
the scope, and writes arrive late, at the latest at its end, in the order of the stream that makes them. So nothing that
the region writes may be read later in the region, and no two streams may write one cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pdojo.dialect.analysis.collision import ANY, BEFORE, EQUAL, Relation
from pdojo.dialect.analysis.coverage import common_depth
from pdojo.dialect.analysis.lanes import Stride, known_alignment, stride_over
from pdojo.dialect.analysis.program import Conflict, Problem, Program, Touch
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import Access, Constant, Index, Leaf, Scope
from pdojo.dialect.storage import physical_index
from pdojo.dialect.verify import describe_access, describe_scope

WORD = 8
"""Bytes that a stream moves at once."""

FPU_FUNCTIONS = frozenset(
    f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "negf")
) | frozenset(("math.sqrt", "math.absf", "math.fma"))
"""Functions that are one instruction of the floating-point unit."""

DIVISIONS = frozenset(("arith.divf", "math.sqrt"))
"""Those of them that need a divider, the feature `xdiv_sqrt`."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One access to the heap in a streaming region, in one direction."""

    leaf: Leaf
    access: Access
    writes: bool


def streams_of(region: Scope) -> list[Stream]:
    """The streams of a region: equal reads of a statement are one, an accumulation reads and writes."""
    found: dict[object, Stream] = {}
    for leaf in region.leaves:
        for access in leaf.accesses:
            if access.array.buffer.memory is not Memory.HEAP:
                continue
            writes = access is leaf.output
            if not writes or leaf.accumulate is not None:
                found.setdefault((leaf, access.key, False), Stream(leaf, access, writes=False))
            if writes:
                found[leaf, access.key, True] = Stream(leaf, access, writes=True)
    return list(found.values())


def regions(program: Program) -> Iterator[Scope]:
    """The streaming scopes."""
    return (s for s in program.nest.scopes if s.mapping is Mapping.STREAM)


def stream_conflicts(program: Program) -> Iterator[Problem]:
    """Cells that a region writes and reads, or writes by two streams, in an order that streams do not keep."""
    for region in regions(program):
        conflict = _read_after_write(program, region)
        if conflict is not None:
            name = conflict.first_access.array.name
            yield Problem(f"{describe_scope(region)} reads '{name}' ahead, before it is written", str(conflict))
        conflict = _write_after_write(program, region)
        if conflict is not None:
            name = conflict.first_access.array.name
            yield Problem(f"{describe_scope(region)} writes '{name}' by two streams, in no known order", str(conflict))


def _read_after_write(program: Program, region: Scope) -> Conflict | None:
    """A read of the heap after a write of the same cell, in one execution of the region."""
    writes = {leaf: _streamed(program, leaf, writes=True) for leaf in region.leaves}
    reads = {leaf: _streamed(program, leaf, writes=False) for leaf in region.leaves}
    for first in region.leaves:
        for second in region.leaves:
            for relation in _earlier(region, first, second):
                found = program.conflict([first], [second], relation, racing=True, touches=writes, seconds=reads)
                if found is not None:
                    return found
    return None


def _streamed(program: Program, leaf: Leaf, *, writes: bool) -> tuple[Touch, ...]:
    touches = (t for t in program.touches[leaf] if t.access.array.buffer.memory is Memory.HEAP)
    return tuple(t for t in touches if (t.writes if writes else t.reads))


def _earlier(region: Scope, first: Leaf, second: Leaf) -> Iterator[Relation]:
    """The relations under which an instance of `first` runs before one of `second`, in one execution of the region."""
    depth = common_depth((first, second))
    for k in range(region.depth, depth):
        yield (*(EQUAL,) * k, BEFORE)
    if first.order < second.order:
        yield (EQUAL,) * depth


def _write_after_write(program: Program, region: Scope) -> Conflict | None:
    """Two statements that write one cell, in one execution of the region."""
    writes = {leaf: _streamed(program, leaf, writes=True) for leaf in region.leaves}
    relation = (*(EQUAL,) * region.depth, ANY)
    for position, first in enumerate(region.leaves):
        others = region.leaves[position + 1 :]
        found = program.conflict([first], others, relation, racing=True, touches=writes)
        if found is not None:
            return found
    return None


def snitch_limits(program: Program) -> Iterator[Problem]:
    """What streams and hardware loops of the machine cannot do."""
    for region in regions(program):
        yield from _region_limits(program, region)
    for scope in program.nest.scopes:
        if scope.mapping is Mapping.FREP:
            yield from _loop_limits(program, scope)


def _region_limits(program: Program, region: Scope) -> Iterator[Problem]:
    machine, where = program.machine, describe_scope(region)
    if not machine.stream_registers:
        yield Problem(f"{where}: {machine.name} has no stream registers")
        return
    guarded = next((s for leaf in region.leaves for s in leaf.chain[region.depth :] if s.guard), None)
    if guarded is not None:
        yield Problem(f"{describe_scope(guarded)} has a guard, but streams run over whole boxes")
    streams = streams_of(region)
    if len(streams) > machine.stream_registers:
        yield Problem(f"{where} would need {len(streams)} streams; {machine.name} has {machine.stream_registers}")
    for stream in streams:
        problem = _stream_problem(stream, region, machine.stream_dims)
        if problem is not None:
            yield Problem(problem)


def _stream_problem(stream: Stream, region: Scope, most: int) -> str | None:
    """Why no address generator can make the addresses of a stream."""
    leaf, access = stream.leaf, stream.access
    index = physical_index(access, leaf.chain)
    described = describe_access(access)
    for expression in index:
        for atom, _ in expression.terms:
            if not isinstance(atom, int) and any(v >= region.depth for v in atom.numerator.variables()):
                return f"{described} divides a variable of the region; streams are linear"
    inside = leaf.chain[region.depth :]
    lanes = inside[-1] if inside[-1].mapping is Mapping.VECTOR else None
    loops = [s for s in inside if s.extent > 1 and s is not lanes]
    if len(loops) > most:
        return f"{described} runs over {len(loops)} scopes of the region; a stream has {most} dimensions"
    width = byte_width(access.array.dtype)
    if lanes is None:
        return None if width == WORD else f"{described} is of type {access.array.dtype}; streams move 8 bytes at once"
    if width * lanes.extent != WORD or stride_over(index, lanes.depth) is not Stride.CONTIGUOUS:
        return f"{described} is no vector of 8 contiguous bytes, which streams move at once"
    if known_alignment(access, leaf, lanes) % WORD:
        return f"{described} is not known to be aligned to 8 bytes, which streams move at once"
    return None


def _loop_limits(program: Program, loop: Scope) -> Iterator[Problem]:
    machine, where = program.machine, describe_scope(loop)
    if not machine.frep_instructions:
        yield Problem(f"{where}: {machine.name} has no hardware loops")
        return
    guarded = next((s for leaf in loop.leaves for s in leaf.chain[loop.depth :] if s.guard), None)
    if guarded is not None:
        yield Problem(f"{describe_scope(guarded)} has a guard, but a hardware loop repeats the same instructions")
    if loop.extent > machine.frep_trips:
        yield Problem(f"{where} has too many iterations; hardware loops of {machine.name} have {machine.frep_trips}")
    instructions = sum(instructions_of(leaf, loop) for leaf in loop.leaves)
    if instructions > machine.frep_instructions:
        yield Problem(
            f"{where} would repeat {instructions} instructions; hardware loops of {machine.name} hold "
            f"{machine.frep_instructions}"
        )
    for leaf in loop.leaves:
        problem = _function_problem(leaf, machine) or _operand_problem(leaf, loop)
        if problem is not None:
            yield Problem(problem)


def instructions_of(leaf: Leaf, loop: Scope) -> int:
    """Instructions of a statement in the loop's body, in which inner scopes are unrolled."""
    copies = 1
    for scope in leaf.chain[loop.depth + 1 :]:
        copies *= scope.extent if scope.mapping is Mapping.UNROLL else 1
    is_two = leaf.accumulate is not None and leaf.function is not None and not leaf.contracted
    return copies * (2 if is_two else 1)


def _function_problem(leaf: Leaf, machine: Machine) -> str | None:
    """Why a statement is no instruction of the floating-point unit."""
    for function in (leaf.function, leaf.accumulate):
        if function is not None and function not in FPU_FUNCTIONS:
            return f"'{function}' is no instruction of the floating-point unit, which repeats hardware loops"
        if function in DIVISIONS and "xdiv_sqrt" not in machine.features:
            return f"'{function}' needs a divider, which {machine.name} does not have (feature xdiv_sqrt)"
    return None


def _operand_problem(leaf: Leaf, loop: Scope) -> str | None:
    """Why a statement is not instructions on registers and streams alone."""
    for value in leaf.inputs:
        if isinstance(value, Index) or (isinstance(value, Constant) and not value.dtype.startswith(("f", "bf"))):
            return "hardware loops have no integer operands"
    streamed = any(s.mapping is Mapping.STREAM for s in leaf.chain)
    for access in leaf.accesses:
        memory = access.array.buffer.memory
        if not access.array.dtype.startswith(("f", "bf")):
            return f"'{access.array.name}' is of type {access.array.dtype}; hardware loops are for floating point"
        if memory is Memory.HEAP and not streamed:
            return f"{describe_access(access)} is in memory; stream a scope around {describe_scope(loop)}"
        if memory not in (Memory.HEAP, Memory.REGISTER):
            return f"{describe_access(access)} is in {memory.value} memory; hardware loops use streams and registers"
        if memory is Memory.REGISTER and not _only_constants(access, leaf):
            return f"{describe_access(access)} is not indexed by constants, as registers are"
    return None


def _only_constants(access: Access, leaf: Leaf) -> bool:
    used: Sequence[int] = sorted({v for e in physical_index(access, leaf.chain) for v in e.variables()})
    return all(leaf.chain[v].mapping in (Mapping.UNROLL, Mapping.VECTOR) for v in used)
