"""Circular buffers: the quick proof that they keep their values is right, and finds the usual forms."""

from __future__ import annotations

from itertools import product

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.storage_check import compare_flows, owner_depth
from pdojo.dialect.flow.uses import uses_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.shortcuts.rings import in_ring

HEADER = "kernel k(x) -> (y)\nx f32 [4, 9, 4] heap\ny f32 [4, 9, 4] heap\n"

DOUBLE = """
4
| 9
| | 1 where ({1} < 8) 4 t[{0},{1},{3}] = x[{0},{1},{3}]
| | 1 where ({1} >= 1) 4 y[{0},{1}-1,{3}] = t[{0},{1}-1,{3}]
"""
"""Each value is read one iteration of {1} after it is written."""


def program(declaration: str, body: str) -> Program:
    return Program(parse_notation(f"{HEADER}t f32 {declaration} heap\n{body}")[0], machine("toy"))


def is_proved(state: Program, name: str = "t") -> bool:
    """Whether the quick proof settles the storage of an array, which integer sets confirm then."""
    slots = state.nest.arrays[name].buffer.reuse
    uses = uses_of(state.nest, name, slots)
    owner = owner_depth(uses, slots)
    found = in_ring(uses, slots, owner)
    assert not found or compare_flows(uses, owner) is None, state.text
    return found


def is_kept(state: Program) -> bool:
    slots = state.nest.arrays["t"].buffer.reuse
    uses = uses_of(state.nest, "t", slots)
    return compare_flows(uses, owner_depth(uses, slots)) is None


@pytest.mark.parametrize(
    "declaration", ["[4, 8:N2, 4]", "[4:N, 8:N2, 4]", "[4:N, 8:N3, 4]"], ids=["whole", "reused", "three slots"]
)
def test_double_buffers_are_proved(declaration: str) -> None:
    assert is_proved(program(declaration, DOUBLE))


def test_tiles_count_the_iterations_of_what_was_tiled() -> None:
    tiled = DOUBLE.replace("| 9\n", "| 3 3\n").replace("{3}", "{4}").replace("{1}", "{1}*3+{2}")
    assert is_proved(program("[4:N, 8:N2, 4]", tiled))
    assert not is_proved(program("[4:N, 8:N2, 4]", tiled.replace("{1}*3+{2}", "{1}+{2}*3"))), "digits in another order"


def test_a_copy_for_each_thread() -> None:
    assert is_proved(program("[4:N, 8:N2, 4]", DOUBLE.replace("4\n|", "4:p\n|", 1)))


REFUSED = {
    "iterations of the inner scope that differ in a reused dimension come in between": ("[4, 8:N2, 4:N]", DOUBLE),
    "nothing writes what the first iterations read": (
        "[4, 8:N2, 4]",
        DOUBLE.replace("{1} < 8", "{1} >= 2")
        .replace("t[{0},{1},", "t[{0},{1}-1,")
        .replace("{1}-1,{3}] = t", "0,{3}] = t"),
    ),
    "the element of two iterations later is in the slot": (
        "[4, 8:N2, 4]",
        DOUBLE.replace("{1} >= 1", "{1} >= 2").replace("{1}-1", "{1}-2"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_are_lost_are_not_proved(case: str) -> None:
    state = program(*REFUSED[case])
    assert not is_proved(state)


def test_what_is_proved_is_so() -> None:
    """All distances, numbers of slots, orders and further writes of small rings, judged by integer sets."""
    answers: dict[bool, int] = {True: 0, False: 0}
    missed = 0
    for slots, distance, late, other in product((2, 3, 4), (0, 1, 2, 3), (False, True), (None, 0, 1, 2, 4)):
        write = "1 where ({1} < 6) 4 t[{0},{1},{3}] = x[{0},{1},{3}]"
        read = f"1 where ({{1}} >= {distance}) 4 y[{{0}},{{1}}-{distance},{{3}}] = t[{{0}},{{1}}-{distance},{{3}}]"
        lines = [read, write] if late else [write, read]
        if other is not None:
            lines.append(f"1 where ({{1}} >= {other}) 4 t[{{0}},{{1}}-{other},{{3}}] = 1")
        state = program(f"[4:N, 9:N{slots}, 4]", "\n4\n| 9\n" + "".join(f"| | {line}\n" for line in lines))
        found = is_proved(state)
        answers[found] += 1
        missed += not found and is_kept(state)
    assert answers[True] > 20, answers
    assert answers[False] > 20, answers
    assert missed < answers[True], "the proof should find most"
