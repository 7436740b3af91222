"""Evaluations until the best known program, learned proposals beside uniform ones: a paired test, and its power.

The design was fixed before any result was seen. Primary outcome: evaluations until 95 % of the speed of the best
program that any search of the kernel found; a search that never gets there counts as one evaluation more than its
budget. Pairs have the same kernel and seed. The hypothesis, one-sided: learned proposals need fewer. Holm's correction
is for the two groups of kernels: those of which no size was trained on, and the others. The test takes pairs as
independent, so it speaks about these kernels, not about others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from random import Random
from statistics import median

from benchmarks.perfllm.grid import HELD_OUT, LEARNED_SUFFIX
from benchmarks.perfllm.results import Done
from benchmarks.perfllm.statistics import Findings, holm

STRICT = 0.01
"""Level of the primary test."""
HALF = 0.5
"""The ratio of medians that held-out kernels must reach."""


@dataclass(frozen=True)
class Pair:
    """The evaluations of two searches of one kernel and seed until the best known program."""

    task: str
    seed: int
    uniform: float
    learned: float


@dataclass(frozen=True)
class Comparison:
    """A method with learned proposals beside the same method with uniform ones, over a group of kernels."""

    method: str
    group: str
    pairs: tuple[Pair, ...]
    p: float
    """p of the one-sided signed-rank test, after Holm's correction for the groups of the method."""

    @property
    def uniform(self) -> float:
        """The median with uniform proposals."""
        return median(pair.uniform for pair in self.pairs)

    @property
    def learned(self) -> float:
        """The median with learned proposals."""
        return median(pair.learned for pair in self.pairs)

    @property
    def verdict(self) -> str:
        """The verdict of the primary test."""
        if self.p >= STRICT:
            return "not shown"
        return "half" if self.learned <= HALF * self.uniform else "fewer"


def comparisons(findings: Findings) -> list[Comparison]:
    """The comparisons of all methods with learned proposals."""
    found: list[Comparison] = []
    for method in findings.methods:
        base = method.removesuffix(LEARNED_SUFFIX)
        if method == base or base not in findings.methods:
            continue
        pairs = _pairs(findings, base, method)
        held = tuple(pair for pair in pairs if pair.task.partition(":")[0] in HELD_OUT)
        groups = {"never trained on": held, "trained on, other sizes": tuple(p for p in pairs if p not in held)}
        groups = {name: each for name, each in groups.items() if each}
        corrected = holm([signed_rank([log(pair.learned / pair.uniform) for pair in each]) for each in groups.values()])
        found += [Comparison(method, name, each, p) for (name, each), p in zip(groups.items(), corrected, strict=True)]
    return found


def _pairs(findings: Findings, base: str, method: str) -> list[Pair]:
    others = {(done.task, done.seed): done for done in findings.cells(method=base)}

    def arrival(done: Done) -> float:
        found = findings.arrival_at_best(done)
        return max(1.0, found) if isfinite(found) else done.budget + 1.0

    return [
        Pair(done.task, done.seed, arrival(others[done.task, done.seed]), arrival(done))
        for done in findings.cells(method=method)
        if (done.task, done.seed) in others and findings.has_reference(done.task)
    ]


def signed_rank(differences: Sequence[float]) -> float:
    """The exact one-sided p of Wilcoxon's signed-rank test that differences are negative; zeros are left out.

    Equal sizes share the mean of their ranks.
    """
    known = [each for each in differences if each]
    if not known:
        return 1.0
    sizes = sorted(map(abs, known))
    # Twice the mean rank is an integer.
    doubled = {size: 2 * sizes.index(size) + sizes.count(size) + 1 for size in sizes}
    ranks = [doubled[abs(each)] for each in known]
    positive = sum(rank for rank, each in zip(ranks, known, strict=True) if each > 0)
    ways = [1] + [0] * sum(ranks)
    for rank in ranks:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return sum(ways[: positive + 1]) / 2 ** len(ranks)


def power(
    kernels: int,
    seeds: int,
    ratio: float,
    spread: float,
    between: float = 0.0,
    *,
    beyond: float = 0.3,
    repeats: int = 200,
) -> float:
    """The probability that the test finds a ratio of evaluations at `STRICT`, after Holm's correction for two groups.

    `spread` is the standard deviation of log evaluations between seeds, `between` that of log ratios between kernels.
    `beyond` is the share of searches with uniform proposals that do not arrive within the budget.
    """
    random, found = Random(1), 0
    budget = _quantile(spread, 1 - beyond)
    for _ in range(repeats):
        differences: list[float] = []
        for _ in range(kernels):
            gain = log(ratio) + random.gauss(0, between)
            for _ in range(seeds):
                uniform, learned = random.gauss(0, spread), random.gauss(gain, spread)
                differences.append(min(learned, budget) - min(uniform, budget))
        found += signed_rank(differences) < STRICT / 2
    return found / repeats


def _quantile(spread: float, share: float) -> float:
    """A quantile of a normal distribution, by bisection of a sample's."""
    random = Random(0)
    return sorted(random.gauss(0, spread) for _ in range(10_000))[min(9_999, round(share * 10_000))]


def mean_ratio(pairs: Sequence[Pair]) -> float:
    """The geometric mean of the ratios of evaluations."""
    return exp(sum(log(pair.learned / pair.uniform) for pair in pairs) / len(pairs))
