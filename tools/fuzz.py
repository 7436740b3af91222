"""Fuzz the game: random walks of legal moves, judged after each move (`python -m pdojo_tools.fuzz`).

A walk starts from a kernel of the library at small random sizes, from a kernel in a file, or from a random kernel, on
the machine `toy`. The same seed gives the same walks. A broken promise is shrunk, printed as a lit test, exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeAlias

from pdojo_tools.random_kernels import random_kernels
from pdojo_tools.shrink import lit_test, shrunk
from pdojo_tools.sizes import with_random_sizes
from pdojo_tools.walks import Check, Counts, FailedWalk, Failure, walk
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.machine import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, PdojoError, UsageError
from pdojo.kernels import kernel_names, kernel_path

Kernels: TypeAlias = Callable[[int], Iterator[KernelOp]]
"""Kernels to walk from, for a seed."""


def library(names: Sequence[str]) -> Kernels:
    """Kernels of the library, by turns, at random sizes."""
    plain = [parse_notation(kernel_path(name).read_text(encoding="utf-8"))[0] for name in names]

    def drawn(seed: int) -> Iterator[KernelOp]:
        random = Random(seed)
        for number in count():
            yield with_random_sizes(plain[number % len(plain)], random)

    return drawn


def from_files(paths: Sequence[str]) -> Kernels:
    """The kernels of files as they are, by turns. Raises UsageError where one cannot be read."""
    kernels: list[KernelOp] = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None
        kernels += parse_notation(text, path)

    def drawn(seed: int) -> Iterator[KernelOp]:
        return (kernels[(seed + number) % len(kernels)] for number in count())

    return drawn


def compiled_against_interpreter(every: int, counts: Counts) -> Check:
    """A check of one state in `every`: machine code computes what the interpreter does, on ordinary numbers."""
    from pdojo_tools.compiled import machine_code_differs

    def check(program: Program, number: int) -> Failure | None:
        if (number + 1) % every:
            return None
        try:
            failure = machine_code_differs(program, number)
        except LoweringError as error:
            counts.not_lowered[str(error)] += 1
            return None
        counts.compiled += 1
        return failure

    return check


@dataclass
class Fuzzer:
    """A run: kernels, lengths and limits."""

    kernels: Kernels
    seed: int
    length: int
    moves: int | None
    seconds: float | None
    compile_every: int = 0
    machine: str = "toy"
    counts: Counts = field(default_factory=Counts)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.check = compiled_against_interpreter(self.compile_every, self.counts) if self.compile_every else None

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def done(self) -> float:
        """The part of the run that is done, 1 at the end."""
        parts = [self.counts.total / self.moves if self.moves else 0.0]
        parts.append(self.elapsed / self.seconds if self.seconds else 0.0)
        return min(1.0, max(parts))

    def run(self, tick: Callable[[], None]) -> FailedWalk | None:
        """Walk until the limit or the first failure."""
        for number, kernel in enumerate(self.kernels(self.seed)):
            steps = walk(
                kernel,
                machine(self.machine),
                self.seed * 1_000_003 + number,
                self.length,
                self.counts,
                check=self.check,
            )
            for step in steps:
                if isinstance(step, FailedWalk):
                    return step
                tick()
                if self.done >= 1:
                    return None
        return None


def summary(fuzzer: Fuzzer) -> Table:
    """Moves and refusals per family."""
    counts = fuzzer.counts
    rate = counts.total / max(fuzzer.elapsed, 1e-9)
    table = Table(
        title=f"seed {fuzzer.seed}: {counts.total} moves in {counts.walks} walks, {fuzzer.elapsed:.0f} s, "
        f"{rate:.1f} moves/s, {counts.compiled} states compiled"
    )
    table.add_column("family")
    table.add_column("moves", justify="right")
    table.add_column("refused", justify="right")
    for name in sorted(counts.moves | counts.refused, key=lambda name: -counts.moves[name]):
        table.add_row(name, str(counts.moves[name]), str(counts.refused[name]))
    table.add_section()
    table.add_row("all", str(counts.total), str(counts.refused.total()))
    return table


def arguments(args: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m pdojo_tools.fuzz", description=__doc__)
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="kernels of the library or .pdojo files; all of the library")
    add("--random", action="store_true", help="random kernels instead")
    add("--seed", type=int, default=0, help="seed of everything random (default 0)")
    add("--moves", type=int, metavar="N", help="stop after so many moves")
    add("--minutes", type=float, metavar="M", help="stop after so many minutes (default 5, without --moves)")
    add("--length", type=int, default=30, metavar="N", help="moves of one walk (default 30)")
    add("--compile-every", type=int, default=0, metavar="K", help="also compare the machine code of every K-th state")
    add("--machine", default="toy", metavar="MACHINE", help="the machine to optimise for, a name or a TOML file (toy)")
    return parser.parse_args(args)


def fuzzer_for(options: argparse.Namespace) -> Fuzzer:
    """The run that the command line asks for. Raises UsageError."""
    limits: tuple[int | None, float | None] = options.moves, options.minutes
    if limits == (None, None):
        limits = None, 5.0
    if any(limit is not None and limit <= 0 for limit in limits) or options.length < 1 or options.compile_every < 0:
        raise UsageError("--moves, --minutes, --length and --compile-every take positive numbers")
    if options.random and options.kernels:
        raise UsageError("give kernels or --random, not both")
    named = [name for name in options.kernels if name in kernel_names()]
    if options.random:
        kernels = random_kernels
    elif len(named) == len(options.kernels):
        kernels = library(named or kernel_names())
    elif named:
        raise UsageError("give kernels of the library or files, not both")
    else:
        kernels = from_files(options.kernels)
    seconds = None if limits[1] is None else limits[1] * 60
    return Fuzzer(kernels, options.seed, options.length, limits[0], seconds, options.compile_every, options.machine)


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code: 1 for a broken promise, 2 for a wrong command line, 130 after Ctrl-C."""
    console = Console(stderr=True)
    try:
        fuzzer = fuzzer_for(arguments(args))
        code, failed = 0, None
        try:
            failed = _run(fuzzer, console)
        except KeyboardInterrupt:
            code = 130
        console.print(summary(fuzzer))
        for message, times in fuzzer.counts.not_lowered.items():
            console.print(f"{times} states not lowered: {message}", markup=False)
        if failed is None:
            return code
        console.print(f"{failed.failure.promise} broken after {len(failed.steps)} moves; shrinking", markup=False)
        print(lit_test(shrunk(failed, fuzzer.check)))
    except PdojoError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 1


def _run(fuzzer: Fuzzer, console: Console) -> FailedWalk | None:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("fuzzing", total=1.0)

        def tick() -> None:
            rate = fuzzer.counts.total / max(fuzzer.elapsed, 1e-9)
            text = f"{fuzzer.counts.total} moves, {rate:.1f}/s"
            progress.update(task, completed=fuzzer.done, description=text)

        return fuzzer.run(tick)


if __name__ == "__main__":
    sys.exit(main())
