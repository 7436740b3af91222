"""Python tools that lit starts by forking, not anew: what they import is imported once, before.

Most of the time of a lit test is the start of the interpreter and the imports. Each tool still runs in a process of its
own, with its own arguments, directory, environment and files.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from importlib.metadata import EntryPoint, entry_points
from io import BufferedReader, BufferedWriter, FileIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

FORKED = ("pdojo-opt", "filecheck")
"""Tools that are forked, by the name of their command."""


class ForkingPopen(subprocess.Popen[str]):
    """Starts the tools of this environment by forking, everything else as usual."""

    def _execute_child(self, args: Any, executable: Any, *rest: Any) -> None:
        """What `Popen` calls to start the child; the order of its parameters is the same since Python 3.9."""
        _, _, _, cwd, env, _, _, _, *pipes = rest
        tool = _tool(str(executable))
        if tool is None:
            super()._execute_child(args, executable, *rest)  # pyright: ignore
            return
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = pipes[:6]
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(tool, list(map(str, args)), cwd, env, (p2cread, c2pwrite, errwrite))
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # pyright: ignore


class ForkingSubprocess:
    """The module `subprocess`, with another `Popen`."""

    Popen = ForkingPopen

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)


def _tool(executable: str) -> Callable[[], int | None] | None:
    path = Path(executable)
    if path.name not in FORKED or path.parent != Path(sys.executable).parent:
        return None
    return _MAINS[path.name]


def _main(name: str) -> Callable[[], int | None]:
    found: Sequence[EntryPoint] = list(entry_points(group="console_scripts", name=name))
    return found[0].load()


_MAINS = {name: _main(name) for name in FORKED}


def preload() -> None:
    """Run a tool in this process, so that its modules are loaded and the installed dialects are known."""
    from pdojo_tools import opt

    from pdojo.dialect.flow import integer_sets
    from pdojo.transforms.registry import transformation, transformation_names

    integer_sets.context()
    for name in transformation_names():
        transformation(name)
    move = ["--machine", "toy-gpu", "--apply", "tile_scope@y:1{size=2}", "--undo", "0", "--verify"]
    with redirect_stderr(StringIO()):
        passes = [["-p", f"convert-pdojo-to-{dialect}"] for dialect in ("loops", "gpu", "llvm")]
        texts = [["-t", target] for target in ("mlir", "c", "cuda", "hip", "llvm", "dot")]
        texts.append(["--machine", "snitch", "-t", "snitch-asm"])
        for options in (*texts, ["-t", "notation", *move], *passes):
            assert opt.main(["relu:2x4", "-o", os.devnull, *options]) == 0
    gc.collect()
    gc.freeze()


def _become(
    main: Callable[[], int | None],
    args: list[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    files: tuple[int, int, int],
) -> None:
    """Run a tool in this process, which ends with it."""
    code = 1
    try:
        for wanted, given in enumerate(files):
            if given >= 0:
                os.dup2(given, wanted)
        os.closerange(3, 1024)
        if cwd is not None:
            os.chdir(cwd)
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        sys.stdin = TextIOWrapper(BufferedReader(FileIO(0, closefd=False)), encoding="utf-8")
        sys.stdout = TextIOWrapper(BufferedWriter(FileIO(1, "w", closefd=False)), encoding="utf-8")
        errors = BufferedWriter(FileIO(2, "w", closefd=False))
        sys.stderr = TextIOWrapper(errors, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        sys.argv = args
        code = _exit_code(main)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _exit_code(main: Callable[[], int | None]) -> int:
    """As `sys.exit(main())` would end the interpreter."""
    try:
        return main() or 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:  # noqa: BLE001  # as the interpreter does
        traceback.print_exc()
        return 1
