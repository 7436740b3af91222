"""Repeated reductions: recomputing a sum before its use, and reading one that was computed before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Access,
    Expr,
    InsertPoint,
    Intent,
    Leaf,
    Mapping,
    Memory,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    ScopeOp,
    Transformation,
    accesses_of,
    build_op,
    chain_ops,
    common_depth,
    const,
    fresh_id,
    place_guards,
    solve,
)
from pdojo.transforms.common.declaring import declare, fresh_name, name_reason
from pdojo.transforms.common.ordering import rewritten
from pdojo.transforms.reductions.repetition import Repetition, overwritten, repetition
from pdojo.transforms.values.inlining import (
    element_read,
    index_text,
    input_reason,
    named_element,
    position,
    replace_input,
)
from pdojo.transforms.values.recomputation import same_value


@dataclass(frozen=True, slots=True, eq=False)
class PrivateReduction:
    """A reduction before a statement that computes one of its inputs and no other value."""

    init: Leaf
    nest: Scope
    step: Leaf


def _private(program: Program, site: Leaf, value: Access) -> PrivateReduction | None:
    """The reduction directly before a statement that computes this input only; None if there is none."""
    nest, buffer = program.nest.previous_sibling(site), value.array.buffer
    if not isinstance(nest, Scope) or len(nest.leaves) != 1:
        return None
    init, step = program.nest.previous_sibling(nest), nest.leaves[0]
    if not isinstance(init, Leaf) or init.asynchronous or init.accumulate is not None or step.accumulate is None:
        return None
    alike = init.output.key == step.output.key == value.key
    alone = buffer.op is not None and len(buffer.names) == 1 and len(accesses_of(program.nest, buffer)) == 3
    return PrivateReduction(init, nest, step) if alike and alone else None


@dataclass(frozen=True)
class InlineReduction(Transformation[Leaf]):
    """Recompute a reduction before its use; `input` is the number of the using statement's input, from 0.

    `inline_reduction@y{input=1 into=p}`:

    N                                        N
    | t[{0}] = 0                             | t[{0}] = 0
    | M t[{0}] += x[{0},{1}]                 | M t[{0}] += x[{0},{1}]
    N y[{0}] = x[{0},0] / t[{0}]        -->  N
                                             | p[{0}] = 0
                                             | M p[{0}] += x[{0},{1}]
                                             | y[{0}] = x[{0},0] / p[{0}]

    Only this use changes; `delete_op` removes a reduction that is no longer read. The temporary has a dimension for
    each scope around the use that its value depends on, and for each concurrent one.

    Legal iff one plain assignment I and one accumulation A write the value that the use of s[e(j)] gets, and for all j
    this value comes from I at h1(j) and from A at (h2(j), k) for all k of the loops that e does not determine; and no
    input of I or A is written between these and j.
    """

    name: ClassVar[str] = "inline_reduction"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "values"
    input: int
    into: str = ""
    """The name of the temporary."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Reads of arrays after a statement that accumulates into them, except reads of private reductions."""
        for leaf in program.nest.leaves:
            if leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR:
                continue
            for number, value in enumerate(leaf.inputs):
                if not isinstance(value, Access) or value.array is leaf.output.array:
                    continue
                writers = program.nest.writers[value.array.name]
                summed = any(w.accumulate is not None and w.order < leaf.order for w in writers)
                if summed and _private(program, leaf, value) is None:
                    yield leaf, cls(number)

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires an input that one reduction computes from values that still exist, and a place for the reduction."""
        value = element_read(site, self.input)
        if isinstance(value, Reason):
            return value
        if site.parent is not None and site.parent.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if (unusable := name_reason(program, self.into)) is not None:
            return unusable
        found = repetition(program, site, value)
        if isinstance(found, Reason):
            return found
        after, (init, *_, step) = rewritten(program, self, site), self._ids(program, site, found)
        for original, copy, at in ((found.init, init, found.init_at), (found.step, step, found.step_at)):
            before, now = after.nest.by_id[original.id], after.nest.by_id[copy]
            assert isinstance(before, Leaf)
            assert isinstance(now, Leaf)
            if (changed := overwritten(after, before, now, at)) is not None:
                return changed
        return None

    def numerics(self, program: Program, site: Leaf) -> Numerics:
        """Reassociation if the original sums over lanes, threads or blocks; the copy sums in order."""
        return self._found(program, site)[1].numerics

    def _found(self, program: Program, site: Leaf) -> tuple[Access, Repetition]:
        value = site.inputs[self.input]
        assert isinstance(value, Access)
        found = repetition(program, site, value)
        assert isinstance(found, Repetition)
        return value, found

    @staticmethod
    def _ids(program: Program, site: Leaf, found: Repetition) -> list[str]:
        """Identifiers of the first assignment, the loops and the accumulation."""
        parts = ("z", *(f"k{number}" for number in range(len(found.loops))), "f")
        return [fresh_id(program.nest.by_id, f"{site.id}.{part}") for part in parts]

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Compute the reduction into a new temporary before the statement, which reads it."""
        value, found = self._found(program, site)
        used = {depth for e in found.expressions() for depth in e.variables()}
        kept = [s.depth for s in site.chain if s.depth in used or s.mapping.is_concurrent]
        name = self.into or fresh_name(program.nest.arrays, f"{value.array.name}_{site.output.array.name}")
        shape = [site.extents[depth] for depth in kept]
        array = declare(program, name, value.array.dtype, shape, [1] * len(kept), Memory.STACK, rewriter)
        index = tuple(position(depth, site.extents[depth]) for depth in kept)
        first, *loop_ids, last = self._ids(program, site, found)
        scopes = [ScopeOp(extent, id=name) for extent, name in zip(found.loops, loop_ids, strict=True)]
        chain = (*chain_ops(site), *scopes)
        init = build_op(
            (array, index), found.init_inputs, chain_ops(site), function=found.init.function, identifier=first
        )
        step = build_op(
            (array, index),
            found.step_inputs,
            chain,
            function=found.step.function,
            accumulate=found.step.accumulate,
            identifier=last,
            contracted=found.step.contracted,
        )
        for outer, inner in zip(scopes, [*scopes[1:], step], strict=True):
            rewriter.insert(inner, InsertPoint.at_end(outer.body.block))
        place_guards(found.guards, chain, range(site.depth, len(chain)), rewriter)
        for node in (init, scopes[0]):
            rewriter.insert(node, InsertPoint.before(site.op))
        replace_input(site, self.input, Access(array, index), rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        value = site.inputs[self.input]
        assert isinstance(value, Access)
        return OutlineReduction(self.input, value.array.name, index_text(value.index)).as_move(f"%{site.id}")


@dataclass(frozen=True)
class OutlineReduction(Transformation[Leaf]):
    """Read the result of an earlier reduction, instead of recomputing it before the statement.

    `outline_reduction@y{input=1 array=t index="{0}"}`:

    N                                        N
    | t[{0}] = 0                             | t[{0}] = 0
    | M t[{0}] += x[{0},{1}]                 | M t[{0}] += x[{0},{1}]
    N                                   -->  N y[{0}] = x[{0},0] / t[{0}]
    | p[{0}] = 0
    | M p[{0}] += x[{0},{1}]
    | y[{0}] = x[{0},0] / p[{0}]

    The preceding assignment and loops, which compute the input for this use only, are deleted. To merge two equal
    reductions, apply `inline_reduction` first: it makes such an assignment and loops from the second reduction.

    Legal iff `inline_reduction`, applied to the use of s[e(j)], would restore the present computation: the same
    functions of the same inputs over the same loops, in order, and no input was written since.
    """

    name: ClassVar[str] = "outline_reduction"
    keeps_statements: ClassVar = False
    input: int
    array: str
    index: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Private reductions, with earlier ones that accumulate the same function of the same arrays."""
        for leaf in program.nest.leaves:
            for number, value in enumerate(leaf.inputs):
                mine = _private(program, leaf, value) if isinstance(value, Access) else None
                for step in program.nest.leaves[: leaf.order] if mine is not None else ():
                    assert mine is not None
                    element = _computed(step, mine.step, leaf) if step is not mine.step else None
                    if element is not None:
                        yield leaf, cls(number, element.array.name, index_text(element.index))

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires an element that holds the input's value, and a preceding reduction for this use only."""
        if (reason := input_reason(site, self.input)) is not None:
            return reason
        element = named_element(program, site, self.array, self.index)
        if isinstance(element, Reason):
            return element
        value = site.inputs[self.input]
        mine = _private(program, site, value) if isinstance(value, Access) else None
        if mine is None:
            return Reason("no preceding reduction computes the input for this op only")
        found = repetition(program, site, element)
        if isinstance(found, Reason):
            return found
        if found.step is mine.step:
            return Reason(f"'{self.array}' is the temporary that the preceding reduction computes for this op")
        if not _is_same(mine, found, site):
            return Reason(f"the preceding reduction does not compute the value in '{self.array}'")
        if any(a.hints.data for leaf in (mine.init, mine.step) for a in leaf.accesses):
            return Reason("the preceding reduction has hints, which would be lost; clear them first")
        pairs = (found.init, mine.init, found.init_at), (found.step, mine.step, found.step_at)
        problems = (overwritten(program, original, copy, at) for original, copy, at in pairs)
        return next((problem for problem in problems if problem is not None), None)

    def numerics(self, program: Program, site: Leaf) -> Numerics:
        """Reassociation if the earlier reduction sums over lanes, threads or blocks; the deleted one sums in order."""
        element = named_element(program, site, self.array, self.index)
        assert isinstance(element, Access)
        found = repetition(program, site, element)
        assert isinstance(found, Repetition)
        return found.numerics

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Replace the input; delete the reduction and its temporary."""
        value, element = site.inputs[self.input], named_element(program, site, self.array, self.index)
        assert isinstance(value, Access)
        assert isinstance(element, Access)
        mine = _private(program, site, value)
        assert mine is not None
        replace_input(site, self.input, element, rewriter)
        for node in (mine.init, mine.nest):
            rewriter.erase(node.op)
        assert value.array.buffer.op is not None
        rewriter.erase(value.array.buffer.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        value = site.inputs[self.input]
        assert isinstance(value, Access)
        return InlineReduction(self.input, into=value.array.name).as_move(f"%{site.id}")


def _is_same(mine: PrivateReduction, found: Repetition, site: Leaf) -> bool:
    """Whether a private reduction is the repetition of another one."""
    step = mine.step
    loops = step.chain[site.depth :]
    extents = (*site.extents, *found.loops)
    guards = {g.substitute({}, extents) for s in loops for g in s.guard} if step.extents == extents else None
    if guards is None or guards != {*found.guards} or any(s.mapping is not Mapping.SEQUENTIAL for s in loops):
        return False
    facts = (
        (mine.init.function, found.init.function),
        (step.function, found.step.function),
        (step.accumulate, found.step.accumulate),
        (step.contracted, found.step.contracted),
        (len(mine.init.inputs), len(found.init_inputs)),
        (mine.init.output.array.dtype, found.init.output.array.dtype),
    )
    if any(one != other for one, other in facts):
        return False
    pairs = (*zip(mine.init.inputs, found.init_inputs, strict=True), *zip(step.inputs, found.step_inputs, strict=True))
    return all(same_value(one, other) for one, other in pairs)


def _computed(step: Leaf, mine: Leaf, site: Leaf) -> Access | None:
    """The element where a reduction has the sum that `mine`, before the site, accumulates; None if none is found."""
    facts = ((step.function, mine.function), (step.accumulate, mine.accumulate), (len(step.reads), len(mine.reads)))
    if any(one != other for one, other in facts) or step.output.array.intent is Intent.IN:
        return None
    equations: list[tuple[Expr, Expr]] = []
    for theirs, own in zip(step.reads, mine.reads, strict=True):
        if theirs.array is not own.array:
            return None
        equations += zip(theirs.index, own.index, strict=True)
    known = solve(equations, step.extents, mine.extents)
    shared = common_depth((step, site))
    index: list[Expr] = []
    for expression in step.output.index:
        if any(d not in known and step.extents[d] > 1 and d >= shared for d in expression.variables()):
            return None
        values = {d: known.get(d, const(0)) for d in expression.variables() if d in known or d >= shared}
        place = expression.substitute(values, mine.extents)
        if any(d >= site.depth for d in place.variables()):
            return None
        index.append(place)
    return Access(step.output.array, tuple(index))
