"""Speed of the game in processor time of one core.

By default, it measures states after the heuristic pass: listing legal moves, cold and after a move, and applying moves
with their fingerprints. `--walks 40` measures random walks of this many moves instead, from the plain program and from
the pass's: the listing in every state, and a step of a search, which draws 32 actions with their texts and makes a
move. `--walks` also times the pass itself, and the neighbours of its state on a CPU. `KERNEL@MACHINE` names a machine
other than `--machine`. With `--limits` the exit code is 1 if a figure exceeds its limit (`LIMITS`, `WALK_LIMITS`).
`--ablation` plays walks without one shortcut after the other, and prints how many more instructions they take. Garbage
is collected as rarely as by pdojo's own commands.
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
from itertools import islice
from random import Random

from pdojo_tools.programs import load_kernel
from rich.console import Console
from rich.table import Table

from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.backends.measure import MeasuredProgram as Subject
from pdojo.backends.measure import Request
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import NAMES, without
from pdojo.dialect.machines.registry import machine
from pdojo.errors import UsageError
from pdojo.passes.passes import play_pass
from pdojo.search.contract.candidates import legal_candidates
from pdojo.search.environment.actions import Action
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.game import Game

LIMITS = {"cold": 500.0, "after a move": 50.0, "apply + fingerprint": 5.0}
"""Limits in milliseconds."""

WALK_LIMITS = {
    "listing": 60.0,
    "listing, 99 %": 500.0,
    "step": 50.0,
    "pass": 1000.0,
    "heuristic": 100.0,
    "mutate": 100.0,
}
"""Limits in milliseconds, on random walks, for the pass, and for a neighbour."""

KERNELS = ("matmul", "batchnorm", "layernorm", "softmax", "rmsnorm", "reducemean", "relu", "add")
"""The default kernels."""

WALKED = (
    "softmax",
    "layernorm:16384x1024",
    "layernorm:4096x4096",
    "matmul",
    "swiglu",
    "matmul:1024x1024x1024@nvidia-sm90",
)
"""The default kernels of random walks."""

SUCCESSORS = 32
"""Number of actions drawn in a step."""


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def _state(name: str, machine_name: str) -> Game:
    """The heuristic pass's state, before any analysis of its program."""
    game = Game(load_kernel(name), machine(machine_name))
    play_pass("heuristic", game)
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


def _play(name: str, machine_name: str, moves: int, seed: int) -> dict[str, float]:
    """The figures of random walks, and of the pass if the machine has one."""
    plain = Game(load_kernel(name), machine(machine_name))
    game = plain.fork()
    try:
        took = _milliseconds(lambda: play_pass("heuristic", game))
    except UsageError:
        return _walked([plain], moves, Random(seed))
    tuned = game.fork()
    if game.machine.gpu.block_threads:
        # A search on a GPU does not begin with plain programs.
        return {**_walked([tuned], moves, Random(seed)), "pass": took}
    near = {kind: _proposing(tuned, kind, moves, Random(seed)) for kind in ("heuristic", "mutate")}
    return {**_walked([plain, tuned], moves, Random(seed)), "pass": took, **near}


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


def _ablation(given: argparse.Namespace) -> None:
    """Print the instructions with all shortcuts, and how many more it takes without each, in percent."""
    chosen, kernels = given.without or NAMES, given.kernels or WALKED
    starting = _instructions("-c", "import benchmarks.game")
    table = Table("without", title="instructions of a process, and percent more without each shortcut")
    columns: list[list[str]] = []
    for title in kernels:
        walk = ("-m", "benchmarks.game", title, "--walks", str(given.walks), "--seed", str(given.seed))
        walk = (*walk, "--machine", given.machine)
        all_on = _instructions(*walk) - starting
        more = [(_instructions(*walk, "--without", name) - starting) / all_on for name in chosen]
        table.add_column(title, justify="right")
        columns.append([f"{all_on / 1e9:.2f} G", *(f"{100 * (ratio - 1):+.1f}" for ratio in more)])
    for row in zip(("nothing", *chosen), *columns, strict=True):
        table.add_row(*row)
    Console().print(table)


def _show(rows: Mapping[str, Mapping[str, float]], limits: Mapping[str, float]) -> bool:
    """Print a table; returns True if a figure exceeds its limit."""
    titles = list(dict.fromkeys(title for figures in rows.values() for title in figures))
    table = Table("kernel", title="milliseconds of processor time")
    for title in titles:
        table.add_column(title, justify="right")
    for name, figures in rows.items():
        cells = [figures.get(title, "") for title in titles]
        table.add_row(name, *(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells))
    Console().print(table)
    return any(figures.get(title, 0.0) > limit for figures in rows.values() for title, limit in limits.items())


def main() -> int:
    """Print the table; returns 1 if a limit is missed and `--limits` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "kernels", nargs="*", help="library kernels, or files; by default some; with --walks, KERNEL@MACHINE"
    )
    parser.add_argument("--machine", default="x86-64-avx512")
    parser.add_argument("--moves", type=int, default=1000, help="applications to average over")
    parser.add_argument("--walks", type=int, metavar="MOVES", help="random walks of so many moves")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limits", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--without", nargs="+", choices=NAMES, default=(), help="leave out these shortcuts")
    parser.add_argument("--ablation", action="store_true", help="leave out one shortcut after the other (2 moves)")
    given = parser.parse_args()
    collect_rarely()
    if given.ablation:
        given.walks = given.walks or 2
        try:
            _ablation(given)
        except UsageError as error:
            parser.error(str(error))
        return 0
    with without(*given.without):
        return _measured(given)


def _measured(given: argparse.Namespace) -> int:
    """Measure and print; returns 1 if a limit is missed and `--limits` is given."""
    if given.walks is None:
        rows = {
            name: _measure(_state(name, given.machine), given.moves, Random(given.seed))
            for name in given.kernels or KERNELS
        }
        missed = _show(rows, LIMITS)
    else:
        walked: dict[str, dict[str, float]] = {}
        for title in given.kernels or WALKED:
            name, _, other = title.partition("@")
            walked[title] = _play(name, other or given.machine, given.walks, given.seed)
        missed = _show(walked, WALK_LIMITS)
    return 1 if given.limits and missed else 0


if __name__ == "__main__":
    sys.exit(main())
