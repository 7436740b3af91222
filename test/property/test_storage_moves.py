"""Storage moves on random programs: what is legal keeps the meaning, what is refused would have lost a value.

The programs run through one-dimensional arrays with shifts and turns, in one scope or in several, some of them
concurrent, so that values live for some iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

import pytest

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid, equivalent
from pdojo.dialect.semantics.oracle.integer_sets import valid_by_sets
from pdojo.dialect.view.nest import Array
from pdojo.transforms.apply import apply
from pdojo.transforms.base import Transformation
from pdojo.transforms.common.ordering import rewritten
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.site import Dimension
from pdojo.transforms.storage.sharing import ShareBuffer, UnshareBuffer
from pdojo.transforms.storage.slots import FoldDim, MaterializeDims, ReuseDims
from pdojo.transforms.storage.swizzling import SwizzleDim
from qa.inverses import lost_on_the_way_back

LOST = ("would be overwritten before", "would be read before", "would cross iterations", "would share")
"""Reasons that say that a value is lost, or that two threads meet."""

NOT_SEEN = "is used outside it"
"""A part of a reason that is conservative."""

StorageMove: TypeAlias = Transformation[Any]


def _text(random: Random) -> str:
    """A pipeline of arrays: elements are made of neighbours at most two behind, in one scope or one for each array."""
    size, names = random.choice([4, 5, 6]), [f"t{k}" for k in range(random.randint(1, 3))]
    turned, apart, carried = (random.random() < chance for chance in (0.3, 0.3, 0.7))
    threads = ":p" if not carried and not apart and random.random() < 0.5 else ""

    def at(shift: int) -> str:
        return f"{size + 1 - shift}-{{0}}" if turned else f"{{0}}+{shift}"

    def read(earlier: list[str]) -> str:
        return f"{random.choice(['x', *earlier, *earlier])}[{at(random.randrange(3) if carried else 2)}]"

    def body(target: str, earlier: list[str]) -> str:
        if random.random() < 0.2 and earlier:
            return f"{target}[{at(2)}] = exp({random.choice(earlier)}[{at(2)}])"
        return f"{target}[{at(2)}] = {read(earlier)} {random.choice('+*')} {read(earlier)}"

    main = [body(name, names[:k]) for k, name in enumerate(names)]
    main.append(body("y", names))
    if random.random() < 0.3:
        main.insert(-1, f"{names[-1]}[{at(2)}] += x[{at(2)}]")
    lines = ["kernel k(x) -> (y)", *(f"{name} f32 [{size + 2}] heap" for name in ("x", "y", *names)), ""]
    # Different values everywhere: overwriting one with an equal one is refused, but nothing is lost.
    lines += [
        f"2 {name}[{f'{size}+{{0}}' if turned else '{0}'}] = x[{{0}}] * {number + 2}"
        for number, name in enumerate((*names, "y"))
    ]
    lines += [f"{size} {line}" for line in main] if apart else [f"{size}{threads}", *(f"| {line}" for line in main)]
    return "\n".join(lines) + "\n"


def programs(seed: int, count: int) -> Iterator[Program]:
    """Random programs."""
    random = Random(seed)
    for _ in range(count):
        kernel = parse_notation(_text(random))[0]
        canonicalize(kernel)
        program = Program(kernel, machine("toy"))
        validate(program)
        yield program


def choices(program: Program) -> Iterator[tuple[Array | Dimension, StorageMove]]:
    """Storage moves at every place, candidates and others."""
    own = [a for a in program.nest.arrays.values() if a.intent is None]
    for array in own:
        for host in program.nest.arrays.values():
            if host is not array and host.name != "x":
                yield array, ShareBuffer(host.name)
        yield array, UnshareBuffer()
        place = Dimension(array, 0)
        yield from ((place, FoldDim(slots)) for slots in (2, 3, 4))
        yield place, ReuseDims()
        yield place, MaterializeDims()


@pytest.mark.parametrize("seed", range(4))
def test_legal_or_lossy(seed: int) -> None:
    random = Random(seed)
    legal = refused = 0
    for start in programs(seed, 2):
        program = start
        for _ in range(2):
            moves: list[Move] = []
            for site, move in choices(program):
                refusal = Legality.of(program).ask(program, move, site).refusal
                if refusal is None:
                    moves.append(move.at(program, site))
                    _check_legal(program, moves[-1])
                elif any(part in refusal.reason for part in LOST) and NOT_SEEN not in refusal.reason:
                    refused += 1
                    _check_lossy(program, site, move, str(refusal))
            legal += len(moves)
            if not moves:
                break
            program = apply(program, random.choice(moves)).program
    assert legal > 5
    assert refused > 5


def _check_legal(program: Program, move: Move) -> None:
    applied = apply(program, move)
    text = print_notation(applied.program.kernel)
    where = f"{move}\n{print_notation(program.kernel)}"
    assert equivalent(program.kernel, applied.program.kernel) is None, where
    assert valid_by_sets(applied.program.kernel).fault is None, where
    validate(applied.program)
    assert print_notation(parse_notation(text)[0]) == text
    assert lost_on_the_way_back(program, applied.program, applied.inverse) is None, where


def _check_lossy(program: Program, site: Array | Dimension, move: StorageMove, refusal: str) -> None:
    after = rewritten(program, move, site)
    where = f"{refusal}\n{print_notation(program.kernel)}"
    assert valid_by_sets(after.kernel).fault is not None, where
    # Exact arithmetic sees it as well, except where what is lost reaches no output.
    assert check_valid(after.kernel) is not None or _reaches_nothing(program), where


def _reaches_nothing(program: Program) -> bool:
    """Whether an element of some temporary is read by nobody, or only by what nobody reads."""
    read = {a.array.name for leaf in program.nest.leaves for a in leaf.reads}
    return any(leaf.output.array.name not in {*read, "y"} for leaf in program.nest.leaves)


def test_swizzles_keep_the_meaning() -> None:
    text = "kernel k(x) -> (y)\nx f32 [6, 8] heap\ny f32 [6, 8] heap\nt f32 [6, 8] heap\n\n"
    kernel = parse_notation(text + "6 8 t[{0},{1}] = x[{0},{1}]\n6 8 y[{0},{1}] = t[5-{0},{1}]\n")[0]
    canonicalize(kernel)
    program = Program(kernel, machine("toy"))
    for site, move in SwizzleDim.candidates(program):
        _check_legal(program, move.at(program, site))
