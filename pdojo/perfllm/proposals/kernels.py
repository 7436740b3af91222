"""Random kernels for self-play: plain ones, of floating-point numbers, that the machine can price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import PdojoError
from pdojo.kernels.random_kernels import Features, features_for, random_text
from pdojo.math.functions import FUNCTIONS
from pdojo.transforms.game import Game

EXTENTS = (2, 3, 4, 6, 8, 12, 16)
STAGES = 3
KINDS = ("add", "mul", "max")
"""Kinds of functions, which every machine has instructions for."""


def plain_features(machine: Machine) -> Features:
    """Permitted contents: no mappings, slots, shared buffers or hints, which are for moves to add."""
    return replace(
        features_for(machine),
        dtypes=("f64",) if machine.snitch else ("f32",),
        extents=EXTENTS,
        stages=STAGES,
        functions=frozenset(name for name, function in FUNCTIONS.items() if function.kind in KINDS),
        mappings=(),
        reuse=False,
        share=False,
        hints=False,
        facts=False,
    )


def random_texts(machine: Machine, seed: int) -> Iterator[tuple[str, str]]:
    """Endless names and texts of random kernels of several moves, determined by the seed."""
    features, random = plain_features(machine), Random(seed)
    for number in count():
        text = random_text(random.getrandbits(62), features)
        try:
            kernel = parse_notation(text)[0]
            is_fit = any(scope.extent > 2 for scope in Game(kernel, machine).program.nest.scopes)
        except PdojoError:
            # Some kernels do not suit the machine.
            continue
        if is_fit:
            yield f"random{number}-{seed}", text
