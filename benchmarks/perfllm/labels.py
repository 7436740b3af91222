"""Labelled programs: micro-kernels after random legal moves, with their cycles on the Snitch simulator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from benchmarks.snitch.kernels import MicroKernel
from pdojo.backends.common.gc_pause import collect_now
from pdojo.dialect.machines.machine import Machine
from pdojo.files import replace_file
from pdojo.search.contract.dojo import Dojo
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.environment.actions import actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.features.structure import structure
from pdojo.search.kinds.snitch.cycles import Cycles

DTYPE = "f64"
LONGEST = 32
"""Most moves of a walk."""
TOGETHER = 16
"""Programs that are simulated at once."""


@dataclass(frozen=True)
class Label:
    """A program and what it costs."""

    kernel: str
    text: str
    structure: list[float]
    """The features of `pdojo.search.features.structure`."""
    cycles: float | None
    """None if the program has no result: it does not compile, or is much slower than the plain one."""


def labels(
    kernel: MicroKernel, machine: Machine, count: int, seed: int, file: Path, tell: Callable[[int], None]
) -> list[Label]:
    """So many different programs of random walks from the plain kernel, each of a random number of moves.

    They are kept in `file`, which a run that was interrupted goes on with. `tell` hears how many there are.
    """
    # A line that was interrupted has no end.
    whole = file.read_text().split("\n")[:-1] if file.exists() else []
    replace_file(file, "".join(f"{line}\n" for line in whole).encode())
    found = [Label(**json.loads(line)) for line in whole]
    core, plain = kernel.machine(machine), kernel.instantiate(DTYPE)
    evaluator = Cycles(core, plain)
    try:
        with file.open("a") as out:
            walks = _walks(Dojo(plain, core), seed)
            seen = {label.text for label in found}
            while len(found) < count:
                batch: list[Dojo] = []
                while len(batch) < min(TOGETHER, count - len(found)):
                    state = next(walks)
                    if state.text not in seen:
                        seen.add(state.text)
                        batch.append(state)
                candidates = [Candidate.of(state) for state in batch]
                for state, judged in zip(batch, evaluator.evaluate(candidates), strict=True):
                    features = structure(state.game.program.nest, core)
                    found.append(Label(kernel.text, state.text, features, judged.cost if judged.is_ok else None))
                    out.write(json.dumps(asdict(found[-1])) + "\n")
                out.flush()
                tell(len(found))
                collect_now()
    finally:
        evaluator.close()
    return found[:count]


def _walks(plain: Dojo, seed: int) -> Iterator[Dojo]:
    """The last states of random walks, family by family as the agent draws its offers."""
    number = 0
    while True:
        number += 1
        random, state = Random(f"{seed} {number}"), plain.fork()
        for _ in range(1 + random.randrange(LONGEST)):
            _, *drawn = actions_of(state, Rules(1), random)
            if not drawn:
                break
            state = drawn[0].state()
        yield state
