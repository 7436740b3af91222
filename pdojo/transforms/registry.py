"""All transformations, keyed by name, imported on first use; other packages add theirs by entry points."""

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
    "join_scopes": ("structure.fusion", "JoinScopes"),
    "split_scopes": ("structure.fusion", "SplitScopes"),
    "tile_scope": ("structure.tiling", "TileScope"),
    "collapse_scopes": ("structure.tiling", "CollapseScopes"),
    "swap_scopes": ("structure.interchange", "SwapScopes"),
    "swap_nodes": ("structure.siblings", "SwapNodes"),
    "peel_scope": ("structure.peeling", "PeelScope"),
    "unpeel_scope": ("structure.peeling", "UnpeelScope"),
    "pipeline": ("structure.pipelining", "Pipeline"),
    "unpipeline": ("structure.pipelining", "Unpipeline"),
    "hoist_nodes": ("structure.hoisting", "HoistNodes"),
    "sink_nodes": ("structure.hoisting", "SinkNodes"),
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
    "async_copy": ("copies.asynchronous", "AsyncCopy"),
    "sync_copy": ("copies.asynchronous", "SyncCopy"),
    "reuse_dims": ("storage.slots", "ReuseDims"),
    "fold_dim": ("storage.slots", "FoldDim"),
    "materialize_dims": ("storage.slots", "MaterializeDims"),
    "share_buffer": ("storage.sharing", "ShareBuffer"),
    "unshare_buffer": ("storage.sharing", "UnshareBuffer"),
    "rename_array": ("storage.renaming", "RenameArray"),
    "merge_arrays": ("storage.renaming", "MergeArrays"),
    "bind_array": ("storage.binding", "BindArray"),
    "unbind_array": ("storage.binding", "UnbindArray"),
    "set_location": ("storage.location", "SetLocation"),
    "swap_dims": ("storage.layout", "SwapDims"),
    "swizzle_dim": ("storage.swizzling", "SwizzleDim"),
    "unswizzle_dim": ("storage.swizzling", "UnswizzleDim"),
    "tile_dim": ("storage.dimensions", "TileDim"),
    "collapse_dims": ("storage.dimensions", "CollapseDims"),
    "pad_dim": ("storage.dimensions", "PadDim"),
    "unpad_dim": ("storage.dimensions", "UnpadDim"),
    "stage_in": ("copies.staging", "StageIn"),
    "stage_out": ("copies.staging", "StageOut"),
    "unstage": ("copies.unstaging", "Unstage"),
    "carry_value": ("copies.carrying", "CarryValue"),
    "reread_value": ("copies.carrying", "RereadValue"),
    "fill_tail": ("structure.tails", "FillTail"),
    "drop_guard": ("structure.tails", "DropGuard"),
    "add_guard": ("structure.tails", "AddGuard"),
    "split_reduction": ("reductions.partial_results", "SplitReduction"),
    "merge_reduction": ("reductions.partial_results", "MergeReduction"),
    "reassociate": ("reductions.reassociation", "Reassociate"),
    "contract": ("reductions.contraction", "Contract"),
    "expand": ("reductions.contraction", "Expand"),
    "absorb_init": ("reductions.sums", "AbsorbInit"),
    "expose_init": ("reductions.sums", "ExposeInit"),
    "forward_sum": ("reductions.sums", "ForwardSum"),
    "copy_sum": ("reductions.sums", "CopySum"),
    "reciprocal": ("values.reciprocals", "Reciprocal"),
    "divide": ("values.reciprocals", "Divide"),
    "approximate": ("values.approximations", "Approximate"),
    "refine": ("values.approximations", "Refine"),
    "inline_op": ("values.inlining", "InlineOp"),
    "outline_op": ("values.inlining", "OutlineOp"),
    "inline_reduction": ("reductions.repeated_reductions", "InlineReduction"),
    "outline_reduction": ("reductions.repeated_reductions", "OutlineReduction"),
    "delete_op": ("values.dead_code", "DeleteOp"),
    "insert_op": ("values.dead_code", "InsertOp"),
    "hint": ("hints", "Hint"),
    "unhint": ("hints", "Unhint"),
    "hint_buffer": ("hints", "HintBuffer"),
    "unhint_buffer": ("hints", "UnhintBuffer"),
}

TRANSFORMATION_NAMES: tuple[str, ...] = tuple(_MODULES)
"""Names of pdojo's transformations, in the order in which moves are listed."""


def transformation_names() -> tuple[str, ...]:
    """Names of all transformations, those of other packages last. Raises PluginError if two have one name."""
    return (*TRANSFORMATION_NAMES, *_plugins())


@cache
def transformation(name: str) -> type[AnyTransformation]:
    """The transformation called `name`.

    Raises IllegalMove with a suggestion for an unknown name, PluginError if another package's cannot be loaded.
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
