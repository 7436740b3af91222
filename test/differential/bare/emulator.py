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


def wrong_instruction(code: bytes) -> str | None:
    """An instruction in machine code that Bochs 2.7 gets wrong; None if there is none.

    Intel SDM vol. 2, 2.7 (the prefix EVEX). Instructions are found by their bytes, wherever they begin.
    """
    for at in range(len(code) - 6):
        evex, first, second, third, opcode, operand = code[at : at + 6]
        if evex != 0x62 or first & 0xC or not second & 4:
            continue
        short_displacement = operand >> 6 == 1
        match first & 3, opcode:
            case 2, 0x90 | 0x91 | 0x92 | 0x93 | 0xA0 | 0xA1 | 0xA2 | 0xA3 if not third & 8:
                return "gathers and scatters with indices in registers 16 to 31"
            case 3, 0x15 | 0x20 if short_displacement:
                return "addresses of vpextrw and vpinsrb"
            case 2, 0x78 | 0x7A if third & 0x60 == 0x40 and third & 7:
                return "masks of vpbroadcastb beyond 32 lanes"
            case _:
                pass
    return None
