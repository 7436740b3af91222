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


@dataclass(frozen=True)
class Exchange(Transformation[Leaf]):
    """Base of the moves that exchange a function and its shorter form."""

    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)
    functions: ClassVar[Mapping[str, str]]
    """The new function of each function."""
    form: ClassVar[str]
    """The new function in words."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Statements with a function that has another form."""
        for leaf in program.nest.leaves:
            if leaf.function in cls.functions:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a function that has another form in the type of the statement."""
        if site.function is None or site.function not in self.functions:
            return Reason(f"the op computes no function that has {self.form}: {', '.join(sorted(self.functions))}")
        if site.output.array.dtype == "f64":
            return Reason(f"in f64, '{site.function}' is the same function as '{self.functions[site.function]}'")
        return None

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """Another error."""
        return Numerics.APPROXIMATES

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        assert site.function is not None
        rewriter.replace(
            site.op,
            build_op(
                (site.output.array, site.output.index),
                site.inputs,
                chain_ops(site),
                function=self.functions[site.function],
                accumulate=site.accumulate,
                hints=site.op.access_hints,
                identifier=site.id,
            ),
        )


@dataclass(frozen=True)
class Approximate(Exchange):
    """Replace a function by its shorter form, which has a larger error.

    `approximate@y`:

    N y[{0}] = exp(x[{0}])  -->  N y[{0}] = exp_approx(x[{0}])

    Kernels have to permit `approximate`. Legal iff the function has a shorter form in the type of the statement.
    """

    name: ClassVar[str] = "approximate"
    functions: ClassVar = APPROXIMATIONS
    form: ClassVar = "a shorter form"
    finishes: ClassVar = True
    exchanges: ClassVar = "values"

    def inverse(self, program: Program, site: Leaf) -> Move:  # the same everywhere
        return Refine().as_move(f"%{site.id}")


@dataclass(frozen=True)
class Refine(Exchange):
    """Replace the shorter form of a function by the function itself.

    `refine@y`:

    N y[{0}] = exp_approx(x[{0}])  -->  N y[{0}] = exp(x[{0}])

    Kernels have to permit `approximate`. Legal iff the statement computes a shorter form in a type that has one.
    """

    name: ClassVar[str] = "refine"
    functions: ClassVar = _REFINEMENTS
    form: ClassVar = "a longer form"
    undoes: ClassVar = True

    def inverse(self, program: Program, site: Leaf) -> Move:  # the same everywhere
        return Approximate().as_move(f"%{site.id}")
