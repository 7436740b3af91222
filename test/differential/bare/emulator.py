"""Bochs with our ROM and our memory, run by commands of its debugger."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from differential.bare.rom import MEMORY, ROM, TABLES, rom

_CONFIGURATION = f"""\
cpu: model=tigerlake
megs: {MEMORY >> 20}
romimage: file=rom, address={ROM:#x}
optramimage1: file=memory, address={TABLES:#x}
magic_break: enabled=1
panic: action=fatal
display_library: term
plugin_ctrl: speaker=0
log: log
"""


class EmulatorError(Exception):
    """The emulator ended with an error."""


def run_emulator(memory: bytes, commands: str, folder: Path) -> None:
    """Start with these contents of the memory and run commands of the debugger. Raises EmulatorError, OSError."""
    (folder / "rom").write_bytes(rom())
    (folder / "memory").write_bytes(memory)
    (folder / "commands").write_text(commands)
    (folder / "configuration").write_text(_CONFIGURATION)
    command = ["bochs", "-q", "-f", "configuration", "-rc", "commands"]
    terminal = os.environ | {"TERM": "vt100"}
    ran = subprocess.run(
        command, cwd=folder, env=terminal, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False
    )
    if ran.returncode != 0:
        raise EmulatorError(" ".join(ran.stderr.decode(errors="replace").replace("=", "").split()[-20:]))


def require_emulator() -> None:
    """Skip the test, with the reason, where Bochs does not start."""
    if (reason := _obstacle()) is not None:
        pytest.skip(reason)


@cache
def _obstacle() -> str | None:
    """The reason why Bochs does not start; None if it does."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_emulator(b"", "q\n", Path(folder))
        except (OSError, EmulatorError) as error:
            return (
                f"Bochs with its debugger does not start ({error}); Debian and Ubuntu have it in bochs and bochs-term"
            )
    return None
