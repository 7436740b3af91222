"""A trace that is played again at once, on one kernel, leads through the states that were reached move by move."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from xdsl.ir import Operation

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.verification.verify import verify_kernel
from pdojo.errors import IllegalMove, LocationError
from pdojo.kernels import kernel_names
from pdojo.transforms.apply import apply, candidates, refused_moves
from pdojo.transforms.document import example_of
from pdojo.transforms.game import Game
from pdojo.transforms.history import make
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.registry import TRANSFORMATION_NAMES, instantiate, transformation
from pdojo.transforms.site import identify
from pdojo.transforms.trace import Step
from property.walks import random_texts
from qa.sizes import small_kernel
from qa.walks import Counts, draw


def strangers(kernel: KernelOp) -> list[Operation]:
    """Operations outside the kernel that use its values: what they use could not be erased."""
    inside = set(kernel.walk())
    arguments = (a for op in inside for region in op.regions for block in region.blocks for a in block.args)
    values = (*arguments, *(result for op in inside for result in op.results))
    return [use.operation for value in values for use in value.uses if use.operation not in inside]


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
def test_the_examples_leave_no_strangers(name: str) -> None:
    example = example_of(transformation(name))
    program = Program(example.kernel(), machine(example.machine))
    refused_moves(program)
    applied = apply(program, example.move)
    refused_moves(applied.program)
    assert not strangers(program.kernel)
    assert not strangers(applied.program.kernel)
    assert applied.inverse is not None
    back = instantiate(applied.inverse)
    site = back.resolve(applied.program, applied.inverse.at)
    assert Legality.of(applied.program).ask(applied.program, back, site).is_legal
    back.inverse(applied.program, site)
    assert not strangers(applied.program.kernel)
    assert not strangers(make(applied.program, applied.inverse).kernel)


@pytest.mark.parametrize("on", ["toy", "toy-gpu", "toy-snitch"])
def test_walks_there_and_back(on: str) -> None:
    """Every second walk takes each move back, so that moves which only lead back are played again too."""
    kernels = [small_kernel(name, Random(k)) for k, name in enumerate(kernel_names(long=False))]
    made: Counter[str] = Counter()
    for seed, kernel in enumerate([*kernels, *(parse_notation(text)[0] for text in random_texts(7))]):
        if seed % (8 if on == "toy" else 15):
            continue
        random, game = Random(seed), Game(kernel, machine(on))
        for _ in range(8):
            move = draw(game.program, random, Counts())
            if move is not None:
                game.apply(move)
            if move is not None and seed % 2:
                back = apply(game.programs[-2], game.trace.steps[-1].resolved).inverse
                if back is not None:
                    game.apply(back)
        assert not strangers(game.kernel)
        made.update(step.move.name for step in game.trace.steps)
        expected = [(program.text, sorted(program.nest.by_id)) for program in game.programs]
        again = Game(kernel, machine(on))
        assert again.replay(game.trace.steps) == []
        assert again.trace.steps == game.trace.steps
        assert not strangers(again.kernel)
        assert str(again.kernel) == str(game.kernel)
        forms = game.programs.forms()
        assert again.programs.forms() == forms
        assert [forms.index(form) for form in forms] == _first([text for text, _ in expected])
        assert [(program.text, sorted(program.nest.by_id)) for program in again.programs] == expected
        assert again.places == game.places
    assert len(made) > 20, made


MAPPED = """
kernel mapped(x) -> (y)
x f32 [4, 4, 4] heap
y f32 [4, 4, 4] heap
z f32 [4, 4, 4] heap
t f32 [4:N, 4:N, 4] stack

4:g 4:b
| 4 t[{0},{1},{2}] = exp(x[{0},{1},{2}])
| 4:u y[{0},{1},{2}] = t[{0},{1},{2}]
4:g 2:b 2:b 4 z[{0},{1}*2+{2},{3}] = x[{0},{1}*2+{2},{3}]
4:p 4 4 y[{0},{1},{2}] += z[{0},{1},{2}]
"""


@pytest.mark.parametrize("on", ["toy", "toy-gpu"])
def test_plans_at_once_are_plans_one_by_one(on: str) -> None:
    """Whether moves are made one by one, at once or by replay, the same ones are legal."""
    kernel = parse_notation(MAPPED)[0]
    start = Game(kernel, machine(on))
    known = [v.move for v in candidates(start.program) if v.move.name in ("unmap", "unroll", "map_grid", "map_block")]
    known += [v.move for v in candidates(start.program) if v.move.name in ("swap_scopes", "join_scopes", "unmap")]
    wanted = [instantiate(move).as_move(identify(instantiate(move).resolve(start.program, move.at))) for move in known]
    random = Random(1)
    for _ in range(20):
        plan = random.sample(wanted, 8)
        by_hand, at_once, again = start.fork(), start.fork(), start.fork()
        _attempt(by_hand, plan)
        at_once.at_once(lambda game=at_once, moves=plan: _attempt(game, moves))
        again.replay(Step(move, move) for move in plan)
        resolved = [step.resolved for step in by_hand.trace.steps]
        assert [step.resolved for step in at_once.trace.steps] == resolved
        assert [step.resolved for step in again.trace.steps] == resolved
        for program in at_once.programs:
            verify_kernel(program.kernel)


def _attempt(game: Game, moves: list[Move]) -> None:
    """Make the moves that are legal."""
    for move in moves:
        with suppress(IllegalMove, LocationError):
            game.apply(move)


def _first(texts: list[str]) -> list[int]:
    """Where each text occurs first."""
    return [texts.index(text) for text in texts]
