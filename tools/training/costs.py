"""A training of a cost model over the database."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from math import log
from random import Random

import numpy
from pdojo_tools.outputs import check_writable, write_json, write_output
from pdojo_tools.phases import phase
from rich.console import Console
from rich.progress import track

from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.perfllm.ranking import RankedSample, Ranking
from pdojo.perfllm.screening import KIND
from pdojo.perfllm.storing import dump
from pdojo.search.database import Database
from pdojo.search.database.measured import MeasuredCost, measured_programs
from pdojo.search.features.structure import VERSION, structure

HELD = 5
"""One problem in this many is held out."""
FEWEST = 100
"""Fewest programs for a training."""


def train_costs(given: argparse.Namespace) -> None:
    """Train a cost model, report its ranking of held-out kernels, and write it. Raises UsageError."""
    console = Console(markup=False, stderr=given.json)
    check_writable(given.output)
    with Database(given.database, create=False) as database:
        found = measured_programs(database, given.machine, given.evaluator)
    if len(found) < FEWEST:
        raise UsageError(
            f"the database has {len(found)} programs for '{given.machine}' by '{given.evaluator}': a cost model needs"
            f" {FEWEST}; search some kernels first"
        )
    samples = samples_of(console, found, given.machine)
    problems = sorted({sample.kernel for sample in samples})
    held = set(problems[::HELD]) if len(problems) >= HELD else set[str]()
    learned = [sample for sample in samples if sample.kernel not in held]
    tested = [sample for sample in samples if sample.kernel in held]
    ranking = Ranking(len(samples[0].vector), given.seed)
    with phase(console, "training"):
        correlations = ranking.fit(learned, tested, given.updates, Random(given.seed))
    console.print(f"{len(learned)} programs of {len(problems) - len(held)} kernels")
    if correlations:
        console.print(
            f"rank correlation within the {len(held)} kernels held out, {len(tested)} programs: {max(correlations):.2f}"
        )
    else:
        console.print(
            f"fewer than {HELD} kernels, so none was held out: how well the model ranks other kernels is unknown"
        )
    stamp = {"kind": KIND, "features": str(VERSION), "machine": given.machine, "evaluator": given.evaluator}
    write_output(dump(ranking.state(), stamp), given.output)
    console.print(f"wrote {given.output}", highlight=False, soft_wrap=True)
    if given.json:
        counts = {"programs": len(learned), "kernels": len(problems) - len(held), "held_out": len(held)}
        write_json({"output": given.output, **counts, "correlation": max(correlations, default=None)})


def samples_of(console: Console, found: Sequence[MeasuredCost], machine: str) -> list[RankedSample]:
    """The programs with their features; kernels with one program are left out."""
    described = known_machine(machine)
    counts = Counter(one.problem for one in found)
    samples: list[RankedSample] = []
    for one in track([each for each in found if counts[each.problem] > 1], "reading programs", console=console):
        vector = numpy.array(structure(nest_of(parse_notation(one.text)[0]), described), dtype=numpy.float32)
        samples.append(RankedSample(one.problem, vector, log(one.cost)))
    return samples
