"""What the command-line tools share: arguments, one message per mistake, exit codes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from xdsl.utils.exceptions import DiagnosticException

from pdojo.backends.garbage import collect_rarely
from pdojo.errors import PdojoError, UsageError


class Arguments(argparse.ArgumentParser):
    """Mistakes in the command line are reported like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message}; see {self.prog} --help")


def message(error: PdojoError) -> str:
    """What the user sees: errors with a position begin with it."""
    text = str(error)
    return text if re.match(r"[^\n]*:\d+:\d+: error: ", text) else f"error: {text}"


def run_tool(body: Callable[[Sequence[str] | None], None], args: Sequence[str] | None) -> int:
    """Run a tool; returns the exit code. A user's mistake is one message on standard error, a bug a traceback."""
    collect_rarely()
    try:
        body(args)
        sys.stdout.flush()
    except PdojoError as error:
        sys.stderr.write(f"{message(error)}\n")
        return error.exit_code
    except DiagnosticException as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except BrokenPipeError:
        # The reader of our output left; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return 0


def positive(text: str) -> int:
    """A whole number of at least 1, from the command line."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def random_seed(text: str) -> int:
    """A seed of random numbers, from the command line."""
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**62:
        raise argparse.ArgumentTypeError(f"a seed is a number from 0 to 2^62, not '{text}'")
    return value
