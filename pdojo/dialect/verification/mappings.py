"""Placement rules of mappings: where in the tree a scope of each mapping may stand (docs/mappings.md says why)."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_scope
from pdojo.dialect.view.nest import Scope

_BETWEEN = (Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.BLOCK)
"""Mappings that may stand between a grid and the threads of its blocks."""


def misplaced_mapping(scope: Scope) -> Reason | None:
    """The reason why a scope may not have its mapping at its place; None if it may.

    `scope` may be a copy of a program's scope with another mapping (`dataclasses.replace`).
    """
    if scope.mapping is Mapping.SEQUENTIAL and not scope.intrinsic:
        return None
    problem = _misplaced_intrinsic(scope)
    if problem is not None:
        return problem
    match scope.mapping:
        case Mapping.VECTOR:
            if len(scope.children) != 1 or isinstance(scope.children[0], Scope):
                return Reason(f"vector {describe_scope(scope)} must wrap exactly one op")
            return None
        case Mapping.PARALLEL:
            outer = _around(scope, (Mapping.SEQUENTIAL,))
            return None if outer is None else Reason(f"parallel {describe_scope(scope)} cannot be inside {outer}")
        case Mapping.GRID:
            return _misplaced_grid(scope)
        case Mapping.BLOCK | Mapping.WARP:
            return _misplaced_threads(scope)
        case Mapping.STREAM:
            outer = _around(scope, (Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.PARALLEL))
            return None if outer is None else Reason(f"streaming {describe_scope(scope)} cannot be inside {outer}")
        case Mapping.FREP:
            return _misplaced_hardware_loop(scope)
        case _:
            return None


def _misplaced_intrinsic(scope: Scope) -> Reason | None:
    """Check that tensor scopes, and no others, name an instruction, and that they contain sequential scopes only."""
    if (scope.mapping is Mapping.TENSOR) != bool(scope.intrinsic):
        needs = "needs the name of an intrinsic" if scope.mapping is Mapping.TENSOR else "cannot name an intrinsic"
        return Reason(f"{describe_scope(scope)} {needs}: scopes mapped to 'm' do, others do not")
    if scope.intrinsic and not (scope.intrinsic.isidentifier() and scope.intrinsic.isascii()):
        return Reason(f"'{scope.intrinsic}' is no name of an intrinsic: letters, digits and _")
    if scope.mapping is Mapping.SEQUENTIAL:
        return None
    outer = next((s for s in scope.chain[:-1] if s.mapping is Mapping.TENSOR), None)
    return (
        None
        if outer is None
        else Reason(f"{describe_scope(scope)} cannot be inside {describe_scope(outer)}: one instruction is all of it")
    )


def _around(scope: Scope, allowed: tuple[Mapping, ...]) -> str | None:
    """Description of the nearest enclosing scope whose mapping is not in `allowed`; None if there is none."""
    return next((describe_scope(s) for s in reversed(scope.chain[:-1]) if s.mapping not in allowed), None)


def _misplaced_grid(scope: Scope) -> Reason | None:
    """A launch is a perfect nest of grid scopes, started by sequential code."""
    outer = _around(scope, (Mapping.SEQUENTIAL, Mapping.GRID))
    if outer is not None:
        return Reason(f"grid {describe_scope(scope)} cannot be inside {outer}")
    if not any(s.mapping is Mapping.GRID for s in scope.chain[:-1]):
        return None
    parent = scope.parent
    assert parent is not None
    if parent.mapping is not Mapping.GRID or len(parent.children) != 1:
        return Reason(f"grid {describe_scope(scope)} inside a grid must be the only child of a grid scope")
    return None


def _misplaced_threads(scope: Scope) -> Reason | None:
    """Threads of a block are inside a grid; a warp is the innermost of them."""
    kind = "block" if scope.mapping is Mapping.BLOCK else "warp"
    chain = scope.chain[:-1]
    grid = max((s.depth for s in chain if s.mapping is Mapping.GRID), default=None)
    if grid is None:
        return Reason(f"{kind} {describe_scope(scope)} must be inside a grid scope (:g)")
    for outer in reversed(chain[grid + 1 :]):
        if outer.mapping not in _BETWEEN:
            return Reason(f"{kind} {describe_scope(scope)} cannot be inside {describe_scope(outer)}")
    return None


def _misplaced_hardware_loop(scope: Scope) -> Reason | None:
    """A hardware loop holds straight-line code and at most one other hardware loop."""
    where = f"hardware loop {describe_scope(scope)}"
    outer = _around(scope, (Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.PARALLEL, Mapping.STREAM, Mapping.FREP))
    if outer is not None:
        return Reason(f"{where} cannot be inside {outer}")
    for leaf in scope.leaves:
        for inner in leaf.chain[scope.depth + 1 :]:
            if inner.mapping not in (Mapping.UNROLL, Mapping.VECTOR, Mapping.FREP):
                return Reason(f"{where} cannot have {describe_scope(inner)} inside; unroll it")
            between = inner.parent if inner.depth > scope.depth + 1 else None
            if inner.mapping is Mapping.FREP and between is not None and between.mapping is not Mapping.FREP:
                return Reason(f"{where} cannot have {describe_scope(inner)} inside {describe_scope(between)}")
    loops = [child for child in scope.children if isinstance(child, Scope) and child.mapping is Mapping.FREP]
    if len(loops) > 1:
        return Reason(f"{where} cannot have two hardware loops inside")
    if loops and len(scope.children) == 1:
        return Reason(f"{where} has nothing but {describe_scope(loops[0])} inside; sequential, it is part of that")
    return None
