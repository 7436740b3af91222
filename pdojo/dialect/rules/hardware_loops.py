"""Hardware loops (`:f`) of Snitch cores: their demands on the statements inside, and packed instructions there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import frexp

from pdojo.dialect.attributes import Mapping, Memory, Numerics
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.rules.streams import (
    DIVISIONS,
    EXTREMA,
    FPU_FUNCTIONS,
    WORD,
    guard_of,
    has_lanes,
    is_streamed,
    stream_limits,
)
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Buffer, Constant, Index, Leaf, Nest, Scope
from pdojo.dialect.view.storage import physical_index
from pdojo.math.functions import FUSED


def snitch_limits(program: Program) -> Iterator[Reason]:
    """Limits of streams and hardware loops that a program exceeds."""
    yield from stream_limits(program)
    for scope in program.nest.scopes:
        if scope.mapping is Mapping.FREP:
            yield from loop_limits(program, scope)


def loop_limits(program: Program, loop: Scope) -> Iterator[Reason]:
    """Limits of the machine that a hardware loop exceeds; `loop` may be any scope, treated as a hardware loop."""
    machine, core, where = program.machine, program.machine.snitch, describe_scope(loop)
    if not core.frep_instructions:
        yield Reason(f"{where}: {machine.name} has no hardware loops")
        return
    guarded = next((s for leaf in loop.leaves for s in (loop, *leaf.chain[loop.depth + 1 :]) if s.guard), None)
    if guarded is not None:
        found = f"{describe_scope(guarded)} has {guard_of(guarded)}"
        yield Reason(f"{found}, but a hardware loop repeats the same instructions")
    nested = sum(1 for s in loop.chain if s.mapping is Mapping.FREP)
    if nested > max(1, core.frep_nesting):
        yield Reason(
            f"{where} is in a nest of {nested} hardware loops; {machine.name} has nests of {core.frep_nesting}"
        )
    if loop.extent > core.frep_trips:
        yield Reason(f"{where} has too many iterations; hardware loops of {machine.name} have {core.frep_trips}")
    instructions = sum(instructions_of(leaf, loop) for leaf in loop.leaves)
    if instructions > core.frep_instructions:
        yield Reason(
            f"{where} would repeat {instructions} instructions; hardware loops of {machine.name} hold "
            f"{core.frep_instructions}"
        )
    if len({has_lanes(leaf) for leaf in loop.leaves if leaf.function in DIVISIONS and not divides_exactly(leaf)}) > 1:
        yield Reason(f"{where} divides single numbers and lanes, which the divider mixes up if the numbers come first")
    for leaf in loop.leaves:
        problem = _function_problem(program, leaf) or _operand_problem(leaf, loop) or _lanes_problem(program.nest, leaf)
        if problem is not None:
            yield problem


def instructions_of(leaf: Leaf, loop: Scope) -> int:
    """Instructions of a statement in the loop's body; inner scopes other than hardware loops are unrolled."""
    copies = 1
    for scope in leaf.chain[loop.depth + 1 :]:
        copies *= scope.extent if scope.mapping is Mapping.UNROLL else 1
    is_two = leaf.accumulate is not None and leaf.function is not None and not leaf.contracted
    return copies * (2 if is_two else 1)


def has_extremum(loop: Scope) -> bool:
    """Whether a maximum or minimum of floating-point numbers is in a scope."""
    return any(f in EXTREMA for leaf in loop.leaves for f in (leaf.function, leaf.accumulate))


def _function_problem(program: Program, leaf: Leaf) -> Reason | None:
    """The reason why a statement is no instruction of the floating-point unit; None if it is one."""
    machine = program.machine
    for function in (leaf.function, leaf.accumulate):
        if function is not None and function not in FPU_FUNCTIONS:
            return Reason(f"'{function}' is no instruction of the floating-point unit, which repeats hardware loops")
        if function in EXTREMA and not program.permits(Numerics.NUMBERS):
            return Reason(
                f"'{function}' in a hardware loop would lose a NaN, which the kernel does not permit (numerics numbers)"
            )
        if function in DIVISIONS and "xdiv_sqrt" not in machine.features and not divides_exactly(leaf):
            return Reason(f"'{function}' needs a divider, which {machine.name} does not have (feature xdiv_sqrt)")
    return None


def divides_exactly(leaf: Leaf) -> bool:
    """Whether a statement divides by a power of two near enough to 1 that its reciprocal gives the same bits."""
    divisor = leaf.inputs[-1]
    if leaf.function != "arith.divf" or not isinstance(divisor, Constant):
        return False
    mantissa, exponent = frexp(abs(float(divisor.value)))
    return mantissa == 0.5 and -13 <= exponent <= 15


def exact_reciprocal(leaf: Leaf) -> float | None:
    """The reciprocal of the statement's divisor if multiplying by it gives the same bits; None otherwise."""
    if not divides_exactly(leaf):
        return None
    divisor = leaf.inputs[1]
    assert isinstance(divisor, Constant)
    return 1.0 / float(divisor.value)


_COMMUTATIVE = frozenset(
    ("arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")
)
_SECOND = frozenset(("arith.subf", "arith.divf", "math.copysign"))
"""Functions whose packed instruction can replicate its second operand only."""


def replicated_input(leaf: Leaf) -> int | None:
    """The position of an input that is one number for all lanes, and that the packed instruction takes as it is.

    A packed instruction can replicate the first lane of its last operand; a plain copy of f32 packs the number twice.
    None if no input is so, or several are.
    """
    lanes = leaf.chain[-1]
    if leaf.function is None and leaf.accumulate is not None and not _moves(leaf.output, lanes):
        # A sum over the lanes adds every lane.
        return None
    shared = [k for k, value in enumerate(leaf.inputs) if isinstance(value, Access) and not _moves(value, lanes)]
    if len(shared) != 1:
        return None
    (position,) = shared
    function = leaf.accumulate if leaf.function is None else leaf.function
    if function is None:
        return position if leaf.output.array.dtype == "f32" else None
    if leaf.function is None:
        return position if function in _COMMUTATIVE else None
    if function in _COMMUTATIVE:
        return position
    return position if function in _SECOND and position == 1 else None


def _lanes_problem(nest: Nest, leaf: Leaf) -> Reason | None:
    """The reason why a vector statement is not one instruction on whole registers; None if it is, or has no lanes."""
    lanes = leaf.chain[-1]
    if lanes.mapping is not Mapping.VECTOR:
        return None
    if leaf.function in FUSED:
        return Reason(f"'{leaf.function}' of lanes is two instructions; accumulate it with 'fma='")
    if leaf.contracted and leaf.output.array.buffer.memory is not Memory.REGISTER:
        return Reason("'fma=' of lanes adds to a register; into memory it is several instructions")
    replicated = replicated_input(leaf)
    number = None if replicated is None else leaf.inputs[replicated]
    for access in leaf.accesses:
        index, width = physical_index(access, leaf.chain), byte_width(access.array.dtype)
        if not any(e.uses(lanes.depth) for e in index):
            is_number = access is number or (access is leaf.output and sums_lanes(leaf))
            if is_number and _is_single(nest, access.array.buffer):
                continue
            return Reason(f"{describe_access(access)} is one number for all lanes; hardware loops need it in each lane")
        if access.array.buffer.memory is Memory.REGISTER and not _is_whole(access, leaf, width):
            return Reason(f"{describe_access(access)} is no whole register of {WORD // width} lanes")
    return None


def sums_lanes(leaf: Leaf) -> bool:
    """Whether one instruction adds all lanes of a vector statement's value to one number: a sum of f32."""
    is_sum = leaf.accumulate == "arith.addf" and not leaf.contracted
    return is_sum and leaf.output.array.dtype == "f32" and not _moves(leaf.output, leaf.chain[-1])


def _moves(access: Access, lanes: Scope) -> bool:
    return any(e.uses(lanes.depth) for e in access.index)


def _is_single(nest: Nest, buffer: Buffer) -> bool:
    """Whether each register of a buffer holds one number: no statement accesses it by lanes."""
    return buffer.memory is Memory.REGISTER and not any(
        leaf.chain[-1].mapping is Mapping.VECTOR and any(e.uses(leaf.chain[-1].depth) for e in access.index)
        for leaf, access in nest.accesses[buffer]
        if leaf.chain
    )


def _is_whole(access: Access, leaf: Leaf, width: int) -> bool:
    lanes = leaf.chain[-1]
    shape = access.array.buffer.shape
    if any(r for r in access.array.buffer.reuse) and access.array.buffer.reuse[-1]:
        shape = (*shape[:-1], lanes.extent)
    distance = linear_address(physical_index(access, leaf.chain), shape)
    others = (c for a, c in distance.terms if a != lanes.depth)
    per_word = WORD // width
    return (
        distance.coefficient(lanes.depth) == 1
        and lanes.extent == per_word
        and all(c % per_word == 0 for c in (distance.constant, *others))
    )


def _operand_problem(leaf: Leaf, loop: Scope) -> Reason | None:
    """The reason why a statement needs more than instructions on registers and streams; None if it does not."""
    for value in leaf.inputs:
        if isinstance(value, Index) or (isinstance(value, Constant) and not value.dtype.startswith(("f", "bf"))):
            return Reason("hardware loops have no integer operands")
    in_region = any(s.mapping is Mapping.STREAM for s in leaf.chain)
    for access in leaf.accesses:
        streamed = in_region and is_streamed(access)
        memory = access.array.buffer.memory
        if not access.array.dtype.startswith("f"):
            return Reason(
                f"'{access.array.name}' is of type {access.array.dtype}; hardware loops are for floating point"
            )
        if memory is Memory.HEAP and not streamed:
            return Reason(f"{describe_access(access)} is in memory; stream a scope around {describe_scope(loop)}")
        if memory not in (Memory.HEAP, Memory.REGISTER):
            return Reason(
                f"{describe_access(access)} is in {memory.value} memory; hardware loops use streams and registers"
            )
        if memory is Memory.REGISTER and not _only_constants(access, leaf):
            return Reason(f"{describe_access(access)} is not indexed by constants, as registers are")
    return None


def _only_constants(access: Access, leaf: Leaf) -> bool:
    used: Sequence[int] = sorted({v for e in physical_index(access, leaf.chain) for v in e.variables()})
    return all(leaf.chain[v].mapping in (Mapping.UNROLL, Mapping.VECTOR) for v in used)
