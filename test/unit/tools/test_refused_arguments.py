"""Values that make no sense, names that are no files or texts, outputs that are gone: one clear error each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pdojo_tools import db, lib, machine, opt, start, tune

import pdojo
from pdojo.budget import Budget
from pdojo.dialect.machines import host as detection
from pdojo.errors import PdojoError, UsageError
from pdojo.files import read_bounded, read_bytes, replace_file
from pdojo.perfllm.settings import Settings
from pdojo.search.database import Database

LONG = "n" * 5000
RELU = "relu:4"


def refused(call: Callable[[], object], *expected: str) -> None:
    with pytest.raises(PdojoError) as caught:
        call()
    said = str(caught.value)
    assert all(text in said for text in expected), said
    assert len(said) < 4000


# The Python interface


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"serach": "sample"}, ("'tune' has no option 'serach'; did you mean 'search'?",)),
        ({"threads": "2"}, ("'threads' is a whole number or None, not '2'",)),
        ({"threads": True}, ("'threads' is a whole number or None, not True",)),
        ({"measure": 1}, ("'measure' is True or False, not 1",)),
        ({"database": 3}, ("'database'", "not 3")),
        ({"listener": 3}, ("'listener' is a TuneListener or None",)),
        ({"align": 2**70}, ("an alignment is a power of two up to",)),
        ({"seconds": "1"}, ("'seconds' is a number or None",)),
        ({"search": "q" * 20_000}, ("unknown strategy 'qqq", "characters ...")),
        ({"search": "perfllm", "agent": {"width": "x"}}, ("'width' takes a whole number, not 'x'",)),
        ({"search": "perfllm", "agent": {3: 4}}, ("unknown setting '3'",)),
        ({"search": "perfllm", "agent": 3}, ("'agent' is a Mapping or None",)),
        ({"machine": ""}, ("a machine is given by its name",)),
        ({"machine": f"{LONG}.toml"}, ("File name too long",)),
        ({"trace": LONG}, ("File name too long",)),
        ({"database": LONG}, ("File name too long",)),
        ({"database": "a\0b"}, ("zero byte",)),
        ({"database": "."}, ("the database '.' cannot be used: it is no file",)),
    ],
)
def test_options_of_tune(options: dict[str, Any], expected: tuple[str, ...]) -> None:
    search: dict[str, Any] = {"search": "sample", "evaluator": "analytical", "machine": "toy", "evaluations": 2}
    given: dict[str, Any] = {
        "measure": False,
        **(search if "seconds" in options or "database" in options else {}),
        **options,
    }
    refused(lambda: pdojo.tune(RELU, **given), *expected)


def test_other_calls() -> None:
    compiled: Any = pdojo.compile
    refused(lambda: compiled(RELU, "host", optimize="zz"), "'optimize' is 'search' or 'full', not 'zz'")
    refused(lambda: compiled(RELU, thraeds=1), "did you mean 'threads'?")
    refused(lambda: compiled(), "missing a required argument: 'kernel'")
    refused(lambda: pdojo.load(LONG), "there is no file 'nnn")
    refused(lambda: pdojo.load(f"{LONG}.pdojo"), "File name too long")
    refused(lambda: pdojo.parse("kernel \ud800"), "character 7 is half of one")
    machine: Any = pdojo.machine
    refused(lambda: machine(3), "a machine is given by its name")
    # A whole number of another package is one.
    assert compiled(RELU, threads=np.int64(1)).threads == 1


def test_options_of_environments() -> None:
    gymnasium: Any = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    import_module("pdojo.env")

    def made(**options: Any) -> Any:
        known = {"kernel": RELU, "machine": "toy", "evaluator": "analytical", **options}
        return gymnasium.make("pdojo/Kernel-v0", **known).unwrapped

    refused(lambda: made(horizn=3), "has no option 'horizn'; did you mean 'horizon'?")
    refused(lambda: gymnasium.make("pdojo/Kernel-v0"), "missing a required argument: 'kernel'")
    refused(lambda: made(horizon="x"), "'horizon' is a whole number, not 'x'")
    refused(lambda: made(evaluator=3), "'evaluator'", "not 3")
    refused(lambda: made(capacity=10**12), "'capacity' of at most")
    refused(lambda: made(longest=10**12), "'longest' of at most")
    with closing(made()) as environment:
        refused(lambda: environment.reset(options=3), "options of reset are a dictionary, not 3")
        environment.reset(seed=1)
        refused(lambda: environment.step("x"), "an action is a whole number, not 'x'")
        refused(lambda: environment.restore(3), "a stored environment is a dictionary, not 3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learning_rate=nan", "'learning_rate' is from 1e-12 to 1, not nan"),
        ("learning_rate=-1", "'learning_rate' is at least 1e-12, not -1"),
        ("replay=999999999999999999999", "'replay' is from 1 to"),
        ("successors=99999999999999999999", "'successors' is from 1 to 65535"),
        ("clip=inf", "'clip' is from"),
        ("parsimony=1e400", "'parsimony' is from 0 to 1e+06, not inf"),
        ("epsilon_first=nan", "'epsilon_first' is from 0 to 1, not nan"),
        (f"screened={'9' * 5000}", "'screened' takes a whole number"),
    ],
)
def test_settings_of_the_agent(text: str, expected: str) -> None:
    refused(lambda: Settings.parse(text), expected)


@pytest.mark.parametrize("given", [{"evaluations": 10**400}, {"seconds": float("nan")}, {"seconds": float("inf")}])
def test_budgets(given: dict[str, Any]) -> None:
    refused(lambda: Budget(**given), "a budget of")


# Messages


def test_messages_do_not_repeat_what_was_given() -> None:
    """Neither one long line, nor thousands of lines."""
    assert str(UsageError("short\nlines")) == "short\nlines"
    long = str(UsageError(f"begin {'x' * 20_000} end\nnext"))
    assert long.startswith("begin xxx")
    assert long.endswith("xxx end\nnext")
    assert len(long) < 2100
    assert len(str(UsageError("line\n" * 20_000))) < 21_000


# Command lines


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (opt, ["relu:4", "-o", LONG], "File name too long"),
        (opt, [f"./{LONG}"], "File name too long"),
        (db, ["list", "--database", LONG], "File name too long"),
        (db, ["merge", LONG], "File name too long"),
        (db, ["import", LONG], "File name too long"),
        (db, ["import", "/dev/zero"], "a pipe, a socket or a device"),
        (db, ["list", "--database", "/dev/zero"], "cannot be used: it is no file"),
        (tune, ["relu:4", "-o", LONG], "File name too long"),
        (tune, ["relu:4", "--search", "sample", "--budget", f"{'9' * 400}h"], "is no budget"),
        (tune, ["relu:4", "--search", "sample", "--budget", "9" * 400], "is no budget"),
    ],
)
def test_command_lines(
    tool: Any, arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PDOJO_DATABASE", str(tmp_path / "search.sqlite"))
    assert tool.main(arguments) in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert expected in said
    assert len(said) < 4000


def test_pipes_are_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To open one would wait for a writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert db.main(["import", str(pipe), "--database", str(tmp_path / "a.sqlite")]) == 2
    assert db.main(["list", "--database", str(pipe)]) == 1
    assert capsys.readouterr().err.count("error: ") == 2


class _Endless(BytesIO):
    """Zeros without end, and the largest number of bytes that was asked for at once."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        self.most = max(self.most, size)
        return bytes(size)


def test_streams_are_bounded() -> None:
    stream = _Endless()
    with pytest.raises(OSError, match="larger than 3 MiB"):
        read_bounded(stream, 3 << 20)
    assert 0 < stream.most <= 1 << 20


def test_names_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may have any name, and reports and databases have texts only."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"k\xff.pdojo")
    text = "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8 y[{0}] = x[{0}] * 2\n"
    try:
        Path(name).write_text(text)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    searched = ["--search", "sample", "--budget", "2", "--evaluator", "analytical", "--database", "a.sqlite"]
    arguments = [name, "--machine", "toy", "--no-measure", "--report", "r.html", *searched]
    assert tune.main(arguments) == 0
    assert r"k\udcff.pdojo" in Path("r.html").read_text(encoding="utf-8")
    assert db.main(["show", os.fsdecode(b"\xff"), "--database", "a.sqlite"]) == 2


def test_a_closed_output_is_only_an_error_if_it_is_written_to(tmp_path: Path) -> None:
    command = f'"{sys.executable}" -m pdojo_tools.opt relu:4 -t notation -o k.pdojo >&-'
    assert subprocess.run(command, shell=True, cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "k.pdojo").read_text().startswith("kernel relu")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
@pytest.mark.parametrize("arguments", ["opt --help", "db list --help", "opt --version"])
def test_help_that_cannot_be_written_is_an_error(arguments: str) -> None:
    command = f'"{sys.executable}" -m pdojo_tools.{arguments} > /dev/full'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    said = "error: cannot write the output: No space left on device"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, said)


WRITERS = """
import resource, sys
from contextlib import suppress
from pathlib import Path
from pdojo.files import replace_file, write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
for write in (replace_file, write_file, lambda path, data: write_file(path, data, append=True)):
    try:
        write(Path("file"), bytes(1 << 20))
    except OSError as error:
        print(error.filename, error.strerror)
from pdojo_tools import opt, tune
sys.exit(opt.main(["relu:4x8", "-o", "kernel.mlir"]))
"""


def test_a_file_that_grows_too_large_is_named(tmp_path: Path) -> None:
    """A full disk gives the same error, which has no name."""
    done = subprocess.run(
        [sys.executable, "-c", WRITERS], cwd=tmp_path, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.stdout == 3 * "file File too large\n"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "error: cannot write 'kernel.mlir': File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_a_folder_for_temporary_files() -> None:
    script = (
        "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/no/folder']; from pdojo_tools import run"
    )
    script += "; sys.exit(run.main(['relu:4x8', '--no-time']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: No usable temporary directory found")
    assert "Traceback" not in done.stderr


def test_a_user_without_a_home_folder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PDOJO_DATABASE", "XDG_DATA_HOME", "XDG_CACHE_HOME", "PDOJO_UNCALIBRATED"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(Path, "home", unknown)
    assert db.main(["list"]) == 1
    said = "there can be no database by default: no home folder is known; set HOME or XDG_DATA_HOME, or name a file"
    assert capsys.readouterr().err == f"error: {said}\n"
    refused(Database, said)
    Database.existing().close()
    for tool in (db, lib):
        assert tool.parser().format_help()
    detection.detect.cache_clear()
    assert not detection.detect().measured
    detection.detect.cache_clear()
    assert machine.main(["calibrate"]) == 2
    assert (
        "no folder is known for the user's cache of measurements; set HOME or XDG_CACHE_HOME" in capsys.readouterr().err
    )


def test_zero_bytes_in_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for tool, args in ((opt, ["relu:4", "-o", "a\0b"]), (lib, ["build", "a\0b", "-o", "x"]), (db, ["import", "\0"])):
        assert tool.main(args) == 2
        assert "has a zero byte" in capsys.readouterr().err
    with pytest.raises(OSError, match="its name has a zero byte"):
        replace_file(Path("a\0b"), b"")
    with pytest.raises(OSError, match="the system cannot encode its name"):
        read_bytes(Path("\ud800"))


def test_an_interrupt_while_a_tool_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "import_module", load)
    tool: Any = start
    assert tool.opt() == 130
    assert capsys.readouterr().err == "interrupted\n"


# Sources

READS = (".read_text(", ".read_bytes(", "stdin.read(", "stdin.buffer.read(", "json.load(", "tomllib.load(")
NOT_GIVEN = {
    "pdojo/kernels/workload.py": "kernels of the package",
    "pdojo/backends/common/source_digest.py": "sources of the package",
    "pdojo/backends/gpu/spelling.py": "texts of the package",
    "pdojo/backends/gpu/hip.py": "what the compiler has just written",
    "pdojo/backends/llvm/openmp.py": "/proc",
    "pdojo/backends/llvm/team.py": "texts of the package",
    "pdojo/backends/measure/process.py": "/proc",
    "pdojo/backends/measure/environment.py": "/proc",
    "pdojo/backends/measure/load.py": "/proc",
    "pdojo/dialect/machines/host.py": "/proc and /sys",
    "pdojo/library/build.py": "texts of the package, and what the linker has just written",
    "pdojo/library/devices.py": "texts of the package",
    "pdojo/library/wheel.py": "texts of the package",
    "pdojo/backends/common/cores.py": "/sys",
}
"""Modules that read files which nobody hands to pdojo."""


def sources_with(words: Iterable[str]) -> set[str]:
    root = Path(pdojo.__file__).parent.parent
    sources = [path for part in ("pdojo", "tools") for path in (root / part).rglob("*.py")]
    return {
        str(path.relative_to(root))
        for path in sources
        if any(word in path.read_text(encoding="utf-8") for word in words)
    }


def test_files_are_read_in_one_place() -> None:
    """`pdojo.files` bounds sizes and refuses pipes."""
    assert sources_with(READS) == set(NOT_GIVEN)


def test_files_are_written_in_one_place() -> None:
    """The errors of `pdojo.files` name the file."""
    assert sources_with((".write_text(", ".write_bytes(", 'open("w', 'open("a', 'open("x')) == {"pdojo/files.py"}
