"""Places in a syntax tree, found by the words that they mention."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from pdojo.errors import UsageError

Place: TypeAlias = tuple[ast.AST, ast.AST]
"""A node, and the part of it that the operator changes."""


def place(root: ast.AST, kind: str, words: str) -> Place:
    """The only place of a kind. Raises UsageError if there is none, or several."""
    if kind in _NAMED:
        found = [each for node in _nodes(root) for each in _NAMED[kind](node, words)]
    else:
        wanted = {*words.split()}
        found = [each for node in _nodes(root) for each in _MENTIONED[kind](node) if wanted <= _words(each[1])]
        parts = {id(part) for _, part in found}
        found = [(node, part) for node, part in found if not parts & {id(inner) for inner in _within(part)}]
    if len(found) != 1:
        raise UsageError(f"{len(found)} places instead of one: {kind} '{words}'")
    return found[0]


def _nodes(root: ast.AST) -> Iterator[ast.AST]:
    """All nodes in the order of the text, except the insides of formatted strings, whose positions are unknown."""
    yield root
    for child in ast.iter_child_nodes(root):
        if not isinstance(child, ast.JoinedStr):
            yield from _nodes(child)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    return (inner for inner in ast.walk(node) if inner is not node)


def _words(node: ast.AST) -> set[str]:
    return {word for part in ast.walk(node) for word in _of(part)}


def _of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.Attribute(attr=name):
            yield name
            yield ast.unparse(node)
        case ast.Constant(value=int(value) | str(value) | (None as value)):
            yield str(value)
        case _:
            pass


def _conditions(node: ast.AST) -> Iterator[Place]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield node, test
        case ast.comprehension(ifs=parts) | ast.BoolOp(values=parts):
            for part in parts:
                yield node, part
        case _:
            pass


def _operands(node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            yield node, part


def _elements(node: ast.AST) -> Iterator[Place]:
    match node:
        case ast.Call(args=parts, keywords=named):
            for part in (*parts, *named):
                yield node, part
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield node, part
        case _:
            pass


def _returned(node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.Return) and node.value is not None:
        yield node, node.value


def _comparisons(node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield node, node


def _assigned(node: ast.AST, name: str) -> Iterator[Place]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=target)], value=value)
            | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
            | ast.AugAssign(target=ast.Name(id=target), value=value)
            | ast.NamedExpr(target=ast.Name(id=target), value=value)
        ) if target == name:
            yield node, value
        case _:
            pass


def _keywords(node: ast.AST, name: str) -> Iterator[Place]:
    if isinstance(node, ast.keyword) and node.arg == name:
        yield node, node.value


def _calls(node: ast.AST, function: str) -> Iterator[Place]:
    if isinstance(node, ast.Call) and function in {*_of(node.func)}:
        yield node, node


def _equal(node: ast.AST, text: str) -> Iterator[Place]:
    wanted = parsed(text)
    if type(node) is type(wanted) and ast.dump(node) == ast.dump(wanted):
        yield node, node


@lru_cache(maxsize=64)
def parsed(text: str) -> ast.expr:
    """The expression of a text. Raises UsageError if it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"'{text}' is no expression: {error}") from None


_MENTIONED: dict[str, Callable[[ast.AST], Iterator[Place]]] = {
    "condition": _conditions,
    "operand": _operands,
    "element": _elements,
    "return": _returned,
    "comparison": _comparisons,
}
"""Finders of places that words determine."""

_NAMED: dict[str, Callable[[ast.AST, str], Iterator[Place]]] = {
    "variable": _assigned,
    "keyword": _keywords,
    "call": _calls,
    "expression": _equal,
}
"""Finders of places by name or by whole expression."""
