"""Ordinary assemblers, where they are installed: the `ziglang` wheel, or GNU binutils for RISC-V."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from pdojo.errors import AssemblyError

REMEDY = "pip install ziglang, or install binutils-riscv64-unknown-elf"
_GNU = ("riscv64-unknown-elf-as", "riscv32-unknown-elf-as", "riscv64-linux-gnu-as")


def assembler_command() -> list[str]:
    """The command that makes an object file of assembly text, less the files. Raises AssemblyError with the remedy."""
    for name in _GNU:
        if found := shutil.which(name):
            return [found, "-march=rv32imafd_zicsr", "-mabi=ilp32d"]
    if importlib.util.find_spec("ziglang") is not None:
        target = ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+a+f+d", "-mabi=ilp32d", "-g0"]
        return [sys.executable, "-m", "ziglang", "cc", *target, "-c"]
    raise AssemblyError(f"there is no assembler for RISC-V: {REMEDY}")


def object_file(text: str, path: Path) -> None:
    """Assemble what `rewrite` gives. Raises AssemblyError with what the assembler says."""
    command = assembler_command()
    source = path.with_suffix(".s")
    source.write_text(text, encoding="utf-8")
    done = subprocess.run([*command, str(source), "-o", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssemblyError(f"{Path(command[0]).name} refuses the program:\n{done.stderr[-2000:]}")
