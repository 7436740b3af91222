"""Strategies by name; `pdojo.search.contract.strategy` has their protocol."""

from __future__ import annotations

from collections.abc import Callable

from pdojo.dialect.plugins import STRATEGIES as GROUP
from pdojo.dialect.plugins import find
from pdojo.errors import PluginError, UsageError
from pdojo.names import STRATEGIES, strategy_names
from pdojo.search.contract.strategy import Strategy, StrategyKind, StrategyOptions

_OWN = {name: f"{__name__}.{name}:STRATEGY" for name in STRATEGIES}


def strategy(name: str, steps: int = 1000, options: StrategyOptions | None = None) -> Strategy:
    """The strategy with this name, for about `steps` evaluations; `options` of None are its defaults.

    Raises UsageError if there is no such strategy, if it has no such options, or if a package is missing.
    """
    if options is not None:
        _parser(name)
    return _kind(name).make(steps, options)


def has_options(name: str) -> bool:
    """Whether a strategy has options. Raises UsageError if there is no such strategy."""
    return _kind(name).parse is not None


def options_of(name: str, text: str) -> StrategyOptions:
    """The options of a strategy from a command line. Raises UsageError."""
    return _parser(name)(text)


def _parser(name: str) -> Callable[[str], StrategyOptions]:
    parse = _kind(name).parse
    if parse is None:
        raise UsageError(f"the strategy '{name}' has no agent")
    return parse


def _kind(name: str) -> StrategyKind:
    found = find(GROUP, name, _OWN)
    if found is None:
        raise UsageError(f"unknown strategy '{name}'; known are {', '.join(strategy_names())}")
    if not isinstance(found, StrategyKind):
        raise PluginError(f"the strategy '{name}' is a {type(found).__name__}; it must be a StrategyKind")
    return found
