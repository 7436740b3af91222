"""Mutation operators: each makes one small change of a symbol's syntax tree at the place that words determine.

The words are separated by spaces. A name, an attribute, a keyword, a number, a string or a dotted name such as
`site.mapping` is a word. The place is the smallest one that mentions all words. The operator raises UsageError if there
is no such place, or several.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import cast

from pdojo.errors import UsageError
from qa.mutation.places import parsed, place
from qa.mutation.source import Edit, Source


def never(words: str) -> Operator:
    """A condition (of `if`, `while` or a comprehension) or an operand of `and` or `or` is False.

    `never("race")`: `if race is not None:` -> `if False:`
    """
    return Operator("condition", words, "False")


def always(words: str) -> Operator:
    """A condition, or an operand of `and` or `or`, is True.

    `always("race")`: `if race is None:` -> `if True:`
    """
    return Operator("condition", words, "True")


def without(words: str) -> Operator:
    """An operand of `and` or `or` is deleted.

    `without("high")`: `low < 0 or high >= extent` -> `low < 0`
    """
    return Operator("operand", words)


def dropped(words: str) -> Operator:
    """An argument of a call, or an element of a tuple, a list or a set, is deleted.

    `dropped("racing")`: `conflict(leaves, racing=True)` -> `conflict(leaves)`
    """
    return Operator("element", words)


def returns(value: str, words: str = "") -> Operator:
    """A return statement returns another value.

    `returns("None", "room")`: `return lost or room(program)` -> `return None`
    """
    return Operator("return", words, value)


def assigned(name: str, value: str) -> Operator:
    """A variable is assigned another value.

    `assigned("racing", "False")`: `racing = not declares_tree` -> `racing = False`
    """
    return Operator("variable", name, value)


def passed(keyword: str, value: str) -> Operator:
    """A keyword argument has another value.

    `passed("contracted", "False")`: `OpOp(contracted=leaf.contracted)` -> `OpOp(contracted=False)`
    """
    return Operator("keyword", keyword, value)


def answers(function: str, value: str) -> Operator:
    """The call of a function or a method is a value.

    `answers("needed", "None")`: `reason = needed(program, site)` -> `reason = None`
    """
    return Operator("call", function, value)


def compared(words: str, operator: str) -> Operator:
    """The relational operator of a comparison is another one.

    `compared("greatest", ">")`: `if greatest >= self.to:` -> `if greatest > self.to:`
    """
    return Operator("comparison", words, operator)


def replaced(old: str, new: str) -> Operator:
    """An expression is another one. Its format does not matter.

    `replaced("BEFORE", "AFTER")`: `(*outside, BEFORE)` -> `(*outside, AFTER)`
    """
    return Operator("expression", old, new)


@dataclass(frozen=True)
class Operator:
    """A change at one place of a symbol."""

    kind: str
    """The kind of the place."""
    words: str
    """The words that determine the place."""
    new: str | None = None
    """The source of the replacement; None to delete the place."""

    def edit(self, source: Source, symbol: str) -> Edit:
        """The change of a file. Raises UsageError unless there is exactly one place."""
        node, part = place(source.symbol(symbol), self.kind, self.words)
        if self.new is None:
            assert isinstance(node, ast.expr)
            return source.replacing(node, shorter(node, part))
        assert isinstance(part, ast.expr)
        return source.replacing(part, self._changed(part, self.new))

    def _changed(self, part: ast.expr, new: str) -> ast.expr:
        if self.kind != "comparison":
            return parsed(new)
        assert isinstance(part, ast.Compare)
        operator = parsed(f"a {new} b")
        assert isinstance(operator, ast.Compare)
        return with_operator(part, 0, operator.ops[0])


@dataclass(frozen=True)
class Quoted:
    """A replacement of text, for changes without an operator; the symbol has the old text exactly once."""

    old: str
    new: str

    def edit(self, source: Source, symbol: str) -> Edit:
        """The change of a file. Raises UsageError unless the symbol has the text exactly once."""
        start, part = source.part(source.symbol(symbol))
        if part.count(self.old) != 1:
            raise UsageError(f"{part.count(self.old)} times instead of once: {self.old}")
        return Edit(start + len(part[: part.index(self.old)].encode()), self.old, self.new)


def shorter(node: ast.expr, part: ast.AST) -> ast.expr:
    """A list of operands, elements or arguments without `part`; of two operands, the other one."""
    new = copy.copy(node)
    for field, values in ast.iter_fields(node):
        if isinstance(values, list):
            setattr(new, field, [value for value in cast(list[object], values) if value is not part])
    return new.values[0] if isinstance(new, ast.BoolOp) and len(new.values) == 1 else new


def with_operator(node: ast.Compare, position: int, operator: ast.cmpop) -> ast.Compare:
    """A comparison with another relational operator at a position."""
    return ast.Compare(node.left, [*node.ops[:position], operator, *node.ops[position + 1 :]], node.comparators)
