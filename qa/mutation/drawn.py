"""Random defects: small changes of the syntax tree, for a score that the choice of the catalogue cannot bias."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

from pdojo.errors import UsageError
from qa.mutation.mutant import Mutant
from qa.mutation.operators import shorter, with_operator
from qa.mutation.source import Edit, Source

_COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
}
_NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}
_WORDS = ("describe", "spell", "__str__", "__repr__")
"""Functions that make messages."""

Change: TypeAlias = tuple[ast.expr, ast.expr, str]
"""An expression, its replacement, and a description."""


@dataclass(frozen=True)
class Drawn:
    """A change at one place in one version of a file."""

    place: Edit

    def edit(self, source: Source, symbol: str) -> Edit:
        """The change. Raises UsageError if the file has changed."""
        if not source.has(self.place):
            raise UsageError(f"it was drawn from another version, in which '{symbol}' has: {self.place.old}")
        return self.place


def draw(root: Path, within: str, count: int, seed: int) -> list[Mutant]:
    """`count` defects of a file or folder in the package, none in messages, determined by the seed."""
    start = root / "pdojo" / within
    files = sorted(start.rglob("*.py")) if start.is_dir() else [start]
    if not all(path.is_file() for path in files) or not files:
        raise UsageError(f"there is no '{within}' in the package pdojo")
    found = [mutant for path in files for mutant in _all(root, path)]
    return Random(seed).sample(found, min(count, len(found)))


def _all(root: Path, path: Path) -> Iterator[Mutant]:
    source = Source(path.read_text(encoding="utf-8"))
    file = path.relative_to(root / "pdojo").as_posix()
    for symbol, node in _expressions(source.tree, ""):
        for old, new, what in _changes(node):
            name = f"{file}:{old.lineno}:{old.col_offset}: {what}"
            yield Mutant(name, file, symbol, Drawn(source.replacing(old, new)), f"{what} in {symbol}", ())


def _expressions(node: ast.AST, symbol: str) -> Iterator[tuple[str, ast.expr]]:
    """The expressions that affect behaviour, with their functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            if any(word in child.name for word in _WORDS):
                continue
            for statement in child.body:
                yield from _expressions(_Holder(statement), f"{symbol}.{child.name}".lstrip("."))
        elif isinstance(child, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.AnnAssign):
            continue
        else:
            if isinstance(child, ast.expr) and symbol:
                yield symbol, child
            yield from _expressions(child, symbol)


class _Holder(ast.AST):
    """A node around one statement."""

    _fields = ("body",)

    def __init__(self, statement: ast.stmt) -> None:
        super().__init__()
        self.body = [statement]


def _changes(node: ast.expr) -> Iterator[Change]:
    for operator in (_boolean, _comparison, _number, _function, _condition):
        for new, what in operator(node):
            yield node, new, what


Operator: TypeAlias = Callable[[ast.expr], Iterator[tuple[ast.expr, str]]]


def _boolean(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Delete one operand of `and` or `or`."""
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            yield shorter(node, part), f"without '{ast.unparse(part)}'"


def _comparison(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            new = with_operator(node, k, _COMPARISONS[type(operator)])
            yield new, f"'{ast.unparse(new)}' for '{ast.unparse(node)}'"


def _number(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1), f"{node.value + 1} for {node.value}"
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        new = ast.BinOp(node.left, _ARITHMETIC[type(node.op)], node.right)
        yield new, f"'{ast.unparse(new)}' for '{ast.unparse(node)}'"


def _function(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMES:
        new = ast.Call(ast.Name(_NAMES[node.func.id]), node.args, node.keywords)
        yield new, f"'{_NAMES[node.func.id]}' for '{node.func.id}' in '{ast.unparse(node)}'"


def _condition(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Delete a negation, or always take the first branch of a conditional expression."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand, f"without 'not' in '{ast.unparse(node)}'"
    if isinstance(node, ast.IfExp):
        yield node.body, f"'{ast.unparse(node.body)}' whether or not '{ast.unparse(node.test)}'"
