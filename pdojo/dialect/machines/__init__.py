"""Machine descriptions: records, the files they are read from, and the machines known by name.

The machines that pdojo brings are TOML files here, each named like its machine.
"""

import os
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""The folder of the descriptions that pdojo brings."""
NARROWED = "PDOJO_HOST"
"""Environment variable: the name of a shipped machine that `host` is narrowed to."""


@cache
def shipped_machines() -> tuple[str, ...]:
    """The names of the machine descriptions shipped with pdojo, `host` first."""
    return ("host", *sorted(path.stem for path in FOLDER.glob("*.toml")))


def host_description() -> str:
    """The description of `host`."""
    narrower = os.environ.get(NARROWED)
    return "the processor that this runs on" + (f", narrowed to {narrower}" if narrower else "")
