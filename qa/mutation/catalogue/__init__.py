"""All planted defects, by the part of the game that they break."""

from __future__ import annotations

from pathlib import Path

from pdojo.errors import UsageError
from qa.mutation.catalogue import (
    analysis,
    arithmetic,
    conditions,
    layout,
    mapping,
    movement,
    pipelines,
    repeating,
    rewriting,
    storage,
    structure,
    tails,
    values,
)
from qa.mutation.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *structure.MUTANTS,
    *pipelines.MUTANTS,
    *mapping.MUTANTS,
    *storage.MUTANTS,
    *movement.MUTANTS,
    *tails.MUTANTS,
    *layout.MUTANTS,
    *arithmetic.MUTANTS,
    *analysis.MUTANTS,
    *values.MUTANTS,
    *repeating.MUTANTS,
    *rewriting.MUTANTS,
    *conditions.MUTANTS,
)


def stale(root: Path) -> list[str]:
    """Errors of mutants that do not fit the source any more, and duplicate names."""
    problems: list[str] = []
    names = [mutant.name for mutant in MUTANTS]
    problems += [f"two mutants are called '{name}'" for name in sorted({n for n in names if names.count(n) > 1})]
    for mutant in MUTANTS:
        try:
            mutant.mutated(root)
        except UsageError as error:
            problems.append(str(error))
    return problems
