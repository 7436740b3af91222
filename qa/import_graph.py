"""The graph of imports between folders: `python -m qa.import_graph` writes it into docs/architecture.md.

An arrow goes from a folder to one that it imports. Arrows implied by others, and imports of types, are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- python -m qa.import_graph", "<!-- end -->"
PACKAGES = ("pdojo", "pdojo.dialect", "pdojo.backends", "pdojo.search")
"""Packages with a graph of their folders."""
BASE = ("pdojo.errors", "pdojo.files")
"""Modules that all others may import; the graphs omit them."""


def import_graph() -> grimp.ImportGraph:
    """All imports of pdojo except those for type checkers."""
    return grimp.build_graph("pdojo", exclude_type_checking_imports=True)


def circles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Groups of modules that all import each other, directly or through others."""
    found: list[set[str]] = []
    for module in sorted(graph.modules):
        around = graph.find_downstream_modules(module) & graph.find_upstream_modules(module)
        if around and around | {module} not in found:
            found.append(around | {module})
    return found


def folders(graph: grimp.ImportGraph, package: str) -> dict[str, set[str]]:
    """The folders of a package and the other folders that each imports; in `pdojo` itself, also its modules."""
    children = [
        m for m in sorted(graph.find_children(package) - set(BASE)) if package == "pdojo" or graph.find_children(m)
    ]
    return {
        child: {other for other in children if other != child and _imports(graph, child, other)} for child in children
    }


def _imports(graph: grimp.ImportGraph, importer: str, imported: str) -> bool:
    return graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)


def reduced(arrows: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """The arrows not implied by others. Arrows of a cycle all remain."""
    reach = {start: _reached(arrows, start) for start in arrows}
    for start, ends in arrows.items():
        for end in sorted(ends):
            if not any(end in reach[way] and start not in reach[way] for way in ends - {end}):
                yield start, end


def _reached(arrows: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        for end in arrows[left.pop()] - found:
            found.add(end)
            left.append(end)
    return found


def drawn(graph: grimp.ImportGraph) -> str:
    """The graphs of all packages in Mermaid's language."""
    parts: list[str] = []
    for package in PACKAGES:
        arrows = folders(graph, package)
        lines = [f"  {_name(a)} --> {_name(b)}" for a, b in reduced(arrows)]
        parts.append("\n".join([f"`{package.replace('.', '/')}`:\n", "```mermaid", "flowchart TD", *lines, "```"]))
    return "\n\n".join(parts)


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def with_graphs(page: str, graphs: str) -> str:
    """The page with these graphs between the marks."""
    before, _, rest = page.partition(BEGIN)
    mark, _, rest = rest.partition("\n")
    return f"{before}{BEGIN}{mark}\n\n{graphs}\n\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the current graphs."""
    PAGE.write_text(with_graphs(PAGE.read_text(encoding="utf-8"), drawn(import_graph())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
