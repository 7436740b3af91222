"""The start of every tool: Ctrl-C while modules are loaded has the same effect as later.

The attributes `opt`, `run` ... are the tools, by the names of their modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module


def __getattr__(name: str) -> Callable[[], int]:
    """The tool in the module of the name."""
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(start, name)


def start(name: str) -> int:
    """Load a tool and run it on the command line; returns the exit code."""
    try:
        tool = import_module(f"pdojo_tools.{name}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return tool.main()
