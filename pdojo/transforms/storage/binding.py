"""Binding: arrays that are computed once, when a caller binds the constant inputs, and kept from call to call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Array,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    UnitAttr,
    binding_nests,
    binding_problem,
    constancy_problem,
    constants_of,
    dependence,
)
from pdojo.transforms.storage.location import callers_memory, temporaries


@dataclass(frozen=True)
class BindArray(Transformation[Array]):
    """Compute an array once, when a caller binds the constant inputs, instead of in every call.

    `bind_array@t`:

    t f32 [8] heap                   t f32 [8] heap const
    8 t[{0}] = exp({0})         -->  8 t[{0}] = exp({0})
    8 y[{0}] = x[{0}] * t[{0}]       8 y[{0}] = x[{0}] * t[{0}]

    Legal iff the top-level nests that write the array access only constants, and temporaries that no other nest uses,
    and no nest reads the array before a later one writes it. Then these nests give the same values in every call, and
    all others need only these values. The array is alone in a whole buffer on the heap, which belongs to the bound
    kernel.
    """

    name: ClassVar[str] = "bind_array"
    promises: ClassVar = Promises(conditions=True, grows=False, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Temporaries in whole buffers of their own."""
        for array in temporaries(program):
            op = array.buffer.op
            if not array.buffer.constant and op is not None and constancy_problem(op) is None:
                yield array, cls()

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires a temporary in a whole buffer, and nests that depend on constants only."""
        if (refused := callers_memory(site)) is not None:
            return refused
        if site.buffer.constant:
            return Reason(f"'{site.name}' is constant already")
        assert site.buffer.op is not None
        if (problem := constancy_problem(site.buffer.op)) is not None:
            return problem
        if not program.nest.writers[site.name]:
            return Reason(f"nothing writes '{site.name}'")
        found = binding_problem(program.nest, {*constants_of(program.nest), site.buffer})
        return None if found is None else found[1]

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        assert site.buffer.op is not None
        site.buffer.op.properties["constant"] = UnitAttr()
        rewriter.notify_op_modified(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        return UnbindArray().as_move(site.name)


@dataclass(frozen=True)
class UnbindArray(Transformation[Array]):
    """Compute an array in every call again, instead of once at binding.

    `unbind_array@t`:

    t f32 [8] heap const             t f32 [8] heap
    8 t[{0}] = exp({0})         -->  8 t[{0}] = exp({0})
    8 y[{0}] = x[{0}] * t[{0}]       8 y[{0}] = x[{0}] * t[{0}]

    Legal iff no nest computes another constant with it.
    """

    name: ClassVar[str] = "unbind_array"
    promises: ClassVar = Promises(conditions=True, grows=False, adds=0)
    undoes: ClassVar = True

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """Constant temporaries."""
        yield from ((array, cls()) for array in temporaries(program) if array.buffer.constant)

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires a constant temporary that no other constant depends on."""
        if (refused := callers_memory(site)) is not None:
            return refused
        if not site.buffer.constant:
            return Reason(f"'{site.name}' is not constant")
        nest, others = program.nest, constants_of(program.nest) - {site.buffer}
        problems = (dependence(nest, root, others) for root in binding_nests(nest, others))
        return next((problem for problem in problems if problem is not None), None)

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        assert site.buffer.op is not None
        site.buffer.op.properties.pop("constant")
        rewriter.notify_op_modified(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        return BindArray().as_move(site.name)
