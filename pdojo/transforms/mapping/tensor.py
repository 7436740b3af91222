"""Tensor units: one instruction of the machine computes a whole nest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    EFFECT,
    Mapping,
    MappingAttr,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    StringAttr,
    Transformation,
    available,
    describe_scope,
    match,
    pattern_of,
    same_form,
)
from pdojo.transforms.mapping.unmap import Unmap


@dataclass(frozen=True)
class Tensorize(Transformation[Scope]):
    """Let one instruction of the machine compute a whole nest.

    `tensorize@y:1{intrinsic=toy_dot}`:

    8 4 2 y[{0},{1}] += x[{0},{2}] * z[{1},{2}]  -->  8 4:m(toy_dot) 2 y[{0},{1}] += x[{0},{2}] * z[{1},{2}]

    The machine description declares an intrinsic by its meaning in the notation. Legal iff the nest unifies with it:
    the same extents, statements and constants, no guards, hints or mappings; each array of the meaning is one array of
    the nest; every access goes to `base + sum(stride * scope)` with one base per operand and the strides that the
    intrinsic prescribes; written operands share no buffer with others; temporaries, which the instruction does not
    store, are read elsewhere only after a write of the same element in the same body; and the kernel permits the
    instruction's effect on rounding. If the threads of a warp run the instruction together, operands may lie anywhere,
    and the nest stands where a warp may: in a grid, in sequential, unrolled and block scopes. Afterwards the nest is
    atomic: moves that would change its meaning are refused.
    """

    name: ClassVar[str] = "tensorize"
    example_machine: ClassVar = "toy"

    intrinsic: str
    """Name of the intrinsic."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Nests that have the form of an intrinsic's meaning."""
        for name, intrinsic in available(program.machine).items():
            root = pattern_of(intrinsic).root
            for scope in program.nest.scopes:
                if scope.mapping is Mapping.SEQUENTIAL and same_form(root, scope):
                    yield scope, cls(name)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires an instruction of the machine, a nest that is its meaning, and permitted rounding."""
        machine = program.machine
        declared = {i.name: i for i in machine.intrinsics}
        if self.intrinsic not in declared:
            return Reason(
                f"{machine.name} has no intrinsic '{self.intrinsic}'; it has {', '.join(available(machine)) or 'none'}"
            )
        intrinsic = declared[self.intrinsic]
        if not intrinsic.available(machine.features):
            missing = ", ".join(f for f in intrinsic.features if f not in machine.features)
            return Reason(f"'{self.intrinsic}' needs {missing}, which {machine.name} lacks")
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped already; unmap it first")
        found = match(program.nest, site, intrinsic)
        if isinstance(found, Reason):
            return found
        for numerics in map(Numerics, intrinsic.numerics):
            if not program.permits(numerics):
                return Reason(f"it would {EFFECT[numerics]}, which the kernel does not permit")
        return None

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Set the mapping and the name; nothing else changes, so `unmap` restores the nest."""
        site.op.properties["mapping"] = MappingAttr(Mapping.TENSOR)
        site.op.properties["intrinsic"] = StringAttr(self.intrinsic)
        rewriter.notify_op_modified(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        return Unmap().as_move(f"%{site.id}")
