"""`python -m benchmarks.perfllm.ranking FILE.safetensors`: which encoder ranks programs of one kernel by their cycles.

Programs are micro-kernels after random legal moves from the plain one, simulated on a Snitch core. A ridge regression
and a small network learn log cycles from vectors of the encoders: from 50 or 200 programs of the same kernel, or from
those of the other kernels only. Tables say how well they rank the other programs of the kernel (Spearman's rank
correlation), and what is lost by taking the one they like best of 32: T(chosen) / T(best).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.perfllm.labels import Label, labels
from benchmarks.snitch.kernels import chosen
from pdojo.dialect.machines.registry import machine
from pdojo.search.perfllm.learner import import_torch, one_thread
from pdojo.search.perfllm.ranking import spearman
from pdojo.search.perfllm.text.encoder import BATCH, TextEncoder
from pdojo.search.perfllm.text.model import Shape, TextModel
from pdojo.search.perfllm.text.tokens import lines_of
from pdojo.search.perfllm.text.weights import load_model

Matrix: TypeAlias = NDArray[numpy.float64]
KERNELS = ("gemv:16x32", "matmul:8x8x8", "softmax:16x16", "sumpool:1x1x10x10x3,S=1,P=0")
GROUP = 32
"""Programs that one is taken of: as many as the agent gets."""
GROUPS = 100
ALPHAS = tuple(10.0**k for k in range(-1, 6))
"""Strengths of the ridge, of which the one with the least error of leaving one program out is taken."""
BUCKETS = 512
"""Most frequent bigrams that are counted."""
STEPS = 250
"""Batches of 64 programs that the network learns from."""


def encodings(found: Sequence[Label], weights: Path, say: Callable[[str], None]) -> dict[str, Matrix]:
    """The vectors [programs, size] of each encoder."""
    texts = [label.text for label in found]
    model, _ = load_model(weights)
    text = _read(model, texts, say)
    structure = numpy.array([label.structure for label in found])
    return {
        "structure": structure,
        "text-small": text,
        "both": numpy.hstack([structure, text]),
        "token bigrams": _bigrams(texts),
        "text-small, random weights": _read(TextModel(Shape(), seed=1), texts, say),
    }


def _read(model: TextModel, texts: Sequence[str], say: Callable[[str], None]) -> Matrix:
    with tempfile.TemporaryDirectory() as folder:
        mine = TextEncoder(model, "", Path(folder))
        parts = [texts[k : k + BATCH] for k in range(0, len(texts), BATCH)]
        start = time.process_time()
        rows = [vector for part in parts for vector in mine.read(part)]
        first = time.process_time()
        for part in parts:
            mine.read(part)
        seconds = first - start, time.process_time() - first
    lines = [line for text in texts for line in lines_of(text)]
    say(
        f"text-small: {len(texts) / seconds[0]:.0f} programs a second of one core, {len(texts) / seconds[1]:.0f} if "
        f"the lines are known; {len(lines)} lines, {len(set(lines))} of them distinct"
    )
    return numpy.array(rows, dtype=float)


def _bigrams(texts: Sequence[str]) -> Matrix:
    """Logarithms of the counts of the most frequent pairs of tokens."""
    counts = [Counter(pair for line in lines_of(text) for pair in pairwise(line)) for text in texts]
    frequent = Counter(pair for count in counts for pair in count).most_common(BUCKETS)
    return numpy.log1p(numpy.array([[count[pair] for pair, _ in frequent] for count in counts], dtype=float))


def ridge(inputs: Matrix, costs: Matrix, others: Matrix) -> Matrix:
    """Predictions for other programs by ridge regression."""
    mean = costs.mean()
    left, values, right = numpy.linalg.svd(inputs, full_matrices=False)
    best = numpy.inf, inputs[0] * 0
    for alpha in ALPHAS:
        shrunk = values**2 / (values**2 + alpha)
        fitted = left @ (shrunk * (left.T @ (costs - mean)))
        # The error of each program by a fit without it; the mean counts as one more parameter.
        leverage = (left**2 * shrunk).sum(1) + 1 / len(costs)
        error = float((((costs - mean - fitted) / (1 - leverage).clip(1e-3)) ** 2).mean())
        if error < best[0]:
            best = error, right.T @ (values / (values**2 + alpha) * (left.T @ (costs - mean)))
    return others @ best[1] + mean


def network(inputs: Matrix, costs: Matrix, others: Matrix, seed: int) -> Matrix:
    """Predictions for other programs by a network like the agent's: two layers of 128, Adam, Huber's loss."""
    torch = import_torch()
    x, y = torch.tensor(inputs, dtype=torch.float32), torch.tensor(costs, dtype=torch.float32)
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
            torch.nn.Linear(128, 1),
        )  # fmt: skip
        optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3, weight_decay=1e-2)
        mean, deviation = y.mean(), y.std() + 1e-6
        for _ in range(STEPS):
            rows = torch.randint(len(x), (min(64, len(x)),))
            loss = torch.nn.functional.huber_loss(layers(x[rows])[:, 0], (y[rows] - mean) / deviation)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            return layers(torch.tensor(others, dtype=torch.float32))[:, 0].double().numpy()


def scaled(inputs: Matrix, others: Matrix) -> tuple[Matrix, Matrix]:
    """Both, with the first one's mean 0 and deviation 1; columns that are equal in it are left out."""
    deviation = inputs.std(0)
    used = deviation > 1e-6
    mean = inputs[:, used].mean(0)
    return (inputs[:, used] - mean) / deviation[used], ((others[:, used] - mean) / deviation[used]).clip(-8, 8)


def regret(predicted: Matrix, cycles: Matrix, random: numpy.random.Generator) -> float:
    """The mean of T(chosen) / T(best) over random groups of `GROUP` programs."""
    groups = [random.choice(len(cycles), min(GROUP, len(cycles)), replace=False) for _ in range(GROUPS)]
    return float(numpy.mean([cycles[group[predicted[group].argmin()]] / cycles[group].min() for group in groups]))


Scores: TypeAlias = dict[tuple[str, str, str], list[tuple[float, float]]]
"""Spearman and regret by encoder, training set and model; one pair per kernel and seed."""


def compare(found: Sequence[Label], vectors: Mapping[str, Matrix], seeds: Sequence[int]) -> Scores:
    """The scores of all encoders."""
    kernels = numpy.array([label.kernel for label in found])
    cycles = numpy.array([label.cycles for label in found], dtype=float)
    # Kernels differ in size; what is learned across them is how slow a program is for its kernel.
    costs = numpy.log(cycles)
    for kernel in set(kernels):
        costs[kernels == kernel] -= numpy.median(costs[kernels == kernel])
    scores: Scores = {}
    for seed in seeds:
        for kernel in dict.fromkeys(kernels):
            mine = numpy.random.default_rng(seed).permutation(numpy.flatnonzero(kernels == kernel))
            splits = {
                "50": (mine[:50], mine[50:]),
                "200": (mine[:200], mine[200:]),
                "other kernels": (numpy.flatnonzero(kernels != kernel), mine),
            }
            for what, (train, test) in splits.items():
                for name, matrix in vectors.items():
                    inputs, others = scaled(matrix[train], matrix[test])
                    for model, predicted in (
                        ("ridge", ridge(inputs, costs[train], others)),
                        ("network", network(inputs, costs[train], others, seed)),
                    ):
                        lost = regret(predicted, cycles[test], numpy.random.default_rng(seed))
                        scores.setdefault((name, what, model), []).append(
                            (spearman(predicted.tolist(), costs[test].tolist()), lost)
                        )
                chance = numpy.random.default_rng(seed).random(len(test))
                lost = regret(chance, cycles[test], numpy.random.default_rng(seed))
                for model in ("ridge", "network"):
                    scores.setdefault(("chance", what, model), []).append((0.0, lost))
    return scores


def show(scores: Scores, console: Console) -> None:
    """Print a table for each model: the means over kernels and seeds."""
    for model in ("ridge", "network"):
        table = Table("encoder", title=f"{model}: Spearman, T(chosen) / T(best) of {GROUP}")
        columns = list(dict.fromkeys(what for _, what, _ in scores))
        for what in columns:
            table.add_column(what, justify="right")
        for name in dict.fromkeys(name for name, _, _ in scores):
            cells = [
                numpy.mean(rows, axis=0) if (rows := scores.get((name, what, model))) else None for what in columns
            ]
            table.add_row(name, *("" if cell is None else f"{cell[0]:.2f}, {cell[1]:.2f}" for cell in cells))
        console.print(table)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="weights of text-small, of pdojo-train text")
    parser.add_argument("--kernels", nargs="*", default=KERNELS, help="micro-kernels")
    parser.add_argument("--programs", type=int, default=300, help="programs of each (300)")
    parser.add_argument("--labels", type=Path, default=Path("build/ranking"), help="folder of their cycles")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    given.labels.mkdir(parents=True, exist_ok=True)
    console = Console()
    found: list[Label] = []
    with Progress(console=console, transient=True) as progress:
        for kernel in chosen(given.kernels):
            task = progress.add_task(kernel.text, total=given.programs)
            file = given.labels / f"{kernel.text.partition(':')[0]}.jsonl"

            def tell(count: int, task: object = task) -> None:
                progress.update(task, completed=count)  # pyright: ignore[reportArgumentType]

            mine = labels(kernel, machine("snitch"), given.programs, 0, file, tell)
            usable = [label for label in mine if label.cycles is not None]
            spread = [label.cycles for label in usable if label.cycles is not None]
            console.print(
                f"{kernel.text}: {len(usable)} programs with cycles, from {min(spread):.0f} to {max(spread):.0f}, "
                f"median {numpy.median(spread):.0f}; {len(mine) - len(usable)} failed or ran out of time"
            )
            found += usable
    show(compare(found, encodings(found, given.weights, console.print), range(given.seeds)), console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
