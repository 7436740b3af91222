"""Digests of everything made from kernels (`python -m qa.digests FILE`), to see what a change of the code affects.

Inputs are the kernels of the library under each expert pass, random walks from random kernels, and random walks from
small kernels of the library, in whose states every candidate is judged. Each digest is of one text: the program, the
listing of its moves, the verdicts on its candidates with the programs after the legal ones, generated code. The first
run writes FILE; a later run compares with it and names the differences. Exit code 0: there is none; 1: there are some.
`--only verdicts` checks that a faster analysis decides like the old one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TypeAlias

from pdojo_tools.command import Arguments, positive, tool
from rich.progress import track

from pdojo.backends.c.targets import c_text
from pdojo.backends.llvm.targets import llvm_text
from pdojo.backends.loops.loop_function import lower_kernel
from pdojo.backends.snitch.targets import snitch_text
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError
from pdojo.kernels import kernel_names, workload
from pdojo.kernels.random_kernels import features_for, random_text
from pdojo.names import EXPERT_PASSES
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.search.contract.candidates import choices
from pdojo.transforms.game import Game
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.legality.trials import rehearse
from qa.sizes import small_kernel

TUNED = ("x86-64-avx512", "aarch64-neon", "snitch")
"""Machines for the expert passes."""
WALKED = ("toy", "toy-gpu", "toy-snitch")
"""Machines for the random walks."""
JUDGED = ("toy", "x86-64-avx512", "snitch", "nvidia-sm90")
"""Machines for the verdicts on all candidates."""
STEPS = 6
"""Moves per walk."""
JUDGED_STEPS = 8
"""Number of moves of a walk in whose states all candidates are judged."""
LED_TO = 40
"""Number of a state's legal moves whose programs are part of its digest."""
KINDS = ("tuned", "walks", "verdicts")

Job: TypeAlias = tuple[str, str, str]
"""A library kernel, a pass and a machine; `walk`, a number and a machine; or `verdicts`, a kernel and a machine."""


def digests(job: Job) -> dict[str, str]:
    """The digests of a job by name."""
    match job:
        case "walk", number, name:
            parts = _walk(int(number), name)
        case "verdicts", kernel, name:
            parts = _verdicts(kernel, name)
        case _:
            parts = _tuned(*job)
    prefix = " ".join(job)
    return {f"{prefix}: {name}": sha256(text.encode()).hexdigest()[:16] for name, text in parts}


def jobs(walks: int, only: str = "", kernels: Sequence[str] = ()) -> list[Job]:
    """All jobs, or only those of one of the `KINDS`, or of some library kernels."""
    named = kernels or kernel_names(long=False)
    found: dict[str, list[Job]] = {
        "tuned": [(kernel, each, name) for kernel in named for each in EXPERT_PASSES for name in TUNED],
        "walks": [("walk", str(number), name) for number in range(walks) for name in WALKED],
        "verdicts": [("verdicts", kernel, name) for kernel in named for name in JUDGED],
    }
    return [job for kind, some in found.items() if only in ("", kind) for job in some]


def _tuned(kernel: str, expert: str, name: str) -> Iterator[tuple[str, str]]:
    described = machine(name)
    try:
        tuning = make_moves(workload(kernel).instantiate(), described, expert)
    except PdojoError as error:
        yield "pass", str(error)
        return
    yield "trace", tuning.game.trace.dump()
    yield "notes", "\n".join(map(str, tuning.notes))
    yield from _texts(tuning.after, described)


def _walk(number: int, name: str) -> Iterator[tuple[str, str]]:
    described, random = machine(name), Random(number)
    kernel = parse_notation(random_text(random.getrandbits(62), features_for(described)))[0]
    game = Game(kernel, described)
    for step in range(STEPS):
        moves = game.moves()
        yield f"moves {step}", "\n".join(map(str, moves))
        if not moves:
            break
        game.apply(random.choice(moves))
    yield "trace", game.trace.dump()
    yield from _texts(game.kernel, described)


def _verdicts(kernel: str, name: str) -> Iterator[tuple[str, str]]:
    random = Random(f"{kernel} {name}")
    game = Game(small_kernel(kernel, random), machine(name))
    for step in range(JUDGED_STEPS):
        judged = [
            (choice, Legality.of(game.program).ask(game.program, choice.transformation, choice.site).refusal)
            for choice in choices(game.program)
        ]
        yield f"verdicts {step}", "\n".join(f"{c.move}: {refusal is None}" for c, refusal in judged)
        yield f"reasons {step}", "\n".join(str(refusal and refusal.reason) for _, refusal in judged)
        legal = [choice for choice, refusal in judged if refusal is None]
        if not legal:
            break
        drawn = random.sample(legal, min(LED_TO, len(legal)))
        after = [rehearse(choice.transformation, game.program, choice.site).text for choice in drawn]
        yield f"programs {step}", "\n".join(after)
        # Families are equally likely, since most moves of a state are tilings.
        families = sorted({choice.transformation.name for choice in legal})
        family = random.choice(families)
        move = random.choice([c.move for c in legal if c.transformation.name == family])
        try:
            game.apply(move)
        except PdojoError as error:
            yield f"refused after all {step}", str(error)
    yield "trace", game.trace.dump()


def _texts(kernel: KernelOp, described: Machine) -> Iterator[tuple[str, str]]:
    forms: dict[str, Callable[[], str]] = {
        "notation": lambda: print_notation(kernel),
        "ir": lambda: str(kernel),
        "c": lambda: c_text(kernel, machine=described),
        "llvm": lambda: llvm_text(kernel, described),
        "loops": lambda: str(lower_kernel(nest_of(kernel), sequential=False)),
        "snitch": lambda: snitch_text(kernel, described),
    }
    for form, text in forms.items():
        try:
            yield form, text()
        except PdojoError as error:
            yield form, f"error: {error}"


@tool
def main(argv: Sequence[str] | None) -> None:
    """Run the tool."""
    parser = Arguments(prog="python -m qa.digests", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="where the digests are kept")
    parser.add_argument("--walks", type=positive, default=50, metavar="N", help="walks for each machine (default 50)")
    parser.add_argument("--only", choices=KINDS, default="", help="one kind of digest")
    parser.add_argument("--kernels", nargs="+", default=(), metavar="NAME", help="library kernels (default all)")
    parser.add_argument("--jobs", type=positive, default=2, metavar="N", help="processes (default 2)")
    args = parser.parse_args(argv)
    found: dict[str, str] = {}
    todo = jobs(args.walks, args.only, args.kernels)
    with ProcessPoolExecutor(args.jobs) as pool:
        for each in track(pool.map(digests, todo), "digests", len(todo)):
            found |= each
    if not args.file.exists():
        args.file.write_text(json.dumps(found, indent=0))
        print(f"{len(found)} digests are in {args.file}")
        return
    before: dict[str, str] = json.loads(args.file.read_text())
    differing = sorted(name for name in before.keys() | found.keys() if before.get(name) != found.get(name))
    for name in differing:
        print(name)
    if differing:
        raise PdojoError(f"{len(differing)} of {len(found)} digests differ")
    print(f"{len(found)} digests, all as before")


if __name__ == "__main__":
    sys.exit(main())
