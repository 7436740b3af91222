"""Shared parts of the command-line tools: arguments, one message per mistake, exit codes."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from io import TextIOWrapper
from typing import Protocol

from pdojo_tools.parsing import Arguments as Arguments
from pdojo_tools.parsing import add_json as add_json
from xdsl.utils.exceptions import DiagnosticException

from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.errors import PdojoError, UsageError
from pdojo.files import default_database

_FULL = frozenset((errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT))
"""Errors of a pipe, terminal or file that takes no more data."""

_LACKING = frozenset((errno.ENOENT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE))
"""Errors without a file of a system that lacks a folder for temporary files, memory, processes or open files."""


def message(error: PdojoError) -> str:
    """The message for the user: a position comes first, and control characters are escaped."""
    text = "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in str(error))
    return text if re.match(r"[^\n]*:\d+:\d+: error: ", text) else f"error: {text}"


class Tool(Protocol):
    """A command-line tool: a function of the arguments, by default those of the process, that returns the exit code."""

    def __call__(self, args: Sequence[str] | None = None) -> int:
        """Run the tool."""
        ...


def tool(body: Callable[[Sequence[str] | None], None]) -> Tool:
    """A tool that runs a function. A user's mistake gives one message on standard error, a bug a traceback."""

    @wraps(body)
    def main(args: Sequence[str] | None = None) -> int:
        collect_rarely()
        _write_all_characters()
        try:
            body(args)
            sys.stdout.flush()
        except PdojoError as error:
            sys.stderr.write(f"{message(error)}\n")
            return error.exit_code
        except DiagnosticException as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        except OSError as error:
            return _system_error(error)
        except RecursionError:
            sys.stderr.write("error: this is nested too deeply for pdojo; write it with fewer levels\n")
            return 1
        except MemoryError:
            sys.stderr.write("error: this takes more memory than there is; choose smaller sizes\n")
            return 1
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return 130
        return 0

    return main


def _system_error(error: OSError) -> int:
    """Print an error of the system: it concerns a file that the user named, the output, or missing resources."""
    if error.filename is not None:
        refused = UsageError(f"cannot use '{_name(error.filename)}': {error.strerror}")
        sys.stderr.write(f"{message(refused)}\n")
        return refused.exit_code
    if error.errno in _LACKING:
        sys.stderr.write(f"error: {error.strerror}\n")
    elif not _lost_output(error):
        raise error
    elif not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"error: cannot write the output: {error.strerror}\n")
    return 1


def _name(file: object) -> str:
    """The name of a file as text."""
    return os.fsdecode(file) if isinstance(file, bytes) else str(file)


def _write_all_characters() -> None:
    """Escape characters that the terminal's encoding lacks, also on standard output."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None if the shell closed it
        # Writing then fails, as for a closed file; otherwise the next opened file would become file 1.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    stream: object = sys.stdout
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def _lost_output(error: OSError) -> bool:
    """True if standard output takes no more data; later output is dropped."""
    if error.errno not in _FULL:
        return False
    # Otherwise Python would report the error again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def positive(text: str) -> int:
    """A whole number from 1 to 2^31 - 1, from the command line."""
    value = int(text) if text.isdecimal() and len(text) <= 10 else 0
    if not 1 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"'{text[:60]}' is no number from 1 to 2^31 - 1")
    return value


def add_align(parser: argparse.ArgumentParser, default: str = f"the trace's, or {ALIGNMENT}") -> None:
    """Add the option `--align`; its value is None if it is left out."""
    text = f"alignment of arrays that callers guarantee; by default {default}"
    parser.add_argument("--align", type=positive, metavar="BYTES", help=text)


def add_machine(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the options `--machine` and `--trust-machine`; `purpose` completes their help."""
    parser.add_argument(
        "--machine",
        metavar="MACHINE",
        help=f"a name or a TOML file: the machine to {purpose}; by default the kernel's, or host",
    )
    parser.add_argument(
        "--trust-machine",
        action="store_true",
        help="compile and run the code of instructions that the machine file describes; read it first",
    )


def usual_database() -> str:
    """The user's database for argparse's help, with percent signs doubled, and `~` for the user's folder."""
    try:
        path = default_database()
    except FileNotFoundError:
        return "none, because no home folder is known"
    folder = os.path.expanduser("~")
    return (f"~/{path.relative_to(folder)}" if path.is_relative_to(folder) else str(path)).replace("%", "%%")


def random_seed(text: str) -> int:
    """A seed of random numbers, from the command line."""
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**62:
        raise argparse.ArgumentTypeError(f"a seed is a number from 0 to 2^62, not '{text}'")
    return value
