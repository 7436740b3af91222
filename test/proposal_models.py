"""Proposal models with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from pdojo.search.proposals.model import bytes_of
from pdojo.search.proposals.questions import PARTS, Vocabulary
from pdojo.search.proposals.scorers import Network, Scorer, Trees
from pdojo.transforms.registry import transformation_names

WIDTH = 5


def network_arrays(seed: int, sizes: tuple[int, int]) -> dict[str, NDArray[Any]]:
    random, size = numpy.random.default_rng(seed), sum(sizes)
    return {
        "mean": random.normal(size=size).astype(numpy.float32),
        "scale": random.uniform(0, 2, size=size).astype(numpy.float32),
        "first": random.normal(size=(size, WIDTH)).astype(numpy.float32) / size**0.5,
        "bias": random.normal(size=WIDTH).astype(numpy.float32),
        "second": random.normal(size=WIDTH).astype(numpy.float32),
    }


def tree_arrays(seed: int, sizes: tuple[int, int], trees: int = 4, depth: int = 3) -> dict[str, NDArray[Any]]:
    """Complete trees; some inner nodes are leaves."""
    random, count = numpy.random.default_rng(seed), 2 ** (depth + 1) - 1
    own: NDArray[numpy.int64] = numpy.tile(numpy.arange(count, dtype=numpy.int64), (trees, 1))
    is_leaf = (own >= count // 2) | (random.random((trees, count)) < 0.2)
    return {
        "feature": random.integers(0, sum(sizes), size=(trees, count)).astype(numpy.int32),
        "threshold": random.normal(size=(trees, count)).astype(numpy.float32),
        "left": numpy.where(is_leaf, own, 2 * own + 1).astype(numpy.int32),
        "right": numpy.where(is_leaf, own, 2 * own + 2).astype(numpy.int32),
        "value": random.normal(size=(trees, count)).astype(numpy.float32),
    }


def random_model(seed: int, design: str = "network") -> bytes:
    """The file of a model with random weights."""
    known = Vocabulary(transformation_names())
    parts: dict[str, Scorer] = {}
    for number, part in enumerate(PARTS):
        sizes = known.sizes(part)
        if design == "network":
            parts[part] = Network(network_arrays(seed + number, sizes), sizes)
        else:
            parts[part] = Trees(tree_arrays(seed + number, sizes), sizes)
    return bytes_of(known, parts, {"machine": "toy"})


def stored_model(folder: Path, seed: int = 1, design: str = "network") -> str:
    """The option `--proposals` of a stored model with random weights."""
    path = folder / f"{design}-{seed}"
    path.write_bytes(random_model(seed, design))
    return f"learned:{path}"
