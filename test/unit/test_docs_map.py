"""docs/README.md is a map of all pages, and relative links of pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
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
