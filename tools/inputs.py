"""The input named on a command line: a file, standard input, or a library kernel."""

from __future__ import annotations

import sys
from pathlib import Path

from pdojo.dialect.notation import print_notation
from pdojo.errors import UsageError
from pdojo.files import LARGEST, decode, read_bounded, read_text
from pdojo.frontends.text import Chunk, decoded, read_file
from pdojo.kernels import library_workload


def read_input(path: str | None) -> Chunk:
    """The whole input; None and `-` are standard input, `softmax:64x32` is a library kernel.

    Raises UsageError if there is no text to read.
    """
    if path is None or path == "-":
        return decoded(_read_standard(), "<stdin>")
    found = library_workload(path)
    if found is not None:
        return Chunk(print_notation(found.instantiate()), path, is_library=True)
    return read_file(Path(path))


def read_long(path: str, largest: int) -> str:
    """The text of a file, or of standard input (`-`), of at most `largest` bytes. Raises UsageError."""
    try:
        return decode(_read_standard(largest)) if path == "-" else read_text(Path(path), largest)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read '{path}': it is not a text file") from None


def _read_standard(largest: int = LARGEST) -> bytes:
    try:
        return read_bounded(sys.stdin.buffer, largest)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from None
