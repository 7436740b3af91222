"""Requirements of vector lanes and registers on accesses: strides over lanes, constant indices, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from math import gcd, prod

from pdojo.dialect.affine import Expr, atom_variables, const, var
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.lookups import along, lookups_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.reason import Reason
from pdojo.dialect.verification.statements import folded_lanes, swizzled_lanes
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, physical_shape, slot_index, stride_divisors
from pdojo.errors import UnknownSize


class Stride(Enum):
    """The movement of an access in memory from lane to lane."""

    BROADCAST = "broadcast"
    CONTIGUOUS = "contiguous"
    STRIDED = "strided"
    FIXED = "fixed"
    """Other distances between lanes, which are constant: `x[i // 2]`."""
    LOOKED_UP = "looked up"
    """Distances that entries at the lanes' places decide: `x[idx[i]]`."""
    IRREGULAR = "irregular"
    """Distances between lanes that depend on other iterations."""


WHOLE = (Stride.BROADCAST, Stride.CONTIGUOUS)
"""Lanes that are one element, or a vector in memory."""


def stride_over(index: tuple[Expr, ...], depth: int) -> Stride:
    """The stride of an access over the scope at `depth`, in memory with a contiguous last dimension."""
    using = [position for position, e in enumerate(index) if e.uses(depth)]
    if not using:
        return Stride.BROADCAST
    if not all(_linear_in(index[position], depth) for position in using):
        return _apart([index[position] for position in using], depth)
    if using == [len(index) - 1] and index[-1].coefficient(depth) == 1:
        return Stride.CONTIGUOUS
    return Stride.STRIDED


def lane_stride(index: Sequence[Expr], shape: Sequence[int], depth: int) -> Stride:
    """The stride of an access over the scope at `depth`, in a row-major array of `shape`.

    Dimensions are linearised: `x[i//30, i%30]` in an array with rows of 30 is contiguous over i.
    """
    stride = stride_over(tuple(index), depth)
    if stride in (Stride.BROADCAST, Stride.CONTIGUOUS):
        return stride
    distance = linear_address(index, shape)
    if not _linear_in(distance, depth):
        return _apart([distance], depth)
    match distance.coefficient(depth):
        case 0:
            return Stride.BROADCAST
        case 1:
            return Stride.CONTIGUOUS
        case _:
            return Stride.STRIDED


def linear_address(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The distance, in elements, of an element from the first one of a row-major array."""
    total, stride = const(0), 1
    for extent, expression in zip(reversed(shape), reversed(index), strict=True):
        total, stride = total + expression * stride, stride * extent
    return total


def _linear_in(expression: Expr, depth: int) -> bool:
    return not any(not isinstance(a, int) and depth in atom_variables(a) for a, _ in expression.terms)


def _apart(expressions: Sequence[Expr], depth: int) -> Stride:
    """The stride by expressions of which some are not linear in the iteration at `depth`."""
    if any(depth in atom_variables(found) for found in lookups_in(expressions)):
        return Stride.LOOKED_UP
    return Stride.FIXED if all(_is_fixed(expression, depth) for expression in expressions) else Stride.IRREGULAR


def _is_fixed(expression: Expr, depth: int) -> bool:
    """True if divisions of the iteration at `depth` have no other one."""
    atoms = (a for a, _ in expression.terms if not isinstance(a, int) and depth in atom_variables(a))
    return all(atom_variables(a) == frozenset((depth,)) for a in atoms)


def lane_problem(
    access: Access,
    leaf: Leaf,
    scope: Scope,
    machine: Machine,
    order: tuple[int, ...] = (),
    reuse: tuple[int, ...] | None = None,
    extents: tuple[int, ...] | None = None,
    is_store: bool | None = None,
) -> Reason | None:
    """The reason why the access cannot be one vector access over `scope`; None if it can.

    `order` permutes its dimensions; `reuse` are the flags of its buffer and `extents` its shape (None: the present
    ones). `is_store` is given for an access that the statement does not have yet.
    """
    is_store = access is leaf.output if is_store is None else is_store
    flags = access.array.buffer.reuse if reuse is None else reuse
    index = _slots(access, leaf, scope, flags)
    apart = _are_apart(access, scope)
    shape = tuple(slots or extent for slots, extent in zip(flags, extents or access.array.shape, strict=True))
    ordered = order or range(len(shape))
    stride = lane_stride([index[d] for d in ordered], [shape[d] for d in ordered], scope.depth)
    if apart:
        # Their distance is a product of sizes or a stride, which code multiplies by the number of the lane.
        stride = Stride.STRIDED if all(_linear_in(e, scope.depth) for e in index) else Stride.IRREGULAR
    problem = folded_lanes(access, scope, flags) or swizzled_lanes(access, scope)
    if problem is not None:
        return problem
    if stride in WHOLE:
        if stride is Stride.CONTIGUOUS and machine.aligned_vectors:
            return _misaligned(access, leaf, scope, [(index[d], shape[d]) for d in ordered], machine)
        return None
    described = f"{describe_access(access)} over {describe_scope(scope)}"
    if apart and (is_store or stride is Stride.IRREGULAR):
        source = "is a stride of the caller's array" if access.array.buffer.strides else "depends on sizes"
        return Reason(f"the distance of the lanes of {described} {source}")
    if stride is Stride.LOOKED_UP and is_store:
        return Reason(f"the access {described} looks up the lane number; vectors store contiguous or strided elements")
    if stride is Stride.IRREGULAR or (stride is Stride.FIXED and is_store):
        return Reason(
            f"the access {described} divides the lane number; vectors read at constant distances, and store "
            "contiguous or strided elements"
        )
    if access.array.buffer.memory.value == "register":
        return Reason(f"the access {described} is not contiguous, but registers hold whole vectors")
    if not machine.gather:
        return Reason(f"the access {described} is not contiguous, which {machine.name} cannot do")
    return None


def _are_apart(access: Access, scope: Scope) -> bool:
    """Whether a scope indexes a dimension of an interface array whose stride depends on sizes, or is given."""
    buffer = access.array.buffer
    if buffer.strides:
        return any(index.uses(scope.depth) for index in access.index[:-1])
    return buffer.op is None and any(
        index.uses(scope.depth) and not all(extent.is_constant for extent in buffer.sized[dimension + 1 :])
        for dimension, index in enumerate(access.index)
    )


def _slots(access: Access, leaf: Leaf, scope: Scope, reuse: Sequence[int]) -> tuple[Expr, ...]:
    """The index of an access in slots, if `scope` is a vector; lookups with even steps over its lanes are linear."""
    index = access.index
    if any(reuse):
        chain = tuple(replace(s, mapping=Mapping.VECTOR) if s is scope else s for s in leaf.chain)
        index = tuple(slot_index(e, slots, chain) for e, slots in zip(index, reuse, strict=True))
    return tuple(along(e, scope.depth, leaf.extents) for e in index)


def stride_in_memory(access: Access, leaf: Leaf, scope: Scope) -> Stride:
    """The stride of an access in memory over `scope`, if that is a vector."""
    reuse = access.array.buffer.reuse
    shape = [slots or extent for slots, extent in zip(reuse, access.array.shape, strict=True)]
    return lane_stride(_slots(access, leaf, scope, reuse), shape, scope.depth)


def common_guard(scope: Scope) -> list[Expr] | None:
    """The vector's guard at lane 0 if all lanes agree; None if they may differ."""
    found: list[Expr] = []
    for constraint in scope.guard:
        if not constraint.uses(scope.depth):
            continue
        factor = constraint.coefficient(scope.depth)
        rest = constraint - var(scope.depth) * factor
        if rest.uses(scope.depth) or factor != -1:
            return None
        if any(c % scope.extent for _, c in rest.terms) or (rest.constant + 1) % scope.extent:
            return None
        found.append(rest)
    return found


def vector_problem(access: Access, leaf: Leaf, machine: Machine) -> Reason | None:
    """The reason why a statement's lanes cannot be one vector access; None if they can, or if there are no lanes."""
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not Mapping.VECTOR:
        return None
    return lane_problem(access, leaf, lanes, machine)


def _misaligned(
    access: Access, leaf: Leaf, lanes: Scope, place: Sequence[tuple[Expr, int]], machine: Machine
) -> Reason | None:
    """The reason why a vector at a place, indices with extents in memory, is not aligned to its size; None if it is."""
    buffer = access.array.buffer
    if buffer.memory not in (Memory.HEAP, Memory.SHARED):
        return None
    width = byte_width(buffer.dtype)
    size, base, known = lanes.extent * width, base_alignment(buffer), _divisor(buffer, place, lanes)
    if known % size == 0:
        return None
    text = f"{size} bytes of {describe_access(access)} must start at a multiple of {size} on {machine.name}"
    if base % size:
        return Reason(
            f"{text}, but '{access.array.name}' is only known to start at a multiple of {base}; "
            f"'align {size}' in its declaration promises more"
        )
    origin = [0] * len(leaf.chain)
    steps = [[*origin[:d], 1, *origin[d + 1 :]] for d, s in enumerate(leaf.chain) if s is not lanes and s.extent > 1]
    address = _linear(place)
    starts = ((iteration, address.evaluate(iteration) * width) for iteration in (origin, *steps))
    witness = ""
    # Sizes, and indices that callers give, have no numbers.
    with suppress(UnknownSize):
        witness = next((f"iteration {tuple(i)} starts at byte {byte}" for i, byte in starts if byte % size), "")
    return Reason(f"{text}, and is only known to start at a multiple of {known}", witness)


def physical_bytes(nest: Nest, buffer: Buffer) -> int:
    """Bytes that one copy of the buffer takes."""
    return prod(physical_shape(nest, buffer)) * byte_width(buffer.dtype)


def bytes_in_memory(program: Program, buffer: Buffer) -> int:
    """Bytes of one copy of the buffer (`physical_bytes`), cached with the uses of the buffer."""
    if not any(buffer.reuse):
        return physical_bytes(program.nest, buffer)
    return program.nest.about_uses(buffer, "bytes", lambda: physical_bytes(program.nest, buffer))


def in_tensor_scope(scope: Scope) -> bool:
    """Whether the scope is inside an instruction's nest, so that its variable counts places in an operand."""
    return any(s.mapping is Mapping.TENSOR for s in scope.chain)


def register_problem(
    nest: Nest, buffer: Buffer, order: tuple[int, ...] = (), reuse: tuple[int, ...] | None = None
) -> Reason | None:
    """The reason why the buffer cannot live in registers (indices must be constants or whole vectors); None if it can.

    `order` permutes its dimensions; `reuse` are its flags (None: the present ones).
    """
    flags = buffer.reuse if reuse is None else reuse
    shape = tuple(slots or extent for extent, slots in zip(buffer.shape, flags, strict=True))
    shape = tuple(shape[d] for d in order) if order else shape
    owners: set[Scope | None] = set()
    for leaf, access in accesses_of(nest, buffer):
        if access.hints.data:
            return Reason(f"{describe_access(access)} has hints, which registers cannot honour; clear them first")
        if any(s.mapping is Mapping.GRID for s in leaf.chain):
            continue  # `threads.py` has the rules for threads of a grid
        owners.add(next((s for s in reversed(leaf.chain) if s.mapping.is_threaded), None))
        index = tuple(slot_index(e, slots, leaf.chain) for e, slots in zip(access.index, flags, strict=True))
        index = tuple(index[d] for d in order) if order else index
        for expression in index:
            for depth in expression.variables():
                scope = leaf.chain[depth]
                if scope.mapping not in (Mapping.UNROLL, Mapping.VECTOR) and not in_tensor_scope(scope):
                    return Reason(
                        f"{describe_access(access)} is indexed by {describe_scope(scope)}; registers need constants"
                    )
        lanes = leaf.chain[-1] if leaf.chain and leaf.chain[-1].mapping is Mapping.VECTOR else None
        if lanes is not None and lane_stride(index, shape, lanes.depth) not in WHOLE:
            return Reason(
                f"{describe_access(access)} is strided over {describe_scope(lanes)}; registers hold whole vectors"
            )
    if len(owners) > 1:
        return Reason(f"'{buffer.names[0]}' is used by several threads; registers belong to one")
    return None


HEAP_ALIGNMENT = 64
"""Alignment in bytes of the heap buffers that the backends allocate."""


def known_alignment(access: Access, leaf: Leaf, lanes: Scope) -> int:
    """A number of bytes that certainly divides the address of a vector's first lane; the access is to the heap.

    It follows from the alignment of the memory and the strides of all scopes except the lanes.
    """
    buffer = access.array.buffer
    # Dimensions with one slot before all others do not move the address.
    single = next((d for d, slots in enumerate(buffer.reuse) if slots != 1), len(buffer.reuse))
    moved = any(e.uses(lanes.depth) for e in access.index[:single])
    private = single and any(s.mapping.is_threaded for s in leaf.chain)
    if any(buffer.reuse[single:]) or moved or private or buffer.swizzles:
        return byte_width(buffer.dtype)
    return _divisor(buffer, [*zip(access.index, buffer.shape, strict=True)][single:], lanes)


def base_alignment(buffer: Buffer) -> int:
    """A number of bytes that certainly divides the first element's address."""
    return buffer.alignment if buffer.op is None else HEAP_ALIGNMENT


def _linear(place: Sequence[tuple[Expr, int]]) -> Expr:
    """The distance, in elements, of a place, indices with extents in memory, from the first element."""
    return linear_address([index for index, _ in place], [extent for _, extent in place])


def _divisor(buffer: Buffer, place: Sequence[tuple[Expr, int]], lanes: Scope) -> int:
    """A number of bytes that divides the address of a place, indices with extents in memory, at the first lane."""
    steps = stride_divisors(buffer)
    parts = [_linear(place[len(steps) :]), *(e * s for (e, _), s in zip(place, steps, strict=False))]
    numbers = [n for part in parts for n in (part.constant, *(c for a, c in part.terms if a != lanes.depth))]
    return gcd(base_alignment(buffer), *(number * byte_width(buffer.dtype) for number in numbers))
