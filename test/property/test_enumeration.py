"""Running through all instances answers questions about values as integer sets do, whatever is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random

import islpy as isl

from pdojo.dialect.affine import Expr, const, modulo, var
from pdojo.dialect.flow import flows, origins
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.flows import Caller
from pdojo.dialect.flow.integer_sets import context
from pdojo.dialect.flow.origins import element_uses
from pdojo.dialect.flow.storage_check import compare_flows
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.shortcuts.enumeration import Outside, events_of, values_of
from pdojo.dialect.shortcuts.instances import compare_events
from pdojo.dialect.shortcuts.representatives import representatives
from pdojo.dialect.shortcuts.single_reads import wrong_source
from pdojo.dialect.view.build import nest_of
from pdojo.errors import Undecided
from pdojo.kernels import kernel_names
from pdojo.transforms.game import Game
from qa.sizes import small_kernel
from qa.walks import Counts, draw

TREES = 500
"""Random trees whose buffers are asked about by representatives."""

QUESTIONS = 2
"""Questions of each kind about the uses of an array."""


@cache
def some_uses() -> list[list[Use]]:
    """The uses of the arrays of small kernels of the library after a few random moves."""
    return list(drawn_uses(Random(7)))


def drawn_uses(random: Random) -> Iterator[list[Use]]:
    """The uses of the arrays of the library's kernels."""
    for name in kernel_names(long=False):
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


NEVER = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 where ({0} >= 8) t[{0}] = x[{0}]
8 where ({0} >= 8) t[{0}] += x[{0}]
8 where ({0} >= 8) y[{0}] = t[{0}]
8 y[{0}] = x[{0}]
"""
"""No iteration of the first three statements is left."""


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
    for uses in some_uses():
        values, flow = values_of(uses), flows.flow(uses, [u.access.index for u in uses])
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
                    origins.another(values.readers(write), uses, write),
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
    assert not [(kind, yes) for kind in ("stray", "change", "partial") for yes in (True, False) if found[kind, yes] < 8]


def test_values_of_what_never_runs() -> None:
    nest = nest_of(parse_notation(NEVER)[0])
    uses = element_uses(nest, nest.arrays["t"])
    events, values, flow = events_of(uses), values_of(uses), flows.flow(uses, [u.access.index for u in uses])
    assert events is not None
    assert values is not None
    assert len(events.use) == 0
    at = (var(0),)
    for read in (k for k, u in enumerate(uses) if u.reads):
        assert values.writers(read) == origins._writers(flow, uses, read)  # pyright: ignore[reportPrivateUsage]
        for write in (k for k, u in enumerate(uses) if u.writes):
            assert values.readers(write) == []
            assert origins._reader(flow, uses, write) is None  # pyright: ignore[reportPrivateUsage]
            assert values.stray(read, write, at) is None
            assert values.partial(uses, read, [(write, at)]) is None
        assert values.change(read, read, at) is None
    cells = [replace(use, cell=cell_of_slots(use, [1]), memory=use.buffer) for use in uses]
    for owner in (None, 0):
        answer = compare_events(events, cells, owner, None)
        assert answer is not None
        assert answer.fault is None
        assert compare_flows(cells, owner, None) is None


def test_storage_one_by_one() -> None:
    """With some slots for each dimension, values are kept, lost, stale or shared as integer sets say."""
    random, found = Random(8), Counter[str | None]()
    for uses in some_uses() * 2:
        folded = [random.choice([0, 0, 0, 1, 2]) for _ in uses[0].access.array.shape]
        cells = [replace(use, cell=cell_of_slots(use, folded), memory=use.buffer) for use in uses]
        if random.random() < 0.5:
            # Elements that nobody writes any more.
            cells.remove(next(use for use in cells if use.writes))
        shared = min(use.leaf.depth for use in uses)
        owner = random.randrange(shared) if shared and random.random() < 0.7 else None
        name, extents = uses[0].access.array.name, uses[0].access.array.buffer.extents
        caller = random.choice([None, None, Caller(name, extents, writes=True), Caller(name, extents, writes=False)])
        if not cells:
            continue
        events = events_of(cells, None if caller is None else Outside(caller.greatest, caller.writes))
        assert events is not None
        answer = compare_events(events, cells, owner, caller)
        assert answer is not None
        exact = compare_flows(cells, owner, caller)
        texts = [None if fault is None else fault.text for fault in (answer.fault, exact)]
        assert texts[0] == texts[1], (cells, owner, caller)
        found[None if exact is None else exact.text.partition(" would ")[2]] += 1
    assert len(found) == 4, found
    assert min(found.values()) >= 3, found


def test_single_reads() -> None:
    """What single reads find is a pair of one flow that is not in the other; they find most faults."""
    random, found, undecided = Random(10), Counter[tuple[bool, bool | None]](), 0
    for uses in some_uses():
        folded = [random.choice([0, 0, 1, 2]) for _ in uses[0].access.array.shape]
        cells = [replace(use, cell=cell_of_slots(use, folded), memory=use.buffer) for use in uses]
        if random.random() < 0.3:
            cells.remove(next(use for use in cells if use.writes))
        name, extents = uses[0].access.array.name, uses[0].access.array.buffer.extents
        caller = random.choice([None, Caller(name, extents, writes=True), Caller(name, extents, writes=False)])
        if not cells:
            continue
        elements: list[tuple[int | Expr, ...]] = [(0, *use.access.index) for use in cells]
        by_element = flows.flow(cells, elements, caller)
        by_cell = flows.flow(cells, [(0, *use.cell) for use in cells], caller)
        try:
            wrong = wrong_source(cells, elements, 0, caller)
        except Undecided:
            undecided += 1
            continue
        if wrong is not None:
            (write, read), is_lost = wrong
            within, without = (by_element, by_cell) if is_lost else (by_cell, by_element)
            pair = isl.UnionMap.read_from_str(context(), f"{{ {spelled('W', write)} -> {spelled('R', read)} }}")
            assert pair.is_subset(within), (cells, caller)
            assert pair.intersect(without).is_empty(), (cells, caller)
        found[by_element.is_equal(by_cell), None if wrong is None else wrong[1]] += 1
    assert undecided <= 1
    assert found[True, True] == found[True, False] == 0
    assert min(found[True, None], found[False, True], found[False, False]) >= 3, found
    assert found[False, None] < 0.2 * (found[False, True] + found[False, False]), found


def spelled(kind: str, instance: tuple[int, tuple[int, ...]]) -> str:
    """An instance as isl spells it."""
    number, iteration = instance
    return f"{kind}{number}[{', '.join(map(str, iteration))}]"


def a_body(random: Random, depth: int, indices: Sequence[str], room: int) -> list[str]:
    """Some lines that write and read t inside `depth` scopes; `indices` are what the first dimension may have."""
    lines: list[str] = []
    for _ in range(random.choice([1, 1, 2, 3])):
        if room and random.random() < 0.7:
            own = [*indices, *([f"{{{depth}}}+{random.choice([0, 0, 1, 2])}"] * 3)]
            lines.append(str(random.choice([4, 5, 6])))
            lines += [f"| {line}" for line in a_body(random, depth + 1, own, room - 1)]
            continue
        first = random.choice([*indices[-3:], *indices, str(random.randrange(8))])
        second = random.choice(["0", "0", f"{{{random.randrange(depth)}}}" if depth else "1"])
        element = f"t[{first},{second}]"
        reading = f"z[0] = {element}"
        lines.append(random.choice([f"{element} = x[0]", f"{element} += x[0]", reading, reading]))
    return lines


def uses_of_any_order(random: Random) -> list[Use]:
    """The uses of an array in a random tree of scopes and statements, valid or not."""
    body = a_body(random, 0, ["2"], 3)
    text = "\n".join(["kernel k(x) -> (z)", "x f32 [16] heap", "z f32 [16] heap", "t f32 [16, 16] heap", "", *body, ""])
    (kernel,) = parse_notation(text)
    nest = nest_of(kernel)
    return element_uses(nest, nest.arrays["t"])


def test_representatives() -> None:
    """A few iterations say what all of them say: whether values are kept, lost, stale or shared."""
    random, found, fewer = Random(9), Counter[str | None](), 0
    for uses in (*(uses_of_any_order(random) for _ in range(TREES)), *some_uses()):
        if not uses:
            continue
        folded = [random.choice([0, 0, 1, 1, 2]) for _ in uses[0].access.array.shape]
        cells = [replace(use, cell=cell_of_slots(use, folded), memory=use.buffer) for use in uses]
        shared = common_depth([use.leaf for use in uses])
        owner = random.randrange(shared) if shared and random.random() < 0.5 else None
        name, extents = uses[0].access.array.name, uses[0].access.array.buffer.extents
        caller = None
        if not any(folded):
            caller = random.choice([None, Caller(name, extents, writes=True), Caller(name, extents, writes=False)])
        few = representatives(cells, None if caller is None else caller.extents)
        if few is None:
            continue
        outside = None if caller is None else Outside(caller.greatest, caller.writes)
        some, every = events_of(cells, outside, few), events_of(cells, outside)
        assert some is not None
        assert every is not None
        answers = [compare_events(events, cells, owner, caller) for events in (some, every)]
        texts = [None if answer is None or answer.fault is None else answer.fault.text for answer in answers]
        assert texts[0] == texts[1], ([str(u.access.index) for u in uses], folded, owner, caller, few)
        fewer += len(some.use) < len(every.use)
        found[None if texts[0] is None else texts[0].partition(" would ")[2]] += 1
    assert len(found) == 4, found
    assert min(found.values()) >= 5, found
    assert fewer >= 100, fewer


def test_origins_by_representatives() -> None:
    """A few iterations say which writes reach a read, whether each read is of a written element, and who reads."""
    random, fewer = Random(10), 0
    for uses in (*(uses_of_any_order(random) for _ in range(TREES // 4)), *some_uses()):
        few = representatives(uses, None) if uses else None
        if few is None:
            continue
        some, every = values_of(uses, few), values_of(uses)
        assert some is not None
        assert every is not None
        fewer += len(some.events.use) < len(every.events.use)
        for number, use in enumerate(uses):
            where = [str(u.access.index) for u in uses], number, few
            assert not use.reads or some.writers(number) == every.writers(number), where
            assert not use.writes or some.readers(number) == every.readers(number), where
    assert fewer >= 20, fewer


def cell_of_slots(use: Use, folded: Sequence[int]) -> tuple[Expr, ...]:
    """The cell of an access with so many slots per dimension; 0: one per index."""
    indices = zip(use.access.index, folded, strict=True)
    return tuple(modulo(index, slots, use.leaf.extents) if slots else index for index, slots in indices)
