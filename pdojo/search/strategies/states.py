"""States of strategies as JSON, for checkpoints (`pdojo.search.contract.strategy.Saved`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from pdojo.backends.common.source_digest import whole_digest
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.node import Node
from pdojo.search.contract.strategy import OutdatedState
from pdojo.transforms.move import Move

CODE = ("dialect/**/*.py", "passes/**/*.py", "search/**/*.py", "transforms/**/*.py")
"""Files that decide a strategy's proposals and the form of its state."""


def dump(state: JSON, random: Random) -> bytes:
    """A state and the random numbers as bytes."""
    whole = {**state, "code": whole_digest(*CODE), "random": random.getstate()}
    return json.dumps(whole, separators=(",", ":")).encode()


def load(data: bytes, random: Random) -> JSON:
    """The state; sets the random numbers. Raises OutdatedState."""
    state: JSON = json.loads(data)
    if state.pop("code") != whole_digest(*CODE):
        raise OutdatedState
    version, words, gauss = state.pop("random")
    random.setstate((version, tuple(words), gauss))
    return state


class NodeTable:
    """Nodes to which a state refers by index: a program has several nodes if several traces lead to it."""

    def __init__(self) -> None:
        self._indices: dict[Node, int] = {}

    def index(self, node: Node) -> int:
        """The index of a node; a new node is added."""
        return self._indices.setdefault(node, len(self._indices))

    @property
    def rows(self) -> list[list[Any]]:
        """Number and moves of each node."""
        return [[node.number, *map(str, node.moves)] for node in self._indices]


def nodes_of(rows: Sequence[Sequence[Any]], first: Mapping[int, Node]) -> dict[int, Node]:
    """The nodes of a table by index; `first` are the first nodes of all programs, by number."""
    return {
        index: replace(first[number], moves=tuple(Move.parse(text) for text in moves))
        for index, (number, *moves) in enumerate(rows)
    }
