"""Speed of the game in processor time of one core, by random walks from the plain program and from the pass's.

It measures the listing of legal moves in every state, a step of a search, which draws 32 actions with their texts and
makes a move, the pass itself, and the neighbours of its state on a CPU. `KERNEL@MACHINE` names a machine other than
`--machine`. With `--limits` the exit code is 1 if a figure exceeds its limit (`LIMITS`). Garbage is collected as rarely
as by pdojo's own commands.

`--ablation` plays walks without one shortcut after the other, and prints how many more instructions they take.

`--proposers N` compares searches by the analytical model, with proposals from 1 and from N processes: seconds by the
clock, in turns. The searches are otherwise equal, which is checked.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from random import Random
from typing import Any

from pdojo_tools.command import Arguments, positive, random_seed, tool
from pdojo_tools.programs import load_kernel
from rich.console import Console

from benchmarks.tables import table
from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.budget import Budget
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.flow.shortcut import shortcut_names, without
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import MeasurementError, UsageError
from pdojo.passes.passes import run_pass
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.search.contract.candidates import legal_candidates
from pdojo.search.engine.search import search
from pdojo.search.environment.actions import Action
from pdojo.search.evaluators.analytical import Analytical
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game

LIMITS = {
    "listing": 60.0,
    "listing, 99 %": 500.0,
    "step": 50.0,
    "pass": 1000.0,
    "heuristic": 100.0,
    "mutate": 100.0,
}
"""Limits in milliseconds."""
WALKED = (
    "softmax",
    "layernorm:16384x1024",
    "layernorm:4096x4096",
    "matmul",
    "swiglu",
    "matmul:1024x1024x1024@nvidia-sm90",
)
"""The default kernels of random walks."""
SEARCHED = ("softmax:24576x512", "layernorm:4096x4096")
"""The default kernels of searches."""
SUCCESSORS = 32
"""Number of actions drawn in a step."""


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def _walk(game: Game, moves: int, random: Random) -> tuple[list[float], list[float]]:
    """Milliseconds of each listing and of each step of a random walk; steps are made before the state is listed."""
    listings, steps = [_milliseconds(game.moves)], list[float]()
    for _ in range(moves):

        def step() -> None:
            drawn = islice(legal_candidates(game.program, random), SUCCESSORS)
            actions = [Action(game, candidate) for candidate in drawn]
            _ = [action.text for action in actions]
            game.apply(actions[0].moves[0])

        steps.append(_milliseconds(step))
        listings.append(_milliseconds(game.moves))
    return listings, steps


def _walked(starts: Sequence[Game], moves: int, random: Random) -> dict[str, float]:
    listings, steps = list[float](), list[float]()
    for start in starts:
        listed, stepped = _walk(start, moves, random)
        listings += listed
        steps += stepped
    listings.sort()
    return {
        "states": len(listings),
        "listing": statistics.median(listings),
        "listing, 99 %": listings[int(0.99 * len(listings))],
        "step": statistics.median(steps),
    }


def _proposing(game: Game, name: str, count: int, random: Random) -> float:
    """Milliseconds per neighbour."""
    near = neighbourhood(name)

    def propose() -> None:
        for _ in range(count):
            other = near.neighbour(game, random)
            _ = None if other is None else other.fingerprint

    return _milliseconds(propose) / count


def _play(title: str, given: argparse.Namespace) -> dict[str, float]:
    """The figures of random walks, and of the pass if the machine has one."""
    name, _, other = title.partition("@")
    moves, seed = given.walks, given.seed
    plain = Game(load_kernel(name), known_machine(other or given.machine))
    game = plain.fork()
    try:
        took = _milliseconds(lambda: run_pass("heuristic", game))
    except UsageError:
        return _walked([plain], moves, Random(seed))
    tuned = game.fork()
    if game.machine.gpu.block_threads:
        # A search on a GPU does not begin with plain programs.
        return {**_walked([tuned], moves, Random(seed)), "pass": took}
    near = {kind: _proposing(tuned, kind, moves, Random(seed)) for kind in ("heuristic", "mutate")}
    return {**_walked([plain, tuned], moves, Random(seed)), "pass": took, **near}


def _measure(console: Console, given: argparse.Namespace) -> None:
    """Print the figures of walks. Raises MeasurementError if one exceeds its limit and `--limits` is given."""
    rows: dict[str, Mapping[str, float]] = {title: _play(title, given) for title in given.kernels or WALKED}
    titles = list(dict.fromkeys(title for figures in rows.values() for title in figures))
    cells = [[name, *(f"{figures[t]:.1f}" if t in figures else "" for t in titles)] for name, figures in rows.items()]
    console.print("milliseconds of processor time")
    console.print(table(("kernel", *titles), cells))
    missed = [
        f"{name}: {title}"
        for name, figures in rows.items()
        for title, limit in LIMITS.items()
        if figures.get(title, 0.0) > limit
    ]
    if given.limits and missed:
        raise MeasurementError(f"over the limit: {', '.join(missed)}")


def _instructions(*arguments: str) -> int:
    """Instructions of a Python process, which valgrind counts: unlike seconds, they repeat to a few in a thousand."""
    program = shutil.which("valgrind")
    if program is None:
        raise UsageError("--ablation counts instructions by valgrind, which is not installed")
    counting = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
    command = [program, *counting, sys.executable, *arguments]
    # Sets are then in the same order in every process.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    log = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr
    found = re.search(r"I +refs: +([\d,]+)", log)
    assert found is not None, log
    return int(found[1].replace(",", ""))


def _ablate(console: Console, given: argparse.Namespace) -> None:
    """Print the instructions with all shortcuts, and for each shortcut how many percent more it takes without it."""
    chosen, kernels = given.without or shortcut_names(), given.kernels or WALKED
    starting = _instructions("-c", "import benchmarks.game")
    columns: list[list[str]] = [["nothing", *chosen]]
    for title in kernels:
        walk = ("-m", "benchmarks.game", title, "--walks", str(given.walks), "--seed", str(given.seed))
        walk = (*walk, "--machine", given.machine)
        all_on = _instructions(*walk) - starting
        more = [(_instructions(*walk, "--without", name) - starting) / all_on for name in chosen]
        columns.append([f"{all_on / 1e9:.2f} G", *(f"{100 * (ratio - 1):+.1f}" for ratio in more)])
    console.print("instructions of a process, and percent more without each shortcut")
    console.print(table(("without", *kernels), zip(*columns, strict=True)))


def _search(kernel: str, given: argparse.Namespace, seed: int, proposers: int) -> tuple[float, list[float]]:
    """Seconds of a search with edits from the pass's program, and the costs of its evaluated programs."""
    start = make_moves(with_alignment(load_kernel(kernel), 64), known_machine(given.machine), "heuristic").game.fork()
    near, evaluator, budget = neighbourhood("mutate"), Analytical(start.machine), Budget(given.count)
    began = time.perf_counter()
    result = search(start, evaluator, strategy(given.strategy), near, budget, seed, proposers=proposers)
    return time.perf_counter() - began, [row.cost for row in result.history]


def _apart(*arguments: Any) -> tuple[float, list[float]]:
    """A search in its own process, without knowledge of other searches."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_search, *arguments).result()


def _compare_searches(console: Console, given: argparse.Namespace) -> None:
    """Print the seconds of searches by one process and by several; every second pair runs in reverse order."""
    rows: list[list[str]] = []
    for kernel in given.kernels or SEARCHED:
        seconds: dict[int, list[float]] = {1: [], given.proposers: []}
        for seed in range(given.seed, given.seed + given.pairs):
            found = {n: _apart(kernel, given, seed, n) for n in (seconds if seed % 2 else reversed(seconds))}
            if found[1][1] != found[given.proposers][1]:
                raise AssertionError(f"{given.proposers} processes propose other programs than one")
            for n, (taken, _) in found.items():
                seconds[n].append(taken)
        one, several = seconds[1], seconds[given.proposers]
        cells = [", ".join(f"{s:.1f}" for s in taken) for taken in (one, several)]
        ratios = ", ".join(f"{a / b:.2f}" for a, b in zip(one, several, strict=True))
        rows.append([kernel, *cells, ratios, f"{sum(one) / sum(several):.2f}"])
    console.print(f"{given.strategy}, {given.count} evaluations by the analytical model")
    headings = ("kernel", "s, 1 process", f"s, {given.proposers} processes", "ratios", "ratio of all")
    console.print(table(headings, rows))


def _arguments() -> Arguments:
    parser = Arguments(
        prog="python -m benchmarks.game", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="library kernels or files, KERNEL@MACHINE; by default some")
    add("--machine", default="x86-64-avx512", metavar="MACHINE", help="default %(default)s")
    add("--walks", type=positive, metavar="MOVES", help="moves of a random walk (default 40; 2 with --ablation)")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of walks and searches")
    add("--limits", action="store_true", help="exit with 1 if a limit is missed")
    add("--without", nargs="+", choices=shortcut_names(), default=(), help="leave out these shortcuts")
    add("--ablation", action="store_true", help="leave out one shortcut after the other")
    add("--proposers", type=positive, metavar="N", help="compare searches by one process with searches by N")
    add("--strategy", default="evolve", choices=("sample", "evolve", "elites", "model"), help="of the searches")
    add("--count", type=positive, default=60, metavar="N", help="evaluations of a search (default %(default)s)")
    add("--pairs", type=positive, default=2, metavar="N", help="searches of each kind, each pair with another seed")
    return parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = _arguments().parse_args(args)
    given.walks = given.walks or (2 if given.ablation else 40)
    collect_rarely()
    console = Console()
    if given.proposers == 1:
        raise UsageError("--proposers is at least 2: that many are compared with one")
    if given.proposers is not None:
        _compare_searches(console, given)
    elif given.ablation:
        _ablate(console, given)
    else:
        with without(*given.without):
            _measure(console, given)


if __name__ == "__main__":
    sys.exit(main())
