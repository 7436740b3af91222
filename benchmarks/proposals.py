"""Speed of proposing neighbours, by default of the state after the heuristic pass, and where the time goes.

Times are processor times of one core. Neighbours are fingerprinted, as in searches. With `--walk` each neighbour is
proposed from the one before, for which less is cached.

`--proposers N` compares searches by the analytical model instead, with proposals from 1 and from N processes: clock
seconds, in turns. The searches are otherwise equal, which is checked.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from cProfile import Profile
from multiprocessing import get_context
from pstats import Stats
from random import Random
from typing import Any, cast

from pdojo_tools.programs import load_kernel
from rich.console import Console
from rich.table import Table

from pdojo.budget import Budget
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.names import NEIGHBOURHOODS
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.search.engine.search import search
from pdojo.search.evaluators.analytical import Analytical
from pdojo.search.features.program import features
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game

KERNELS = ("softmax:24576x512", "layernorm:4096x4096")
"""The default kernels."""
PARTS = {
    "legality": ("base.py", "refusal"),
    "rewriting": ("base.py", "rehearse"),
    "verifying": ("verify.py", "verify_nest"),
    "mending": ("cpu.py", "mend"),
    "text": ("printer.py", "print_nest"),
}
"""Functions whose fractions of the time are shown; one may call another."""


def _propose(name: str, start: Game, count: int, random: Random, *, walk: bool) -> tuple[int, int]:
    """The number of neighbours, and of distinct programs among them."""
    near, here, found = neighbourhood(name), start, 0
    programs: set[str] = set()
    for _ in range(count):
        other = near.neighbour(here, random)
        if other is not None:
            found += 1
            programs.add(other.fingerprint)
            here = other if walk else start
    return found, len(programs)


def _shares(profile: Profile, total: float) -> str:
    """The fractions of the time of some functions, as text."""
    stats = cast("dict[tuple[str, int, str], tuple[Any, Any, float, float, Any]]", cast("Any", Stats(profile)).stats)
    times = {
        part: sum(
            entry[3] for (path, _, called), entry in stats.items() if path.endswith(f"/{file}") and called == function
        )
        for part, (file, function) in PARTS.items()
    }
    return ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in times.items() if seconds > total / 100)


def _start(kernel: str, given: argparse.Namespace) -> Game:
    """The initial state of searches and neighbours."""
    expert = None if given.start == "plain" else "heuristic"
    return make_moves(with_alignment(load_kernel(kernel), 64), machine(given.machine), expert).game.fork()


def _search(kernel: str, given: argparse.Namespace, seed: int, proposers: int) -> tuple[float, list[float]]:
    """Seconds of a search with edits, and the costs of its evaluated programs."""
    start = _start(kernel, given)
    began = time.perf_counter()
    result = search(
        start,
        Analytical(start.machine),
        strategy(given.strategy),
        neighbourhood("mutate"),
        Budget(given.count),
        seed,
        proposers=proposers,
    )
    return time.perf_counter() - began, [row.cost for row in result.history]


def _apart(*search: Any) -> tuple[float, list[float]]:
    """A search in its own process, without knowledge of other searches."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_search, *search).result()


def _compare(kernel: str, given: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Seconds of searches by one process and by several, in turns, with every second pair in reverse order."""
    seconds: dict[int, list[float]] = {1: [], given.proposers: []}
    for seed in range(given.seed, given.seed + given.pairs):
        pair = [1, given.proposers]
        found = {n: _apart(kernel, given, seed, n) for n in (pair if seed % 2 else pair[::-1])}
        if found[1][1] != found[given.proposers][1]:
            raise AssertionError(f"{given.proposers} processes propose other programs than one")
        for n, (taken, _) in found.items():
            seconds[n].append(taken)
    return seconds[1], seconds[given.proposers]


def _show_searches(given: argparse.Namespace) -> Table:
    title = f"{given.strategy}, {given.count} evaluations by the analytical model"
    table = Table("kernel", "s, 1 process", f"s, {given.proposers} processes", "ratios", "ratio of all", title=title)
    for kernel in given.kernels:
        one, several = _compare(kernel, given)
        table.add_row(
            kernel,
            ", ".join(f"{s:.1f}" for s in one),
            ", ".join(f"{s:.1f}" for s in several),
            ", ".join(f"{a / b:.2f}" for a, b in zip(one, several, strict=True)),
            f"{sum(one) / sum(several):.2f}",
        )
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=KERNELS, help="library kernels, or files; by default some")
    parser.add_argument("--machine", default="host")
    parser.add_argument("--count", type=int, default=60, help="neighbours to average over; evaluations of a search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", choices=("plain", "pass"), default="pass", help="where they start from")
    parser.add_argument("--walk", action="store_true", help="go to each neighbour, do not come back")
    searches = parser.add_argument_group("searches")
    searches.add_argument("--proposers", type=int, help="processes to compare with one")
    searches.add_argument("--strategy", default="evolve", choices=("sample", "evolve", "elites", "model"))
    searches.add_argument("--pairs", type=int, default=2, help="searches of each kind, each pair with another seed")
    given = parser.parse_args()
    if given.proposers is not None and given.proposers < 2:
        parser.error(f"--proposers is at least 2, not {given.proposers}: that many are compared with one")
    console = Console()
    if given.proposers is not None:
        console.print(_show_searches(given))
        return
    table = Table(
        "kernel", "neighbourhood", "a second", "found", "different", "where the time goes", title="neighbours"
    )
    for kernel in given.kernels:
        start = _start(kernel, given)
        for name in NEIGHBOURHOODS:
            began = time.process_time()
            found, different = _propose(name, start, given.count, Random(given.seed), walk=given.walk)
            rate = given.count / (time.process_time() - began)
            profile = Profile(time.process_time)
            began = time.process_time()
            profile.runcall(_propose, name, start, given.count // 3, Random(given.seed + 1), walk=given.walk)
            shares = _shares(profile, time.process_time() - began)
            table.add_row(kernel, name, f"{rate:.1f}", str(found), str(different), shares)
        began = time.process_time()
        for _ in range(20):
            features(start.program.nest, start.machine)
        table.add_row(kernel, "features", f"{20 / (time.process_time() - began):.0f}", "", "", "")
    console.print(table)


if __name__ == "__main__":
    main()
