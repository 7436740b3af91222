"""Machine descriptions: records, the files they are read from, and the machines known by name.

The machines that pdojo brings are TOML files here, each named like its machine.
"""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""The folder of the descriptions that pdojo brings."""


@cache
def shipped_machines() -> tuple[str, ...]:
    """The names of the machine descriptions shipped with pdojo, `host` first."""
    return ("host", *sorted(path.stem for path in FOLDER.glob("*.toml")))
