"""Programs as lines: the lines of a move's location, changed lines, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation.printer import header_lines, tree_rows
from pdojo.dialect.view.nest import Array, Leaf, Nest, Node, Scope
from pdojo.errors import IllegalMove, LocationError
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate
from pdojo.transforms.site import Dimension


@dataclass(frozen=True)
class Page:
    """The canonical text of a program, line by line."""

    lines: tuple[str, ...]
    declared: dict[str, int]
    """Number of the line that declares each array's buffer."""
    places: dict[str, int]
    """Number of the line of each scope and statement, keyed by identifier."""

    @property
    def text(self) -> str:
        """The canonical text, as `print_notation` gives it."""
        return "\n".join(self.lines) + "\n"

    @staticmethod
    def of(nest: Nest) -> Page:
        """The page of a program."""
        lines = list(header_lines(nest))
        first = len(lines) - len(nest.buffers)
        declared = {name: first + i for i, buffer in enumerate(nest.buffers) for name in buffer.names}
        lines.append("")
        places: dict[str, int] = {}
        for line, nodes in tree_rows(nest.children):
            places.update((node.id, len(lines)) for node in nodes)
            lines.append(line)
        return Page(tuple(lines), declared, places)


@dataclass(frozen=True)
class Marks:
    """Lines of a page that belong to a move's location."""

    head: frozenset[int] = frozenset()
    """The line of the scope, statement or declaration that the move names."""
    part: frozenset[int] = frozenset()
    """Lines inside that scope, or of uses of the array."""


def marks_of(page: Page, program: Program, move: Move) -> Marks:
    """The lines of a move's location; none if the program does not have it."""
    try:
        site = instantiate(move).resolve(program, move.at)
    except (LocationError, IllegalMove):
        return Marks()
    if isinstance(site, Array | Dimension):
        array = site if isinstance(site, Array) else site.array
        head = page.declared[array.name]
        inside = (leaf.id for leaf in program.nest.leaves if any(a.array.buffer is array.buffer for a in leaf.accesses))
    else:
        head = page.places[site.id]
        inside = _inside(site)
    return Marks(frozenset({head}), frozenset(page.places[identifier] for identifier in inside) - {head})


def _inside(node: Node) -> Iterator[str]:
    yield node.id
    if isinstance(node, Scope):
        for child in node.children:
            yield from _inside(child)
    else:
        assert isinstance(node, Leaf)


@dataclass(frozen=True)
class Changes:
    """Lines of a page that the last move changed."""

    changed: frozenset[int] = frozenset()
    """New and modified lines."""
    below_gap: frozenset[int] = frozenset()
    """Lines below deleted ones."""

    @staticmethod
    def between(before: Sequence[str], after: Sequence[str]) -> Changes:
        """The differences as lines of `after`."""
        changed: set[int] = set()
        gaps: set[int] = set()
        for kind, _, _, low, high in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind in ("replace", "insert"):
                changed.update(range(low, high))
            elif kind == "delete":
                gaps.add(min(low, len(after) - 1))
        return Changes(frozenset(changed), frozenset(gaps))


def difference(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """A diff with one line of context; `...` separates distant places."""
    lines = list(unified_diff(before, after, lineterm="", n=1))[2:]
    return ["..." if line.startswith("@@") else line for line in lines][1:]
