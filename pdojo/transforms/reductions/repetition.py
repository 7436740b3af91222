"""Repetition: how a statement can itself compute the result of a reduction that it now reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pdojo.transforms.api import (
    ACCUMULATIONS,
    Access,
    Expr,
    Index,
    Input,
    Intent,
    Leaf,
    Mapping,
    Numerics,
    Program,
    Reason,
    Use,
    common_depth,
    const,
    describe_access,
    element_uses,
    locate,
    number_of,
    solve,
    substitute_input,
    var,
)
from pdojo.transforms.values.recomputation import producing_iteration, spelled_iteration, without_hints


@dataclass(frozen=True, slots=True)
class Repetition:
    """A reduction that a statement can compute itself.

    Expressions are over the scopes of the statement; those of the accumulation also over the reduction's loops inside
    them.
    """

    init: Leaf
    """The plain assignment at the beginning of the reduction."""
    step: Leaf
    """The accumulation."""
    init_at: tuple[Expr, ...]
    """The iteration of the assignment."""
    step_at: tuple[Expr, ...]
    """The iteration of the accumulation."""
    init_inputs: tuple[Input, ...]
    """The inputs of the assignment, without hints."""
    step_inputs: tuple[Input, ...]
    """The inputs of the accumulation, without hints."""
    loops: tuple[int, ...]
    """Extents of the loops, outermost first."""
    guards: tuple[Expr, ...]
    """Guards of the loops (`e >= 0` each), in canonical form."""

    def expressions(self) -> Iterator[Expr]:
        """All index expressions of the repeated statements, and the guards."""
        yield from self.guards
        for value in (*self.init_inputs, *self.step_inputs):
            if isinstance(value, Access):
                yield from value.index
            elif isinstance(value, Index):
                yield value.expression

    @property
    def numerics(self) -> Numerics:
        """The effect on rounding of a repetition in order: lanes, threads and blocks sum in another order."""
        assert self.step.accumulate is not None
        mapped = any(s.mapping is Mapping.VECTOR or s.mapping.declares_tree for s in self.step.chain)
        index = self.step.output.index
        mapped |= any(s.mapping is Mapping.GRID and not any(e.uses(s.depth) for e in index) for s in self.step.chain)
        return Numerics.REASSOCIATES if mapped and not ACCUMULATIONS[self.step.accumulate].exact else Numerics.EXACT


def repetition(program: Program, site: Leaf, access: Access) -> Repetition | Reason:
    """A way for `site` to compute the element of `access`, which it reads or might read; a Reason if there is none.

    There must be one plain assignment I: s[f(i)] and one accumulation A: s[g(a, k)] with k the reduction loops, and h1,
    h2 such that for all iterations j of the site the value of the element is made of exactly I at h1(j) and A at
    (h2(j), k) for all k. `overwritten` checks whether inputs still have their values.
    """
    array = access.array
    if array.intent is Intent.IN:
        return Reason(f"'{array.name}' is an input of the kernel, which no op computes")
    uses = element_uses(program.nest, array, () if access in site.reads else ((site, access),))
    read = number_of(uses, site, access)
    found = _parts(program, uses, read)
    if isinstance(found, Reason):
        return found
    init, step = uses[found[0]].leaf, uses[found[1]].leaf
    if any(a.array is array for a in (*init.reads, *step.reads)):
        return Reason(f"the ops that compute the reduction read '{array.name}' itself")
    equations = (tuple(zip(leaf.output.index, access.index, strict=True)) for leaf in (init, step))
    init_at = producing_iteration(init, site, next(equations))
    if init_at is None:
        return Reason(f"the element does not tell which iteration of '{locate(program, init)}' began the reduction")
    known = solve(next(equations), step.extents, site.extents)
    shared = common_depth((step, site))
    for depth, extent in enumerate(step.extents):
        if depth not in known and (depth < shared or extent == 1):
            known[depth] = var(depth) if depth < shared and extent > 1 else const(0)
    if len(known) == step.depth:
        return Reason(f"'{locate(program, step)}' adds one value only: there is no loop to repeat")
    parts = (found[0], init_at), (found[1], [known.get(depth) for depth in range(step.depth)])
    wrong = program.origins.partial(uses, read, parts)
    if wrong is not None:
        return Reason(
            f"the value is not the reduction of '{locate(program, init)}' by all iterations of "
            f"'{locate(program, step)}'",
            f"{describe_access(access)} at iteration {spelled_iteration(wrong)}",
        )
    return _made(site, init, step, init_at, [known.get(depth) for depth in range(step.depth)])


def _parts(program: Program, uses: Sequence[Use], read: int) -> tuple[int, int] | Reason:
    """The use that begins a reduction and the use that accumulates; a Reason if the read gets any other value."""
    writers, complete = program.origins.writers(uses, read)
    name = uses[read].access.array.name
    if not complete:
        return Reason(f"not every element of '{name}' that is read here was written by an op before")
    steps = [w for w in writers if uses[w].leaf.accumulate is not None]
    if not steps:
        return Reason(f"no accumulation computes '{name}'; inline_op is for plain assignments")
    before, _ = program.origins.writers(uses, steps[0])
    several = {*writers, *before} - {steps[0]}
    inits = [w for w in several if uses[w].leaf.accumulate is None]
    if len(inits) != 1 or len(several) != 1:
        named = ", ".join(locate(program, uses[w].leaf) for w in sorted({*several, steps[0]}))
        return Reason(f"the elements read here are not written by one assignment and one accumulation, but by {named}")
    return inits[0], steps[0]


def _made(site: Leaf, init: Leaf, step: Leaf, init_at: tuple[Expr, ...], known: Sequence[Expr | None]) -> Repetition:
    """The repetition with these iterations; None is a loop."""
    depth, loops, step_at = site.depth, list[int](), list[Expr]()
    for e, extent in zip(known, step.extents, strict=True):
        step_at.append(var(depth + len(loops)) if e is None else e)
        loops += [extent] if e is None else []
    extents = (*site.extents, *loops)
    there = dict(enumerate(step_at))
    guards = {g.substitute(there, extents) for g in step.guards}
    return Repetition(
        init,
        step,
        init_at,
        tuple(step_at),
        tuple(without_hints(substitute_input(i, dict(enumerate(init_at)), site.extents)) for i in init.inputs),
        tuple(without_hints(substitute_input(i, there, extents)) for i in step.inputs),
        tuple(loops),
        tuple(sorted((g for g in guards if g.bounds(extents)[0] < 0), key=lambda g: g.key)),
    )


def overwritten(program: Program, original: Leaf, copy: Leaf, at: Sequence[Expr]) -> Reason | None:
    """The reason why a copy of a statement reads other values than the original's iteration `at`; or None."""
    for before, now in zip(original.inputs, copy.inputs, strict=True):
        if not isinstance(before, Access) or not isinstance(now, Access):
            continue
        uses = element_uses(program.nest, now.array)
        first, second = number_of(uses, original, before), number_of(uses, copy, now)
        changed = program.origins.change(uses, first, second, at)
        if changed is not None:
            return Reason(
                f"'{now.array.name}' is overwritten after the reduction read it",
                f"{describe_access(now)} at iteration {spelled_iteration(changed)}",
            )
    return None
