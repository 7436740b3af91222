"""The notation: the textual form of kernels for people and language models (paper section 2.1, docs/notation.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdojo.dialect.notation.equality import plain_mlir, same_program
    from pdojo.dialect.notation.parser import parse_module, parse_notation
    from pdojo.dialect.notation.printer import print_nest, print_notation, print_versions

__all__ = [
    "parse_module",
    "parse_notation",
    "plain_mlir",
    "print_nest",
    "print_notation",
    "print_versions",
    "same_program",
]

_HOMES = {
    "parse_module": "parser",
    "parse_notation": "parser",
    "plain_mlir": "equality",
    "print_nest": "printer",
    "print_notation": "printer",
    "print_versions": "printer",
    "same_program": "equality",
}


def __getattr__(name: str) -> Any:
    """Import a function when it is first used: sizes and messages of texts do not need the dialect."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
