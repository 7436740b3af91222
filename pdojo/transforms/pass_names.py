"""The passes of transformations, keyed by name, imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def passes_by_name(transformations: Iterable[str]) -> dict[str, Callable[[], type[ModulePass]]]:
    """Functions that return the transformations' passes, by pass name, for registration with xDSL."""
    return {f"pdojo-{name.replace('_', '-')}": _loader(name) for name in transformations}


def _loader(name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        from pdojo.transforms.passes import pass_for

        return pass_for(name)

    return load
