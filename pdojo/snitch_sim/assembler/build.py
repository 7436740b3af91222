"""ELF files of programs that measure themselves on a hardware simulator. docs/snitch.md has the contract."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdojo.errors import AssemblyError, UsageError
from pdojo.files import write_file
from pdojo.snitch_sim.assembler.assemble import assemble
from pdojo.snitch_sim.assembler.elf import Segment, elf
from pdojo.snitch_sim.assembler.harness import DATA_BASE, ENTRY, harness
from pdojo.snitch_sim.assembler.program import TCDM_BASE, TEXT_BASE, AssembledProgram


def build(
    program: AssembledProgram,
    entry: str,
    arguments: Sequence[int],
    image: bytes,
    expected: bytes,
    path: Path,
    *,
    memory_bytes: int,
) -> None:
    """Write an ELF file that calls `entry` with `arguments` and measures the call.

    `image` is the initial contents of the TCDM's beginning, `expected` the contents after the call. Raises UsageError
    if the file cannot be written.
    """
    entry = entry or (program.functions[0] if program.functions else "")
    program.index(entry)
    padded = [part + bytes(-len(part) % 8) for part in (image, expected)]
    around = harness(entry, arguments, padded[0], padded[1], TCDM_BASE + memory_bytes)
    whole = assemble(f"{program.text}\n{around.text}", program.source)
    text = b"".join(word.to_bytes(4, "little") for word in whole.words())
    if TEXT_BASE + len(text) > DATA_BASE:
        raise AssemblyError(
            f"{program.source}: {len(text)} bytes of instructions; there is room for {DATA_BASE - TEXT_BASE}"
        )
    segments = [Segment(".text", TEXT_BASE, text, True), Segment(".data", DATA_BASE, around.data, False)]
    symbols = {
        "_start": whole.labels[ENTRY],
        **{name: whole.labels[name] for name in program.functions},
        **around.symbols,
    }
    try:
        write_file(path, elf(segments, whole.labels[ENTRY], symbols))
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None
