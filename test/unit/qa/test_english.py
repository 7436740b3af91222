"""Docstrings begin with a noun or a verb, as CONTRIBUTING.md asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FORBIDDEN = ("What ", "Those ", "That of ", "As that ", "On ", "Whose ")
"""Beginnings of relative clauses without a noun, and inversions."""


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """All strings that are statements: docstrings, and those of attributes."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(said))):
                yield node.lineno, said
            case _:
                pass


@pytest.mark.parametrize("folder", ["pdojo", "tools", "qa", "benchmarks"])
def test_docstrings_begin_with_a_noun_or_a_verb(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {said.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, said in docstrings(path.read_text(encoding="utf-8"))
        if said.startswith(FORBIDDEN)
    ]
    assert not found, "\n".join(found)


def test_a_relative_clause_is_noticed() -> None:
    assert list(docstrings('x = 1\n"""What x is."""\n')) == [(2, "What x is.")]
