"""Measures how many refusals are too careful (`python -m qa.completeness`).

Random walks from library kernels at small sizes and from random kernels give states of the game. In each state every
refused candidate is nevertheless made, on a copy, and the exact oracle judges the result: a refusal is justified if the
result is malformed, has another meaning under some schedule, is invalid, or cannot be undone. Refusals by rule (the
machine's features, places of mappings, rounding that the kernel permits) need no judgement.

The rate of a move is the refused fraction of all its harmless candidates.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from random import Random
from typing import Any

from pdojo_tools.command import Arguments, positive, random_seed, tool
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.errors import PdojoError
from pdojo.transforms.base import Transformation
from pdojo.transforms.game import Game
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.registry import transformation, transformation_names
from pdojo.transforms.site import Site
from qa.forcing import HARMLESS, Judge
from qa.fuzzing.kernels import source
from qa.walks import Counts, draw

MACHINES = ("toy", "toy-gpu", "toy-snitch")

RULES = re.compile(
    "|".join(
        (
            "which the kernel does not permit",  # numerics
            "is no vector length of",
            "is strided",
            "divides the lane number",
            "runs through a folded dimension over",
            r"bytes",
            "registers",
            "has no shared memory",
            "is mapped",
            "mapped; unmap",
            "only sequential scopes",
            "cannot be inside",
            "must be inside",
            "inside is parallel already",
            "vector scope wraps exactly one op",
            "is an interface array",
            "have hints|has hints",
            "asynchronous cop(y|ies)|can be asynchronous|copy (of .* )?is asynchronous|inside are asynchronous",
            "does not divide",
            "streams|frep|hardware loop|is in memory; stream",
            r"needs a divider|has no intrinsic|computes another function than|scope \{\d+\} of extent \S+ has a guard",
            r"is no array$|is no outermost grid scope",
            "hints of|^hint |could not set it again|read-only cache|takes lane|the only memory that",
            "so it cannot be padded",
            "only change its name|webs, not one",  # by the definition of renaming
        )
    )
)
"""Reasons for refusals by rule: of the machine, of mappings' places, of the caller's memory, of permissions."""

TOO_CAREFUL = 0.05
"""Rates above this one need an explanation (docs/completeness.md)."""


@dataclass
class Tally:
    """Verdicts on the candidates of one move that were refused for one reason."""

    by_rule: int = 0
    verdicts: Counter[str] = field(default_factory=Counter[str])
    example: str = ""
    """A harmless candidate: the move and the program."""


@dataclass
class Survey:
    """Verdicts on the candidates of many states."""

    states: int = 0
    candidates: Counter[str] = field(default_factory=Counter[str])
    legal: Counter[str] = field(default_factory=Counter[str])
    refused: dict[str, dict[str, Tally]] = field(default_factory=dict[str, dict[str, Tally]])
    """Refused candidates by move and reason."""
    harmful: list[str] = field(default_factory=list[str])
    """Legal moves that the oracle rejects; there should be none."""

    def add(self, program: Program, seed: int, families: Sequence[str] = ()) -> None:
        """Judge all refused candidates of a state, and one legal candidate of each move."""
        judge = Judge(program, seed)
        random = Random(seed)
        self.states += 1
        for name in families or transformation_names():
            legal: list[tuple[Site, Transformation[Any]]] = []
            for site, choice in transformation(name).candidates(program):
                self.candidates[name] += 1
                refusal = Legality.of(program).ask(program, choice, site).refusal
                if refusal is None:
                    legal.append((site, choice))
                    continue
                tally = self.refused.setdefault(name, {}).setdefault(general(refusal.reason), Tally())
                if RULES.search(refusal.reason):
                    tally.by_rule += 1
                    continue
                verdict = judge.force(choice, site)
                tally.verdicts[verdict.kind] += 1
                if verdict.kind == HARMLESS and not tally.example:
                    tally.example = f"{refusal}\n{print_notation(program.kernel)}"
            self.legal[name] += len(legal)
            if legal:
                self._confirm(program, judge, *random.choice(legal))

    def _confirm(self, program: Program, judge: Judge, site: Site, choice: Transformation[Any]) -> None:
        verdict = judge.force(choice, site)
        if verdict.kind != HARMLESS:
            move = choice.at(program, site)
            self.harmful.append(f"{move} {verdict.kind}: {verdict.detail}\n{print_notation(program.kernel)}")

    def harmless(self, name: str) -> int:
        """Number of harmless refused candidates of a move."""
        return sum(tally.verdicts[HARMLESS] for tally in self.refused.get(name, {}).values())

    def rate(self, name: str) -> float:
        """The fraction of a move's harmless candidates that are refused."""
        harmless = self.harmless(name)
        return harmless / (self.legal[name] + harmless) if harmless else 0.0


def general(reason: str) -> str:
    """A reason without the names and numbers of a program."""
    reason = re.sub(r"\w+\[[^\]]*\]", "…", reason)
    reason = re.sub(r"'[^']*'", "'…'", reason)
    reason = re.sub(r"scope \{\d+\} of extent \d+(:\w+)?", lambda m: f"scope{m[1] or ''}", reason)
    return re.sub(r"\d+", "N", reason)


def states(seed: int, length: int, machines: Sequence[str] = MACHINES) -> Iterator[Program]:
    """Endless states from random walks, every third state of a walk, from kernels of all kinds in turn."""
    kernels = source((), only_random=False)
    for number in count():
        name = machines[number % len(machines)]
        random = Random(f"{seed}:{number}")
        game = Game(kernels(number // len(machines), random, name), machine(name))
        yield game.program
        for step in range(1, random.randrange(length + 1) + 1):
            move = draw(game.program, random, Counts())
            if move is None:
                break
            game.apply(move)
            if step % 3 == 0:
                yield game.program


class HarmfulError(PdojoError):
    """Raised if the oracle rejects a legal move."""


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m qa.completeness", description=__doc__)
    add = parser.add_argument
    add("--seed", type=random_seed, default=0, help="seed of everything random (default 0)")
    add("--states", type=positive, default=300, metavar="N", help="states of the game to look at (default 300)")
    add("--length", type=positive, default=9, metavar="N", help="most moves of a walk (default 9)")
    add("--move", action="append", default=[], metavar="MOVE", help="only this move (may be given again)")
    add("--machine", action="append", default=[], metavar="NAME", help=f"instead of {', '.join(MACHINES)}")
    add("--json", action="store_true", help="print the numbers as JSON")
    add("--examples", action="store_true", help="print a program for every reason that was too careful")
    return parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Print the survey. Raises HarmfulError."""
    given = _arguments().parse_args(args)
    for name in given.move:
        transformation(name)
    console = Console(stderr=True)
    survey, began = Survey(), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    drawn = states(given.seed, given.length, given.machine or MACHINES)
    with Progress(*columns, console=console, transient=True) as progress, suppress(KeyboardInterrupt):
        # Ctrl-C ends the survey; the results so far are shown.
        for program in progress.track(islice(drawn, given.states), total=given.states, description="states"):
            survey.add(program, given.seed + survey.states, given.move)
    if given.json:
        print(json.dumps(as_data(survey), indent=1))
    else:
        Console().print(table(survey, time.monotonic() - began))
    if given.examples:
        _print_examples(survey)
    if survey.harmful:
        raise HarmfulError(f"{len(survey.harmful)} legal moves are harmful:\n" + "\n".join(survey.harmful))


def _print_examples(survey: Survey) -> None:
    for name, reasons in survey.refused.items():
        for tally in reasons.values():
            if tally.example:
                print(f"# {name}: {tally.verdicts[HARMLESS]} harmless\n{tally.example}")


def as_data(survey: Survey) -> dict[str, object]:
    """The numbers as plain data."""
    return {
        "states": survey.states,
        "harmful": survey.harmful,
        "moves": {
            name: {
                "candidates": survey.candidates[name],
                "legal": survey.legal[name],
                "rate": round(survey.rate(name), 4),
                "refused": {
                    reason: {"by_rule": tally.by_rule, **tally.verdicts}
                    for reason, tally in survey.refused.get(name, {}).items()
                },
            }
            for name in transformation_names()
            if survey.candidates[name]
        },
    }


def table(survey: Survey, seconds: float) -> Table:
    """A table of candidates by move, and of refusals by reason."""
    found = Table(title=f"{survey.candidates.total()} candidates in {survey.states} states, {seconds:.0f} s")
    found.add_column("move, and reasons of refusal")
    for heading in ("candidates", "legal", "refused", "by rule", "justified", "harmless", "rate"):
        found.add_column(heading, justify="right")
    for name in transformation_names():
        if not survey.candidates[name]:
            continue
        reasons = survey.refused.get(name, {})
        cells = [sum(t) for t in zip(*(_cells(tally) for tally in reasons.values()), strict=True)] or [0, 0, 0, 0]
        rate = survey.rate(name)
        shown = f"[red]{rate:.1%}[/red]" if rate > TOO_CAREFUL else f"{rate:.1%}"
        row = (survey.candidates[name], survey.legal[name], *cells)
        found.add_row(f"[bold]{name}[/bold]", *map(str, row), shown)
        for reason, tally in sorted(reasons.items(), key=lambda entry: -sum(_cells(entry[1]))):
            found.add_row(f"  {escape(reason)}", "", "", *map(str, _cells(tally)), "")
    return found


def _cells(tally: Tally) -> tuple[int, int, int, int]:
    """Numbers of candidates: refused, refused by rule, justified, harmless."""
    judged, harmless = tally.verdicts.total(), tally.verdicts[HARMLESS]
    return tally.by_rule + judged, tally.by_rule, judged - harmless, harmless


if __name__ == "__main__":
    sys.exit(main())
