"""Docstrings begin with a noun or a verb, as CONTRIBUTING.md asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FORBIDDEN = ("What ", "Those ", "That of ", "As that ", "On ", "Whose ")
"""Beginnings of relative clauses without a noun, and inversions."""

RENAMED = {
    "subject": "task (of tuning), contender (in a comparison), program, kernel",
    "outlook": "effect of a move",
    "prospect": "effect of a move",
    "meetings": "false dependences",
    "meanings": "references (NumPy), semantics (a nest in the notation)",
    "play_pass": "run_pass",
}
"""Words of earlier versions, with those of the field that replace them."""
_OLD = re.compile(rf"(?<![a-z])({'|'.join(RENAMED)})s?(?![a-z])", re.IGNORECASE)


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


@pytest.mark.parametrize("folder", ["pdojo", "tools", "qa", "benchmarks"])
def test_words_that_were_replaced_do_not_come_back(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: '{match[0]}': write {RENAMED[match[1].lower()]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in _OLD.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_an_old_word_is_noticed_in_names_and_sentences() -> None:
    assert [match[1] for match in _OLD.finditer("self._subject_of = subjects  # the Outlook; subjective")] == [
        "subject",
        "subject",
        "Outlook",
    ]
