"""How fast neighbours are proposed from the state that the heuristic pass reaches, and where the time goes.

Times are of the processor, one core. Neighbours are fingerprinted, as searches do. With `--walk` each neighbour is
one of the neighbour before, which shares less with what is known.
"""

from __future__ import annotations

import argparse
import time
from cProfile import Profile
from pstats import Stats
from random import Random
from typing import Any, cast

from pdojo_tools.programs import load_kernel
from rich.console import Console
from rich.table import Table

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.search.dojo import Dojo
from pdojo.search.features import features
from pdojo.search.neighbourhoods import NEIGHBOURHOODS, neighbourhood
from pdojo.search.tuning import make_moves

KERNELS = ("softmax:24576x512", "layernorm:4096x4096")
"""The default kernels."""
PARTS = {
    "legality": ("base.py", "refusal"),
    "rewriting": ("base.py", "rehearse"),
    "verifying": ("verify.py", "verify_nest"),
    "mending": ("cpu.py", "mend"),
    "text": ("printer.py", "print_nest"),
}
"""Functions whose shares of the time are shown; one may call another."""


def _propose(name: str, start: Dojo, count: int, random: Random, *, walk: bool) -> tuple[int, int]:
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
    """The shares of the time of some functions, as text."""
    stats = cast("dict[tuple[str, int, str], tuple[Any, Any, float, float, Any]]", cast("Any", Stats(profile)).stats)
    times = {
        part: sum(
            entry[3] for (path, _, called), entry in stats.items() if path.endswith(f"/{file}") and called == function
        )
        for part, (file, function) in PARTS.items()
    }
    return ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in times.items() if seconds > total / 100)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=KERNELS, help="library kernels, or files; by default some")
    parser.add_argument("--machine", default="host")
    parser.add_argument("--count", type=int, default=60, help="neighbours to average over")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walk", action="store_true", help="go to each neighbour, do not come back")
    given = parser.parse_args()
    console = Console()
    table = Table(
        "kernel", "neighbourhood", "a second", "found", "different", "where the time goes", title="neighbours"
    )
    for kernel in given.kernels:
        start = Dojo.of(make_moves(with_alignment(load_kernel(kernel), 64), machine(given.machine), "heuristic").game)
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
            features(start.game.program.nest, start.machine)
        table.add_row(kernel, "features", f"{20 / (time.process_time() - began):.0f}", "", "", "")
    console.print(table)


if __name__ == "__main__":
    main()
