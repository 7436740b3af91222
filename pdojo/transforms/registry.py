"""Every transformation by name, imported on first use; other packages add theirs by entry points."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pdojo.errors import IllegalMove, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    "peel_scope": ("peeling", "PeelScope"),
    "unpeel_scope": ("peeling", "UnpeelScope"),
    "pipeline": ("pipelining", "Pipeline"),
    "unpipeline": ("pipelining", "Unpipeline"),
    "hoist_nodes": ("hoisting", "HoistNodes"),
    "sink_nodes": ("hoisting", "SinkNodes"),
    "unroll": ("mapping.cpu", "Unroll"),
    "parallelize": ("mapping.cpu", "Parallelize"),
    "vectorize": ("mapping.cpu", "Vectorize"),
    "map_grid": ("mapping.gpu", "MapGrid"),
    "map_block": ("mapping.gpu", "MapBlock"),
    "map_warp": ("mapping.gpu", "MapWarp"),
    "stream": ("mapping.snitch", "Stream"),
    "frep": ("mapping.snitch", "Frep"),
    "tensorize": ("mapping.tensor", "Tensorize"),
    "unmap": ("mapping.unmap", "Unmap"),
    "async_copy": ("asynchronous", "AsyncCopy"),
    "sync_copy": ("asynchronous", "SyncCopy"),
    "reuse_dims": ("slots", "ReuseDims"),
    "fold_dim": ("slots", "FoldDim"),
    "materialize_dims": ("slots", "MaterializeDims"),
    "share_buffer": ("sharing", "ShareBuffer"),
    "unshare_buffer": ("sharing", "UnshareBuffer"),
    "rename_array": ("renaming", "RenameArray"),
    "merge_arrays": ("renaming", "MergeArrays"),
    "set_location": ("storage", "SetLocation"),
    "swap_dims": ("layout", "SwapDims"),
    "swizzle_dim": ("swizzling", "SwizzleDim"),
    "unswizzle_dim": ("swizzling", "UnswizzleDim"),
    "tile_dim": ("dimensions", "TileDim"),
    "collapse_dims": ("dimensions", "CollapseDims"),
    "pad_dim": ("dimensions", "PadDim"),
    "unpad_dim": ("dimensions", "UnpadDim"),
    "stage_in": ("staging", "StageIn"),
    "stage_out": ("staging", "StageOut"),
    "unstage": ("unstaging", "Unstage"),
    "fill_tail": ("tails", "FillTail"),
    "drop_guard": ("tails", "DropGuard"),
    "add_guard": ("tails", "AddGuard"),
    "split_reduction": ("reductions", "SplitReduction"),
    "merge_reduction": ("reductions", "MergeReduction"),
    "contract": ("contraction", "Contract"),
    "expand": ("contraction", "Expand"),
    "absorb_init": ("sums", "AbsorbInit"),
    "expose_init": ("sums", "ExposeInit"),
    "forward_sum": ("sums", "ForwardSum"),
    "copy_sum": ("sums", "CopySum"),
    "reciprocal": ("reciprocals", "Reciprocal"),
    "divide": ("reciprocals", "Divide"),
    "inline_op": ("inlining", "InlineOp"),
    "outline_op": ("inlining", "OutlineOp"),
    "inline_reduction": ("repeated_reductions", "InlineReduction"),
    "outline_reduction": ("repeated_reductions", "OutlineReduction"),
    "delete_op": ("dead_code", "DeleteOp"),
    "insert_op": ("dead_code", "InsertOp"),
    "hint": ("hints", "Hint"),
    "unhint": ("hints", "Unhint"),
    "hint_buffer": ("hints", "HintBuffer"),
    "unhint_buffer": ("hints", "UnhintBuffer"),
}

TRANSFORMATION_NAMES: tuple[str, ...] = tuple(_MODULES)
"""Names of the transformations of pdojo, in the order in which moves are listed."""


def transformation_names() -> tuple[str, ...]:
    """Names of all transformations, those of other packages last. Raises PluginError if two have one name."""
    return (*TRANSFORMATION_NAMES, *_plugins())


@cache
def transformation(name: str) -> type[AnyTransformation]:
    """The transformation of that name.

    Raises IllegalMove with a suggestion if there is none, PluginError if another package's cannot be loaded.
    """
    if name not in _MODULES:
        return _third_party(name)
    module, attribute = _MODULES[name]
    return getattr(import_module(f"pdojo.transforms.{module}"), attribute)


def _plugins() -> dict[str, EntryPoint]:
    from pdojo.dialect.plugins import TRANSFORMATIONS, plugins

    return plugins(TRANSFORMATIONS, _MODULES)


def _third_party(name: str) -> type[AnyTransformation]:
    from pdojo.dialect.plugins import describe, load
    from pdojo.transforms.base import Transformation

    others = _plugins()
    if name not in others:
        from difflib import get_close_matches

        known = transformation_names()
        close = get_close_matches(name.replace("-", "_"), known, 1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(known)}"
        raise IllegalMove(f"unknown move '{name}'{hint}")
    found: Any = load(others[name])
    if not (isinstance(found, type) and issubclass(found, Transformation)):
        raise PluginError(f"{describe(others[name])} is no class that derives from Transformation")
    wanted = cast("type[AnyTransformation]", found)
    if wanted.name != name:
        raise PluginError(f"{describe(others[name])} calls itself '{wanted.name}'; the two names must be equal")
    return wanted


def instantiate(move: Move) -> AnyTransformation:
    """The transformation that a move names, with the move's parameters. Raises IllegalMove."""
    return transformation(move.name).from_move(move)
