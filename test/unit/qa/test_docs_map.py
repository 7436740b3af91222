"""docs/README.md is a map of all pages; relative links and names of modules in pages and docstrings lead somewhere."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest

from pdojo.dialect.ops import PDOJO
from pdojo.dialect.plugins import BACKENDS, KINDS, MACHINES, PROPOSALS, STRATEGIES, TRANSFORMATIONS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_DOTTED = re.compile(r"`(pdojo(?:\.\w+)+)[`(]")
SOURCES = sorted(file for part in ("pdojo", "tools", "qa", "benchmarks") for file in (ROOT / part).rglob("*.py"))
NO_MODULES = {
    *(MACHINES, TRANSFORMATIONS, BACKENDS, KINDS, PROPOSALS, STRATEGIES),
    *("pdojo.shared_bytes", "pdojo.thread_bytes", "pdojo.stack_bytes", "pdojo.workspace_bytes"),
    *("pdojo.gru", "pdojo.lstm", "pdojo.lstm.default"),
}
"""Groups of entry points, attributes of functions, and operators that `pdojo.torch` declares to PyTorch."""
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *(ROOT / "benchmarks/results").glob("**/*.md")])


def text_of(page: Path) -> str:
    """The page without its code."""
    return _FENCED.sub("", page.read_text())


def linked(page: Path) -> set[Path]:
    """The files and folders that a page links."""
    targets = (link.partition("#")[0] for link in _LINK.findall(text_of(page)))
    return {(page.parent / target).resolve() for target in targets if target}


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: headings in small letters, with hyphens for spaces and no other punctuation."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text_of(page))}


def test_the_readme_links_the_map() -> None:
    assert DOCS / "README.md" in linked(ROOT / "README.md")


def test_every_page_is_on_the_map() -> None:
    """The map links a page itself, or the README.md of a folder that does."""
    direct = linked(DOCS / "README.md")
    folders = [page for page in direct if page.name == "README.md" and page.is_relative_to(DOCS)]
    on_map = {DOCS / "README.md"}.union(direct, *map(linked, folders))
    missing = set(DOCS.glob("**/*.md")) - on_map
    assert not missing, f"docs/README.md does not link {', '.join(sorted(map(str, missing)))}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(text_of(page)):
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.relative_to(ROOT)}: {link}"
        assert file.is_relative_to(ROOT), f"{page.relative_to(ROOT)} links out of the project: {link}"
        assert not anchor or anchor in anchors(file), f"{page.relative_to(ROOT)}: no heading for {link}"


def test_dotted_names_exist() -> None:
    """`pdojo.a.b` between back quotes is a module, something in one, an operation, or in `NO_MODULES`."""
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which tells of names that are gone
    known = NO_MODULES | {operation.name for operation in PDOJO.operations}
    named = [(file, name) for file in (*pages, *SOURCES) for name in _DOTTED.findall(file.read_text())]
    assert len(named) > 50
    gone = {f"{file.relative_to(ROOT)}: {name}" for file, name in named if name not in known and not is_there(name)}
    assert not gone, sorted(gone)


def is_there(name: str) -> bool:
    """Whether Python finds a dotted name; names of `pdojo.torch` are taken for granted without PyTorch."""
    if name.startswith("pdojo.torch") and find_spec("torch") is None:
        return True
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True
