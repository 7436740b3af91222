"""What states of a game have in common: two that differ in what matters must not share an answer."""

from __future__ import annotations

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.shortcuts.excerpts import content_of_buffer, excerpt_of

KERNEL = "kernel k(x) -> (y, z)\nx f32 [8] heap\ny f32 [8] heap\nz f32 [8] heap\n"


def program(body: str, before: Program | None = None) -> Program:
    kernel = parse_notation(KERNEL + body + "\n")[0]
    return Program(kernel, machine("toy")) if before is None else before.successor(kernel)


TWO = """t f32 [8{}] {}

8
| t[{{0}}] = x[{{0}}]
| y[{{0}}] = t[{{0}}]
8
| t[{{0}}] = x[{{0}}]
| z[{{0}}] = t[{{0}}]"""


@pytest.mark.parametrize(
    ("slots", "memory", "nests"), [("", "heap", 1), (":N", "heap", 2), (":N2", "heap", 2), ("", "register", 2)]
)
def test_nests_that_share_slots_or_registers_are_asked_about_together(slots: str, memory: str, nests: int) -> None:
    state = program(TWO.format(slots, memory))
    assert [len(excerpt_of(state, root).program.nest.children) for root in state.nest.children] == [nests, nests]


def test_nests_that_share_with_each_other_by_a_third_one() -> None:
    state = program(
        "t f32 [8:N] heap\ns f32 [8:N] heap\n\n8\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]\n"
        "8\n| t[{0}] = x[{0}]\n| s[{0}] = t[{0}]\n| y[{0}] = s[{0}]\n8\n| s[{0}] = x[{0}]\n| z[{0}] = s[{0}]"
    )
    assert len(excerpt_of(state, state.nest.children[0]).program.nest.children) == 3


ONE = "t f32 [8] heap\n\n8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]\n8 z[{0}] = 0"


def test_states_that_differ_elsewhere_have_an_excerpt_in_common() -> None:
    first = program(ONE)
    second = program(ONE.replace("z[{0}] = 0", "z[{0}] = 1"), first)
    ours, others = ([excerpt_of(state, root).verdicts for root in state.nest.children] for state in (first, second))
    assert [one is other for one, other in zip(ours, others, strict=True)] == [True, True, False]


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("t f32 [8] heap", "t f32 [16] heap"),
        ("t f32 [8] heap", "t f32 [8:N] heap"),
        ("t f32 [8] heap", "t f32 [8] stack"),
        ("8 t[{0}] = x[{0}]", "8 t[{0}] = x[7-{0}]"),
        ("8 t[{0}] = x[{0}]", "8:p t[{0}] = x[{0}]"),
        ("8 t[{0}] = x[{0}]", "8:u t[{0}] = x[{0}]"),
        ("8 t[{0}] = x[{0}]", "8 where ({0} < 9) t[{0}] = x[{0}]"),
    ],
)
def test_what_matters_to_a_nest_makes_another_excerpt(there: str, here: str) -> None:
    first = program(ONE)
    second = program(ONE.replace(there, here), first)
    if first.text != second.text:
        ours, theirs = (excerpt_of(state, state.nest.children[0]).verdicts for state in (first, second))
        assert ours is not theirs


USES = """t f32 [8] heap
s f32 [8] {}

{} t[{{0}}] = x[{{0}}]
8 s[{{0}}] = {}
8 y[{{0}}] {} t[{{0}}]
8 z[{{0}}] = s[{{0}}]"""
PLAIN = ("heap", "8", "0", "=")


def content(body: str) -> object:
    state = program(body)
    return content_of_buffer(state, state.nest.arrays["t"].buffer)


def test_the_content_of_a_buffer_leaves_out_what_does_not_matter() -> None:
    assert content(USES.format(*PLAIN)) == content(USES.format("heap", "8", "1", "="))


@pytest.mark.parametrize(
    "body",
    [
        USES.format("stack", "8", "0", "="),
        USES.format("heap", "8:p", "0", "="),
        USES.format("heap", "8:u", "0", "="),
        USES.format("heap", "8", "t[{0}]", "="),
        USES.format("heap", "8", "0", "+="),
        USES.format(*PLAIN).replace("t f32 [8]", "t f32 [8:N]"),
        USES.format(*PLAIN).replace("t f32 [8]", "t f32 [9]"),
        USES.format(*PLAIN).replace("= t[{0}]", "= t[7-{0}]"),
    ],
)
def test_the_content_of_a_buffer_holds_what_matters(body: str) -> None:
    assert content(body) != content(USES.format(*PLAIN))


def test_the_content_of_a_buffer_holds_the_order_of_its_uses() -> None:
    lines = ["8 t[{0}] = x[{0}]", "8", "| y[{0}] = t[{0}]", "| t[{0}] = 0", "8 z[{0}] = t[{0}]"]
    apart = ["8 t[{0}] = x[{0}]", "8 y[{0}] = t[{0}]", "8 t[{0}] = 0", "8 z[{0}] = t[{0}]"]
    first, second = (content("t f32 [8] heap\n\n" + "\n".join(body)) for body in (lines, apart))
    assert first != second
