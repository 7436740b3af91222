"""Ordinary assemblers that may be installed: the `ziglang` wheel, or GNU binutils for RISC-V."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from pdojo.errors import AssemblyError
from pdojo.files import write_file

REMEDY = "pip install ziglang, or install binutils-riscv64-unknown-elf"
_GNU = ("riscv64-unknown-elf-as", "riscv32-unknown-elf-as", "riscv64-linux-gnu-as")


def assemblers() -> dict[str, list[str]]:
    """Commands of the installed assemblers, keyed by name, without file arguments."""
    found: dict[str, list[str]] = {}
    gnu = next((path for path in map(shutil.which, _GNU) if path is not None), None)
    if gnu is not None:
        found["GNU"] = [gnu, "-march=rv32imafd_zicsr", "-mabi=ilp32d"]
    if importlib.util.find_spec("ziglang") is not None:
        target = ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+a+f+d", "-mabi=ilp32d", "-g0"]
        found["zig"] = [sys.executable, "-m", "ziglang", "cc", *target, "-c"]
    return found


def object_file(text: str, path: Path, which: str | None = None) -> None:
    """Assemble a text of `rewrite` by the assembler `which` (None: any). Raises AssemblyError with its message."""
    commands = assemblers()
    if which not in (None, *commands) or not commands:
        missing = which if which is not None else "assembler for RISC-V"
        raise AssemblyError(f"there is no {missing}: {REMEDY}")
    command = next(iter(commands.values())) if which is None else commands[which]
    source = path.with_suffix(".s")
    write_file(source, text)
    done = subprocess.run([*command, str(source), "-o", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssemblyError(f"{Path(command[0]).name} refuses the program:\n{done.stderr[-2000:]}")
