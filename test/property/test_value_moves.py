"""Values computed once more, read elsewhere, dead ops deleted: every legal move keeps the meaning and comes back."""

from __future__ import annotations

from random import Random

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.kernels import workload
from pdojo.kernels.random_kernels import random_kernels
from pdojo.transforms.game import Game
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation
from qa.shrink import lit_test, shrunk
from qa.sizes import with_random_sizes
from qa.walks import FailedWalk, Referee, play

MOVES = ("inline_op", "outline_op", "reciprocal", "divide", "delete_op")


def legal(game: Game, names: tuple[str, ...] = MOVES) -> list[Move]:
    return [
        choice.at(game.program, site)
        for name in names
        for site, choice in transformation(name).candidates(game.program)
        if Legality.of(game.program).ask(game.program, choice, site).is_legal
    ]


def walk(game: Game, seed: int, length: int, names: tuple[str, ...] = MOVES) -> int:
    """Make random moves of these kinds, each judged; returns how many there were."""
    random = Random(seed)
    referee = Referee(game.program, seed)
    kernel = game.kernel
    for number in range(length):
        moves = legal(game, names)
        if not moves:
            return number
        failure = play(game, random.choice(moves), referee, number)
        if failure is not None:
            failed = FailedWalk(kernel, game.machine, seed, list(game.trace.steps), failure)
            pytest.fail(lit_test(shrunk(failed)))
    return length


@pytest.mark.parametrize("name", ["softmax", "layernorm"])
def test_library_kernels(name: str) -> None:
    plain = workload(name).instantiate()
    game = Game(with_random_sizes(plain, Random(3)), machine("toy"))
    assert walk(game, 5, 6)


def test_reciprocals() -> None:
    game = Game(with_random_sizes(workload("softmax").instantiate(), Random(4)), machine("toy"))
    rows, columns = game.program.nest.arrays["x"].shape
    for depth, text, declare in (
        (0, f"{rows} t[{{0}}] = 1 / s[{{0}}]", f"t f32 [{rows}] heap"),
        (1, f"{columns} p[{{0}},{{1}}] = 1 / s[{{0}}]", f"p f32 [{rows}, {columns}] heap"),
    ):
        game.apply(Move("insert_op", f"y:{depth}", (("text", text), ("declare", declare))))
    made = len(game.trace.steps)
    assert walk(game, 6, 8, ("reciprocal", "divide"))
    assert {step.move.name for step in game.trace.steps[made:]} == {"reciprocal", "divide"}


def test_random_kernels() -> None:
    kernels = random_kernels(17)
    made = sum(walk(Game(next(kernels), machine("toy")), seed, 4) for seed in range(12))
    assert made >= 12
