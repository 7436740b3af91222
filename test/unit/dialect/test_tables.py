"""Tables: refusals, lookups as expressions, their integer sets, tiling, the lanes of vectors."""

from __future__ import annotations

from itertools import product
from random import Random

import islpy as isl
import numpy as np
import pytest

from pdojo.dialect.affine import Expr, const, floordiv, lookup, var
from pdojo.dialect.flow.collision import ANY, BEFORE, Collisions, Domain, Query
from pdojo.dialect.flow.integer_sets import bounds_over_domain, coordinates, read_set, spell, unreached
from pdojo.dialect.flow.points import evaluate
from pdojo.dialect.flow.shortcut import shortcut_names, without
from pdojo.dialect.lookups import along, with_tables
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.oracle import IntegerSetOracle, check_valid, equivalent
from pdojo.dialect.semantics.oracle.relations import spell as spell_points
from pdojo.dialect.semantics.oracle.relations import union_map, with_points
from pdojo.dialect.table import MOST_ENTRIES, Table
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IllegalMove, NotationError
from pdojo.transforms.game import Game

GATHER = """\
kernel gather(x) -> (y)
x f32 [9, 8] heap
y f32 [6, 8] heap
idx i64 [6] table 7, 0, 7, 3, 2, 8

6 8 y[{0},{1}] = x[idx[{0}],{1}]
"""
HEADER = """\
kernel k(x) -> (y)
x f32 [8] heap
y f32 [4] heap
"""
TABLE = "idx i64 [3] table 7, 0, 6\n"
ALL = "at i64 [4] table 2, 0, 1, 3\n"
REFUSED = [
    (TABLE + "\n4 y[{0}] = x[idx[{0}]]", "table 'idx' has 3 entries, but y[{0}] is computed with entries 0 to 3"),
    (TABLE + "\n4 y[{0}] = idx[{0}]", "table 'idx' has 3 entries, but y[{0}] is computed with entries 0 to 3"),
    (TABLE + "\n4 y[{0}] = x[idx[3]]", "table 'idx' has no entry 3"),
    (TABLE + "\n3 y[{0}] = x[idx[{0}]+1]", "the index runs from 1 to 8"),
    (TABLE + "\n3 idx[{0}] = x[{0}]", "table 'idx' is constant: statements write arrays"),
    (TABLE + "\n3 where (idx[{0}] < 4) y[{0}] = x[{0}]", "a guard may not read an array (here 'idx')"),
    (TABLE + "\n3 y[{0}] = x[idx[x[{0}]]]", "indirection is not supported: an index may not read an array (here 'x')"),
    (TABLE + "\n3 y[{0}] = x[idx]", "array 'idx' needs an index: idx[...]"),
    (TABLE + "\n3 y[{0}] = x[idx[{0},0]]", "table 'idx' has 1 dimension, not 2"),
    (ALL + "\n4 y[at[{0}]] = y[{0}] + x[{0}]", "dependent iteration is not supported"),
    ("idx i64 [2, 2] table 7, 0, 7, 1\n\n3 y[{0}] = 1", "a table has one dimension, of type i64"),
    ("idx i32 [3] table 7, 0, 7\n\n3 y[{0}] = 1", "a table has one dimension, of type i64"),
    ("idx i64 [4] table 7, 0, 7\n\n3 y[{0}] = 1", "table 'idx' of extent 4 has 3 entries"),
    ("idx i64 [2] table 7, -1\n\n3 y[{0}] = 1", "an entry of a table, an integer of at least 0"),
    ("y i64 [1] table 7\n\n3 y[{0}] = 1", "array 'y' is declared twice, first on line 3"),
    (f"k i64 [5000] table {', '.join(map(str, range(5000)))}\n\n3 y[{{0}}] = 1", "at most 4096 are analysed"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_mistakes_are_refused(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_notation(HEADER + text)
    assert message in str(caught.value)


def test_interface_arrays_are_no_tables() -> None:
    with pytest.raises(NotationError, match="interface array 'y' cannot be a table"):
        parse_notation("kernel k(x) -> (y)\nx f32 [8] heap\ny i64 [1] table 7\n\n3 y[{0}] = 1")


def test_programs_are_interpreted() -> None:
    kernel = parse_notation(GATHER)[0]
    x = np.arange(72, dtype=np.float32).reshape(9, 8)
    for run in (interpret, interpret_stepwise):
        np.testing.assert_array_equal(run(kernel, {"x": x})["y"], x[[7, 0, 7, 3, 2, 8]])


def random_table(random: Random) -> Table:
    entries = [random.randint(0, 9)]
    for _ in range(random.randint(0, 11)):
        step = random.choice((1, 1, 2, 0, -1, random.randint(-5, 9)))
        entries.append(max(0, entries[-1] + step))
    return Table("t", tuple(entries))


def random_expression(random: Random, extents: tuple[int, ...]) -> Expr:
    table = random_table(random)
    place = var(0) * random.randint(1, 2) + var(1) * random.randint(0, 2) - random.randint(0, 3)
    if random.random() < 0.3:
        place = lookup(random_table(random), [place], extents)
    found = lookup(table, [place], extents) * random.choice((1, 2, 3)) + var(1) * random.randint(0, 1)
    return floordiv(found, random.randint(1, 3), extents) + random.randint(0, 2)


@pytest.mark.parametrize("seed", range(60))
def test_integer_sets_and_bounds_are_those_of_evaluation(seed: int) -> None:
    random = Random(seed)
    extents = (random.randint(1, 5), random.randint(1, 4))
    expression = random_expression(random, extents)
    points = list(product(*map(range, extents)))
    values = {p: expression.evaluate(p) for p in points}
    low, high = expression.bounds(extents)
    assert low <= min(values.values())
    assert max(values.values()) <= high
    assert bounds_over_domain(expression, extents, ()) == (min(values.values()), max(values.values()))
    columns = np.array(points, dtype=np.int64).T
    assert evaluate(expression, columns).tolist() == list(values.values())
    text = f"{{ [i, j] -> [{spell(expression, 'ij')}] : 0 <= i < {extents[0]} and 0 <= j < {extents[1]} }}"
    relation = read_set(isl.Map, text)
    assert not relation.dim(isl.dim_type.param)
    for point, value in values.items():
        image = relation.intersect_domain(read_set(isl.Set, f"{{ [{point[0]}, {point[1]}] }}")).range()
        assert coordinates(image.sample_point()) == (value,)
        assert image.is_singleton()


def test_the_oracle_has_points_of_its_own() -> None:
    entry = lookup(Table("t", (4, 1, 1, 6)), [lookup(Table("s", (3, 0, 2)), [var(0)], (3,))], (3,))
    found = union_map([f"W0[i0] -> [{spell_points(entry * 2 + 1, ['i0'])}] : 0 <= i0 < 3"])
    assert found.is_equal(isl.UnionMap.read_from_str(found.get_ctx(), "{ W0[0] -> [13]; W0[1] -> [9]; W0[2] -> [3] }"))
    assert with_points(["[i] : i > 0"]) == "{ [i] : i > 0 }"


@pytest.mark.parametrize("seed", range(40))
def test_collisions_are_those_of_enumeration(seed: int) -> None:
    random = Random(seed)
    extents = (random.randint(2, 5), random.randint(1, 3))
    domain = Domain(extents, ())
    first, second = random_expression(random, extents), random_expression(random, extents)
    if random.random() < 0.5:
        second = first
    points = list(product(*map(range, extents)))
    wanted = any(
        first.evaluate(one) == second.evaluate(other) for one in points for other in points if one[0] < other[0]
    )
    query = Query(domain, domain, ((first, second),), (BEFORE, ANY))
    assert (Collisions().find(query) is not None) == wanted
    with without(*shortcut_names()):
        assert (Collisions().find(query) is not None) == wanted


def test_different_entries_have_different_places() -> None:
    """A table too large for integer sets: its entries differ, so that equal ones are in one place."""
    entries = list(range(1000))
    Random(0).shuffle(entries)
    domain = Domain((1000,), ())
    place = lookup(Table("t", tuple(entries)), [var(0)], (1000,))
    collisions = Collisions()
    assert collisions.find(Query(domain, domain, ((place, place),), (BEFORE,))) is None
    assert collisions.exact_queries == 0
    twice = lookup(Table("t", (*entries[1:], entries[1])), [var(0)], (1000,))
    assert collisions.find(Query(domain, domain, ((place, twice),), (ANY,))) is not None


def test_places_that_no_entry_names_are_found() -> None:
    table = lookup(Table("t", (5, 2, 0, 1, 3)), [var(0)], (5,))
    assert unreached([((6,), (), [var(0)])], [((5,), (), [table])]) == (4,)


def test_constant_places_are_constants() -> None:
    table = Table("t", (5, 2, 0))
    entry = lookup(table, [var(0)], (3,))
    assert entry.substitute({0: const(1)}, (3,)) == const(2)
    assert lookup(table, [const(2)], ()) == const(0)
    assert entry.substitute({0: var(0) * 2 + var(1)}, (2, 2)) == lookup(table, [var(0) * 2 + var(1)], (2, 2))


def test_lookups_that_step_evenly_are_linear() -> None:
    table = Table("t", (8, 9, 2, 3, 5, 6))
    pairs = lookup(table, [var(0) * 2 + var(1)], (3, 2))
    assert along(pairs * 4 + 1, 1, (3, 2)) == lookup(table, [var(0) * 2], (3, 2)) * 4 + var(1) * 4 + 1
    assert along(pairs, 0, (3, 2)) == pairs
    triples = lookup(table, [var(0) * 3 + var(1)], (2, 3))
    assert along(triples, 1, (2, 3)) == triples


def test_tables_are_renamed() -> None:
    table, other = Table("t", (8, 9, 2)), Table("u", (8, 9, 2))
    entry = floordiv(lookup(table, [var(0)], (3,)) + var(0), 3, (3,))
    renamed = with_tables(entry, {table: other}, (3,))
    assert renamed == floordiv(lookup(other, [var(0)], (3,)) + var(0), 3, (3,))
    assert with_tables(renamed, {other: table}, (3,)) == entry


def play(text: str, *moves: str) -> Game:
    game = Game(parse_notation(text)[0], machine=machine("toy"))
    for move in moves:
        game.apply(move)
    return game


def tree(game: Game) -> str:
    return print_notation(game.kernel).partition("\n\n")[2]


@pytest.mark.parametrize(
    ("moves", "wanted"),
    [
        (["tile_scope@y:0{size=2}"], "3 2 8 y[{0}*2+{1},{2}] = x[idx[{0}*2+{1}],{2}]\n"),
        (["tile_scope@y:0{size=2}", "collapse_scopes@y:0"], "6 8 y[{0},{1}] = x[idx[{0}],{1}]\n"),
        (["swap_scopes@y:0"], "8 6 y[{1},{0}] = x[idx[{1}],{0}]\n"),
        (
            ["tile_scope@y:0{size=4}"],
            "2 4 where ({0}*4+{1} < 6) 8 y[{0}*4+{1},{2}] = x[idx[{0}*4+{1}],{2}]\n",
        ),
        (["collapse_scopes@y:0"], "48 y[{0}//8,{0}%8] = x[idx[{0}//8],{0}%8]\n"),
        (
            ["peel_scope@y:0{after=5}"],
            "5 8 y[{0},{1}] = x[idx[{0}],{1}]\n1 8 y[5,{1}] = x[8,{1}]\n",
        ),
        (["tile_scope@y:1{size=4}", "vectorize@y:2"], "6 2 4:v y[{0},{1}*4+{2}] = x[idx[{0}],{1}*4+{2}]\n"),
    ],
)
def test_moves_keep_lookups_right(moves: list[str], wanted: str) -> None:
    game = play(GATHER, *moves)
    assert tree(game) == wanted
    assert equivalent(parse_notation(GATHER)[0], game.kernel) is None
    assert check_valid(game.kernel) is None
    judged = IntegerSetOracle(nest_of(parse_notation(GATHER)[0])).judge(nest_of(game.kernel))
    assert judged.fault is None


SCATTER = """\
kernel scatter(u) -> (y)
u f32 [4] heap
y f32 [8] heap
at i64 [4] table {entries}

8 y[{{0}}] = 0
4 y[at[{{0}}]] = u[{{0}}]
"""


def test_a_scatter_is_parallel_only_if_its_places_differ() -> None:
    play(SCATTER.format(entries="6, 1, 3, 0"), "parallelize@y#1:0")
    with pytest.raises(IllegalMove, match="write of y"):
        play(SCATTER.format(entries="6, 1, 3, 1"), "parallelize@y#1:0")


def test_lanes_read_contiguous_entries_or_gather() -> None:
    header = "kernel k(x) -> (y)\nx f32 [16] heap\ny f32 [8] heap\nidx i64 [8] table {}\n\n"
    text = header + "2 4 y[{{0}}*4+{{1}}] = x[idx[{{0}}*4+{{1}}]]"
    for entries in ("12, 13, 14, 15, 3, 4, 5, 6", "12, 13, 14, 15, 3, 4, 6, 5"):
        assert "4:v" in tree(play(text.format(entries), "vectorize@y:1"))
    stores = header + "2 4 y[idx[{{0}}*4+{{1}}]] = x[{{0}}*4+{{1}}]"
    assert "4:v" in tree(play(stores.format("4, 5, 6, 7, 0, 1, 2, 3"), "vectorize@y:1"))
    with pytest.raises(IllegalMove, match="looks up the lane number; vectors store"):
        play(stores.format("4, 5, 7, 6, 0, 1, 2, 3"), "vectorize@y:1")


def test_the_bound_of_entries_is_that_of_both_forms() -> None:
    entries = ", ".join(["0"] * MOST_ENTRIES)
    kernel = parse_notation(f"{HEADER}k i64 [{MOST_ENTRIES}] table {entries}\n\n4 y[{{0}}] = x[k[{{0}}]]")[0]
    assert len(kernel.known_tables()["k"].entries) == MOST_ENTRIES
