"""Recomputation: how a statement can itself compute a value that it now reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.transforms.api import (
    Access,
    Constant,
    DictionaryAttr,
    Equation,
    Expr,
    Index,
    Input,
    Intent,
    Leaf,
    Program,
    Reason,
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


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A value that a statement can compute itself."""

    producer: Leaf
    """The statement that now computes it."""
    inputs: tuple[Input, ...]
    """The inputs of the producer's function, over the scopes of the statement, without hints."""


def recomputation(program: Program, site: Leaf, access: Access) -> Recomputation | Reason:
    """A way for `site` to compute the element of `access`, which it reads or might read; a Reason if there is none.

    There must be one statement W: t[f(i)] = g(a[p(i)] ...), and h such that f(h(j)) is the element that iteration j of
    the site reads. For all j, W at h(j) is the last write of that element before j, and a[p(h(j))] has the same origin
    for a read at j as for the read of W at h(j).
    """
    question = "recomputation", site, access.key, access in site.reads
    return program.memoised(question, lambda: _recomputation(program, site, access))


def _recomputation(program: Program, site: Leaf, access: Access) -> Recomputation | Reason:
    array = access.array
    if array.intent is Intent.IN:
        return Reason(f"'{array.name}' is an input of the kernel, which no op computes")
    extra = () if access in site.reads else ((site, access),)
    uses = element_uses(program.nest, array, extra)
    read = number_of(uses, site, access)
    writers, complete = program.origins.writers(uses, read)
    if not complete:
        return Reason(f"not every element of '{array.name}' that is read here was written by an op before")
    if len(writers) != 1:
        named = ", ".join(locate(program, uses[w].leaf) for w in writers)
        return Reason(f"several ops write the elements of '{array.name}' that are read here: {named}")
    producer = uses[writers[0]].leaf
    if producer.accumulate is not None:
        return Reason(f"'{locate(program, producer)}' accumulates; only a plain assignment can be computed once more")
    at = producing_iteration(producer, site, tuple(zip(producer.output.index, access.index, strict=True)))
    if at is None:
        return Reason(f"the element does not tell which iteration of '{locate(program, producer)}' computed it")
    for before in producer.inputs:
        if isinstance(before, Access) and before.key == producer.output.key:
            return Reason(
                f"'{before.array.name}' is overwritten after '{locate(program, producer)}' read it",
                f"the op writes {describe_access(before)}, which it reads",
            )
    stray = program.origins.stray(uses, read, writers[0], at)
    if stray is not None:
        return Reason(
            f"the element does not tell which iteration of '{locate(program, producer)}' computed it",
            f"{describe_access(access)} at iteration {spelled_iteration(stray)}",
        )
    values = [substitute_input(i, dict(enumerate(at)), site.extents) for i in producer.inputs]
    return _unchanged(program, site, producer, at, values) or Recomputation(producer, tuple(map(without_hints, values)))


def producing_iteration(producer: Leaf, site: Leaf, equations: Sequence[Equation]) -> tuple[Expr, ...] | None:
    """The iteration of the producer that the equations determine, over the site's iteration; None if they do not.

    Common scopes that the equations leave open have the same iteration.
    """
    known = solve(equations, producer.extents, site.extents)
    shared = common_depth((producer, site))
    for depth, extent in enumerate(producer.extents):
        if depth not in known and (depth < shared or extent == 1):
            known[depth] = var(depth) if depth < shared and extent > 1 else const(0)
    return tuple(known[d] for d in range(producer.depth)) if len(known) == producer.depth else None


def _unchanged(
    program: Program, site: Leaf, producer: Leaf, at: Sequence[Expr], values: Sequence[Input]
) -> Reason | None:
    """The reason why the producer's inputs no longer have the values that it read; None if they have."""
    for before, now in zip(producer.inputs, values, strict=True):
        if not isinstance(before, Access) or not isinstance(now, Access):
            continue
        uses = element_uses(program.nest, now.array, [(site, now)])
        first = number_of(uses, producer, before)
        changed = program.origins.change(uses, first, len(uses) - 1, at)
        if changed is not None:
            return Reason(
                f"'{now.array.name}' is overwritten after '{locate(program, producer)}' read it",
                f"{describe_access(now)} at iteration {spelled_iteration(changed)}",
            )
    return None


def spelled_iteration(iteration: Sequence[int]) -> str:
    """An iteration for messages: `(0, 3)`."""
    return f"({', '.join(map(str, iteration))})"


def without_hints(value: Input) -> Input:
    """The input, without hints of an access."""
    return Access(value.array, value.index, DictionaryAttr({})) if isinstance(value, Access) else value


def same_value(one: Input, other: Input) -> bool:
    """Whether two inputs of one statement are written alike."""
    match one, other:
        case Access(), Access():
            return one.key == other.key
        case Constant(), Constant():
            return repr(one) == repr(other)
        case _:
            return isinstance(one, Index) and one == other
