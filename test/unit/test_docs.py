"""The code blocks of README.md and docs/ are run.

`console`: lines after `$ ` are shell commands, the lines that follow are their output (`...` stands for anything).
`python`: run in one namespace per page. `pdojo` and `mlir`: parsed and verified. A comment `<!-- not run: reason -->`
on the line before a block exempts it; the test shows the reason.
"""

from __future__ import annotations

import doctest
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from pdojo_tools.opt import main

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<exempt>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_RUN = ("console", "python", "pdojo", "mlir")


@dataclass(frozen=True)
class Block:
    """A fenced block and the line it begins at."""

    page: Path
    line: int
    language: str
    code: str
    exempt: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> list[Block]:
    found: list[Block] = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))):
        text = page.read_text()
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("language")) + 1
            found.append(Block(page, line, match["language"], match["code"], match["exempt"]))
    return [block for block in found if block.language in _RUN]


_NAMESPACES: dict[Path, dict[str, object]] = {}


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_block(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if block.exempt is not None:
        pytest.skip(f"documentation block not run: {block.exempt}")
    # A scratch copy of the clone's face: commands name files as a reader would, and write nothing into the clone.
    for name in ("examples", "docs", "pdojo", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    match block.language:
        case "console":
            run_console(block)
        case "python":
            exec(compile(block.code, str(block), "exec"), _NAMESPACES.setdefault(block.page, {}))
        case language:
            form = "notation" if language == "pdojo" else "mlir"
            (tmp_path / "block").write_text(block.code)
            assert main(["block", f"--input-format={form}"]) == 0, capsys.readouterr().err


def run_console(block: Block) -> None:
    assert block.code.startswith("$ "), f"{block}: a console block begins with '$ '"
    for piece in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, expected = split_command(piece)
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        matches = doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS)
        assert matches, f"{block}\n$ {command}\nexpected:\n{expected}\ngot:\n{done.stdout}"


def split_command(piece: str) -> tuple[str, str]:
    """The command, which goes on while lines end in a backslash, and the expected output."""
    lines = piece.splitlines(keepends=True)
    end = next(k for k, line in enumerate(lines) if not line.rstrip().endswith("\\")) + 1
    return "".join(lines[:end]).strip(), "".join(lines[end:])
