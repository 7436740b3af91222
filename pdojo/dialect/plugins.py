"""Moves, machines, backends, passes and strategies of other packages: entry points, loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pdojo.errors import PluginError

TRANSFORMATIONS = "pdojo.transformations"
"""Group of entry points: a move's name, and its `Transformation` class."""
MACHINES = "pdojo.machines"
"""Group of entry points: a machine's name, and a `Machine`, a function that returns one, or the path of a TOML file."""

BACKENDS = "pdojo.backends"
"""Group of entry points: a backend's name, and an object like a `pdojo.backends.backend.Backend`."""
KINDS = "pdojo.kinds"
"""Group of entry points: a backend's name, and a `pdojo.passes.kind.MachineKind`."""
PROPOSALS = "pdojo.proposals"
"""Group of entry points: a backend's name, and a `pdojo.search.neighbourhoods.proposals.Proposals`."""
STRATEGIES = "pdojo.strategies"
"""Group of entry points: a strategy's name, and a `pdojo.search.contract.strategy.StrategyKind`."""
_WORDS = {
    TRANSFORMATIONS: "move",
    MACHINES: "machine",
    BACKENDS: "backend",
    KINDS: "kind of machine",
    PROPOSALS: "proposals",
    STRATEGIES: "strategy",
}


@cache
def _found(group: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda e: (e.name, provider(e))))


def plugins(group: str, taken: Iterable[str]) -> dict[str, EntryPoint]:
    """The entry points of a group by name, sorted. Raises PluginError if two have one name, or a name is in `taken`."""
    known: dict[str, EntryPoint] = {}
    reserved = frozenset(taken)
    for entry in _found(group):
        if entry.name in reserved:
            raise PluginError(f"{describe(entry)} has the name of one that pdojo brings; rename it, or uninstall it")
        if entry.name in known:
            raise PluginError(
                f"{describe(entry)} has the name of another: {describe(known[entry.name])}; uninstall one of them"
            )
        known[entry.name] = entry
    return known


def load(entry: EntryPoint) -> object:
    """The object that an entry point names. Raises PluginError for any error on import."""
    try:
        return entry.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"{describe(entry)} cannot be loaded: {reason}; repair it, or uninstall it") from error


def find(group: str, name: str, own: Mapping[str, str]) -> object | None:
    """The object called `name`, from `own` (`module:attribute`) or from an entry point of the group; None if unknown.

    Raises PluginError.
    """
    if name in own:
        return named(own[name])
    others = plugins(group, own)
    return load(others[name]) if name in others else None


def named(path: str) -> Any:
    """The object at a path `module:attribute`."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def lazy(path: str) -> Callable[[], Any]:
    """A function that returns the object at a path `module:attribute`, and imports its module when it is called."""
    return partial(named, path)


def describe(entry: EntryPoint) -> str:
    """`the move 'f' of the distribution 'd 1.0' (pkg.mod:F)` for messages."""
    return f"the {_WORDS[entry.group]} '{entry.name}' of the distribution '{provider(entry)}' ({entry.value})"


def provider(entry: EntryPoint) -> str:
    """Name and version of the distribution that an entry point comes from."""
    return "unknown" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
