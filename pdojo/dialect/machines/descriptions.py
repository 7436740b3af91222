"""One-line descriptions of all machines, read without the rest of their descriptions."""

from __future__ import annotations

import tomllib

from pdojo.dialect.machines import FOLDER, host_description, shipped_machines
from pdojo.dialect.plugins import MACHINES, plugins
from pdojo.files import read_text


def descriptions() -> dict[str, str]:
    """The descriptions of all machines, keyed by name, in the order of `registry.machines`.

    Raises PluginError if another package's machine cannot be loaded.
    """
    shipped = {name: _shipped(name) for name in shipped_machines() if name != "host"}
    others = plugins(MACHINES, shipped_machines())
    if others:
        from pdojo.dialect.machines.registry import known_machine

        return {"host": host_description(), **shipped, **{name: known_machine(name).description for name in others}}
    return {"host": host_description(), **shipped}


def _shipped(name: str) -> str:
    return tomllib.loads(read_text(FOLDER / f"{name}.toml"))["description"]
