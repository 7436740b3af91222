"""Listing the moves of kernels that change an array in place by way of temporaries: no candidate raises."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import InvalidKernel
from pdojo.transforms.apply import candidates
from pdojo.transforms.game import Game

KERNELS = 500
"""Valid kernels whose moves are listed."""
SHARES = 10
"""The kernels are listed by so many tests, of which the first is quick enough to run always."""


@pytest.mark.parametrize("share", [0, *(pytest.param(share, marks=pytest.mark.slow) for share in range(1, SHARES))])
def test_the_moves_of_kernels_in_place_are_listed(share: int) -> None:
    random = Random(share)
    listed = 0
    while listed < KERNELS // SHARES:
        text = in_place_text(random)
        on = random.choice(("x86-64-avx2", "nvidia-sm90", "snitch"))
        try:
            game = Game(parse_notation(text)[0], machine(on))
        except InvalidKernel:
            continue
        for verdict in candidates(game.program):
            assert verdict.refusal is None or verdict.refusal.move == verdict.move, text
        listed += 1


def in_place_text(random: Random) -> str:
    """A kernel that fills temporaries from an array, or from each other, and writes them back; it may be invalid."""
    rank = random.choice((1, 1, 2))
    shape = [random.randint(2, 5)] * rank
    temporaries = [f"t{k}" for k in range(random.randint(1, 3))]
    slots = random.choice(("", "", ":N")) if rank == 2 else ""
    lines = ["kernel k(a) -> (a)", f"a f32 [{', '.join(map(str, shape))}] heap"]
    first, *others = shape
    lines += [f"{t} f32 [{', '.join([f'{first}{slots}', *map(str, others)])}] heap" for t in temporaries]
    order = ["a", *temporaries, "a"]
    if len(temporaries) > 1 and random.random() < 0.2:
        order.insert(2, "a")
    box = [extent - random.randint(0, 1) for extent in shape]
    steps = [_step(random, source, target, shape, box) for source, target in pairwise(order)]
    if slots or random.random() < 0.4:
        inner = " ".join(map(str, box[1:]))
        return "\n".join([*lines, "", str(box[0]), *(f"| {inner} {step}" for step in steps)]) + "\n"
    return "\n".join([*lines, "", *(f"{' '.join(map(str, box))} {step}" for step in steps)]) + "\n"


def _step(random: Random, source: str, target: str, shape: list[int], box: list[int]) -> str:
    """A statement that writes one array from another one, most often a plain copy."""
    there = _index(random, shape, box)
    here = [f"{{{d}}}" for d in range(len(shape))]
    if target == "a" and random.random() < 0.4:
        here, there = there, here
    value = f"{source}[{','.join(there)}]"
    match random.randrange(6):
        case 0:
            value = f"exp({value})"
        case 1:
            value = f"{value} + {source}[{','.join(_index(random, shape, box))}]"
        case _:
            pass
    return f"{target}[{','.join(here)}] = {value}"


def _index(random: Random, shape: list[int], box: list[int]) -> list[str]:
    """An index inside the shape: shifted, reversed, rotated or transposed."""
    index: list[str] = []
    for dimension, (extent, used) in enumerate(zip(shape, box, strict=True)):
        variable = f"{{{dimension}}}"
        forms = [variable, variable, f"{used - 1}-{variable}", f"({variable}+1)%{extent}"]
        if used < extent:
            forms.append(f"{variable}+1")
        index.append(random.choice(forms))
    return index if random.random() < 0.8 else index[::-1]
