"""The examples of `pdojo.build`'s functions run, and docs/build.md lists all of them."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

from pdojo import build

PAGE = Path(__file__).parents[3] / "docs" / "build.md"


@pytest.mark.parametrize("name", build.__all__)
def test_examples(name: str) -> None:
    text = inspect.getdoc(getattr(build, name))
    assert text
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_example_of_the_package() -> None:
    example = doctest.DocTestParser().get_doctest(build.__doc__ or "", {}, "build", None, None)
    assert doctest.DocTestRunner().run(example).attempted == 5


def test_the_page_lists_every_function() -> None:
    table = PAGE.read_text().partition("| functions | of |")[2].partition("\n## ")[0]
    listed = [
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    ]
    assert sorted(listed) == sorted(set(build.__all__) - {"Array"})
