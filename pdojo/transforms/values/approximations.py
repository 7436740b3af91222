"""Approximations: an elementary function gets its shorter form, which has a larger error, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.math.functions import APPROXIMATIONS, FUNCTIONS
from pdojo.transforms.api import (
    Leaf,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    build_op,
    chain_ops,
)

_REFINEMENTS = {short: FUNCTIONS[short].denotes for short in APPROXIMATIONS.values()}


def _replace(site: Leaf, functions: Mapping[str, str], rewriter: PatternRewriter) -> None:
    """Give the statement the function that `functions` has for its own."""
    assert site.function is not None
    rewriter.replace(
        site.op,
        build_op(
            (site.output.array, site.output.index),
            site.inputs,
            chain_ops(site),
            function=functions[site.function],
            accumulate=site.accumulate,
            hints=site.op.access_hints,
            identifier=site.id,
        ),
    )


def _refusal(site: Leaf, functions: Mapping[str, str], other: str) -> Reason | None:
    if site.function is None or site.function not in functions:
        return Reason(f"the op computes no function that has {other}: {', '.join(sorted(functions))}")
    if site.output.array.dtype == "f64":
        return Reason(f"in f64, '{site.function}' is the same function as '{functions[site.function]}'")
    return None


@dataclass(frozen=True)
class Approximate(Transformation[Leaf]):
    """Replace a function by its shorter form, which has a larger error.

    `approximate@y`:

    N y[{0}] = exp(x[{0}])  -->  N y[{0}] = exp_approx(x[{0}])

    Kernels have to permit `approximate`. Legal iff the function has a shorter form in the type of the statement.
    """

    name: ClassVar[str] = "approximate"
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)
    finishes: ClassVar = True
    exchanges: ClassVar = "values"
    site: ClassVar = Leaf

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Functions with a shorter form."""
        for leaf in program.nest.leaves:
            if leaf.function in APPROXIMATIONS:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a function with a shorter form."""
        return _refusal(site, APPROXIMATIONS, "a shorter form")

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """Another error."""
        return Numerics.APPROXIMATES

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Set another function."""
        _replace(site, APPROXIMATIONS, rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:  # the same everywhere
        """Compute the function itself again."""
        return Refine().as_move(f"%{site.id}")


@dataclass(frozen=True)
class Refine(Transformation[Leaf]):
    """Replace the shorter form of a function by the function itself.

    `refine@y`:

    N y[{0}] = exp_approx(x[{0}])  -->  N y[{0}] = exp(x[{0}])

    Kernels have to permit `approximate`. Legal iff the statement computes a shorter form in a type that has one.
    """

    name: ClassVar[str] = "refine"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)
    site: ClassVar = Leaf

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Shorter forms."""
        for leaf in program.nest.leaves:
            if leaf.function in _REFINEMENTS:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a shorter form."""
        return _refusal(site, _REFINEMENTS, "a longer form")

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """The class of `approximate`."""
        return Numerics.APPROXIMATES

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Set another function."""
        _replace(site, _REFINEMENTS, rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:  # the same everywhere
        """Take the shorter form again."""
        return Approximate().as_move(f"%{site.id}")
