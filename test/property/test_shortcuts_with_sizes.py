"""Shortcuts that answer for all sizes say what running through all instances at each of them says."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from random import Random
from typing import Any, TypeAlias

from pdojo.dialect.affine import Expr, Size, const, modulo, var
from pdojo.dialect.flow.collision import ANY, EQUAL, Query
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.enclosure import guarded_bounds
from pdojo.dialect.flow.flows import Caller, Uninitialised
from pdojo.dialect.flow.integer_sets import bounds_over_domain
from pdojo.dialect.flow.origins import ValueQuestion, element_uses
from pdojo.dialect.flow.storage_check import StorageQuestion
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.shortcuts import SHORTCUTS
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.paths import node_path

PROGRAMS = 150
"""Random programs."""

BY_SETS = {"single reads", "several writes"}
"""Shortcuts that ask integer sets."""

N, M = Size("N", 1, 5), Size("M", 2, 4, 2)
Sizes: TypeAlias = Mapping[Size, int]
Event: TypeAlias = tuple[int, tuple[int, ...]]
"""A use, or the caller after the last one, and an iteration."""

HEAD = """\
kernel k(x) -> (z)
size N in 1..5
size M in 2..4 multiple 2
x f32 [16] heap
z f32 [16] heap
t f32 [16, 16] heap

"""

LOOPS = ("N", "N", "M", "2 where (N//2-{i} >= 1)", "(N+1)", "2", "3")
"""Scopes with a variable i; further ones belong together: tiles, and the iterations after whole tiles."""


def all_sizes() -> Iterator[Sizes]:
    for n, m in product(range(1, 6), (2, 4)):
        yield {N: n, M: m}


def a_body(random: Random, depth: int, indices: Sequence[str], room: int) -> list[str]:
    """Some lines that write and read t inside `depth` scopes; `indices` are what its dimensions may have."""
    lines: list[str] = []
    for _ in range(random.choice([1, 2, 2, 3])):
        if room and random.random() < 0.75:
            kind, i = random.random(), f"{{{depth}}}"
            if kind < 0.2:
                outer = random.choice([f"3 where (N-{i}*2 >= 1)", f"2 where (N//2-{i} >= 1)"])
                inner = random.choice(["2", f"2 where (N-{i}*2-{{{depth + 1}}} >= 1)"])
                heads, mine = [outer, inner], [f"{i}*2+{{{depth + 1}}}"] * 3
            elif kind < 0.35:
                heads, mine = [f"2 where (N%3-{i} >= 1)"], [f"{i}+N//3*3"] * 3
            else:
                heads, mine = [random.choice(LOOPS).replace("{i}", i)], [i, i, i, f"{i}+1"]
            inside = a_body(random, depth + len(heads), [*indices, *mine], room - 1)
            lines += [" ".join(heads), *(f"| {line}" for line in inside)]
            continue
        pool = [*indices, *indices, "0", "1"] if random.random() < 0.5 else [*indices[-3:], "0"]
        element = f"t[{random.choice(pool)},{random.choice([*pool, '0', '0'])}]"
        reading = f"z[0] = {element}"
        lines.append(random.choice([f"{element} = x[0]", f"{element} += x[0]", reading, reading]))
    return lines


Way: TypeAlias = tuple[tuple[str, ...], str]
"""Scopes and the index that they give, of variables a and b."""

ROWS: Sequence[Way] = (
    (("N",), "{a}"),
    (("N",), "{a}+1"),
    (("3 where (N-{a}*2 >= 1)", "2 where (N-{a}*2-{b} >= 1)"), "{a}*2+{b}"),
    (("2 where (N//2-{a} >= 1)", "2"), "{a}*2+{b}"),
    (("2 where (N%3-{a} >= 1)",), "{a}+N//3*3"),
)
OTHER_ROWS: Sequence[Way] = ((("N",), "{a}"), (("(N+1)",), "{a}"), (("4",), "{a}"), (("M",), "{a}"))
"""Rows that statements of one program may have side by side: a dimension then has several extents."""
COLUMNS: Sequence[Way] = ((("M",), "{a}"), (("3",), "{a}"), ((), "0"))
AGAIN: Sequence[Way] = ((("N",), ""), (("M",), ""), (("2",), ""), (("2 where (N//2-{a} >= 1)",), ""))


def a_like_body(random: Random, depth: int, ways: Sequence[Way], known: Sequence[str]) -> list[str]:
    """Some lines in which all statements use scopes in one way: those of `ways`, in the order of `known` indices."""
    if not ways:
        row, column = (k for k in known if k)
        element = f"t[{row},{column}]" if random.random() < 0.9 else f"t[{column},0]"
        reading = f"z[0] = {element}"
        return [random.choice([f"{element} = x[0]", f"{element} += x[0]", reading, reading])]
    lines: list[str] = []
    for _ in range(random.choice([1, 2]) if len(ways) > 1 else random.choice([1, 2, 3])):
        first, *rest = ways
        heads, index = random.choice(OTHER_ROWS) if first in OTHER_ROWS and random.random() < 0.3 else first
        names = {"{a}": f"{{{depth}}}", "{b}": f"{{{depth + 1}}}"}
        for name, value in names.items():
            heads, index = tuple(h.replace(name, value) for h in heads), index.replace(name, value)
        inside = a_like_body(random, depth + len(heads), rest, [*known, index])
        lines += [" ".join(heads), *(f"| {line}" for line in inside)] if heads else inside
    return lines


def some_uses(random: Random) -> list[Use]:
    """The uses of t in a random program, valid or not."""
    if random.random() < 0.5:
        body = a_body(random, 0, [], 3)
    else:
        ways = [random.choice(ROWS), random.choice(COLUMNS), *random.choices(AGAIN, k=random.randrange(2))]
        start = random.choice([[], [], [random.choice(AGAIN)]])
        body = a_like_body(random, 0, [*start, *ways], [])
    (kernel,) = parse_notation(HEAD + "\n".join([*body, ""]))
    nest = nest_of(kernel)
    return element_uses(nest, nest.arrays["t"])


def iterations(use: Use, sizes: Sizes) -> Iterator[tuple[int, ...]]:
    for values in product(*map(range, use.leaf.extents)):
        if all(guard.evaluate(values, sizes) >= 0 for guard in use.leaf.guards):
            yield values


def at(place: Sequence[Expr], values: Sequence[int], sizes: Sizes) -> tuple[int, ...]:
    return tuple(expression.evaluate(values, sizes) for expression in place)


@dataclass
class Run:
    """The sources of all reads at some sizes: by element and by cell."""

    by_element: dict[Event, Event | None]
    by_cell: dict[Event, Event | None]


def run(uses: Sequence[Use], caller: Caller | None, sizes: Sizes) -> Run:
    events: list[tuple[tuple[int, ...], Event, bool, tuple[int, ...], tuple[int, ...]]] = []
    for number, use in enumerate(uses):
        start, *path = node_path(use.leaf)
        for values in iterations(use, sizes):
            time = (start, *chain.from_iterable(zip(values, path, strict=True)))
            for writes in [False] * use.reads + [True] * use.writes:
                places = at(use.access.index, values, sizes), at(use.cell, values, sizes)
                events.append(((*time, 99, int(writes)), (number, values), writes, *places))
    if caller is not None:
        for values in product(*(range(e.evaluate((), sizes)) for e in caller.extents)):
            event = len(uses), values
            events += [((-1,), event, True, values, values)] * caller.writes + [((99,), event, False, values, values)]
    last: dict[tuple[bool, tuple[int, ...]], Event] = {}
    found = Run({}, {})
    for _, event, writes, element, cell in sorted(events):
        if writes:
            last[True, element] = last[False, cell] = event
        else:
            found.by_element[event], found.by_cell[event] = last.get((True, element)), last.get((False, cell))
    return found


def faulty(uses: Sequence[Use], owner: int | None, caller: Caller | None, sizes: Sizes) -> bool:
    """Whether a value is lost, stale, or leaves an iteration of the scopes down to `owner`."""
    found = run(uses, caller, sizes)
    inside = [(read, source) for read, source in found.by_cell.items() if source and read[0] < len(uses) > source[0]]
    crosses = owner is not None and any(r[1][: owner + 1] != s[1][: owner + 1] for r, s in inside)
    return crosses or any(found.by_cell[read] != source for read, source in found.by_element.items())


def answers(kinds: Sequence[str], question: Any) -> Iterator[tuple[str, Any]]:
    """What the shortcuts for some kinds of question say."""
    for shortcut in SHORTCUTS:
        if shortcut.kind in kinds and shortcut.name not in BY_SETS and (found := shortcut.answer(question)) is not None:
            yield shortcut.name, found.value


def has_sizes(uses: Sequence[Use]) -> bool:
    return bool(sizes_in([e for u in uses for e in (*u.leaf.guards, *u.access.index)]))


def test_storage() -> None:
    """No violation is one at no sizes; a violation is one at some."""
    random, told = Random(3), Counter[tuple[str, bool]]()
    for uses in (some_uses(random) for _ in range(PROGRAMS)):
        if not uses or not has_sizes(uses):
            continue
        folded = random.choice([(0, 0), (0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)])
        cells = [replace(use, cell=cell_of_slots(use, folded), memory=use.buffer) for use in uses]
        shared = common_depth([use.leaf for use in uses])
        owner = random.randrange(shared) if shared and random.random() < 0.3 else None
        extents = random.choice([(N.expression, const(2)), (const(6), M.expression), (N.expression + 1, const(5))])
        caller = None if any(folded) or random.random() < 0.5 else Caller("t", extents, writes=random.random() < 0.5)
        said = dict(answers(("storage at first sight", "storage"), StorageQuestion(cells, folded, owner, caller)))
        wrong = any(faulty(cells, owner, caller, sizes) for sizes in all_sizes()) if said else False
        for name, reason in said.items():
            assert (reason is not None) == wrong, (name, [str(u) for u in spelled(cells)], folded, owner, caller)
            told[name, reason is None] += 1
    wanted = {("one iteration", True), ("first iterations", False), ("representatives", True)}
    assert all(told[each] >= 5 for each in (*wanted, ("representatives", False))), told


def test_values() -> None:
    """Writers and readers are those at any sizes; all reads get written values if they do at all sizes."""
    random, told = Random(4), Counter[tuple[str, str]]()
    for uses in (some_uses(random) for _ in range(PROGRAMS)):
        if not uses or not has_sizes(uses) or not any(u.writes for u in uses):
            continue
        asked = [(kind, (n,)) for n, u in enumerate(uses) for kind in ["writers"] * u.reads + ["reader"] * u.writes]
        asked += [("stray", stray) for n, u in enumerate(uses) if u.reads for stray in strays(uses, n)]
        said = [(kind, of, *each) for kind, of in asked for each in value_answers(uses, kind, of)]
        said += [("initialised", (), *each) for each in answers(("initialised",), Uninitialised(uses, 0, None))]
        runs = [run(uses, None, sizes).by_element for sizes in all_sizes()] if said else []
        for kind, of, name, answer in said:
            right = expected(kind, of, uses, runs)
            match kind:
                case "writers":
                    same = answer == right or right == ((), True)  # a read that never runs
                case "reader":
                    same = answer in right if right else answer is None
                case _:
                    same = (answer is None) == right
            assert same, (name, kind, of, answer, right, spelled(uses))
            told[name, kind] += 1
    wanted = {("obvious values", kind) for kind in ("writers", "reader", "stray")}
    wanted |= {("values of instances", "writers"), ("values of instances", "reader"), ("covered reads", "initialised")}
    assert all(told[each] >= 5 for each in wanted), told


def strays(uses: Sequence[Use], read: int) -> Iterator[tuple[int, int, tuple[Expr, ...]]]:
    """Each write, in the iteration of the scopes that it shares with a read, and some iteration of the others."""
    for number, use in enumerate(uses):
        depth = uses[read].leaf.depth
        if use.writes and use.leaf is not uses[read].leaf and depth >= use.leaf.depth:
            same = (var(d) if uses[read].leaf.extents[d] > 1 else const(0) for d in range(use.leaf.depth))
            yield read, number, tuple(same)


def value_answers(uses: Sequence[Use], kind: str, of: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    return answers(("value at first sight", "value"), ValueQuestion(kind, of, uses, lambda: None, OrderedDict()))


def expected(kind: str, of: tuple[Any, ...], uses: Sequence[Use], runs: Sequence[dict[Event, Event | None]]) -> Any:
    """The answer by the runs at all sizes; for iterations, whether there is none."""
    flows = [pair for found in runs for pair in found.items()]
    if kind == "writers":
        sources = [source for read, source in flows if read[0] == of[0]]
        return tuple(sorted({s[0] for s in sources if s is not None})), None not in sources
    if kind == "reader":
        return {r[0] for r, s in flows if s is not None and s[0] == of[0] and uses[r[0]].leaf is not uses[s[0]].leaf}
    if kind == "stray":
        read, write, there = of
        return all(s == (write, at(there, r[1], {})) for r, s in flows if r[0] == read)
    return all(source is not None for _, source in flows)


def test_collisions_and_bounds() -> None:
    """A collision is one at some sizes, and indices that are apart are so at all; bounds hold at all sizes."""
    random, told = Random(5), Counter[tuple[str, bool]]()
    for uses in (some_uses(random) for _ in range(PROGRAMS)):
        if not uses or not has_sizes(uses):
            continue
        one, other = random.choice(uses), random.choice(uses)
        shared = common_depth([one.leaf, other.leaf])
        equal = random.randrange(shared + 1)
        pairs = tuple(zip(one.access.index, other.access.index, strict=True))
        query = Query(one.domain, other.domain, pairs, (EQUAL,) * equal + (ANY,) * (shared - equal))
        for name, witness in answers(("collision",), query):
            assert (witness is not None) == collides(one, other, equal), (name, query, witness)
            told[name, witness is None] += 1
        wanted = random.choice([*one.access.index, N.expression - one.access.index[0] - 1])
        least, most = guarded_bounds(wanted, one.leaf.extents, one.leaf.guards, 99, -99)
        exact = bounds_over_domain(wanted, one.leaf.extents, one.leaf.guards)
        values = [wanted.evaluate(i, sizes) for sizes in all_sizes() for i in iterations(one, sizes)]
        assert all(least <= value <= most for value in values), (wanted, one.leaf.guards)
        assert exact == ((min(values), max(values)) if values else None)
    assert all(told[each] >= 5 for each in (("digits", True), ("guesses", False), ("guards", True))), told


def collides(one: Use, other: Use, equal: int) -> bool:
    """Whether two uses touch one element in one iteration of `equal` outermost scopes, at some sizes."""
    for sizes in all_sizes():
        both = [{(i[:equal], at(u.access.index, i, sizes)) for i in iterations(u, sizes)} for u in (one, other)]
        if both[0] & both[1]:
            return True
    return False


def cell_of_slots(use: Use, folded: Sequence[int]) -> tuple[Expr, ...]:
    """The cell of an access with so many slots per dimension; 0: one per index."""
    indices = zip(use.access.index, folded, strict=True)
    return tuple(modulo(index, slots, use.leaf.extents) if slots else index for index, slots in indices)


def spelled(uses: Sequence[Use]) -> list[str]:
    """Uses in words, for failures."""
    name = "{{{}}}".format

    def texts(expressions: Sequence[Expr]) -> str:
        return ", ".join(e.render(name) for e in expressions)

    return [
        f"{node_path(u.leaf)} in {[s.id for s in u.leaf.chain]} of {u.leaf.extents} where {texts(u.leaf.guards)}: "
        f"{'R' * u.reads}{'W' * u.writes} [{texts(u.access.index)}]"
        for u in uses
    ]
