"""The start of `pdojo-play`: the kernel, the initial moves, the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec

from pdojo_tools.outputs import check_writable
from pdojo_tools.playing.session import PlaySession
from pdojo_tools.programs import load_kernel, machine_for

from pdojo.errors import UsageError
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace


def begin(given: argparse.Namespace) -> None:
    """Play with the kernel of the command line. Raises PdojoError."""
    if given.output is not None:
        check_writable(given.output)
    trace = None if given.trace is None else Trace.load(given.trace)
    plain = load_kernel(given.program, given.kernel, shape=given.shape, dtype=given.dtype)
    kernel = assume_alignment(plain, given.align, trace)
    machine = machine_for(kernel, given.machine, given.threads, trust=given.trust_machine)
    _check_terminal()
    tuning = make_moves(kernel, machine, None if given.expert == "none" else given.expert, trace)
    _play(tuning.game.fork(), given.output)


def _check_terminal() -> None:
    """Raise UsageError if there is no terminal to draw on."""
    streams = {"input": sys.__stdin__, "output": sys.__stdout__, "error": sys.__stderr__}
    missing = [name for name, stream in streams.items() if stream is None or not stream.isatty()]
    hint = "over ssh, ask for a terminal with `ssh -t`; without one, pdojo-opt lists and makes moves"
    if missing:
        raise UsageError(f"pdojo-play needs a terminal, and standard {' and '.join(missing)} is none; {hint}")
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise UsageError(
            f"pdojo-play needs a terminal that can move the cursor, and TERM says that this one cannot; {hint}"
        )


def _play(game: Game, path: str | None) -> None:
    if find_spec("textual") is None:
        raise UsageError("pdojo-play needs the package textual: pip install 'pdojo[play]'")
    from pdojo_tools.playing.app import PlayApp

    app = PlayApp(PlaySession(game), path)
    said = app.run()
    if said:
        print(said)
    if app.return_code:
        sys.exit(app.return_code)
