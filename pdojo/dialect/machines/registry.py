"""Machines by name: `host`, shipped machines, machines of other packages, and files."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

from pdojo.dialect.machines import shipped_machines
from pdojo.dialect.machines.host import detect
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import read_machine
from pdojo.dialect.machines.shipped import shipped_machine
from pdojo.dialect.names import is_machine_name
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import MACHINES, describe, load, plugins
from pdojo.errors import PdojoError, PluginError, UsageError

_PATH = re.compile(r".*\.toml|.*[/\\].*", re.DOTALL)
_introduced: dict[str, Machine] = {}


def machines() -> tuple[str, ...]:
    """The names of all machine descriptions: `host`, shipped machines, and machines of other packages."""
    return (*shipped_machines(), *plugins(MACHINES, shipped_machines()))


def machine(name: str | None = None, *, trust: bool = False) -> Machine:
    """The machine description called `name`; a name that ends in `.toml` or has a slash is the path of a file.

    None, like `host`, describes the processor of this computer.

    For names from a command line or a program; `known_machine` is for names in kernels, traces and databases (data). If
    `trust`, the code of a file's intrinsics may be compiled and run. Raises UsageError for an unknown name and a wrong
    file, PluginError if another package's description cannot be loaded.

    >>> import pdojo
    >>> pdojo.machine("x86-64-avx512").vector_lanes("f32")
    (4, 8, 16)
    >>> pdojo.machine() == pdojo.machine("host")
    True
    """
    if name is None:
        return host()
    if not isinstance(name, str) or not name:
        raise UsageError(f"a machine is given by its name or by the path of a .toml file, not by {name!r:.60}")
    if _PATH.fullmatch(name):
        return read_machine(Path(name), known_machine, trusted=trust)
    return known_machine(name)


def known_machine(name: str) -> Machine:
    """The machine description called `name`: `host`, a shipped one, or one of a package or the command line.

    No file is read because of the name. Raises UsageError if the name is unknown, PluginError if another package's
    description cannot be loaded.
    """
    if name == "host":
        return host()
    if not is_machine_name(name):
        raise UsageError(f"{name!r} is no name of a machine; only --machine and programs may name a machine file")
    return _introduced.get(name) or _named(name)


def machine_of(kernel: KernelOp) -> Machine:
    """The machine that a kernel names, or else the host. Raises as `known_machine` does."""
    return host() if kernel.machine is None else known_machine(kernel.machine.data)


def introduce(described: Machine) -> None:
    """Register the machine of the command line by its name in this process, so that kernels can name it."""
    if described.name not in shipped_machines():
        _introduced[described.name] = described


def machines_of(backend: str) -> list[Machine]:
    """The machines of a backend: those of the command line in this process first, then all others."""
    names = [name for name in machines() if name not in _introduced]
    return [each for each in (*_introduced.values(), *map(known_machine, names)) if each.backend == backend]


def host() -> Machine:
    """The processor of this computer."""
    return detect()


@cache
def _named(name: str) -> Machine:
    if name in shipped_machines():
        return shipped_machine(name)
    others = plugins(MACHINES, shipped_machines())
    if name in others:
        return _plugin_machine(others[name])
    close = get_close_matches(name, machines(), 1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise UsageError(
        f"unknown machine '{name}'{hint}; known: {', '.join(machines())}, or the path of a .toml file (--machine)"
    )


def _plugin_machine(entry: EntryPoint) -> Machine:
    """The machine that another package describes. Raises PluginError."""
    found = load(entry)
    try:
        if callable(found):
            found = found()
        if isinstance(found, str | Path):
            found = read_machine(Path(found), known_machine, trusted=True)
    except PdojoError as error:
        raise PluginError(f"{describe(entry)} cannot be loaded: {error}") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"{describe(entry)} cannot be loaded: {reason}; repair it, or uninstall it") from error
    if not isinstance(found, Machine):
        raise PluginError(
            f"{describe(entry)} is a {type(found).__name__}; it must be a Machine, a function that returns one, or the "
            f"path of a TOML file"
        )
    if found.name != entry.name:
        raise PluginError(f"{describe(entry)} describes '{found.name}'; the two names must be equal")
    return found
