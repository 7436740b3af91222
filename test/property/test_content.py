"""Contents: equal ones mean equal texts and identifiers, or a verdict would be that of another program."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator
from random import Random
from weakref import ref

import pytest

from pdojo.dialect.flow.content import (
    Content,
    chain_content,
    content,
    content_of,
    form_of,
    form_of_program,
    uses_content,
)
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.notation.printer import access_text, declaration_line, print_nest, scope_text, tree_lines
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Node, Scope
from pdojo.dialect.view.nodes import nodes_of
from pdojo.dialect.view.paths import relative_paths
from pdojo.dialect.view.storage import accesses_of
from pdojo.kernels import kernel_names
from pdojo.transforms.game import Game
from property.walks import random_texts
from qa.sizes import small_kernel
from qa.walks import Counts, draw


def said_of_node(node: Node) -> Hashable:
    return tuple(tree_lines([node])), tuple(inner.id for inner in nodes_of(node))


def said_of_chain(leaf: Leaf) -> Hashable:
    return tuple(map(scope_text, leaf.chain))


def said_of_uses(nest: Nest, buffer: Buffer) -> Hashable:
    users = list(dict.fromkeys(leaf for leaf, _ in accesses_of(nest, buffer)))
    uses = (tuple(access_text(a) for a in leaf.accesses if a.array.buffer is buffer) for leaf in users)
    kinds = ((leaf.accumulate, leaf.asynchronous, leaf.output.array.buffer is buffer) for leaf in users)
    declaration = declaration_line(buffer), buffer.intent, buffer.alignment
    return declaration, tuple(relative_paths(users)), *uses, *kinds, *map(said_of_chain, users)


def said(nest: Nest) -> Iterator[tuple[Content | None, Hashable]]:
    """Every content in a program, and what is printed of it."""
    for node in (*nest.scopes, *nest.leaves):
        yield content_of(node), said_of_node(node)
        yield form_of(node), tuple(tree_lines([node]))
    for leaf in nest.leaves:
        yield chain_content(leaf), said_of_chain(leaf)
    for buffer in nest.buffers:
        yield uses_content(nest, buffer), said_of_uses(nest, buffer)


def states(kernel: KernelOp, on: str, seed: int, length: int) -> Iterator[Nest]:
    """The programs of a random walk; half of it is made in place, so that nodes keep their contents."""
    game, random = Game(kernel, machine(on)), Random(seed)
    yield game.program.nest
    for _ in range(length):
        move = draw(game.program, random, Counts())
        if move is not None:
            game.apply(move)
            yield game.program.nest
    with game.in_place():
        for _ in range(length):
            move = draw(game.program, random, Counts())
            if move is not None:
                game.apply(move)
                yield game.program.nest


@pytest.mark.parametrize("on", ["toy", "toy-gpu", "toy-snitch"])
def test_equal_contents_print_equal_texts(on: str) -> None:
    known: dict[Content | None, Hashable] = {}
    texts: set[Hashable] = set()
    forms: dict[str, Content] = {}
    again = 0
    kernels = [parse_notation(text)[0] for text in random_texts(6)[::3]]
    kernels += [small_kernel(name, Random(k)) for k, name in enumerate(kernel_names(long=False)[::16])]
    for seed, kernel in enumerate(kernels):
        for nest in states(kernel, on, seed, 4):
            for found, text in said(nest):
                again += found in known
                assert known.setdefault(found, text) == text
                texts.add(text)
            form = form_of_program(nest)
            assert forms.setdefault(print_nest(nest), form) is form
    assert again > 500
    assert len(texts) > 300


PAIRS = [
    ("y[{0}] = x[{0}] + 0.0", "y[{0}] = x[{0}] + -0.0"),
    ("y[{0}] = x[{0}] + 1", "y[{0}] = x[{0}] + 2"),
    ("y[{0}] = nan", "y[{0}] = inf"),
    ("y[{0}] = 1", "y[{0}] = {0}"),
    ("y[{0}] = x[{0}]", "y[{0}] += x[{0}]"),
    ("y[{0}] += x[{0}] * x[{0}]", "y[{0}] fma= x[{0}] * x[{0}]"),
    ("y[{0}] = x[{0}]", "y[{0}]!nontemporal = x[{0}]"),
    ("y[{0}] = x[{0}]!prefetch(64)", "y[{0}] = x[{0}]!prefetch(128)"),
    ("y[{0}] = x[{0}]", "y[{0}] = x[7-{0}]"),
    ("y[{0}] = x[{0}//2]", "y[{0}] = x[{0}%2]"),
    ("y[{0}] = x[p[{0}]]", "y[{0}] = x[q[{0}]]"),
    ("y[{0}] = exp(x[{0}])", "y[{0}] = log(x[{0}])"),
]
HEAD = "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\np i64 [8] table {}\nq i64 [8] table {}\n\n8{} "
TABLES = "0, 1, 2, 3, 4, 5, 6, 7", "7, 6, 5, 4, 3, 2, 1, 0"


def only(text: str) -> Node:
    """The only top-level node of a kernel."""
    return nest_of(parse_notation(text)[0]).children[0]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_statements_that_differ_have_other_contents(one: str, other: str) -> None:
    head = HEAD.format(*TABLES, "")
    assert content_of(only(head + one)) is content_of(only(head + one))
    assert content_of(only(head + one)) is not content_of(only(head + other))


@pytest.mark.parametrize("scope", [":p", ":u", ":v", " where ({0} < 4)", " where ({0} >= 4)"])
def test_scopes_that_differ_have_other_contents(scope: str) -> None:
    plain, other = (only(HEAD.format(*TABLES, form) + "y[{0}] = x[{0}]") for form in ("", scope))
    assert isinstance(plain, Scope)
    assert content_of(plain) is not content_of(other)


def test_tables_of_one_name_with_other_entries() -> None:
    one, other = (only(HEAD.format(*tables, "") + "y[{0}] = x[p[{0}]]") for tables in (TABLES, TABLES[::-1]))
    assert content_of(one) is not content_of(other)


def test_identifiers_are_part_of_contents() -> None:
    kernel = parse_notation(HEAD.format(*TABLES, "") + "y[{0}] = x[{0}]")[0]
    game = Game(kernel, machine("toy"))
    before = game.program.nest.children[0]
    game.apply("tile_scope@y:0{size=8}")
    after = game.program.nest.children[0]
    assert before.id != after.id
    assert content_of(before) is not content_of(after)


def test_contents_are_kept_as_long_as_they_are_used() -> None:
    inner = content("a structure", 1)
    outer = content(inner, 2)
    assert content(content("a structure", 1), 2) is outer
    assert content(inner, 3) is not outer
    kept = ref(inner)
    del inner
    assert kept() is not None
    del outer
    assert kept() is None


def test_copies_are_other_contents() -> None:
    """So nothing that another process answered is taken for an answer here."""
    found = content("a structure", 1)
    assert pickle.loads(pickle.dumps(found)) is not found
