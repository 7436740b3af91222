"""`make docs`: the site has all pages, its search and its pictures need no network, and every warning is an error."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pdojo_tools.completion import tool_parsers

ROOT = Path(__file__).parents[3]
NEEDED = ("sphinx", "myst_parser", "furo", "sphinxcontrib.mermaid")
_LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"([^\"]*)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in NEEDED:
        if find_spec(package.partition(".")[0]) is None or find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-c", str(ROOT / "docs/site"), "-d", folder / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT), folder / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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
    architecture = (site / "docs/architecture.html").read_text(encoding="utf-8")
    assert architecture.count("<svg") + architecture.count('.svg"') >= 5


@pytest.mark.slow
def test_search_finds_pages_tools_and_functions(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for word in ("fingerprint", "nontemporal", "parallel"):
        assert word in index
    tools = (site / "docs/tools.html").read_text(encoding="utf-8")
    assert all(f'id="{tool}"' in tools for tool in tool_parsers())
    api = (site / "docs/api.html").read_text(encoding="utf-8")
    assert all(f'id="pdojo.{name}"' in api for name in ("tune", "compile", "run"))
