"""Defects of tiling, collapsing and padding dimensions, and of copies that run on their own."""

from __future__ import annotations

from qa.mutation.mutant import family

_FILE = "transforms/dimensions.py"
_ASYNC = "transforms/asynchronous.py"

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
        "return _replaced(buffer.shape, at, 1, (-(-buffer.shape[at] // self.size), self.size))",
        "return _replaced(buffer.shape, at, 1, (buffer.shape[at] // self.size, self.size))",
    ),
    _tile(
        "tile dim: no remainder",
        "Elements of one tile share a cell.",
        "modulo(e, self.size, extents)",
        "floordiv(e, self.size, extents) * 0",
    ),
    _tile(
        "tile dim: slots are not asked",
        "Lanes that had slots of their own share one.",
        "if slots[at]:",
        "if False:",
    ),
    _tile(
        "tile dim: any access",
        "Vectors become irregular, hints sit on another layout.",
        "return lost or access_reason(program, buffer, self._shape(buffer, at), slots, self._index(at))",
        "return lost",
    ),
    _tile(
        "tile dim: undone to whole tiles",
        "Undoing leaves the padding.",
        "restored = -1 if extent % self.size == 0 else extent",
        "restored = -1",
    ),
    family(_FILE, "TileDim._slots", "tile_dim")(
        "tile dim: only tiles are reused",
        "The elements of a tile take memory that they did not.",
        "buffer.reuse[at], *buffer.reuse[at:])",
        "buffer.reuse[at], 0, *buffer.reuse[at + 1 :])",
    ),
    _slots(
        "tile dim: folded dimensions",
        "The slots of the two digits are not those of the whole index.",
        "if buffer.reuse[at] > 1:",
        "if False:",
    ),
    _slots(
        "tile dim: slots of lanes",
        "Lanes that had slots of their own share one.",
        "if outer * size + inner != whole:",
        "if False:",
    ),
    _access(
        "tile dim: vectors over a boundary",
        "A vector access whose lanes are not a stride apart.",
        "if problem is not None:",
        "if False:",
    ),
    family(_FILE, "hints_reason", "collapse_dims", "pad_dim", "unpad_dim", "tile_dim")(
        "layout: hints stay",
        "A hint for aligned rows sits on rows that are not.",
        "return swizzled(buffer) or hinted(program, buffer)",
        "return swizzled(buffer)",
    ),
    family(_FILE, "redeclare", "tile_dim", "collapse_dims")(
        "layout: only writes follow",
        "Elements are read elsewhere than they are written.",
        "inputs = [reindexed(i, leaf.extents) for i in leaf.inputs]",
        "inputs = leaf.inputs",
    ),
    family(_FILE, "redeclare", "tile_dim", "collapse_dims")(
        "layout: moved to the heap",
        "A new layout moves the buffer to other memory.",
        ", buffer.memory, slots)",
        ", type(buffer.memory).HEAP, slots)",
    ),
    _collapse(
        "collapse dims: any slots",
        "A reused dimension and a whole one become one.",
        "if buffer.reuse[at] != buffer.reuse[at + 1]:",
        "if False:",
    ),
    _collapse(
        "collapse dims: indices that do not come back",
        "Undoing gives another spelling of an index.",
        "if there != access.index[at : at + 2]:",
        "if False:",
    ),
    _collapse(
        "collapse dims: cut into elements",
        "Elements of the last tile are cut off with the padding.",
        "index_bounds(leaf, e, self.extent)[1] >= self.extent",
        "index_bounds(leaf, e, self.extent)[1] > self.extent",
    ),
    _collapse(
        "collapse dims: rows of another length",
        "Elements of neighbouring rows share a cell.",
        "index[at] * size + index[at + 1]",
        "index[at] * (size - 1) + index[at + 1]",
    ),
    _collapse(
        "collapse dims: undone by the outer extent",
        "Undoing gives another shape.",
        "TileDim(site.array.shape[site.index + 1])",
        "TileDim(site.array.shape[site.index])",
    ),
    _pad(
        "pad: dimensions with slots",
        "Padding that takes no memory; undoing is refused.",
        "if buffer.reuse[site.index]:",
        "if False:",
    ),
    _pad(
        "pad: to fewer elements",
        "Elements lie outside of the buffer.",
        "if self.to <= extent:",
        "if self.to == extent:",
    ),
    _unpad(
        "unpad: cut into elements",
        "The last element lies outside of the buffer.",
        "if greatest >= self.to:",
        "if greatest > self.to:",
    ),
    _unpad(
        "unpad: dimensions with slots",
        "A dimension without memory of its own gets shorter; undoing is refused.",
        "if buffer.reuse[at]:",
        "if False:",
    ),
    family(_ASYNC, "AsyncCopy.check", "async_copy")(
        "async: any copy",
        "A copy that computes, or between other memories, runs on its own.",
        "problem = async_problem(site) or async_size_problem(site, program.machine)",
        "problem = async_size_problem(site, program.machine)",
    ),
    family(_ASYNC, "async_size_problem", "async_copy", "vectorize")(
        "async: any size",
        "The machine has no copy of so many bytes.",
        "if size not in sizes:",
        "if False:",
    ),
    family("transforms/mapping/unmap.py", "Unmap.check", "unmap")(
        "async: outside of a grid",
        "A copy runs on its own where no block is.",
        "site.mapping is Mapping.GRID and any(",
        "False and any(",
    ),
    family("transforms/storage.py", "SetLocation.check", "set_location")(
        "async: into other memory",
        "A copy runs on its own between memories where it cannot.",
        "if any(leaf.asynchronous for leaf, _ in accesses_of(program.nest, site.buffer)):",
        "if False:",
    ),
)
