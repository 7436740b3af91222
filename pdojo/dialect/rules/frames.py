"""Stack frames on a CPU: the functions that hold a buffer in their frame or in their thread's registers.

The iterations of a parallel scope run in a function of their own. It holds private copies, and buffers that only one
outermost parallel scope uses. All other buffers belong to the kernel's function; threads reach its memory, but not its
registers.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from typing import TypeAlias

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access, describe_scope
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, private_scope

Groups: TypeAlias = MappingABC[Scope | None, Sequence[Leaf]]
"""The statements that use a buffer, in textual order, grouped by their parallel scope."""


def parallel_ancestor(leaf: Leaf) -> Scope | None:
    """The parallel scope that a statement runs in; None if there is none."""
    return next((s for s in leaf.chain if s.mapping is Mapping.PARALLEL), None)


def frame_owners(nest: Nest, buffer: Buffer) -> tuple[Scope | None, ...]:
    """The parallel scopes whose function has the buffer in its frame; None for the function of the kernel."""
    return _owners(_groups(nest, buffer), private=private_scope(nest, buffer) is not None)


def frame_problem(nest: Nest, buffer: Buffer, memory: Memory | None = None) -> Reason | None:
    """The reason why some statement cannot reach the buffer in `memory`, or misses its value there; None if none.

    `memory` is None for the present memory.
    """
    groups, private = _groups(nest, buffer), private_scope(nest, buffer) is not None
    if private and len(groups) > 1 and (problem := _value_from_outside(buffer, groups)) is not None:
        return problem
    if (memory or buffer.memory) is not Memory.REGISTER:
        return None
    owners = _owners(groups, private=private)
    far = next((leaves[0] for scope, leaves in groups.items() if scope not in owners), None)
    if far is None:
        return None
    access = next(a for a in far.accesses if a.array.buffer is buffer)
    return Reason(
        f"{describe_access(access)}: '{access.array.name}' is in registers, which another thread cannot reach"
    )


def _groups(nest: Nest, buffer: Buffer) -> dict[Scope | None, list[Leaf]]:
    groups: dict[Scope | None, list[Leaf]] = {}
    for leaf, _ in accesses_of(nest, buffer):
        groups.setdefault(parallel_ancestor(leaf), []).append(leaf)
    return groups


def _owners(groups: Groups, *, private: bool) -> tuple[Scope | None, ...]:
    if private:
        return tuple(groups)
    scopes = list(groups)
    # The frame of a parallel scope ends with it, so a scope that ran again would lose its values.
    if len(scopes) == 1 and scopes[0] is not None and scopes[0].parent is None:
        return (scopes[0],)
    return (None,)


def _value_from_outside(buffer: Buffer, groups: Groups) -> Reason | None:
    """The reason why a thread's copy, which lasts for its parallel scope, is read before it is written; or None."""
    for scope, leaves in groups.items():
        first = leaves[0]
        reads = first.accesses if first.accumulate is not None else first.reads
        access = next((a for a in reads if a.array.buffer is buffer), None)
        if access is not None:
            place = "outside of parallel scopes" if scope is None else f"in {describe_scope(scope)}"
            return Reason(
                f"{describe_access(access)} is read {place}, but '{access.array.name}' has a reused dimension that a "
                f"parallel scope indexes: each thread has its own copy, which ends with that scope; materialize the "
                f"dimension"
            )
    return None
