"""Machine limits of asynchronous copies: one copy per element, or one for all lanes of a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.lanes import Stride, common_guard, lane_problem, stride_in_memory
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Access, Leaf, Scope


def async_copy_problem(leaf: Leaf, machine: Machine, lanes: Scope | None = None) -> Reason | None:
    """The reason why a statement cannot be an asynchronous copy on a machine; None if it can.

    `lanes` is the scope to be vectorised (None: the statement's vector scope). If the machine has no copy of one
    element, all lanes must be one copy.
    """
    sizes = machine.gpu.async_copy_bytes
    if not sizes:
        return Reason(f"{machine.name} has no asynchronous copies")
    if lanes is None and leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR:
        lanes = leaf.parent
    element = byte_width(leaf.output.array.dtype)
    size = element if lanes is None else element * lanes.extent
    if size not in sizes:
        return Reason(f"{machine.name} copies {', '.join(map(str, sizes))} bytes asynchronously, not {size}")
    if lanes is None or element in sizes:
        return None
    return lanes_apart(leaf, lanes, machine)


def lanes_apart(leaf: Leaf, lanes: Scope, machine: Machine) -> Reason | None:
    """The reason why lanes cannot be one copy; None if both sides are contiguous, aligned, and copied as a whole."""
    if common_guard(lanes) is None:
        return Reason(f"the guard of {describe_scope(lanes)} excludes some lanes of a copy; peel_scope separates them")
    strict = replace(machine, aligned_vectors=True)
    for access in leaf.accesses:
        if stride_in_memory(access, leaf, lanes) is not Stride.CONTIGUOUS or _in_parts(access, lanes):
            return Reason(f"the lanes of {describe_access(access)} are not one piece of memory, which one copy needs")
        problem = lane_problem(access, leaf, lanes, strict)
        if problem is not None:
            return problem
    return None


def _in_parts(access: Access, lanes: Scope) -> bool:
    """Whether a swizzle's granules are no multiples of the vector, so that the vector loses its alignment."""
    buffer = access.array.buffer
    return any(
        swizzle.granule
        * prod(slots or extent for slots, extent in _sizes(buffer.reuse, buffer.shape, dimension))
        % lanes.extent
        for dimension, swizzle in buffer.swizzles.items()
    )


def _sizes(reuse: tuple[int, ...], shape: tuple[int, ...], dimension: int) -> list[tuple[int, int]]:
    return list(zip(reuse[dimension + 1 :], shape[dimension + 1 :], strict=True))


def async_problems(program: Program) -> Iterator[Reason]:
    """Asynchronous copies that the machine does not have."""
    for leaf in program.nest.leaves:
        problem = async_copy_problem(leaf, program.machine) if leaf.asynchronous else None
        if problem is not None:
            yield Reason(problem.text, problem.witness, about=f"asynchronous copy to {describe_access(leaf.output)}")
