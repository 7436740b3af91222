"""Running through all instances answers questions about values as integer sets do, whatever is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from pdojo.dialect.affine import Expr, const, modulo, var
from pdojo.dialect.analysis import origins, storage_check
from pdojo.dialect.analysis.enumeration import Outside, events_of, values_of
from pdojo.dialect.analysis.origins import element_uses
from pdojo.dialect.analysis.storage_check import Caller, compare_events, compare_flows
from pdojo.dialect.analysis.uses import Use
from pdojo.dialect.machines.registry import machine
from pdojo.kernels import kernel_names
from pdojo.transforms.game import Game
from qa.sizes import small_kernel
from qa.walks import Counts, draw

QUESTIONS = 3
"""Questions of each kind about the uses of an array."""


def some_uses(random: Random) -> Iterator[list[Use]]:
    """The uses of the arrays of small kernels of the library after a few random moves."""
    for name in kernel_names():
        game = Game(small_kernel(name, random), machine("toy"))
        for _ in range(4):
            move = draw(game.program, random, Counts())
            if move is not None:
                game.apply(move)
        nest = game.program.nest
        for array in nest.arrays.values():
            uses = element_uses(nest, array)
            if any(u.writes for u in uses) and any(u.reads for u in uses):
                yield uses


def an_iteration(random: Random, of: Use, seen_from: Use) -> tuple[Expr, ...]:
    """An iteration of a use in terms of that of another one: mostly the same, here and there another."""

    def one(depth: int) -> Expr:
        around = seen_from.leaf.depth
        wild = const(random.randrange(3)) if not around else var(random.randrange(around))
        same = var(depth) if depth < around else const(0)
        return random.choice([same, same, same, same + 1, wild])

    return tuple(one(depth) for depth in range(of.leaf.depth))


def test_values_one_by_one() -> None:
    random, found = Random(7), Counter[tuple[str, bool]]()
    for uses in some_uses(random):
        values, flow = values_of(uses), storage_check.flow(uses, [u.access.index for u in uses])
        assert values is not None
        reads = [k for k, u in enumerate(uses) if u.reads]
        writes = [k for k, u in enumerate(uses) if u.writes]
        for _ in range(QUESTIONS):
            read, first, write = random.choice(reads), random.choice(reads), random.choice(writes)
            at = an_iteration(random, uses[write], uses[read])
            there = an_iteration(random, uses[first], uses[read])
            some = tuple(e if random.random() < 0.7 else None for e in at)
            parts = [(write, some), *([(random.choice(writes), at)] if random.random() < 0.3 else [])]
            parts = [(w, e) for w, e in parts if len(e) == uses[w].leaf.depth]
            pairs = {
                "writers": (values.writers(read), origins._writers(flow, uses, read)),  # pyright: ignore[reportPrivateUsage]
                "reader": (
                    origins._another(values.readers(write), uses, write),  # pyright: ignore[reportPrivateUsage]
                    origins._reader(flow, uses, write),  # pyright: ignore[reportPrivateUsage]
                ),
                "stray": (
                    values.stray(read, write, at) is None,
                    origins._stray(flow, uses, read, write, at) is None,  # pyright: ignore[reportPrivateUsage]
                ),
                "change": (
                    values.change(first, read, there) is None,
                    origins._change(flow, uses, first, read, there) is None,  # pyright: ignore[reportPrivateUsage]
                ),
                "partial": (
                    values.partial(uses, read, parts) is None,
                    origins._partial(uses, read, parts) is None,  # pyright: ignore[reportPrivateUsage]
                ),
            }
            for kind, (one, other) in pairs.items():
                assert one == other, (kind, uses, read, first, write, at, there, parts)
                found[kind, one is True] += 1
    assert not [
        (kind, yes) for kind in ("stray", "change", "partial") for yes in (True, False) if found[kind, yes] < 20
    ]


def test_storage_one_by_one() -> None:
    """With some slots for each dimension, values are kept, lost, stale or shared as integer sets say."""
    random, found = Random(8), Counter[str | None]()
    for uses in some_uses(random):
        folded = [random.choice([0, 0, 0, 1, 2]) for _ in uses[0].access.array.shape]
        cells = [replace(use, cell=cell_of_slots(use, folded), memory=use.buffer) for use in uses]
        if random.random() < 0.5:
            # Elements that nobody writes any more.
            cells.remove(next(use for use in cells if use.writes))
        shared = min(use.leaf.depth for use in uses)
        owner = random.randrange(shared) if shared and random.random() < 0.7 else None
        name, shape = uses[0].access.array.name, uses[0].access.array.shape
        caller = random.choice([None, None, Caller(name, shape, writes=True), Caller(name, shape, writes=False)])
        if not cells:
            continue
        events = events_of(cells, None if caller is None else Outside(caller.shape, caller.writes))
        assert events is not None
        answer = compare_events(events, cells, owner, caller)
        assert answer is not None
        exact = compare_flows(cells, owner, caller)
        texts = [None if fault is None else fault.text for fault in (answer.fault, exact)]
        assert texts[0] == texts[1], (cells, owner, caller)
        found[None if exact is None else exact.text.partition(" would ")[2]] += 1
    assert len(found) == 4, found
    assert min(found.values()) >= 3, found


def cell_of_slots(use: Use, folded: Sequence[int]) -> tuple[Expr, ...]:
    """The cell of an access with so many slots per dimension; 0: one per index."""
    indices = zip(use.access.index, folded, strict=True)
    return tuple(modulo(index, slots, use.leaf.extents) if slots else index for index, slots in indices)
