"""How fast the game is played: listing legal moves, cold and after a move, and applying moves with their fingerprints.

The states are those that the heuristic pass reaches. Times are of the processor, one core; with `--limits` the exit
code is 1 if a figure misses what is promised: 50 ms after a move (in the median), 500 ms cold, 5 ms a move.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from random import Random

from pdojo_tools.programs import load_kernel
from rich.console import Console
from rich.table import Table

from pdojo.backends.measure import MeasuredProgram as Subject
from pdojo.backends.measure import Request
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.search.experts import expert_pass
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.game import Game

LIMITS = {"cold": 500.0, "after a move": 50.0, "apply + fingerprint": 5.0}
"""Milliseconds."""

KERNELS = ("matmul", "batchnorm", "layernorm", "softmax", "rmsnorm", "reducemean", "relu", "add")
"""The default kernels."""


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def _state(name: str, machine_name: str) -> Game:
    """The heuristic pass's state, before any analysis of its program."""
    game = Game(load_kernel(name), machine(machine_name))
    expert_pass("heuristic", game.machine)(game)
    return game


def _measure(game: Game, moves: int, random: Random) -> dict[str, float]:
    program = Program(game.kernel.clone(), game.machine)
    cold = _milliseconds(lambda: legal_moves(program))
    legal = legal_moves(program)
    after = [apply(program, move).program for move in random.sample(legal, min(24, len(legal)))]
    listings = [_milliseconds(lambda p=p: legal_moves(p)) for p in after]
    drawn = [random.choice(legal) for _ in range(moves)]

    def play() -> None:
        for move in drawn:
            _ = Request(Subject(apply(program, move).program.text, game.machine)).fingerprint

    return {
        "moves so far": len(game.trace.steps),
        "legal": len(legal),
        "cold": cold,
        "after a move": statistics.median(listings),
        "worst after a move": max(listings),
        "apply + fingerprint": _milliseconds(play) / moves,
    }


def main() -> int:
    """Print the table; returns 1 if a limit is missed and `--limits` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="library kernels, or files; by default some")
    parser.add_argument("--machine", default="x86-64-avx512")
    parser.add_argument("--moves", type=int, default=1000, help="applications to average over")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limits", action="store_true", help="exit with 1 if a limit is missed")
    given = parser.parse_args()
    console = Console()
    table = Table(title="milliseconds of processor time")
    missed = False
    for name in given.kernels or KERNELS:
        figures = _measure(_state(name, given.machine), given.moves, Random(given.seed))
        if not table.columns:
            table.add_column("kernel")
            for title in figures:
                table.add_column(title, justify="right")
        cells = [f"{v:.1f}" if isinstance(v, float) else str(v) for v in figures.values()]
        table.add_row(name, *cells)
        missed = missed or any(figures[title] > limit for title, limit in LIMITS.items())
    console.print(table)
    return 1 if given.limits and missed else 0


if __name__ == "__main__":
    sys.exit(main())
