"""The rules of the analyses, each by itself: the smallest question that tells the rule from one that is a little wrong.

What these rules mean for moves is tested with the moves; where they are wrong in one place only, another question that
a move asks often hides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.dialect.flow.collision import AFTER, BEFORE, EQUAL, Domain, Query, Relation
from pdojo.dialect.flow.coverage import cover_together, covers
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.storage_check import compare_flows
from pdojo.dialect.flow.uses import Use, uses_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.lanes import lane_problem
from pdojo.dialect.shortcuts.digits import share_iterations
from pdojo.dialect.view.nest import Leaf
from pdojo.dialect.view.storage import accesses_of, copy_depths


def program(body: str, target: str = "toy") -> Program:
    """A kernel from x to y: declarations, an empty line, statements."""
    return Program(parse_notation(f"kernel k(x) -> (y)\n{body}\n")[0], machine(target))


def conflict(state: Program, relation: Relation, uses: Mapping[Leaf, tuple[Use, ...]] | None = None) -> bool:
    """Whether instances of the last statement conflict that are related so."""
    leaf = state.nest.leaves[-1]
    return state.conflict([leaf], [leaf], relation, uses=uses) is not None


SUMS = "x f32 [4, 4] heap\ny f32 [4, 4] heap\nt f32 [{}] heap\n\n4 4 t[{{0}},{{1}}] += x[{{0}},{{1}}]"


def test_accumulations_into_one_element_commute() -> None:
    same = program("x f32 [4, 4] heap\ny f32 [4] heap\n\n4 4 y[{0}] += x[{0},{1}]")
    assert not conflict(same, (EQUAL, BEFORE))


@pytest.mark.parametrize(
    ("shape", "relation", "found"),
    [
        ("4, 4", (BEFORE,), False),
        ("4:N, 4", (BEFORE,), True),
        ("4:N, 4", (EQUAL, BEFORE), False),
        ("4, 4:N", (BEFORE,), False),
        ("4, 4:N", (EQUAL, BEFORE), True),
        ("4:N, 4:N", (EQUAL, BEFORE), True),
        ("4:N2, 4", (BEFORE,), True),
        ("4:N, 4:N", (EQUAL, EQUAL), False),
    ],
)
def test_accumulations_into_two_elements_of_one_cell_conflict(shape: str, relation: Relation, found: bool) -> None:
    assert conflict(program(SUMS.format(shape)), relation) is found


def test_accumulations_conflict_in_cells_that_would_be_shared() -> None:
    plain = program(SUMS.format("4, 4"))
    reused = plain.uses_if(reuse={plain.nest.arrays["t"].buffer: (1, 0)})
    assert conflict(plain, (BEFORE,), reused)
    assert not conflict(plain, (EQUAL, BEFORE), reused)


@pytest.mark.parametrize(
    ("write", "read", "relation", "found"),
    [
        # In one iteration of {0}: 2 {0} + j = {0} + k has solutions with j < k, and none with j > k.
        ("{0}*2+{1}", "{0}+{1}", (EQUAL, BEFORE), True),
        ("{0}*2+{1}", "{0}+{1}", (EQUAL, AFTER), False),
        ("{0}+{1}", "{0}*2+{1}", (EQUAL, AFTER), True),
        ("{0}+{1}", "{0}+{1}", (EQUAL, BEFORE), False),
        ("{0}*4+{1}", "{0}*4+{1}", (BEFORE,), False),
        ("{0}*3+{1}", "{0}*3+{1}", (BEFORE,), True),
    ],
)
def test_where_two_statements_meet(write: str, read: str, relation: Relation, found: bool) -> None:
    """Factors of a variable that is equal in both instances count where they differ."""
    head = "x f32 [4, 4] heap\ny f32 [4, 4] heap\nt f32 [16] heap\n\n4 4\n"
    state = program(f"{head}| t[{write}] = x[{{0}},{{1}}]\n| y[{{0}},{{1}}] = t[{read}]")
    first, second = state.nest.leaves
    assert (state.conflict([first], [second], relation) is not None) is found


@pytest.mark.parametrize(
    ("index", "shared", "apart"),
    [
        ((var(0), var(1)), 0, True),
        ((var(0),), 0, False),
        ((var(0),), 1, False),
        ((var(1),), 1, True),
        ((var(0) * 4 + var(1),), 0, True),
        ((var(0) * 3 + var(1),), 0, False),
    ],
)
def test_what_tells_instances_apart(index: tuple[Expr, ...], shared: int, apart: bool) -> None:
    """All variables of the domain have to be known from the index, or shared."""
    domain, equal = Domain((4, 4), ()), tuple((e, e) for e in index)
    assert share_iterations(Query(domain, domain, equal, (EQUAL,) * shared), 2) is apart


FOUR = "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\nz f32 [8] heap\n\n"


def storage(body: str, *reuse: int) -> str | None:
    """What goes wrong if the dimensions of t are reused so."""
    violation = program(body).storage_violation("t", reuse)
    return None if violation is None else violation.text


def test_every_read_needs_a_write_of_its_own_iteration() -> None:
    """The last read is covered, the first gets the value of the iteration of {0} before."""
    body = "8 z[{0}] = 0\n2 8\n| 1 where ({0} >= 1) z[{1}] = t[{1}]\n| t[{1}] = x[{1}]\n| y[{1}] = t[{1}] + z[{1}]"
    assert storage(FOUR + body, 1) == "'t' would be overwritten before its last read"
    assert storage(FOUR + body.replace("z[{1}] = t[{1}]", "z[{1}] = x[{1}]"), 1) is None


def test_a_statement_reads_before_it_writes() -> None:
    """Of two arrays in one memory, a statement may read one and write the other in its place."""
    shared = "x f32 [8] heap\ny f32 [8] heap\nbuffer f32 [8] heap -> t, u\n\n"
    for index, kept in (("{0}", True), ("7-{0}", False)):
        state = program(shared + f"8 t[{{0}}] = x[{{0}}]\n8 u[{index}] = t[{{0}}]\n8 y[{{0}}] = u[{{0}}]")
        violation = compare_flows(uses_of(state.nest, "t", (0,)), None)
        assert (violation is None) is kept


def test_a_statement_that_writes_a_cell_again_reads_what_it_wrote() -> None:
    """The second iteration of {1} would read 'u' where it needs 't': the two may not share memory."""
    shared = "x f32 [8] heap\ny f32 [8] heap\nbuffer f32 [8] heap -> t, u\n\n8 t[{0}] = x[{0}]\n"
    assert storage(shared + "8 2 u[{0}] = t[{0}] + 1\n8 y[{0}] = u[{0}]", 0) is not None
    assert storage(shared + "8 u[{0}] = t[{0}] + 1\n8 y[{0}] = u[{0}]", 0) is None


@pytest.mark.parametrize(
    ("iterations", "read", "kept"),
    [
        (5, 0, True),  # the last iteration writes it again
        (6, 0, False),
        (6, 1, True),
        (8, 3, True),  # no early iteration writes it
        (8, 2, False),
    ],
)
def test_a_value_is_not_lost_that_is_written_again(iterations: int, read: int, kept: bool) -> None:
    body = f"{iterations} t[{{0}}%4] = x[{{0}}]\n8 y[{{0}}] = t[{read}]"
    assert (storage(FOUR + body, 1) is None) is kept


COVERED = {
    "the element": ("t[{0}] = x[{0}]", "t[{0}]", True),
    "an element that another iteration wrote": ("t[{0}] = x[{0}]", "t[0]", False),
    "a later write": ("y[{0}] = t[{0}]\n| t[{0}] = x[{0}]", "", False),
    "the same scopes": ("8 t[{1}] = x[{1}]", "8 t[{1}]", True),
    "an accumulation": ("8 t[{1}] += x[{1}]", "8 t[{1}]", False),
    "all elements": ("8 t[{1}] = x[{1}]", "t[3]", True),
    "the first elements": ("4 t[{1}] = x[{1}]", "8 t[{1}]", False),
    "the last elements": ("4 t[{1}+4] = x[{1}]", "8 t[{1}]", False),
    "elements within": ("8 t[{1}] = x[{1}]", "4 t[{1}+2]", True),
    "every second element": ("4 t[{1}*2] = x[{1}]", "7 t[{1}]", False),
    "tiles": ("2 4 t[{1}*4+{2}] = x[{1}]", "8 t[{1}]", True),
    "tiles with gaps": ("2 3 t[{1}*4+{2}] = x[{1}]", "7 t[{1}]", False),
    "a guarded write": ("8 where ({1} >= {0}) t[{1}] = x[{1}]", "8 t[{1}]", False),
    "the same guard": ("8 where ({1} >= {0}) t[{1}] = x[{1}]", "8 where ({1} >= {0}) t[{1}]", True),
    "all of a matrix": ("4 4 m[{1},{2}] = x[{1}]", "m[2,1]", True),
    "a matrix in another order": ("4 4 m[{2},{1}] = x[{1}]", "4 2 m[{1},{2}]", True),
    "the diagonal of a matrix": ("4 m[{1},{1}] = x[{1}]", "4 4 m[{1},{2}]", False),
}


def all_are_covered(writer: Leaf, reader: Leaf) -> bool:
    """Whether what the reader reads in an iteration of the first scope is written in it, by enumeration."""

    def touched(leaf: Leaf, index: tuple[Expr, ...], outer: int) -> set[tuple[int, ...]]:
        iterations = product(range(outer, outer + 1), *map(range, leaf.extents[1:]))
        running = (i for i in iterations if all(g.evaluate(i) >= 0 for g in leaf.guards))
        return {tuple(e.evaluate(i) for e in index) for i in running}

    (read,) = (i for i in reader.accesses if i is not reader.output)
    return writer.order < reader.order and all(
        touched(reader, read.index, k) <= touched(writer, writer.output.index, k) for k in range(writer.extents[0])
    )


@pytest.mark.parametrize("name", COVERED)
def test_what_a_write_covers(name: str) -> None:
    write, read, expected = COVERED[name]
    text = f"8\n| {write}" + (f"\n| {_assigned(read)}" if read else "")
    state = program("x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\nm f32 [4, 4] heap\n\n" + text)
    writer, reader = (next(f for f in state.nest.leaves if (f.output.array.name == "y") is r) for r in (False, True))
    (access,) = (i for i in reader.accesses if i is not reader.output)
    assert covers(writer, writer.output, reader, access) is expected
    assert not expected or all_are_covered(writer, reader)


TOGETHER = {
    "two halves": ("4 t[{1}] = x[{1}]\n| 4 t[{1}+4] = x[{1}]", "8 t[{1}]", True),
    "two parts with a gap": ("4 t[{1}] = x[{1}]\n| 3 t[{1}+5] = x[{1}]", "8 t[{1}]", False),
    "parts of guarded tiles": (
        "2 3 where ({1}*3+{2} < 5) t[{1}*3+{2}] = x[{1}]\n| 3 t[{1}+5] = x[0]",
        "8 t[{1}]",
        True,
    ),
    "odd and even elements": ("4 t[{1}*2] = x[{1}]\n| 4 t[{1}*2+1] = x[{1}]", "8 t[{1}]", True),
    "a part that comes later": ("4 t[{1}] = x[{1}]", "8 t[{1}]\n| 4 t[{1}+4] = x[{1}]", False),
    "a part that accumulates": ("4 t[{1}] = x[{1}]\n| 4 t[{1}+4] += x[{1}]", "8 t[{1}]", False),
    "the element of this iteration alone": ("t[{0}] = x[{0}]\n| 7 t[{1}] = x[{1}]", "8 t[{1}]", False),
    "a guarded read": ("5 t[{1}] = x[{1}]\n| 1 t[{1}+5] = x[{1}]", "2 4 where ({1}*4+{2} < 6) t[{1}*4+{2}]", True),
    "parts in a common scope": ("4\n| | t[{1}] = x[0]\n| | t[{1}+4] = x[0]\n| | READ", "t[{1}]", True),
    "another iteration of a common scope": ("4\n| | t[{1}] = x[0]\n| | t[{1}+4] = x[0]\n| | READ", "2 t[{2}]", False),
    "one part outside": ("4 t[{1}+4] = x[0]\n| 4\n| | t[{1}] = x[0]\n| | READ", "2 t[{1}+{2}*4]", True),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_writes_cover_together(name: str) -> None:
    writes, read, expected = TOGETHER[name]
    access, _, later = read.partition("\n")
    reads = _assigned(access)
    body = writes.replace("READ", reads) if "READ" in writes else f"{writes}\n| {reads}"
    state = program("x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\n\n8\n| " + body + f"\n{later}")
    reader = next(leaf for leaf in state.nest.leaves if leaf.output.array.name == "y")
    written = [(leaf, leaf.output) for leaf in state.nest.leaves if leaf is not reader]
    assert cover_together(written, reader, reader.reads[0]) is expected


def _assigned(read: str) -> str:
    """`8 t[{1}]` as `8 y[{0}] = t[{1}]`."""
    scopes, space, access = read.rpartition(" ")
    return f"{scopes}{space}y[{{0}}] = {access}"


@pytest.mark.parametrize(
    ("body", "copies"),
    [
        ("2:g 4:b t[{0},{1}] = x[{0},{1}]", (0, 1)),
        ("2:g 4:b t[0,{1}] = x[{0},{1}]", (0, 1)),
        ("2:g 4:b t[{0},0] = x[{0},{1}]", (0,)),
        ("2:g 2 2:w t[{0},{1}] = x[{0},{2}]", (0,)),
        ("2:g 2 2:w t[{0},{1}*2+{2}] = x[{0},{1}*2+{2}]", (0, 2)),
        ("2 4 t[{0},{1}] = x[{0},{1}]", ()),
    ],
)
def test_threads_around_the_owner_of_a_copy_have_copies_too(body: str, copies: tuple[int, ...]) -> None:
    state = program(f"x f32 [2, 4] heap\ny f32 [2, 4] heap\nt f32 [2:N, 4:N] stack\n\n{body}", "toy-gpu")
    buffer = state.nest.arrays["t"].buffer
    accesses = [(access, leaf.chain) for leaf, access in accesses_of(state.nest, buffer)]
    assert copy_depths(accesses, buffer.reuse) == copies


def test_lanes_of_permuted_dimensions() -> None:
    state = program("x f32 [4, 4] heap\ny f32 [4, 4] heap\nt f32 [4, 4] register\n\n4 4:v t[{0},{1}] = x[{0},{1}]")
    (leaf,) = state.nest.leaves
    lanes = leaf.chain[-1]
    assert lane_problem(leaf.output, leaf, lanes, state.machine) is None
    assert lane_problem(leaf.output, leaf, lanes, state.machine, (0, 1)) is None
    problem = lane_problem(leaf.output, leaf, lanes, state.machine, (1, 0))
    assert problem is not None
    assert "is not contiguous" in problem.text


@pytest.mark.parametrize("extents", [(3, 4), (3, 5), (3, 7)])
@pytest.mark.parametrize("divisor", [2, 3, 8, 12])
def test_divisions_are_simplified_only_where_the_rest_has_room(extents: tuple[int, int], divisor: int) -> None:
    """4 * i + j is divided by 8 as i is by 2 only where j stays below 4."""
    for offset in (0, 1, 3, -1):
        numerator = var(0) * 4 + var(1) + const(offset)
        quotient, rest = floordiv(numerator, divisor, extents), modulo(numerator, divisor, extents)
        for values in product(*map(range, extents)):
            assert quotient.evaluate(values) == numerator.evaluate(values) // divisor
            assert rest.evaluate(values) == numerator.evaluate(values) % divisor
