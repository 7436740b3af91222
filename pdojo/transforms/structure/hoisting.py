"""Hoisting: computing a loop-invariant value once before the loop, and moving the computation back into the loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    BEFORE,
    Access,
    Expr,
    Index,
    InsertPoint,
    Leaf,
    Mapping,
    Move,
    Node,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    Transformation,
    describe_scope,
    describe_use,
    element_uses,
    leaves_of,
    locate,
)
from pdojo.transforms.common.ordering import carried, rewritten, same_iteration


def _expressions(node: Node) -> Iterator[Expr]:
    """All index expressions and guards of a subtree."""
    if isinstance(node, Scope):
        yield from node.guard
        for child in node.children:
            yield from _expressions(child)
        return
    for value in (node.output, *node.inputs):
        if isinstance(value, Access):
            yield from value.index
        elif isinstance(value, Index):
            yield value.expression


def _user(scope: Scope, nodes: Sequence[Node]) -> Node | None:
    """The first child that uses the iteration of the scope; None if none does."""
    return next((node for node in nodes if any(e.uses(scope.depth) for e in _expressions(node))), None)


def _is_plain(scope: Scope) -> bool:
    """Whether a scope certainly runs, with its iterations in order."""
    return scope.mapping in (Mapping.SEQUENTIAL, Mapping.UNROLL) and not scope.guard


def _difference(program: Program, scope: Scope, count: int) -> Reason | None:
    """The reason why the first `count` children of a scope, which do not use its iteration, differ between iterations.

    None if they do not. Let P be these children and Q the others. P(i) does the same as P(0) iff it reads the same
    values: no read of P(i) gets a value from P(j), j < i, and no Q(j) writes an element that P(i) reads. Then P(i)
    changes nothing if no Q(j) has since written an element that P(i) writes.
    """
    first, others = scope.children[:count], scope.children[count:]
    inside = [leaf for node in first for leaf in leaves_of(node)]
    for array in dict.fromkeys(leaf.output.array for leaf in inside):
        uses = [use for use in element_uses(program.nest, array) if use.leaf in inside]
        found = program.origins.carried(uses, scope.depth)
        if found is not None:
            (write, written), (read, when) = found
            return Reason(
                f"an iteration needs what an earlier one left in '{array.name}'",
                f"{describe_use(uses[write], written)} and {describe_use(uses[read], when)}",
            )
    writes = {leaf: program.element_uses[leaf][:1] for node in others for leaf in leaves_of(node)}
    conflict = program.conflict(
        list(writes), inside, (*same_iteration(scope), BEFORE), uses=writes, seconds=program.element_uses
    )
    if conflict is None:
        return None
    return carried("the rest of the scope overwrites what the next iteration reads or has written", conflict)


@dataclass(frozen=True)
class HoistNodes(Transformation[Scope]):
    """Run the first `after` children of a scope once before it, instead of in each of its iterations.

    `hoist_nodes@y:1{after=1}`:

    N M                          N
    | p[{0}] = exp(x[{0}])  -->  | p[{0}] = exp(x[{0}])
    | y[{0},{1}] = p[{0}]        | M y[{0},{1}] = p[{0}]

    Loop-invariant code motion. Legal iff the scope is sequential or unrolled and has no guard, the children do not use
    its iteration, they pass no value from one iteration to another, and the other children do not write elements that
    they access: not exists i < j: other(i) writes an element that child(j) accesses.
    """

    name: ClassVar[str] = "hoist_nodes"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "order"
    after: int

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes, with numbers of leading children that do not use the iteration."""
        for scope in program.nest.scopes:
            if len(scope.children) > 1 and _is_plain(scope):
                user = _user(scope, scope.children)
                invariant = len(scope.children) if user is None else user.position
                yield from ((scope, cls(after)) for after in range(1, min(invariant + 1, len(scope.children))))

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires children that do the same in each iteration, and at least one child that remains."""
        if not 0 < self.after < len(site.children):
            return Reason(f"'after' is at least 1 and leaves some of the {len(site.children)} children in the scope")
        if not _is_plain(site):
            return Reason(f"{describe_scope(site)} has a guard or a mapping; its iterations must all run, in order")
        if (user := _user(site, site.children[: self.after])) is not None:
            return Reason(f"'{locate(program, user)}' uses the iteration of {describe_scope(site)}")
        return _difference(program, site, self.after)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Move the children before the scope."""
        for node in site.children[: self.after]:
            node.op.detach()
            rewriter.insert(node.op, InsertPoint.before(site.op))

    def inverse(self, program: Program, site: Scope) -> Move:
        return SinkNodes(self.after).as_move(f"%{site.id}")


@dataclass(frozen=True)
class SinkNodes(Transformation[Scope]):
    """Run the `count` nodes before a scope in each of its iterations, instead of once before it.

    `sink_nodes@y:1{count=1}`:

    N                             N M
    | p[{0}] = exp(x[{0}])   -->  | p[{0}] = exp(x[{0}])
    | M y[{0},{1}] = p[{0}]       | y[{0},{1}] = p[{0}]

    Legal iff `hoist_nodes` would lead back.
    """

    name: ClassVar[str] = "sink_nodes"
    keeps_statements: ClassVar = False
    undoes: ClassVar = True
    count: int = 1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes after a statement, if no statement inside writes an array of that statement."""
        for scope in program.nest.scopes:
            before = program.nest.previous_sibling(scope)
            if isinstance(before, Leaf) and _is_plain(scope):
                used = {access.array for access in before.accesses}
                if not any(leaf.output.array in used for leaf in scope.leaves):
                    yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires nodes that do the same in each iteration."""
        if not 0 < self.count <= site.position:
            return Reason(f"'count' must be between 1 and the number of nodes before the scope, {site.position}")
        if not _is_plain(site):
            return Reason(f"{describe_scope(site)} has a guard or a mapping; its iterations must all run, in order")
        after = rewritten(program, self, site)
        return _difference(after, self.resolve(after, f"%{site.id}"), self.count)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Move the nodes to the beginning of the scope."""
        for node in program.nest.siblings(site)[site.position - self.count : site.position]:
            node.op.detach()
            rewriter.insert(node.op, InsertPoint.before(site.children[0].op))

    def inverse(self, program: Program, site: Scope) -> Move:
        return HoistNodes(self.count).as_move(f"%{site.id}")
