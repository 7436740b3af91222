"""Features of programs for learned cost models: the program's structure, and the estimate of the machine model.

`pdojo.search.features.structure` lists the structural features. Features `model.*` are the parts of the analytical
model's estimate, in log cycles; 0 without an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log1p

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.view.nest import Nest
from pdojo.passes.cpu.cost_model import estimate
from pdojo.search.features.structure import named_structure

LEVELS = 3
"""Number of cache levels with a feature."""


def features(nest: Nest, machine: Machine) -> list[float]:
    """The features of a program, in the same order for all programs."""
    return [value for _, value in named_features(nest, machine)]


def named_features(nest: Nest, machine: Machine) -> list[tuple[str, float]]:
    """The features with their names."""
    return [*_estimated(nest, machine), *named_structure(nest, machine)]


def _estimated(nest: Nest, machine: Machine) -> Iterator[tuple[str, float]]:
    cost = estimate(nest, machine)
    yield "model.known", float(cost is not None)
    yield "model.cycles", log1p(cost.cycles) if cost else 0.0
    yield "model.compute", log1p(cost.compute) if cost else 0.0
    yield "model.starts", log1p(cost.starts) if cost else 0.0
    memory = (*(cost.memory if cost else ()), *(0.0,) * LEVELS)[:LEVELS]
    yield from ((f"model.memory{level}", log1p(cycles)) for level, cycles in enumerate(memory))
