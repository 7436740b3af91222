"""Two programs side by side, with marks on differing lines."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest

from pdojo_tools.tuning.report.elements import Html, tag


def sides(before: str, after: str) -> Html:
    """The texts in two columns, or one below the other on narrow screens."""
    left, right = before.splitlines(), after.splitlines()
    rows = list(_aligned(left, right))
    columns = (
        ("before", "gone", [(one, changed) for one, _, changed in rows]),
        ("after", "come", [(other, changed) for _, other, changed in rows]),
    )
    return tag("div", *(_column(title, kind, lines) for title, kind, lines in columns), kind="sides")


def _column(title: str, kind: str, lines: list[tuple[str | None, bool]]) -> Html:
    shown = [
        tag("span", kind="row gap") if line is None else tag("span", line, kind=f"row {kind}" if changed else "row")
        for line, changed in lines
    ]
    return tag("div", tag("p", title, kind="note"), tag("pre", tag("code", *shown)))


def _aligned(left: list[str], right: list[str]) -> Iterator[tuple[str | None, str | None, bool]]:
    """Pairs of lines, and True if they differ; None if one side has no such line."""
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for one, other in zip_longest(left[a:b], right[c:d]):
            yield one, other, kind != "equal"
