"""Software pipelining: the first children of a scope run some iterations ahead of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Buffer,
    Conflict,
    Leaf,
    Mapping,
    Move,
    Node,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    Transformation,
    describe_scope,
    fresh_id,
    leaves_of,
)
from pdojo.transforms.common.ordering import (
    carried,
    displaced_buffers,
    reassociates,
    same_iteration,
    shared_buffers,
    storage_after,
)
from pdojo.transforms.structure.shifting import (
    Part,
    conflict_while_delayed,
    delays_of,
    free_scope,
    make_scope,
    part_of,
    reorders_while_delayed,
)

MOST_STAGES = 4
"""Most stages that candidates propose."""


@dataclass(frozen=True)
class Pipeline(Transformation[Scope]):
    """Let the first `after` children of a scope run `stages` - 1 iterations ahead of the others.

    `pipeline@t:0{stages=2}`:

    t f32 [8] heap               t f32 [8] heap
    8                            9
    | t[{0}] = x[{0}]            | 1 where ({0} < 8) t[{0}] = x[{0}]
    | y[{0}] = exp(t[{0}])  -->  | 1 where ({0} >= 1) y[{0}-1] = exp(t[{0}-1])

    Legal iff the first part never runs ahead of an instance of the second that it conflicts with: with d = stages - 1,
    not exists j < i <= j + d: first(i) conflicts with second(j); buffers between the parts have a slot per stage.
    """

    name: ClassVar[str] = "pipeline"
    promises: ClassVar = Promises(conditions=True, adds=0, is_local=True)
    stages: int
    after: int = 1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes whose first children only fill temporaries, with slots for the stages."""
        for scope in program.nest.scopes:
            if scope.mapping is not Mapping.SEQUENTIAL:
                continue
            for after in range(1, len(scope.children)):
                if not _fills_temporaries(scope.children[after - 1]):
                    break
                for stages in range(2, min(MOST_STAGES, scope.extent) + 1):
                    choice = cls(stages, after)
                    if choice._slots(scope) is None:
                        yield scope, choice

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires the shape, and slots for the values computed ahead."""
        if (reason := self._shape(site)) is not None:
            return reason
        first, second = _halves(site, self.after)
        conflict = conflict_while_delayed(program, first, second, same_iteration(site), range(1, self.stages))
        if conflict is not None:
            return self._crowded(site, conflict)
        lost = storage_after(program, self, site, _changed(site, first, second))
        return None if lost is None else self._slots(site) or lost

    def _shape(self, site: Scope) -> Reason | None:
        """Requires a sequential scope with two parts."""
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped; unmap it first")
        if len(site.children) == 1:
            return Reason("the scope has only one child")
        if not 1 <= self.after < len(site.children):
            return Reason(f"'after' must be between 1 and {len(site.children) - 1}, the scope's children less one")
        if not 2 <= self.stages <= site.extent:
            return Reason(f"'stages' must be between 2 and {site.extent}, the extent")
        return None

    def _crowded(self, site: Scope, conflict: Conflict) -> Reason:
        """The reason that a value computed ahead overwrites one still needed, or needs one not yet computed."""
        array = conflict.first_access.array
        if conflict.first_writes and not any(e.uses(site.depth) for e in conflict.first_access.index):
            return carried(
                f"'{array.name}' has one copy for all iterations; {self.stages} stages need {self.stages} "
                "copies, one for each index of a dimension that the scope indexes",
                conflict,
            )
        return carried("the first part would come before earlier iterations of the second that it depends on", conflict)

    def _slots(self, site: Scope) -> Reason | None:
        """The reason why a circular buffer between the parts has fewer slots than stages; None if none has."""
        first, second = _halves(site, self.after)
        needed = {access.array.name for leaf in second for access in leaf.reads}
        for leaf in first:
            buffer = leaf.output.array.buffer
            if leaf.output.array.name not in needed:
                continue
            for dimension, (index, slots) in enumerate(zip(leaf.output.index, buffer.reuse, strict=True)):
                if index.uses(site.depth) and 0 < slots < self.stages:
                    return Reason(
                        f"dimension {dimension} of '{leaf.output.array.name}' has {slots} slot{'s' * (slots != 1)}; "
                        f"{self.stages} stages need {self.stages}"
                    )
        return None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if two accumulations into one element may change order."""
        halves = _halves(site, self.after)
        return reassociates(reorders_while_delayed(program, *halves, same_iteration(site), range(1, self.stages)))

    def _parts(self, program: Program, site: Scope) -> tuple[Part, Part]:
        taken = program.nest.by_id
        first, second = site.children[: self.after], site.children[self.after :]
        identifiers = fresh_id(taken, f"{site.id}.a"), fresh_id(taken, f"{site.id}.b")
        return (
            Part(tuple(first), site.depth, site.extent, site.guard, wrapper=identifiers[0]),
            Part(tuple(second), site.depth, site.extent, site.guard, self.stages - 1, wrapper=identifiers[1]),
        )

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Add iterations, and shift each part to its own."""
        parts = self._parts(program, site)
        make_scope(parts, parts[1].end, site.id, site, rewriter)
        rewriter.erase(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        part = self._parts(program, site)[0]
        wrapped = part.needs_wrapper([s.extent for s in site.chain[:-1]], site.extent + self.stages - 1)
        return Unpipeline(self.stages, 1 if wrapped else self.after).as_move(f"%{site.id}")


def _changed(site: Scope, first: Sequence[Leaf], second: Sequence[Leaf]) -> list[Buffer]:
    """The buffers whose cells or whose order of uses a pipeline changes."""
    return [*shared_buffers(first, second), *displaced_buffers(second, site.depth)]


def _fills_temporaries(node: Node) -> bool:
    return all(leaf.output.array.intent is None for leaf in leaves_of(node))


def _halves(site: Scope, after: int) -> tuple[list[Leaf], list[Leaf]]:
    parts: Sequence[Sequence[Node]] = (site.children[:after], site.children[after:])
    first, second = ([leaf for child in part for leaf in leaves_of(child)] for part in parts)
    return first, second


@dataclass(frozen=True)
class Unpipeline(Transformation[Scope]):
    """Undo a pipeline: both parts run in the same iterations.

    `unpipeline@t:0{stages=2}`:

    t f32 [8] heap                                       t f32 [8] heap
    9                                                    8
    | 1 where ({0} < 8) t[{0}] = x[{0}]                  | t[{0}] = x[{0}]
    | 1 where ({0} >= 1) y[{0}-1] = exp(t[{0}-1])   -->  | y[{0}] = exp(t[{0}])

    Legal iff with d = stages - 1 not exists j < i <= j + d: first(i) conflicts with second(j).
    """

    name: ClassVar[str] = "unpipeline"
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, adds=0, is_local=True)
    stages: int
    after: int = 1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes whose guards delay some children with respect to the others."""
        for scope in program.nest.scopes:
            for after in range(1, len(scope.children)):
                yield from ((scope, cls(d + 1, after)) for d in delays_of(scope, scope.children[after:]) if d > 0)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires two parts with equal iterations, one of them delayed, and no dependence that would be reversed."""
        if self._parts(site) is None:
            return Reason(f"the scope is no pipeline of {self.stages} stages")
        halves = _halves(site, self.after)
        conflict = conflict_while_delayed(program, *halves, same_iteration(site), range(0, 1 - self.stages, -1))
        if conflict is not None:
            return carried("the second part would come before later iterations of the first", conflict)
        changed = _changed(site, *halves)
        return storage_after(program, self, site, changed)

    def _parts(self, site: Scope) -> tuple[Part, Part] | None:
        plain = site.mapping is Mapping.SEQUENTIAL and not site.guard and self.stages > 1
        if not plain or not 1 <= self.after < len(site.children):
            return None
        first = part_of(site, site.children[: self.after], 0)
        second = part_of(site, site.children[self.after :], self.stages - 1)
        if first is None or second is None or (first.extent, first.guard) != (second.extent, second.guard):
            return None
        return (first, second) if self.stages <= first.extent else None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if two accumulations into one element may change order."""
        halves = _halves(site, self.after)
        return reassociates(
            reorders_while_delayed(program, *halves, same_iteration(site), range(0, 1 - self.stages, -1))
        )

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Replace the pipeline by one scope with the iterations of the parts."""
        parts = self._parts(site)
        assert parts is not None
        free_scope(parts, site.id, site, rewriter)
        rewriter.erase(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        parts = self._parts(site)
        assert parts is not None
        after = len(parts[0].children)
        return Pipeline(self.stages, after).as_move(f"%{site.id}")
