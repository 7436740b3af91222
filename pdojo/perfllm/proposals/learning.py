"""Training of scorers: a network and boosted trees learn the same conditional choices; held-out kernels decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any

import numpy
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.perfllm.learner import import_torch, one_thread
from pdojo.perfllm.proposals.boosting import fit_trees
from pdojo.perfllm.proposals.examples import Example
from pdojo.search.proposals.model import bytes_of
from pdojo.search.proposals.questions import PARTS, Vocabulary
from pdojo.search.proposals.scorers import Network, Scorer, Trees

WIDTH = 48
"""Width of the network's hidden layer."""
EPOCHS = 120
"""Greatest number of passes over the examples."""
BATCH = 64
LEARNING_RATE = 3e-3
DECAY = 1e-2
"""Weight decay: examples are few."""
ROUNDS = (10, 20, 40)
"""Numbers of trees that are tried."""
HELD = 4
"""One family of kernels in this many is held out."""
FEWEST = 4
"""Fewest families for a test on held-out ones."""


@dataclass(frozen=True)
class PartReport:
    """How well a part of a model answers questions about kernels that it has not seen."""

    part: str
    design: str
    examples: int
    gain: float
    """The mean logarithm of the probability of the right answers over a uniform draw's; 0 is no better."""
    gains: Mapping[str, float]
    """The gain of each design."""
    agrees: float
    """How often the likeliest alternative is right."""
    is_tested: bool
    """False if there were too few kernels to hold some out; the gain is then of the training."""


def train_model(
    examples: Sequence[Example], known: Vocabulary, design: str, seed: int, facts: Mapping[str, str]
) -> tuple[bytes, list[PartReport]]:
    """A model's file, and how well each part does. `design` is `network`, `trees`, or `best`: the better on held-out
    kernels, part by part.

    Raises UsageError if there are no examples of a part, or if a package is missing.
    """
    parts: dict[str, Scorer] = {}
    reports: list[PartReport] = []
    for part in PARTS:
        own = [example for example in examples if example.part == part]
        if not own:
            raise UsageError(f"there are no examples of the part '{part}': search more kernels, or longer")
        parts[part], report = _train_part(own, known.sizes(part), design, seed)
        reports.append(report)
    return bytes_of(known, parts, facts), reports


def _train_part(own: Sequence[Example], sizes: tuple[int, int], design: str, seed: int) -> tuple[Scorer, PartReport]:
    families = sorted({example.family for example in own})
    held = set(families[seed % HELD :: HELD]) if len(families) >= FEWEST else set[str]()
    learned = [example for example in own if example.family not in held]
    tested = [example for example in own if example.family in held] or learned
    tried: dict[str, tuple[float, int, Scorer]] = {}
    """Per design the best gain, the effort that reached it, and that scorer."""
    if design in ("network", "best"):
        tried[Network.design] = fit_network(learned, tested, sizes, seed)
    if design in ("trees", "best"):
        tried[Trees.design] = max(
            ((gain(found, tested), rounds, found) for rounds, found in fit_trees(learned, sizes, ROUNDS, seed)),
            key=lambda each: each[0],
        )
    chosen = max(tried, key=lambda name: tried[name][0])
    reached, effort, scorer = tried[chosen]
    agrees = _agreement(scorer, tested)
    if held:
        # The held-out kernels have chosen the effort; now they teach, too.
        if chosen == Network.design:
            scorer = fit_network(own, [], sizes, seed, epochs=max(1, effort))[2]
        else:
            (_, scorer), *_ = fit_trees(own, sizes, (effort,), seed)
    gains = {name: each[0] for name, each in tried.items()}
    return scorer, PartReport(own[0].part, chosen, len(own), reached, gains, agrees, bool(held))


def gain(scorer: Scorer, examples: Sequence[Example]) -> float:
    """The weighted mean logarithm of the probability of the answers over a uniform draw's."""
    total = sum(example.weight for example in examples)
    found = 0.0
    for example in examples:
        scores = scorer.scores(example.asked).astype(numpy.float64)
        top = scores.max()
        whole = top + log(numpy.exp(scores - top).sum())
        found += example.weight * (scores[example.answer] - whole + log(len(scores)))
    return float(found / total)


def _agreement(scorer: Scorer, examples: Sequence[Example]) -> float:
    total = sum(example.weight for example in examples)
    right = (e.weight for e in examples if int(scorer.scores(e.asked).argmax()) == e.answer)
    return sum(right) / total


def fit_network(
    learned: Sequence[Example], tested: Sequence[Example], sizes: tuple[int, int], seed: int, epochs: int = EPOCHS
) -> tuple[float, int, Network]:
    """The gain on the tested examples, the number of epochs, and the network; the best one, or without tests the last.

    Raises UsageError if PyTorch is missing.
    """
    torch = import_torch()
    context, items, is_item, answer, weight = _padded(learned)
    mean, scale = _scale(learned)
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = {
            "first": torch.randn(sum(sizes), WIDTH) * (2 / sum(sizes)) ** 0.5,
            "bias": torch.zeros(WIDTH),
            "second": torch.randn(WIDTH) * (1 / WIDTH) ** 0.5,
        }
        for each in made.values():
            each.requires_grad_(True)
        optimizer = torch.optim.AdamW(list(made.values()), lr=LEARNING_RATE, weight_decay=DECAY)
        inputs = torch.from_numpy(_clipped(context, mean[: sizes[0]], scale[: sizes[0]]))
        others = torch.from_numpy(_clipped(items, mean[sizes[0] :], scale[sizes[0] :]))
        mask, answers, weights = (torch.from_numpy(each) for each in (is_item, answer, weight))
        best: tuple[float, int, Network] | None = None
        for epoch in range(1, epochs + 1):
            for rows in torch.randperm(len(learned)).split(BATCH):
                own = inputs[rows] @ made["first"][: sizes[0]] + made["bias"]
                hidden = torch.relu(own[:, None] + others[rows] @ made["first"][sizes[0] :])
                scores = (hidden @ made["second"]).masked_fill(~mask[rows], -1e9)
                lost = torch.nn.functional.cross_entropy(scores, answers[rows], reduction="none")
                loss = (lost * weights[rows]).sum() / weights[rows].sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if tested and epoch % 3 == 0:
                now = _network(made, mean, scale, sizes)
                reached = gain(now, tested)
                if best is None or reached > best[0]:
                    best = reached, epoch, now
    return best or (0.0, epochs, _network(made, mean, scale, sizes))


def _network(made: Mapping[str, Any], mean: NDArray[Any], scale: NDArray[Any], sizes: tuple[int, int]) -> Network:
    weights = {name: deepcopy(each.detach().numpy()) for name, each in made.items()}
    return Network({**weights, "mean": mean, "scale": scale}, sizes)


def _clipped(values: NDArray[Any], mean: NDArray[Any], scale: NDArray[Any]) -> NDArray[numpy.float32]:
    return numpy.clip((values - mean) * scale, -5.0, 5.0).astype(numpy.float32)


def _scale(examples: Sequence[Example]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and inverse deviation of each feature; constant features do not count."""
    context = numpy.stack([example.asked.context for example in examples])
    items = numpy.concatenate([example.asked.items for example in examples])
    mean = numpy.concatenate([context.mean(axis=0), items.mean(axis=0)])
    deviation = numpy.concatenate([context.std(axis=0), items.std(axis=0)])
    scale = numpy.where(deviation > 1e-4, 1 / numpy.maximum(deviation, 1e-4), 0.0)
    return mean.astype(numpy.float32), scale.astype(numpy.float32)


def _padded(examples: Sequence[Example]) -> tuple[NDArray[Any], ...]:
    """Contexts, items [examples, alternatives, features], which items there are, answers, weights."""
    most = max(len(example.asked.items) for example in examples)
    items = numpy.zeros((len(examples), most, examples[0].asked.items.shape[1]), dtype=numpy.float32)
    is_item = numpy.zeros((len(examples), most), dtype=bool)
    for number, example in enumerate(examples):
        items[number, : len(example.asked.items)] = example.asked.items
        is_item[number, : len(example.asked.items)] = True
    context = numpy.stack([example.asked.context for example in examples])
    answer = numpy.array([example.answer for example in examples])
    weight = numpy.array([example.weight for example in examples], dtype=numpy.float32)
    return context, items, is_item, answer, weight
