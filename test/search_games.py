"""Parts of searches for tests: a small kernel, costs computed from the program's text, simple proposals.

Nothing is measured: the cost is a fixed function of the text, so that every process computes the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from math import exp
from random import Random
from statistics import median

from pdojo.budget import Budget
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.progress import SearchResult
from pdojo.search.contract.racing import Race, TimingRequest
from pdojo.search.database import Database
from pdojo.search.engine.search import search
from pdojo.transforms.game import Game, fingerprint_of
from pdojo.transforms.move import Move

KERNEL = """kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [32, 64] heap

32 64 t[{0},{1}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{0},{1}] + 1
"""


def start(text: str = KERNEL) -> Game:
    return Game(parse_notation(text)[0], machine("toy"))


class TextCosts:
    """Costs computed from the text: lines, minus what mapped scopes are worth, plus a fraction that breaks ties.

    Programs with the digit 7 as the first of their fingerprint fail, so that failures are searched past.
    """

    name = "text"
    unit = ""

    def __init__(self, pause: float = 0.0, version: int = 1) -> None:
        self.pause = pause
        self.version = version
        self.expected: list[str] = []
        self.evaluated: list[str] = []
        self.checked: list[str] = []

    @property
    def settings(self) -> JSON:
        return {"version": self.version}

    def cost(self, text: str) -> Evaluation:
        found = fingerprint_of(text)
        if found[0] == "7":
            return Evaluation.failed("Timeout", {"kind": "Timeout", "phase": "run", "seconds": 1.0})
        mapped = len(re.findall(r"\d:[uvp]", text))
        detail = {"lines": text.count("\n"), "environment": {"tool": "text", "huge_page_bytes": int(found[:4], 16)}}
        return Evaluation(text.count("\n") - 3 * mapped + int(found[:8], 16) / 2**32, "", detail, {"run": 0.0})

    def expect(self, candidate: Candidate) -> None:
        self.expected.append(candidate.fingerprint)

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
        for candidate in candidates:
            if listener is not None:
                listener("reading")
            self.evaluated.append(candidate.fingerprint)
            time.sleep(self.pause)
            yield self.cost(candidate.program.text)

    def check(self, candidate: Candidate) -> Evaluation:
        self.checked.append(candidate.fingerprint)
        return self.on_fresh_inputs(candidate)

    def on_fresh_inputs(self, candidate: Candidate) -> Evaluation:
        return self.cost(candidate.program.text)

    def close(self) -> None:
        pass


class Weather:
    """Times of programs on a machine that drifts, computed from a seed: nothing is measured.

    A sample is the true time, times how the machine is just then, times noise of its own. `drift` is how much the
    machine changes, by standard deviation, within hundreds of samples.
    """

    name = "weather"
    unit = "s"

    def __init__(self, seed: int = 0, drift: float = 0.0, noise: float = 0.0, load: float = 0.0) -> None:
        self.seed, self.drift, self.noise, self.load = seed, drift, noise, load
        self.random = Random(seed)
        self.state = 0.0
        self.taken = 0
        self.times: dict[str, float] = {}
        """True times of what was timed."""
        self.heats: list[tuple[list[str], str | None, int, int | None]] = []

    @property
    def settings(self) -> JSON:
        return {"seed": self.seed, "drift": self.drift, "noise": self.noise}

    def true_time(self, text: str) -> float:
        """Seconds; less for more mapped scopes, with a fraction of up to a quarter by which any two differ."""
        return (1.0 + int(fingerprint_of(text)[:8], 16) / 2**34) * 0.9 ** len(re.findall(r"\d:[uvp]", text))

    def outcome(self, candidate: Candidate, inputs: int | None) -> Evaluation | None:
        """How a program fails; None where it does not."""
        return None

    def expect(self, candidate: Candidate) -> None:
        pass

    def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
        beside, rounds, inputs = wanted.beside, wanted.rounds, wanted.inputs
        programs = [*([] if beside is None else [beside]), *wanted.candidates]
        self.heats.append(([c.fingerprint for c in wanted.candidates], beside and beside.fingerprint, rounds, inputs))
        for each in programs:
            self.times[each.fingerprint] = self.true_time(each.program.text)
        samples: dict[str, list[float]] = {each.fingerprint: [] for each in programs}
        for turn in range(rounds):
            for each in programs if turn % 2 == 0 else reversed(programs):
                samples[each.fingerprint].append(self.sample(self.times[each.fingerprint]))
        found = [
            self.outcome(each, inputs)
            or Evaluation(
                median(samples[each.fingerprint]),
                detail={"kind": "Ok", "samples": samples[each.fingerprint], "foreign_load": self.load},
                seconds={"run": 0.0},
            )
            for each in programs
        ]
        return [Race(each) for each in found] if beside is None else [Race(each, found[0]) for each in found[1:]]

    def sample(self, seconds: float) -> float:
        self.taken += 1
        self.state += self.random.gauss(0.0, self.drift * 0.063) - 0.002 * self.state
        return seconds * exp(self.state + self.random.gauss(0.0, self.noise))

    def close(self) -> None:
        pass


_MOVES: dict[str, list[Move]] = {}
"""Legal moves by fingerprint: most tests walk the same programs."""


def moves_of(game: Game) -> list[Move]:
    found = game.fingerprint
    if found not in _MOVES:
        _MOVES[found] = game.moves()
    return _MOVES[found]


class Edges:
    """Append one of the legal moves, or drop the last one."""

    name = "edges"

    @property
    def settings(self) -> JSON:
        return {}

    def neighbour(self, game: Game, random: Random) -> Game | None:
        other = game.fork()
        moves = moves_of(other)
        made = len(other.trace.steps)
        if made and (not moves or made > 5 or random.random() < 0.3):
            other.undo()
        elif moves:
            other.apply(random.choice(moves))
        else:
            return None
        return other


class Downhill:
    """Goes on from what is better, and now and then from anything."""

    name = "downhill"

    def __init__(self, batch: int = 3) -> None:
        self.batch = batch

    @property
    def settings(self) -> JSON:
        return {"chance": 0.2}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        self.told: list[Node] = [root]
        self.neighbourhood, self.random = neighbourhood, random
        self.now = root

    def ask(self) -> Proposal | None:
        found = self.neighbourhood.neighbour(self.now.game, self.random)
        return None if found is None else Proposal(found, self.now)

    def tell(self, node: Node) -> None:
        self.told.append(node)
        if node.cost < self.now.cost or self.random.random() < 0.2:
            self.now = node


def find(
    costs: TextCosts | Weather, evaluations: int = 40, seed: int = 1, database: Database | None = None
) -> SearchResult:
    return search(start(), costs, Downhill(), Edges(), Budget(evaluations), seed, database=database)


def best_in(database: Database) -> list[str]:
    """Fingerprints of the bests of all problems, by the database."""
    rows = database.connection.rows("SELECT p.hash FROM best b JOIN programs p ON p.id = b.program")
    return [row["hash"] for row in rows]


def facts(result: SearchResult) -> list[tuple[int, float, str, float, bool]]:
    """A history without its times."""
    return [(row.number, row.cost, row.failure, row.best, row.is_best) for row in result.history]
