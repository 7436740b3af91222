"""Asynchronous copies into shared memory on GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Leaf,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    UnitAttr,
    async_copy_problem,
    async_problem,
    vector_problem,
)


@dataclass(frozen=True)
class AsyncCopy(Transformation[Leaf]):
    """Make a copy from heap to shared memory asynchronous: it overlaps with the statements that follow.

    `async_copy@t`:

    t f32 [4:N, 8] shared               t f32 [4:N, 8] shared
    4:g                                 4:g
    | 8 t[{0},{1}] = x[{0},{1}]    -->  | 8 t[{0},{1}] async= x[{0},{1}]
    | 8 y[{0},{1}] = t[{0},{1}]         | 8 y[{0},{1}] = t[{0},{1}]

    Keeps the meaning, because backends wait for the value before the first access that depends on it. The machine must
    have asynchronous copies of the size of an element or, in a `:v` scope, of the vector. `vectorize` says when such a
    vector must be aligned. Elements that are too narrow are copied in vectors only, which must be contiguous in both
    memories, and guarded as a whole.
    """

    name: ClassVar[str] = "async_copy"
    promises: ClassVar = Promises(conditions=True, adds=0)
    example_machine: ClassVar = "toy-gpu"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Plain writes to shared memory."""
        for leaf in program.nest.leaves if program.machine.gpu.async_copy_bytes else ():
            if leaf.output.array.buffer.memory is Memory.SHARED and leaf.function is None and not leaf.asynchronous:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a copy between the right memories, in a grid, of a size that the machine copies."""
        if site.asynchronous:
            return Reason("the copy is asynchronous already")
        problem = async_problem(site) or async_copy_problem(site, program.machine)
        problems = (problem, *(vector_problem(access, site, program.machine) for access in site.accesses))
        return next((found for found in problems if found is not None), None)

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        site.op.properties["asynchronous"] = UnitAttr()
        rewriter.notify_op_modified(site.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return SyncCopy().as_move(f"%{site.id}")


@dataclass(frozen=True)
class SyncCopy(Transformation[Leaf]):
    """Make an asynchronous copy an ordinary one again.

    `sync_copy@t`:

    t f32 [4:N, 8] shared                    t f32 [4:N, 8] shared
    4:g                                      4:g
    | 8 t[{0},{1}] async= x[{0},{1}]    -->  | 8 t[{0},{1}] = x[{0},{1}]
    | 8 y[{0},{1}] = t[{0},{1}]              | 8 y[{0},{1}] = t[{0},{1}]

    Always legal.
    """

    name: ClassVar[str] = "sync_copy"
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, adds=0)
    example_machine: ClassVar = "toy-gpu"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Asynchronous copies."""
        for leaf in program.nest.leaves:
            if leaf.asynchronous:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires an asynchronous copy."""
        return None if site.asynchronous else Reason("the op is no asynchronous copy")

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        site.op.properties.pop("asynchronous")
        rewriter.notify_op_modified(site.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return AsyncCopy().as_move(f"%{site.id}")
