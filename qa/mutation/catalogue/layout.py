"""Defects of tiling, collapsing and padding dimensions, and of asynchronous copies."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import answers, assigned, compared, never, replaced, returns, without

_FILE = "transforms/storage/dimensions.py"
_ASYNC = "transforms/copies/asynchronous.py"
_COPIES = "dialect/rules/async_copies.py"

_tile = family(_FILE, "TileDim", "tile_dim")
_collapse = family(_FILE, "CollapseDims", "collapse_dims")
_pad = family(_FILE, "PadDim.check", "pad_dim")
_unpad = family(_FILE, "UnpadDim.check", "unpad_dim")
_slots = family(_FILE, "slots_reason", "tile_dim", "collapse_dims")
_access = family(_FILE, "access_reason", "tile_dim")

MUTANTS = (
    _tile(
        "tile dim: rows and columns of a tile",
        "Elements of the last, partial tile lie outside of the buffer.",
        replaced("-(-buffer.shape[at] // self.size)", "buffer.shape[at] // self.size"),
    ),
    _tile(
        "tile dim: no remainder",
        "Elements of one tile share a cell.",
        answers("modulo", "floordiv(e, self.size, extents) * 0"),
    ),
    _tile(
        "tile dim: slots are not asked", "Lanes that had slots of their own share one.", replaced("slots[at]", "False")
    ),
    _tile("tile dim: any access", "Vectors become irregular, hints sit on another layout.", without("access_reason")),
    _tile("tile dim: undone to whole tiles", "Undoing leaves the padding.", assigned("restored", "-1")),
    family(_FILE, "TileDim._slots", "tile_dim")(
        "tile dim: only tiles are reused",
        "The elements of a tile take memory that they did not.",
        returns("(*buffer.reuse[:at], buffer.reuse[at], 0, *buffer.reuse[at + 1:])"),
    ),
    _slots(
        "tile dim: folded dimensions", "The slots of the two digits are not those of the whole index.", never("reuse 1")
    ),
    _slots("tile dim: slots of lanes", "Lanes that had slots of their own share one.", never("whole")),
    _access(
        "tile dim: vectors over a boundary", "A vector access whose lanes are not a stride apart.", never("problem")
    ),
    family(_FILE, "hints_reason", "collapse_dims", "pad_dim", "unpad_dim", "tile_dim")(
        "layout: hints stay", "A hint for aligned rows sits on rows that are not.", without("hinted")
    ),
    family(_FILE, "redeclare", "tile_dim", "collapse_dims")(
        "layout: only writes follow",
        "Elements are read elsewhere than they are written.",
        assigned("inputs", "leaf.inputs"),
    ),
    family(_FILE, "redeclare", "tile_dim", "collapse_dims")(
        "layout: moved to the heap",
        "A new layout moves the buffer to other memory.",
        replaced("buffer.memory", "type(buffer.memory).HEAP"),
    ),
    _collapse("collapse dims: any slots", "A reused dimension and a whole one become one.", never("reuse")),
    _collapse(
        "collapse dims: cut into elements",
        "Elements of the last tile are cut off with the padding.",
        compared("index_bounds", ">"),
    ),
    family(_FILE, "CollapseDims._index", "collapse_dims")(
        "collapse dims: rows of another length",
        "Elements of neighbouring rows share a cell.",
        replaced("index[at] * size", "index[at] * (size - 1)"),
    ),
    _collapse(
        "collapse dims: undone by the outer extent",
        "Undoing gives another shape.",
        replaced("site.index + 1", "site.index"),
    ),
    _pad("pad: dimensions with slots", "Padding that takes no memory; undoing is refused.", never("reuse")),
    _pad("pad: to fewer elements", "Elements lie outside of the buffer.", compared("to", "==")),
    _unpad("unpad: cut into elements", "The last element lies outside of the buffer.", compared("greatest", ">")),
    _unpad(
        "unpad: dimensions with slots",
        "A dimension without memory of its own gets shorter; undoing is refused.",
        never("reuse"),
    ),
    family(_ASYNC, "AsyncCopy.check", "async_copy")(
        "async: any copy", "A copy that computes, or between other memories, runs on its own.", without("async_problem")
    ),
    family(_COPIES, "async_copy_problem", "async_copy", "vectorize")(
        "async: any size", "The machine has no copy of so many bytes.", never("size")
    ),
    family(_COPIES, "lanes_apart", "async_copy")(
        "async: one number for all lanes",
        "One copy of all lanes copies neighbours of the number.",
        never("stride_in_memory"),
    ),
    family(_COPIES, "lanes_apart", "async_copy")(
        "async: some lanes", "One copy of all lanes copies elements that its guard excludes.", never("common_guard")
    ),
    family(_COPIES, "lanes_apart", "async_copy")(
        "async: misaligned lanes", "A copy of several elements starts between multiples of its size.", never("problem")
    ),
    family(_COPIES, "lanes_apart", "async_copy")(
        "async: granules", "Exchanged granules move a copy between multiples of its size.", without("_in_parts")
    ),
    family("dialect/rules/special_mappings.py", "machine_problems", "unmap")(
        "async: after a move", "A move leaves copies that the machine does not have.", answers("async_problems", "()")
    ),
    family("transforms/mapping/unmap.py", "Unmap.check", "unmap")(
        "async: outside of a grid", "A copy runs on its own where no block is.", never("GRID")
    ),
    family("transforms/storage/location.py", "SetLocation.check", "set_location")(
        "async: into other memory", "A copy runs on its own between memories where it cannot.", never("asynchronous")
    ),
)
