"""The agent of PerfLLM against annealing, evolution, elites, a cost model and sampling, all from plain programs.

Each cell of a grid is one search: a kernel, a method, a seed. Finished cells are on disk at once; --resume goes on
after an interruption or a kill. --show prints the tables of a file and writes a page with curves. docs/perfllm.md
describes the comparison.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pdojo_tools.command import Arguments, positive, random_seed, tool
from pdojo_tools.tuning.limits import many

from benchmarks import runs
from benchmarks.origin import JSON
from benchmarks.perfllm.experiment import AGAINST, version_facts
from benchmarks.perfllm.grid import GRIDS, QUICK, QUICK_EVALUATIONS, Grid, with_encoders, with_policy, with_proposals
from benchmarks.tables import console_for
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.registry import host, known_machine
from pdojo.errors import LoweringError, UsageError
from pdojo.perfllm.encoders import encoder
from pdojo.search.neighbourhoods import loaded_proposals
from pdojo.search.strategies import strategy

WIDTH = 200
"""Width of files with tables."""


def _parser() -> Arguments:
    parser = Arguments(
        prog="python -m benchmarks.perfllm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--grid",
        choices=tuple(GRIDS),
        default="snitch",
        help="Snitch cores (default), this CPU, or proposals",
    )
    add("--kernels", type=_words, default=[], metavar="A,B", help="of the grid, with sizes or without")
    add("--evaluators", type=_words, default=[], metavar="A,B", help="of the grid: cycles; analytical, runtime")
    add("--methods", type=_words, default=[], metavar="A,B", help="of the grid, or their first words: perfllm,anneal")
    add("--encoders", type=_words, default=[], metavar="A,B", help="also agents with these: hf:FOLDER")
    add("--policy", metavar="FILE", help="also agents that begin with this one's networks (pdojo-train agent)")
    add("--proposals", metavar="learned:FILE", help="also searches by these proposals (pdojo-train proposals)")
    add("--seeds", type=_seeds, metavar="N,..", help="seeds (default 0 to 4; on CPUs 0 to 2)")
    add("--evaluations", type=positive, metavar="N", help="of each search (default 2000; on CPUs 300, timed 150)")
    add("--jobs", type=positive, default=2, metavar="N", help="searches at once (default 2); timed ones run alone")
    add("--minutes", type=positive, metavar="M", help="start no search that would probably end later")
    quick = f"some kernels, seed 0 and {QUICK_EVALUATIONS} evaluations, unless others are given"
    add("--quick", action="store_true", help=quick)
    add("--against", metavar="METHOD", help=f"with --show: what methods are compared with (default {AGAINST})")
    runs.add_files(parser)
    return parser


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(text.split(",")))


def _seeds(text: str) -> list[int]:
    return [random_seed(part) for part in text.split(",")]


@tool
def main(arguments: Sequence[str] | None) -> None:
    """The command, 1 if a cell failed or the time was up."""
    parser = _parser()
    given = parser.parse_args(arguments)
    console = console_for(WIDTH)
    if given.against is not None and given.show is None:
        raise UsageError("--against is for tables: add --show FILE.json")

    def compare_with(settings: JSON) -> None:
        settings["against"] = given.against

    runs.run(console, parser, given, partial(_begin, given), compare_with)


def _begin(given: argparse.Namespace) -> tuple[Path, JSON]:
    """The output file and the settings of a new run. Raises UsageError."""
    grid = _grid(given)
    _check(grid, given.jobs)
    facts = version_facts(grid)
    settings = {"benchmark": "perfllm", **runs.usual_settings(), "grid": grid.to_json(), "jobs": given.jobs, **facts}
    return runs.output_file(given.output, "perfllm"), settings


def _grid(given: argparse.Namespace) -> Grid:
    grid = with_encoders(GRIDS[given.grid], given.encoders)
    if given.policy is not None:
        grid = with_policy(grid, given.policy)
    if given.proposals is not None:
        loaded_proposals(given.proposals)
        grid = with_proposals(grid, given.proposals)
    kernels, seeds, evaluations = given.kernels, given.seeds, given.evaluations
    if given.quick:
        kernels, seeds = kernels or list(QUICK[given.grid]), seeds or [0]
        evaluations = evaluations or QUICK_EVALUATIONS
    return grid.with_only(kernels, given.methods, seeds, evaluations, given.evaluators)


def _check(grid: Grid, jobs: int) -> None:
    """Raise UsageError for faults that would fail every cell: processors, packages, encoders, the machine."""
    processors = len(os.sched_getaffinity(0))
    if jobs > processors:
        raise UsageError(f"--jobs {jobs}: there {'is' if processors == 1 else 'are'} {many(processors, 'processor')}")
    for method in grid.methods:
        strategy(method.strategy, 1, method.options)
        if method.settings is not None:
            encoder(method.settings.encoder, host())
    for task in grid.tasks:
        if task.is_timed:
            machine = known_machine(task.machine)
            try:
                backend_of(machine).check_runs_here(machine)
            except LoweringError as error:
                raise UsageError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
