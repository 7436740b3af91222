"""The code blocks of README.md and docs/ are run.

`console`: lines after `$ ` are shell commands, the lines that follow are their output (`...` stands for anything).
`python`: run. `pdojo` and `mlir`: parsed and verified. Each block is a test of its own, except on a page with the line
`<!-- blocks build on each other -->`: its blocks are one test, in one folder and one Python namespace.

A comment in front of a console block makes it small enough for a test. Each of its lines says what stands for what:

    <!-- smaller
    layernorm --pass -> layernorm:16x64 --pass
    -->

A page with the line `<!-- needs: jax -->` is skipped where Python has no module `jax`.

Its commands must succeed; output is compared where the page shows some. A comment `<!-- not run: reason -->` on the
line before a block exempts it, and the test shows the reason: no block of README.md has one.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import pytest
from pdojo_tools.opt import main

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<exempt>[^\n]*) -->\n|^<!-- smaller\n(?P<smaller>[^`]*?)-->\n)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHOWN = (
    *("examples", "docs", "pdojo", "tools", "README.md", "LICENSE"),
    *("Makefile", "constraints.txt", "pyproject.toml", "setup.py"),
)
_RUN = ("console", "python", "pdojo", "mlir")
_NEEDS = re.compile(r"^<!-- needs: (\w+) -->$", re.MULTILINE)
_TOGETHER = "<!-- blocks build on each other -->\n"


@dataclass(frozen=True)
class Block:
    """A fenced block and the line it begins at."""

    page: Path
    line: int
    language: str
    code: str
    exempt: str | None
    smaller: tuple[tuple[str, str], ...] = ()
    """What stands for what where the test runs it."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> list[Block]:
    found: list[Block] = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))):
        text = page.read_text()
        assert text.count("<!-- not run: ") == sum(m["exempt"] is not None for m in _BLOCK.finditer(text)), page
        assert text.count("<!-- smaller\n") == sum(m["smaller"] is not None for m in _BLOCK.finditer(text)), page
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("language")) + 1
            smaller = tuple(_pair(row) for row in (match["smaller"] or "").splitlines())
            found.append(Block(page, line, match["language"], match["code"], match["exempt"], smaller))
    return [block for block in found if block.language in _RUN]


def sequences() -> list[tuple[Block, ...]]:
    """The blocks that are run one after another: all of a page that says so, each by itself elsewhere."""
    found: list[tuple[Block, ...]] = []
    for page, of_page in groupby(blocks(), lambda block: block.page):
        together = tuple(of_page)
        if _TOGETHER in page.read_text():
            assert all(block.exempt is None for block in together), f"{page}: a block needs one that is not run"
            found.append(together)
        else:
            found += [(block,) for block in together]
    return found


def _pair(row: str) -> tuple[str, str]:
    written, arrow, run = row.partition(" -> ")
    assert arrow, f"'{row}': write `what stands on the page -> what the test runs`"
    return written, run


def test_extras_are_those_of_a_clone() -> None:
    """pdojo is in no package index, and every extra that a page names exists."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named: set[str] = set()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install '?pdojo\b", text), path
        named |= {name for names in re.findall(r"pip install -e '\.\[([^]]*)\]'", text) for name in names.split(",")}
    assert "onnx" in named
    assert named <= {*declared}


def test_every_console_block_of_the_readme_is_run() -> None:
    consoles = [block for block in blocks() if block.page.name == "README.md" and block.language == "console"]
    assert len(consoles) >= 3
    assert [block for block in consoles if block.exempt is not None] == []


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: str(sequence[0]))
def test_blocks(
    sequence: tuple[Block, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A scratch copy of the clone's face: commands name files as a reader would, and write nothing into the clone.
    for path in (path for path in ROOT.iterdir() if path.name in SHOWN):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PDOJO_DATABASE", str(tmp_path / "searches.db"))
    namespace: dict[str, object] = {}
    for module in _NEEDS.findall(sequence[0].page.read_text()):
        if find_spec(module) is None:
            pytest.skip(f"{sequence[0].page.name} needs {module}")
    for block in sequence:
        if block.exempt is not None:
            pytest.skip(f"documentation block not run: {block.exempt}")
        match block.language:
            case "console":
                run_console(block)
            case "python":
                exec(compile(small_text(block), str(block), "exec"), namespace)
            case language:
                form = "notation" if language == "pdojo" else "mlir"
                (tmp_path / "block").write_text(block.code)
                assert main(["block", f"--input-format={form}"]) == 0, capsys.readouterr().err


def run_console(block: Block) -> None:
    assert block.code.startswith("$ "), f"{block}: a console block begins with '$ '"
    for piece in re.split(r"^\$ ", small_text(block), flags=re.MULTILINE)[1:]:
        command, expected = split_command(piece)
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if block.smaller and not expected.strip():
            assert done.returncode == 0, f"{block}\n$ {command}\nended with {done.returncode}:\n{done.stdout}"
            continue
        # A phase that takes long says so, on a slow machine only.
        shown = re.sub(r"^\w.* \.\.\.\n", "", done.stdout, flags=re.MULTILINE)
        matches = doctest.OutputChecker().check_output(expected, shown, doctest.ELLIPSIS)
        assert matches, f"{block}\n$ {command}\nexpected:\n{expected}\ngot:\n{done.stdout}"


def small_text(block: Block) -> str:
    text = block.code
    for written, run in block.smaller:
        assert written in text, f"{block}: what the test makes smaller, '{written}', is not there"
        text = text.replace(written, run)
    return text


def split_command(piece: str) -> tuple[str, str]:
    """The command, which goes on while lines end in a backslash, and the expected output."""
    lines = piece.splitlines(keepends=True)
    end = next(k for k, line in enumerate(lines) if not line.rstrip().endswith("\\")) + 1
    return "".join(lines[:end]).strip(), "".join(lines[end:])
