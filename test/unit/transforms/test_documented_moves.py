"""The examples in the docstrings of transformations are true, and docs/moves.md is what the docstrings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.oracle.compare import equivalent
from pdojo.transforms.base import Transformation
from pdojo.transforms.document import DECLARATION, document, example_of
from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation
from qa.inverses import lost_on_the_way_back

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
def test_the_example_is_true(name: str) -> None:
    example = example_of(transformation(name))
    assert example.move.name == name
    applied = example.run()
    text = print_notation(applied.program.kernel)
    expected = example.expected()
    declared = [line for line in expected if DECLARATION.fullmatch(line)]
    header, _, tree = text.partition("\n\n")
    assert set(declared) <= set(header.splitlines())
    statements = [line for line in expected if line not in declared]
    assert not statements or tree.splitlines() == statements


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
def test_the_example_keeps_its_meaning_and_can_be_taken_back(name: str) -> None:
    example = example_of(transformation(name))
    applied = example.run()
    before = example.kernel()
    assert lost_on_the_way_back(Program(before, machine(example.machine)), applied.program, applied.inverse) is None
    if name not in ("contract", "expand"):  # the rounding is another meaning
        assert equivalent(before, applied.program.kernel) is None


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
def test_the_page_about_numerics_names_each_move_that_may_round(name: str) -> None:
    if any("numerics" in vars(c) for c in transformation(name).__mro__ if c is not Transformation):
        assert f"`{name}`" in (DOCS / "numerics.md").read_text()


def test_the_page_is_fresh() -> None:
    assert (DOCS / "moves.md").read_text() == document(), "run: python -m pdojo.transforms.document > docs/moves.md"
