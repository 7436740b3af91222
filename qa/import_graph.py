"""The graph of imports between folders: `python -m qa.import_graph` writes it into docs/architecture.md.

An arrow goes from a folder to one that it imports; arrows implied by others, and imports of types, are left out.
`python -m qa.import_graph --circles` prints the circles instead: those of imports, with strings, with types.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- python -m qa.import_graph", "<!-- end -->"
PACKAGES = ("pdojo", "pdojo.dialect", "pdojo.transforms", "pdojo.backends", "pdojo.search")
"""Packages with a graph of their folders."""
BASE = ("pdojo.errors", "pdojo.files")
"""Modules that all others may import; the graphs omit them."""
Arrows: TypeAlias = dict[str, set[str]]
"""The names that each name leads to."""


def import_graph(*, strings: bool = False, types: bool = False) -> grimp.ImportGraph:
    """All imports of pdojo, also those inside functions; with `strings`, also modules named by strings."""
    graph = grimp.build_graph("pdojo", exclude_type_checking_imports=not types, cache_dir=None)
    if strings:
        for importer, named in named_modules().items():
            for imported in named - {importer}:
                graph.add_import(importer=importer, imported=imported)
    return graph


@cache
def named_modules() -> Arrows:
    """The modules of pdojo that strings of each module name; modules without such strings are left out.

    A string is a file's path, `path:name`, or completes an f-string of the same module (`f"package.{module}"`).
    """
    spec = find_spec("pdojo")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parents[1]
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(root.glob("pdojo/**/*.py"))
    }
    found = {m: set(_named(ast.parse(path.read_text(encoding="utf-8")), m, files)) for m, path in files.items()}
    return {module: named for module, named in found.items() if named}


def _named(tree: ast.Module, module: str, known: Mapping[str, Path]) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    prefixes = [p for node in nodes if isinstance(node, ast.JoinedStr) and (p := _prefix(node, module)) in known]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            name, colon, _ = node.value.partition(":")
            # A folder without a name in it is a group of entry points, or a folder of files.
            if name in known and "." in name and (colon or known[name].name != "__init__.py"):
                yield name
            yield from (path for prefix in prefixes if (path := f"{prefix}.{name}") in known)


def _prefix(text: ast.JoinedStr, module: str) -> str:
    """The package before the last dot of `f"package.{...}"` or `f"{__name__}.{...}"`; empty for any other text.

    Paths in `pdojo` itself are completed by the module `pdojo` only: elsewhere such texts name other things.
    """
    match text.values:
        case [ast.Constant(value=str(head)), ast.FormattedValue()] if head != "pdojo." or module == "pdojo":
            return head.removesuffix(".") if head.endswith(".") else ""
        case [ast.FormattedValue(value=ast.Name(id="__name__")), ast.Constant(value="."), ast.FormattedValue()]:
            return module
        case _:
            return ""


def modules(graph: grimp.ImportGraph) -> Arrows:
    """The modules that each module imports."""
    return {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}


def folders(graph: grimp.ImportGraph, package: str, *, files: bool = False) -> Arrows:
    """The folders of a package and the other folders that each imports; with `files`, and in `pdojo`, also modules."""
    children = [
        m
        for m in sorted(graph.find_children(package) - set(BASE))
        if files or package == "pdojo" or graph.find_children(m)
    ]
    return {
        child: {other for other in children if other != child and _imports(graph, child, other)} for child in children
    }


def _imports(graph: grimp.ImportGraph, importer: str, imported: str) -> bool:
    return graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)


def circles(arrows: Arrows) -> list[set[str]]:
    """Groups of names that all lead to each other, directly or through others."""
    reach = {start: _reached(arrows, start) for start in arrows}
    found = [{end for end in ends if start in reach[end]} for start, ends in reach.items() if start in ends]
    return [group for number, group in enumerate(found) if group not in found[:number]]


def reduced(arrows: Arrows) -> Iterator[tuple[str, str]]:
    """The arrows not implied by others. Arrows of a cycle all remain."""
    reach = {start: _reached(arrows, start) for start in arrows}
    for start, ends in arrows.items():
        for end in sorted(ends):
            if not any(end in reach[way] and start not in reach[way] for way in ends - {end}):
                yield start, end


def _reached(arrows: Arrows, start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        for end in arrows[left.pop()] - found:
            found.add(end)
            left.append(end)
    return found


def drawn(graph: grimp.ImportGraph) -> str:
    """The graphs of all packages in Mermaid's language, and a table of the modules named by strings."""
    parts: list[str] = []
    for package in PACKAGES:
        arrows = folders(graph, package)
        lines = [f"  {_name(a)} --> {_name(b)}" for a, b in reduced(arrows)]
        parts.append("\n".join([f"`{package.replace('.', '/')}`:\n", "```mermaid", "flowchart TD", *lines, "```"]))
    rows = [f"| `{module}` | {len(named)} |" for module, named in named_modules().items()]
    parts.append("\n".join(["Modules named by strings:\n", "| module | names |", "| --- | ---: |", *rows]))
    return "\n\n".join(parts)


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def with_graphs(page: str, graphs: str) -> str:
    """The page with these graphs between the marks."""
    before, _, rest = page.partition(BEGIN)
    mark, _, rest = rest.partition("\n")
    return f"{before}{BEGIN}{mark}\n\n{graphs}\n\n{END}{rest.partition(END)[2]}"


def listed_circles() -> Iterator[str]:
    """A line for each circle of modules, and of the folders of a package, in three graphs."""
    for title, graph in (
        ("imports", import_graph()),
        ("imports and strings", import_graph(strings=True)),
        ("imports and types", import_graph(types=True)),
    ):
        found = circles(modules(graph))
        yield f"{title}: {len(found)} circles of {len(set(chain(*found)))} modules"
        yield from _lines(found)
        for package in PACKAGES:
            found = circles(folders(graph, package, files=True))
            yield f"  {package}: {len(set(chain(*found)))} folders and files in circles"
            yield from _lines(found)


def _lines(groups: Iterable[set[str]]) -> Iterator[str]:
    return (f"    {' '.join(sorted(name.removeprefix('pdojo.') for name in group))}" for group in groups)


def main(arguments: list[str]) -> int:
    """Write the current graphs, or print the circles."""
    if arguments == ["--circles"]:
        sys.stdout.writelines(f"{line}\n" for line in listed_circles())
        return 0
    PAGE.write_text(with_graphs(PAGE.read_text(encoding="utf-8"), drawn(import_graph())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
