"""Every transformation by name, imported on first use; third parties add theirs by entry point."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from pdojo.errors import IllegalMove

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from pdojo.transforms.base import Transformation
    from pdojo.transforms.move import Move

AnyTransformation: TypeAlias = "Transformation[Any]"

_MODULES = {
    "join_scopes": ("fusion", "JoinScopes"),
    "split_scopes": ("fusion", "SplitScopes"),
    "tile_scope": ("tiling", "TileScope"),
    "collapse_scopes": ("tiling", "CollapseScopes"),
    "swap_scopes": ("interchange", "SwapScopes"),
    "swap_nodes": ("siblings", "SwapNodes"),
    "unroll": ("mapping", "Unroll"),
    "parallelize": ("mapping", "Parallelize"),
    "vectorize": ("mapping", "Vectorize"),
    "unmap": ("mapping", "Unmap"),
    "async_copy": ("asynchronous", "AsyncCopy"),
    "sync_copy": ("asynchronous", "SyncCopy"),
    "reuse_dims": ("storage", "ReuseDims"),
    "materialize_dims": ("storage", "MaterializeDims"),
    "set_location": ("storage", "SetLocation"),
    "swap_dims": ("layout", "SwapDims"),
    "split_reduction": ("reductions", "SplitReduction"),
    "merge_reduction": ("reductions", "MergeReduction"),
    "contract": ("contraction", "Contract"),
    "expand": ("contraction", "Expand"),
    "hint": ("hints", "Hint"),
    "unhint": ("hints", "Unhint"),
}

TRANSFORMATION_NAMES: tuple[str, ...] = tuple(_MODULES)
"""Names of all transformations, in the order in which moves are listed."""


@cache
def transformation(name: str) -> type[AnyTransformation]:
    """The transformation of that name. Raises IllegalMove with a suggestion where there is none."""
    if name not in _MODULES:
        from difflib import get_close_matches

        close = get_close_matches(name.replace("-", "_"), _MODULES, 1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(_MODULES)}"
        raise IllegalMove(f"unknown move '{name}'{hint}")
    module, attribute = _MODULES[name]
    return getattr(import_module(f"pdojo.transforms.{module}"), attribute)


def pass_factory(name: str) -> Callable[[], type[ModulePass]]:
    """How to get the pass of a transformation, for lazy registration with xDSL."""

    def load() -> type[ModulePass]:
        from pdojo.transforms.passes import pass_for

        return pass_for(name)

    return load


def instantiate(move: Move) -> AnyTransformation:
    """The transformation that a move names, with the move's parameters. Raises IllegalMove."""
    return transformation(move.name).from_move(move)
