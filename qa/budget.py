"""Lines of Python by folder beside their ceilings (`python -m qa.budget`, part of `make lint`).

The ceilings are in `qa/budget.toml`, a folder each; a file counts for the longest path that names it. Further ceilings
are for the lines of a file and of a function outside of the tests, and for comments in `pdojo` that silence ruff or the
type checker. Exit code 0: all are kept; 1: some are not.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[1]
CEILINGS = Path(__file__).with_suffix(".toml")
SILENCED = {"noqa": re.compile(r"#\s*noqa\b"), "type ignores": re.compile(r"#\s*(pyright|type):\s*ignore\b")}
"""Comments that silence a check, by the name of their ceiling."""
Table: TypeAlias = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Row:
    """A count and its ceiling."""

    name: str
    count: int
    ceiling: int

    def __str__(self) -> str:
        excess = "" if self.is_kept else f"  {self.count - self.ceiling} too many"
        return f"{self.name:34}{self.count:8,}{self.ceiling:9,}{excess}"

    @property
    def is_kept(self) -> bool:
        """True if the count does not exceed the ceiling."""
        return self.count <= self.ceiling


def rows(root: Path, ceilings: Table) -> Iterator[Row]:
    """The lines of each folder, and the other counts, of the Python files below `root`."""
    lines, silenced = Counter[str](), Counter[str]()
    folders = sorted(ceilings["lines"], key=len, reverse=True)
    files, functions = ceilings["limits"]["file"], ceilings["limits"]["function"]
    long: list[Row] = []
    for top in {folder.partition("/")[0] for folder in folders}:
        for path in sorted((root / top).rglob("*.py")):
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            count = text.count("\n")
            lines[next((f for f in folders if name.startswith(f"{f}/")), top)] += count
            if top == "test":
                continue
            long += [Row(name, count, files)] if count > files else []
            long += [Row(f"{name}: {f}", size, functions) for f, size in _functions(text) if size > functions]
            if top == "pdojo":
                silenced.update({what: len(pattern.findall(text)) for what, pattern in SILENCED.items()})
    yield from (Row(folder, lines[folder], ceilings["lines"].get(folder, 0)) for folder in sorted({*folders, *lines}))
    yield from (Row(what, silenced[what], ceilings["silenced"][what]) for what in SILENCED)
    yield from long


def _functions(text: str) -> Iterator[tuple[str, int]]:
    """The functions of a file, with their lines without the docstring's."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None
            yield node.name, _lines(node) - (_lines(node.body[0]) if documented else 0)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def main() -> int:
    """Print the counts beside their ceilings; returns the exit code."""
    found = list(rows(ROOT, tomllib.loads(CEILINGS.read_text(encoding="utf-8"))))
    print(f"{'':34}{'lines':>8}{'ceiling':>9}")
    print(*found, sep="\n")
    broken = [row for row in found if not row.is_kept]
    if broken:
        print(f"error: {len(broken)} of them are too many; delete, or say in {CEILINGS.name} why", file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
