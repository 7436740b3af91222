"""`make docs`: the site has all pages, its search and its pictures need no network, and dead links are errors."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pdojo_tools.completion import tool_parsers

ROOT = Path(__file__).parents[3]
NEEDED = ("sphinx", "myst_parser", "furo", "sphinxcontrib.mermaid", "mermaidx")
_LOADED = re.compile(r"<(?:script|img|link|iframe|object)\b[^>]*?\b(?:src|href|data)=\"([^\"]*)\"")


def build(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    for package in NEEDED:
        if find_spec(package.partition(".")[0]) is None or find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make docs installs it")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-c", str(ROOT / "docs/site"), "-d", folder / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, str(source), folder / "html"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# A site of a few pages


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A repository with a map, a page of each section, and a folder that is no page."""
    source = tmp_path / "source"
    (source / "docs/decisions").mkdir(parents=True)
    (source / "pdojo").mkdir()
    files = {
        "README.md": "# Front\n\nSee [the map](docs/README.md), and [code](pdojo).\n",
        "docs/README.md": "# Map\n\n## First\n\n- [One](one.md)\n\n## Second\n\n- [Why](decisions/README.md)\n",
        "docs/one.md": "# One\n\n<!-- site\nOnly here.\n-->\n\n```pdojo\nkernel k(x) -> (y)\n```\n\n[up](#one)\n",
        "docs/decisions/README.md": "# Decisions\n\n- [So](so.md)\n",
        "docs/decisions/so.md": "# So\n\n[there](../one.md#one)\n",
    }
    for name, text in files.items():
        (source / name).write_text(text)
    return source


def test_the_map_is_the_table_of_contents(pages: Path, tmp_path: Path) -> None:
    done = build(pages, tmp_path)
    assert done.returncode == 0, done.stderr
    front = (tmp_path / "html/README.html").read_text(encoding="utf-8")
    sidebar = front.partition('class="sidebar-tree"')[2]
    places = [sidebar.index(f">{text}<") for text in ("Map", "First", "One", "Second", "Decisions", "So")]
    assert places == sorted(places)
    assert "Only here." in (tmp_path / "html/docs/one.html").read_text(encoding="utf-8")
    assert 'url=README.html"' in (tmp_path / "html/index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("link", ["[gone](docs/gone.md)", "[gone](docs/one.md#gone)", "[gone](pdojo/gone.py)"])
def test_a_dead_link_is_an_error(link: str, pages: Path, tmp_path: Path) -> None:
    with (pages / "README.md").open("a") as front:
        front.write(f"\n{link}\n")
    done = build(pages, tmp_path)
    assert done.returncode != 0
    assert "gone" in done.stderr


# The whole site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.slow
def test_every_page_of_the_documentation_is_there(site: Path) -> None:
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    missing = [page for page in pages if not (site / page.relative_to(ROOT).with_suffix(".html")).is_file()]
    assert missing == []


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for loaded in _LOADED.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"\w+:|//", loaded) or loaded.startswith("data:"), f"{page.name} loads {loaded}"
            file = loaded.partition("?")[0].partition("#")[0]
            assert not file or (page.parent / file).exists(), f"{page.name}: there is no {loaded}"


@pytest.mark.slow
def test_diagrams_are_drawn(site: Path) -> None:
    written = (ROOT / "docs/architecture.md").read_text().count("```mermaid")
    drawn = re.findall(r'data="([^"]*\.svg)"', (site / "docs/architecture.html").read_text(encoding="utf-8"))
    assert len(drawn) == written > 0
    assert all("<path" in (site / "docs" / picture).read_text(encoding="utf-8") for picture in drawn)


@pytest.mark.slow
def test_search_tools_and_interface(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")  # code, which a page from a file system may load, unlike data
    assert all(stem in index for stem in ("fingerprint", "nontempor", "parallel"))
    tools = (site / "docs/tools.html").read_text(encoding="utf-8")
    assert all(f'id="{tool}"' in tools for tool in tool_parsers())
    interface = (site / "docs/api.html").read_text(encoding="utf-8")
    named = ("pdojo.tune", "pdojo.errors.UsageError", "pdojo.build.softmax", "pdojo.onnx.load", "pdojo.env.Episode")
    assert [name for name in named if f'id="{name}"' not in interface] == []
