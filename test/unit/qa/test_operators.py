"""Mutation operators: the place that each finds, a place that is missing, a place that is ambiguous."""

from __future__ import annotations

import ast

import pytest

from pdojo.errors import UsageError
from qa.mutation.operators import (
    Operator,
    Quoted,
    always,
    answers,
    assigned,
    compared,
    dropped,
    never,
    passed,
    replaced,
    returns,
    without,
)
from qa.mutation.source import Source

CODE = '''"""Ein Modul mit Umlauten: äöü."""


class Move:
    """A class."""

    def check(self, site, other):
        """Doc."""
        race = find(site.leaves, racing=True)  # a comment
        if race is not None and site.extent < other.extent:
            return f"{race} in {site}"
        if other.guard or site.guard:
            return room(other)
        size = max(min(site.extent, 4),
                   min(other.extent, 4))
        while size > 1 if site.guard else size > 2:
            size = size - 1
        return [g for g in (*site.guard, *other.guard, "ä", 'ü') if g.uses(size)]


def check(site):
    return None
'''

FOUND = [
    (never("race"), "race is not None", "False"),
    (never("race other"), "race is not None and site.extent < other.extent", "False"),
    (always("other.guard"), "other.guard or site.guard", "True or site.guard"),
    (always("uses"), "g.uses(size)", "True"),
    (without("extent"), "race is not None and site.extent < other.extent", "race is not None"),
    (dropped("racing"), "find(site.leaves, racing=True)", "find(site.leaves)"),
    (dropped("ä"), "(*site.guard, *other.guard, 'ä', 'ü')", "(*site.guard, *other.guard, 'ü')"),
    (dropped("other.guard"), "(*site.guard, *other.guard, 'ä', 'ü')", "(*site.guard, 'ä', 'ü')"),
    (returns("None", "room"), "room(other)", "None"),
    (assigned("race", "None"), "find(site.leaves, racing=True)", "None"),
    (passed("racing", "False"), "True", "False"),
    (answers("max", "other"), "max(min(site.extent, 4), min(other.extent, 4))", "other"),
    (answers("uses", "size"), "g.uses(size)", "size"),
    (compared("race", "is"), "race is not None", "race is None"),
    (replaced("min(other.extent,4)", "4"), "min(other.extent, 4)", "4"),
    (Quoted("min(site.extent, 4),\n", "4,\n"), "min(site.extent, 4)", "4"),
]


@pytest.mark.parametrize(("change", "old", "new"), FOUND)
def test_an_operator_changes_one_place(change: Operator | Quoted, old: str, new: str) -> None:
    source = Source(CODE)
    after = Source(source.edited(change.edit(source, "Move.check")))
    unparsed = ast.unparse(source.tree)
    assert unparsed.count(old) == 1
    assert ast.unparse(after.tree) == unparsed.replace(old, new)


def test_the_rest_of_the_text_stays_as_it_is() -> None:
    source = Source(CODE)
    edit = without("site.extent").edit(source, "Move.check")
    assert source.has(edit)
    assert edit.old == "race is not None and site.extent < other.extent"
    assert source.edited(edit) == CODE.replace(edit.old, "(race is not None)")


@pytest.mark.parametrize(
    ("change", "times"),
    [
        (never("lost"), 0),
        (never("site.extent race room"), 0),
        (never("site.guard"), 2),
        (always("size"), 2),
        (without("size"), 0),
        (without("guard"), 2),
        (dropped("taken"), 0),
        (dropped("4"), 2),
        (returns("None", "lost"), 0),
        (returns("None"), 3),
        (assigned("lost", "None"), 0),
        (assigned("size", "1"), 2),
        (passed("taken", "None"), 0),
        (answers("all", "None"), 0),
        (answers("min", "0"), 2),
        (compared("size 3", "<"), 0),
        (compared("size", "<"), 2),
        (replaced("site.extents", "1"), 0),
        (replaced("site.extent", "1"), 2),
        (Quoted("site.extents", "1"), 0),
        (Quoted("size > ", "size < "), 2),
    ],
)
def test_a_place_that_is_missing_or_ambiguous_is_an_error(change: Operator | Quoted, times: int) -> None:
    with pytest.raises(UsageError, match=f"^{times} (places|times) instead of"):
        change.edit(Source(CODE), "Move.check")


def test_a_keyword_that_several_calls_have_is_an_error() -> None:
    source = Source("f(a, racing=True)\ng(b, racing=True)\n")
    with pytest.raises(UsageError, match="2 places instead of one: keyword 'racing'"):
        passed("racing", "False").edit(source, "")


def test_words_single_out_the_smallest_place() -> None:
    source = Source("if any(g for g in guards if g.old) and guards[0]: f()\n")
    assert never("guards old").edit(source, "").old == "any(g for g in guards if g.old)"
    assert never("old").edit(source, "").old == "g.old"


def test_a_symbol_is_a_class_a_function_or_a_method() -> None:
    source = Source(CODE)
    assert returns("1").edit(source, "check").old == "None"
    assert assigned("race", "1").edit(source, "Move") == assigned("race", "1").edit(source, "Move.check")
    with pytest.raises(UsageError, match=r"there is no 'Move\.find'"):
        never("race").edit(source, "Move.find")


def test_formatted_strings_are_no_places() -> None:
    with pytest.raises(UsageError, match="0 places"):
        replaced("race.text", "site").edit(Source('f"{race.text}"\n'), "")


def test_what_is_no_expression_is_an_error() -> None:
    with pytest.raises(UsageError, match="'if' is no expression"):
        assigned("race", "if").edit(Source(CODE), "Move")
    with pytest.raises(UsageError, match="is no expression"):
        compared("race", "==)").edit(Source(CODE), "Move")
