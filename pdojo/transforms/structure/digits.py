"""A scope and its only child as digits of one scope: conversion of extents, guards and index expressions."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.transforms.api import DTYPES, Expr, Program, Scope, bound_of, floordiv, modulo, simplified, var


def only_scope(site: Scope) -> Scope | None:
    """The only child, if it is a scope; else None."""
    child = site.children[0]
    return child if len(site.children) == 1 and isinstance(child, Scope) else None


def vector_lengths(program: Program) -> set[int]:
    """The numbers of lanes of the machine's vectors of any type."""
    return {lanes for dtype in DTYPES for lanes in program.machine.vector_lanes(dtype)}


def collapsed_extent(site: Scope, inner: Scope, longest: int = 1) -> int:
    """Iterations of the two scopes together, minus the last ones that a guard cuts off.

    Fewer iterations than a tile are possible for tiles of at most `longest` iterations.
    """
    total = site.extent * inner.extent
    extents = (*(s.extent for s in site.chain[:-1]), total)
    guards = collapsed_guards(site, inner, extents)
    bounds = [bound_of(simplified(guard, extents), site.depth) for guard in guards]
    cut = min((bound.bounds(())[1] for bound in bounds if bound is not None), default=total)
    # The scope can be tiled again.
    again = inner.extent <= max(cut, longest)
    return cut if -(-cut // inner.extent) == site.extent and again else total


def collapsed_guards(site: Scope, inner: Scope, extents: tuple[int, ...]) -> list[Expr]:
    """The guards of the two scopes, over the variable of the collapsed scope."""
    digits = digits_of(site.depth, inner.extent, extents)
    return [g.substitute(digits, extents) for g in (*site.guard, *inner.guard)]


def digits_of(depth: int, size: int, extents: Sequence[int]) -> dict[int, Expr]:
    """The variables of a tiled scope, as expressions over the variable at `depth` of the collapsed scope."""
    return {depth: floordiv(var(depth), size, extents), depth + 1: modulo(var(depth), size, extents)}
