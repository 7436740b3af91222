"""The tools as one family: options with one meaning, suggestions, exit codes, JSON, completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools.completion import completion, tool_parsers
from pdojo_tools.outputs import json_text
from pdojo_tools.parsing import EXIT_CODES, SHELLS, Arguments

from pdojo.errors import UsageError
from pdojo.transforms.trace import Trace

PARSERS = tool_parsers()
SOFTMAX = "softmax:4x8"


def main(tool: str, *arguments: str) -> int:
    return import_module(f"pdojo_tools.{tool.removeprefix('pdojo-')}").main(list(arguments))


def each_parser() -> Iterator[tuple[str, Arguments]]:
    for name, parser in PARSERS.items():
        yield name, parser
        yield from ((f"{name} {command}", each) for command, each in parser.commands().items())


# Options


def test_an_option_takes_the_same_everywhere() -> None:
    """The same option has the same placeholder and the same number of values in all tools; a folder is a path, too."""
    forms: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for name, parser in each_parser():
        for action in parser.actions():
            for option in action.option_strings:
                word = str(action.metavar or "").partition(".")[0].replace("FOLDER", "FILE")
                forms[option].setdefault(f"{word or type(action).__name__} {action.nargs}", name)
    differing = {option: found for option, found in forms.items() if len(found) > 1}
    assert differing == {}


def test_short_options_are_short_for_one_option() -> None:
    longs: defaultdict[str, set[str]] = defaultdict(set)
    for _, parser in each_parser():
        for action in parser.actions():
            named = [option for option in action.option_strings if option.startswith("--")]
            for option in action.option_strings:
                if not option.startswith("--"):
                    longs[option].add(named[0])
    assert {short: found for short, found in longs.items() if len(found) > 1} == {}
    assert longs["-o"] == {"--output"}


@pytest.mark.parametrize("tool", PARSERS)
def test_options_are_not_abbreviated(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tool, "--vers") == 2
    said = f"error: there is no option '--vers'; did you mean '--version'?; see {tool} --help\n"
    assert capsys.readouterr().err == said


# Help


@pytest.mark.parametrize("tool", PARSERS)
def test_the_help_teaches_by_examples_that_are_command_lines(tool: str) -> None:
    text = PARSERS[tool].format_help()
    assert len(PARSERS[tool].examples) >= 3
    for command, effect in PARSERS[tool].examples:
        assert f"  {command}\n      {effect}\n" in text
        name, *words = shlex.split(command.partition(" > ")[0])
        assert name in PARSERS
        PARSERS[name].parse_args(words)
    assert all(f"{code:>3}  {meaning}" in text for code, meaning in EXIT_CODES.items())


# Mistakes


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"),
    [
        ("pdojo-opt", [SOFTMAX, "--aply", "x"], 2, "there is no option '--aply'; did you mean '--apply'?"),
        ("pdojo-opt", [SOFTMAX, "--aply=x"], 2, "there is no option '--aply'; did you mean '--apply'?"),
        ("pdojo-opt", [SOFTMAX, "--apply", "reuse_dims@e:0"], 1, "is refused"),
        ("pdojo-opt", [SOFTMAX, "--apply", "reuse_dim@e:0"], 1, "did you mean 'reuse_dims'?"),
        ("pdojo-opt", [SOFTMAX, "-t", "notatoin"], 2, "unknown target 'notatoin'; did you mean 'notation'?"),
        ("pdojo-opt", [SOFTMAX, "-f", "notatoin"], 2, "invalid choice: 'notatoin'; did you mean 'notation'?"),
        ("pdojo-opt", [SOFTMAX, "--json"], 2, "--json prints one answer"),
        ("pdojo-opt", [SOFTMAX, "--json", "--list-moves", "--explain", "x@y:0"], 2, "--json prints one answer"),
        ("pdojo-run", ["sofmax"], 2, "softmax"),
        ("pdojo-run", [SOFTMAX, "--machine", "hsot"], 2, "host"),
        ("pdojo-tune", ["--kernl", "x"], 2, "there is no option '--kernl'; did you mean '--kernel'?"),
        ("pdojo-tune", [], 2, "the following arguments are required: KERNEL"),
        ("pdojo-tune", [SOFTMAX, "--pass", "heuristik"], 2, "invalid choice: 'heuristik'; did you mean 'heuristic'?"),
        ("pdojo-tune", [SOFTMAX, "--json", "-o", "-"], 2, "name a file"),
        ("pdojo-db", ["lst"], 2, "invalid choice: 'lst'; did you mean 'list'?"),
        ("pdojo-db", ["show"], 2, "the following arguments are required: ID"),
        ("pdojo-machine", ["show", "hsot"], 2, "host"),
        ("pdojo-snitch", ["no-such-file.s"], 2, "no-such-file.s"),
        ("pdojo-play", ["--trac"], 2, "there is no option '--trac'; did you mean '--trace'?"),
        ("pdojo-train", ["agnet"], 2, "invalid choice: 'agnet'; did you mean 'agent'?"),
        ("pdojo-train", [], 2, "the following arguments are required: COMMAND"),
    ],
)
def test_mistakes(
    tool: str, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(tool, *arguments) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert said in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name, _ in each_parser()])
def test_an_empty_argument_is_refused(name: str) -> None:
    """A shell script's unset variable is neither the current folder nor the default."""
    parser = dict(each_parser())[name]
    for action in parser.actions():
        if action.nargs == 0:
            continue
        with pytest.raises(UsageError, match=f"it is empty; see {parser.prog} --help"):
            parser.parse_args([*action.option_strings[-1:], ""])


# JSON


def printed(tool: str, *arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON value that a tool prints, and that it prints nothing else on standard output."""
    capsys.readouterr()
    assert main(tool, *arguments) == 0
    return json.loads(capsys.readouterr().out, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def test_numbers_that_are_not_finite_are_null() -> None:
    value = {"a": [1.5, float("inf"), (float("nan"), 2)], "b": -float("inf")}
    assert json.loads(json_text(value)) == {"a": [1.5, None, [None, 2]], "b": None}


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    moves = printed("pdojo-opt", SOFTMAX, "--list-moves", "--json", capsys=capsys)
    assert {"move": "join_scopes@m:0", "name": "join_scopes", "at": "m:0", "parameters": {}} in moves
    (refused,) = printed("pdojo-opt", SOFTMAX, "--explain", "reuse_dims@e:0", "--json", capsys=capsys)
    assert not refused["legal"]
    machines = printed("pdojo-machine", "list", "--json", capsys=capsys)
    assert machines == printed("pdojo-opt", "--list-machines", "--json", capsys=capsys)
    assert machines[0]["name"] == "host"
    assert printed("pdojo-machine", "show", "x86-64-avx2", "--json", capsys=capsys)["vector_bytes"] == [16, 32]
    kernels = printed("pdojo-tune", "--list-kernels", "--json", capsys=capsys)
    assert {"name": "softmax", "sizes": {"R": 24576, "C": 512}, "dtype": "f32"} in kernels


def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "arrays.npz")
    found = printed("pdojo-run", SOFTMAX, "--no-time", "--json", "-o", saved, capsys=capsys)
    assert (found["kernel"], found["machine"], found["cost"], found["output"]) == ("softmax", "host", None, saved)
    assert 0 <= found["check"]["error"] <= 1
    timed = printed("pdojo-run", "axpy:1x32", "--dtype", "f64", "--machine", "snitch", "--json", capsys=capsys)
    assert timed["unit"] == "cycles"
    assert timed["cost"] == timed["outcome"]["cycles"] > 32


def test_tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--machine", "snitch", "--dtype", "f64", "--pass", "heuristic", "--search", "none", "--json"]
    found = printed("pdojo-tune", "axpy:1x32", "dot:4x16", *options, "-o", str(tmp_path / "traces"), capsys=capsys)
    assert [each["kernel"] for each in found] == ["axpy:1x32 f64", "dot:4x16 f64"]
    for each in found:
        assert each["verified"]
        assert each["after"] < each["before"]
        assert each["program"].startswith("kernel ")
    traces = sorted((tmp_path / "traces").iterdir())
    assert len(traces) == 2
    stored = Trace.load(str(traces[0])).moves
    assert len(stored) == len(found[0]["moves"])
    (reasons,) = printed("pdojo-tune", "axpy:1x32", "--why", *options, capsys=capsys)
    assert reasons["machine"] == "snitch"
    assert all(each["why"] for each in reasons["moves"])


def test_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("a.sqlite", "b.sqlite")]
    search = ["--search", "sample", "--budget", "4", "--machine", "toy", "--no-measure", "--evaluator", "analytical"]
    for path, seed in zip(paths, ("1", "2"), strict=True):
        assert main("pdojo-tune", "relu:8", *search, "--seed", seed, "--database", path) == 0
    database = ["--database", paths[0]]
    (best,) = printed("pdojo-db", "list", *database, "--json", capsys=capsys)
    assert best["kernel"] == "relu"
    runs = printed("pdojo-db", "list", "--runs", *database, "--json", capsys=capsys)
    sides = printed("pdojo-db", "diff", runs[0]["run"], "relu", *database, "--json", capsys=capsys)
    assert [side["program"].partition("\n")[0] for side in sides] == ["kernel relu(x) -> (y)"] * 2
    assert sum(printed("pdojo-db", "merge", paths[1], *database, "--json", capsys=capsys).values()) > 0
    counted = printed("pdojo-db", "prune", "--older-than", "0", "--dry-run", *database, "--json", capsys=capsys)
    assert all(isinstance(count, int) for count in counted.values())


def test_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "f.s"
    program.write_text("f:\n  addi a0, a0, 1\n  ret\n")
    found = printed("pdojo-snitch", str(program), "--arg", "1", "--json", capsys=capsys)
    assert found["cycles"] >= 2
    assert [line["line"] for line in found["lines"]] == [2, 3]


# Completion


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_names_every_tool(shell: str) -> None:
    script = completion(shell)
    assert all(tool in script for tool in PARSERS)
    assert all(word in script for word in ("trust-machine", "calibrate", "heuristic"))


def test_completion_in_bash() -> None:
    """The script is evaluated by the shell, as a user does, and asked for completions."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    ask = """
eval "$("$PYTHON" -m pdojo_tools.opt --completion bash)"
ask() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  "$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
  echo "${COMPREPLY[@]}"
}
ask pdojo-run --see
ask pdojo-db li
ask pdojo-tune --pass heu
ask pdojo-run softma
ask pdojo-opt --machine x86-64-avx5
"""
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run([bash, "-c", ask], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split("\n")[:5] == ["--seed", "list", "heuristic", "softmax", "x86-64-avx512"], done.stderr


# Colours


def test_colours_appear_on_terminals_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.mlir"
    assert main("pdojo-opt", SOFTMAX, "--syntax-highlight") == 0
    assert main("pdojo-opt", SOFTMAX, "--syntax-highlight", "-o", str(path)) == 0
    assert "\x1b[" not in capsys.readouterr().out + path.read_text()


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_on_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "pdojo_tools.opt", "relu:4", "--syntax-highlight"]
    subprocess.run(command, stdout=follower, stderr=follower, check=True, env={**os.environ, **variables})
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert "pdojo.kernel" in shown
    assert ("\x1b[" in shown) is coloured


# The page


def test_the_page_has_all_tools_options_and_exit_codes() -> None:
    page = (Path(__file__).parents[3] / "docs/tools.md").read_text()
    listed = re.findall(r"^\| `(pdojo-\w+)` \|", page.partition("\n## ")[0], re.MULTILINE)
    assert sorted(listed) == sorted(PARSERS)
    codes = page.partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", codes, re.MULTILINE)] == list(EXIT_CODES)
    tools: defaultdict[str, set[str]] = defaultdict(set)
    for name, parser in each_parser():
        for option in parser.options():
            tools[option].add(name.partition(" ")[0])
    shared = {option for option, found in tools.items() if len(found) > 1 and option.startswith("--")}
    assert [option for option in sorted(shared - {"--help"}) if f"`{option}" not in page] == []
