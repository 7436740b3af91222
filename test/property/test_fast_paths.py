"""The fast paths of the analysis agree with integer sets, on the questions that random walks ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from pdojo_tools.sizes import with_random_sizes
from pdojo_tools.walks import Counts, draw

from pdojo.dialect.analysis import collision, storage_check
from pdojo.dialect.analysis.clobber import Instance
from pdojo.dialect.analysis.collision import Collisions, Query, Witness
from pdojo.dialect.analysis.coverage import common_depth
from pdojo.dialect.analysis.storage_check import Caller, Use, Violation
from pdojo.dialect.machine import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.kernels import kernel_names, kernel_path
from pdojo.transforms.apply import refused_moves
from pdojo.transforms.game import Game
from property.walks import random_texts

JUDGED = 200
"""Answers of a fast path that integer sets judge: each takes some 20 ms."""


def kernels() -> list[KernelOp]:
    texts = [kernel_path(name).read_text(encoding="utf-8") for name in kernel_names()]
    small = [with_random_sizes(parse_notation(text)[0], Random(k)) for k, text in enumerate(texts)]
    return small + [parse_notation(text)[0] for text in random_texts(5)]


def wander(kernel: KernelOp, seed: int, length: int) -> None:
    """Random moves; in every state, all that can be asked."""
    game, random = Game(kernel, machine("toy")), Random(seed)
    for _ in range(length):
        refused_moves(game.program)
        move = draw(game.program, random, Counts())
        if move is not None:
            game.apply(move)


def test_collisions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    decide = Collisions._decide  # pyright: ignore[reportPrivateUsage]

    def checked(self: Collisions, query: Query) -> Witness | None:
        found, exact = decide(self, query), collision.exact(query)
        asked["collision" if found else "none"] += 1
        assert (found is None) == (exact is None), query
        assert found is None or collision.holds(query, found), query
        return found

    monkeypatch.setattr(Collisions, "_decide", checked)
    for seed, kernel in enumerate(kernels()):
        wander(kernel, seed, 4)
    assert min(asked["collision"], asked["none"]) > 30


def innermost(uses: Sequence[Use]) -> int | None:
    """The innermost scope that all uses share: no value may cross its iterations."""
    return common_depth([u.leaf for u in uses]) - 1 if common_depth([u.leaf for u in uses]) else None


def test_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[bool] = Counter()
    within = storage_check.within_iteration

    def checked(uses: Sequence[Use], reuse: Sequence[bool]) -> bool:
        found = within(uses, reuse)
        asked[found] += 1
        judged = found and asked[True] <= JUDGED
        violation: Violation | None = storage_check.compare_flows(uses, innermost(uses)) if judged else None
        assert violation is None, violation
        return found

    monkeypatch.setattr(storage_check, "within_iteration", checked)
    for seed, kernel in enumerate(kernels()):
        wander(kernel, seed, 4)
    assert asked[True] > 30


def test_lost_values(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[bool] = Counter()
    lost = storage_check.lost_value

    def checked(uses: Sequence[Use]) -> tuple[Instance, Instance] | None:
        found = lost(uses)
        asked[found is not None] += 1
        judged = found is not None and asked[True] <= JUDGED
        assert not judged or storage_check.compare_flows(uses, None) is not None, found
        return found

    monkeypatch.setattr(storage_check, "lost_value", checked)
    for seed, kernel in enumerate(kernels()):
        wander(kernel, seed, 4)
    assert asked[True] > 30, asked


def test_arrays_that_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[bool] = Counter()
    in_turn = storage_check.in_turn

    def checked(uses: Sequence[Use], reuse: Sequence[int], caller: Caller | None) -> bool:
        found = in_turn(uses, reuse, caller)
        asked[found] += 1
        judged = found and asked[True] <= JUDGED
        violation = storage_check.compare_flows(uses, innermost(uses), caller) if judged else None
        assert violation is None, violation
        return found

    monkeypatch.setattr(storage_check, "in_turn", checked)
    for seed, kernel in enumerate(kernels()):
        wander(kernel, seed, 6)
    assert asked[True] > 30, asked
