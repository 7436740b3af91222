"""Tails that are neutral: random tiles with random fills.

Every state keeps the meaning in exact arithmetic. What exact arithmetic does not see is compared on special values:
infinities, NaN, signed zeros and denormal numbers keep their bits, unless a move says that it reassociates.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.dialect.attributes import Intent, Numerics
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.semantics.oracle import Oracle, check_valid
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.errors import IllegalMove
from pdojo.transforms.apply import Applied, apply
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate, transformation
from qa.inverses import lost_on_the_way_back

Arrays: TypeAlias = dict[str, NDArray[Any]]

ACCUMULATIONS = {
    "f32": (("+", "0"), ("+", "-0.0"), ("fma", "0"), ("max", "-inf"), ("min", "inf"), ("*", "1")),
    "i32": (("+", "0"), ("max", "-5"), ("umax", "0"), ("*", "1")),
    "i8": (("+", "0"), ("umin", "-1"), ("and", "-1"), ("or", "0")),
}
TERMS = ("ta[A] * tb[B]", "ta[A] + tb[B]", "ta[A] - tb[B]", "max(ta[A], tb[B])")
VALUES: dict[str, tuple[int | str, ...]] = {
    "f32": (0, "-0.0", "-inf", "inf", 1, -1, "nan"),
    "i32": (0, 1, -1, 7),
    "i8": (0, -1, 1),
}
SPECIAL = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38, 1e-30, -1e-30, -7], np.float32)


def tiled(random: Random, dtype: str) -> str:
    """Sums of products, or what becomes of them, in tiles that divide the sizes or do not, through copies.

    Tiles of accumulators are sometimes read beyond the edge, or set without a guard; elements of copies are sometimes
    set once, before the loop that copies into them several times.
    """
    (rows, row_tile, row_tiles), (columns, column_tile, column_tiles), (sums, sum_tile, sum_tiles) = (
        (size, tile, -(-size // tile))
        for size, tile in ((random.randint(3, 6), random.randint(2, 4)) for _ in range(3))
    )

    def scope(kind: str, depth: int) -> str:
        """A scope over a tile of rows, columns or terms at a depth, guarded."""
        outer, tile, size = {
            "r": ("{0}", row_tile, rows),
            "c": ("{1}", column_tile, columns),
            "s": ("{2}", sum_tile, sums),
        }[kind]
        return f"{tile} where ({outer}*{tile}+{{{depth}}} < {size})"

    accumulation, start = random.choice(ACCUMULATIONS[dtype])
    is_set = random.random() < 0.5
    is_read = not is_set and random.random() < 0.5
    once = random.random() < 0.3
    term = (TERMS[0] if accumulation == "fma" else random.choice(TERMS)).replace("A", "{0},{1},{2},{4},{3}")
    slots = random.choice(("", ":N"))
    read = f"\nz {dtype} [{row_tiles}, {column_tiles}, {row_tile}, {column_tile}] heap" * is_read
    init = f"{scope('r', 2)} {scope('c', 3)}" if is_set else f"{row_tile} {column_tile}"
    lines = [
        f"kernel tiles(a, b) -> (c{', z' * is_read})",
        *(["numerics contract"] * (random.random() < 0.4)),
        f"a {dtype} [{rows}, {sums}] heap",
        f"b {dtype} [{sums}, {columns}] heap",
        f"c {dtype} [{rows}, {columns}] heap{read}",
        f"acc {dtype} [{row_tiles}{slots}, {column_tiles}{slots}, {row_tile}, {column_tile}] heap",
        f"ta {dtype} [{row_tiles}:N, {column_tiles}:N, {sum_tiles}{':N' * (not once)}, {row_tile}, {sum_tile}] heap",
        f"tb {dtype} [{row_tiles}:N, {column_tiles}:N, {sum_tiles}:N, {sum_tile}, {column_tile}] heap",
        "",
        f"{row_tiles} {column_tiles}",
        *([f"| {sum_tiles} {row_tile} {sum_tile} ta[{{0}},{{1}},{{2}},{{3}},{{4}}] = 0"] * once),
        f"| {init} acc[{{0}},{{1}},{{2}},{{3}}] = {start}",
        f"| {sum_tiles}",
        f"| | {scope('r', 3)} {scope('s', 4)} ta[{{0}},{{1}},{{2}},{{3}},{{4}}] = "
        f"a[{{0}}*{row_tile}+{{3}},{{2}}*{sum_tile}+{{4}}]",
        f"| | {scope('s', 3)} {scope('c', 4)} tb[{{0}},{{1}},{{2}},{{3}},{{4}}] = "
        f"b[{{2}}*{sum_tile}+{{3}},{{1}}*{column_tile}+{{4}}]",
        f"| | {scope('s', 3)} {scope('r', 4)} {scope('c', 5)} acc[{{0}},{{1}},{{4}},{{5}}] {accumulation}= "
        + term.replace("B", "{0},{1},{2},{3},{5}"),
        f"| {scope('r', 2)} {scope('c', 3)} c[{{0}}*{row_tile}+{{2}},{{1}}*{column_tile}+{{3}}] = "
        "acc[{0},{1},{2},{3}]",
        *([f"| {row_tile} {column_tile} z[{{0}},{{1}},{{2}},{{3}}] = acc[{{0}},{{1}},{{2}},{{3}}]"] * is_read),
    ]
    return "\n".join(lines) + "\n"


def drawn(random: Random, program: Program, dtype: str) -> Move | None:
    """A random move about tails; None if there is none of the family."""
    name = random.choice(("fill_tail", "drop_guard", "drop_guard", "drop_guard", "add_guard"))
    if name == "add_guard":
        scope = random.choice(program.nest.scopes)
        outer = random.randint(0, scope.depth)
        inner = f"+{{{scope.depth}}}" * (outer != scope.depth)
        where = f"{{{outer}}}*{random.randint(1, 4)}{inner} {random.choice(('<', '>='))} {random.randint(1, 6)}"
        return Move(name, f"%{scope.id}", (("where", where),))
    found = list(transformation(name).candidates(program))
    if not found:
        return None
    site, choice = random.choice(found)
    move = choice.at(program, site)
    return move if name == "drop_guard" else replace(move, params=(("value", random.choice(VALUES[dtype])),))


def special(random: Random, program: Program) -> Arrays:
    """Inputs that show what exact arithmetic does not see."""
    arrays: Arrays = {}
    for array in program.nest.arrays.values():
        if array.intent is Intent.IN:
            kind = INTERFACE[array.dtype]
            limits = [] if array.dtype == "f32" else [np.iinfo(kind).min, np.iinfo(kind).max]
            known = SPECIAL if array.dtype == "f32" else np.array([0, 1, -1, 5, *limits])
            known = known[np.isfinite(known) & (np.abs(known) <= 1)] if random.random() < 0.4 else known
            drawn = [random.choice(known) for _ in range(int(np.prod(array.shape)))]
            arrays[array.name] = np.array(drawn).astype(kind).reshape(array.shape)
    return arrays


def bits(values: NDArray[Any], *, signs: bool) -> bytes:
    """The bits of values, with one NaN; without `signs`, of zeros too."""
    if values.dtype.kind != "f":
        return values.tobytes()
    plain = np.where(np.isnan(values), np.float32(np.nan), values)
    return plain.tobytes() if signs else np.where(plain == 0, np.float32(0), plain).tobytes()


def check_bits(random: Random, before: Program, applied: Applied, *, exact: bool) -> None:
    """The program after a move gives the bits of the program before, on its elements and its memory."""
    for _ in range(4):
        inputs = special(random, before)
        with np.errstate(all="ignore"):
            wanted = interpret_stepwise(before.nest, inputs)
            for storage in ("elements", "cells"):
                got = interpret_stepwise(applied.program.nest, inputs, storage=storage)
                for name, values in wanted.items():
                    assert bits(got[name], signs=exact) == bits(values, signs=exact), (
                        f"{applied.move}\n{before.text}\n{inputs}\n{values}\n{got[name]}"
                    )


@pytest.mark.parametrize("seed", range(10))
def test_random_tiles(seed: int) -> None:
    random = Random(seed)
    dtype = random.choice(("f32", "f32", "i32", "i8"))
    program = Game(parse_notation(tiled(random, dtype))[0], machine("toy")).program
    oracle = Oracle(program.nest, seed, seeds=6)
    for number in range(25):
        move = drawn(random, program, dtype)
        if move is None:
            continue
        try:
            applied = apply(program, move)
        except IllegalMove:
            continue
        validate(applied.program)
        difference = oracle.difference(applied.program.nest, schedules=1, first=number)
        assert difference is None, f"{move}: {difference}\n{program.text}"
        assert check_valid(applied.program.nest, schedules=1) is None
        assert lost_on_the_way_back(program, applied.program, applied.inverse) is None
        wanted = instantiate(move)
        effect = wanted.numerics(program, wanted.resolve(program, move.at))
        check_bits(random, program, applied, exact=effect is Numerics.EXACT)
        program = applied.program
