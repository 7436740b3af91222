"""Shared libraries by a C compiler: the system's for its own architecture, a cross compiler, or zig."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from pdojo.backends.llvm.optimize import architecture_of
from pdojo.errors import LoweringError, UsageError
from pdojo.files import write_file
from pdojo.library.features import ARCHITECTURES

# Without debugging information, which names folders: zig adds it unless told not to.
FLAGS = ("-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-Wall", "-Wextra")
_LINKED = (
    "-Wl,--build-id=none",
    "-Wl,--strip-debug",
    "-Wl,-z,noexecstack",
    "-Wl,-z,defs",
    "-Wl,-z,relro",
    "-Wl,-z,now",
)
SOURCES = ("runtime.c", "dispatch.c")
ASSEMBLED = ("weights.S",)
"""The sources of libraries with models."""


@dataclass(frozen=True)
class CCompiler:
    """A C compiler for an architecture."""

    command: tuple[str, ...]
    title: str
    """The command in messages and in the manifest."""

    def version(self) -> str:
        """The first line of the compiler's version."""
        asked = [*self.command, "--version"]
        if self.title.startswith("zig"):
            asked = [*self.command[:-3], "version"]
        return _ran(asked, Path(), self.title).partition("\n")[0].strip()

    def link(self, folder: Path, objects: Sequence[str], soname: str, output: str) -> None:
        """Compile `source/` and link it with object files to the library `output`, which programs load as `soname`.

        All paths are relative to `folder`. Raises LoweringError with the compiler's message.
        """
        compiled: list[str] = []
        for source in (*SOURCES, *(name for name in ASSEMBLED if (folder / "source" / name).exists())):
            compiled.append(f"{source.rpartition('.')[0]}.o")
            _ran([*self.command, *FLAGS, "-c", f"source/{source}", "-o", compiled[-1]], folder, self.title)
        # A file of arguments: there may be thousands of objects.
        write_file(folder / "link.txt", "\n".join([*compiled, *objects]) + "\n")
        # A separate argument, because the compiler splits arguments of -Wl at commas.
        library = ("-Xlinker", "-soname", "-Xlinker", soname)
        exports = "-Wl,--version-script=source/exports.map"
        wanted = [
            *self.command,
            "-shared",
            *library,
            exports,
            *_LINKED,
            "-o",
            output,
            "@link.txt",
            "-pthread",
            "-lm",
            "-ldl",
        ]
        _ran(wanted, folder, self.title)
        for rest in (*compiled, "link.txt"):
            (folder / rest).unlink()


def compiler_for(architecture: str) -> CCompiler:
    """The C compiler for an architecture. Raises UsageError, with remedies, if there is none."""
    if architecture not in ARCHITECTURES:
        raise UsageError(f"libraries are for {', '.join(ARCHITECTURES)}, not for '{architecture}'")
    own = architecture == architecture_of(llvm.get_process_triple())
    names = ["cc", "gcc", "clang"] if own else []
    for name in (*names, f"{architecture}-linux-gnu-gcc"):
        found = shutil.which(name)
        if found is not None:
            return CCompiler((found,), name)
    if find_spec("ziglang") is not None:
        target = f"{architecture}-linux-gnu"
        command = (sys.executable, "-m", "ziglang", "cc", "-target", target)
        return CCompiler(command, f"zig cc -target {target}")
    package = "gcc" if own else f"gcc-{architecture.replace('_', '-')}-linux-gnu"
    raise UsageError(
        f"no C compiler for {architecture}, which links the library; install {package} (Debian and Ubuntu), or "
        f"pip install ziglang"
    )


def _ran(command: Sequence[str], folder: Path, title: str) -> str:
    """The output of a command. Raises LoweringError if it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LoweringError(f"the C compiler '{title}' cannot be started: {error.strerror}") from None
    if done.returncode != 0:
        raise LoweringError(f"the C compiler '{title}' fails:\n{done.stderr or done.stdout}")
    return done.stdout
