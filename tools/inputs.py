"""The input that a command line names: a file, standard input, or a kernel of the library."""

from __future__ import annotations

import sys
from pathlib import Path

from pdojo.api.programs import library_workload
from pdojo.dialect.notation import print_notation
from pdojo.errors import UsageError
from pdojo.files import read_bounded
from pdojo.frontends.text import Chunk, decoded, read_file


def read_input(path: str | None) -> Chunk:
    """The whole input; None and `-` mean standard input, `softmax:64x32` a kernel of the library.

    Raises UsageError if there is no text to read.
    """
    if path is None or path == "-":
        return decoded(_read_standard(), "<stdin>")
    found = library_workload(path)
    if found is not None:
        return Chunk(print_notation(found.instantiate()), path, is_library=True)
    return read_file(Path(path))


def _read_standard() -> bytes:
    try:
        return read_bounded(sys.stdin.buffer)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from None
