"""Defects of reusing dimensions, giving memory back, moving buffers, permuting dimensions, and hints."""

from __future__ import annotations

from qa.mutation.mutant import family

_FILE = "transforms/storage.py"
_SLOTS = "transforms/slots.py"
_LAYOUT = "transforms/layout.py"
_HINTS = "transforms/hints.py"
_RULES = "dialect/analysis/hints.py"
_CPU = "transforms/mapping/cpu.py"

_fold = family(_SLOTS, "FoldDim.check", "fold_dim")
_loss = family(_SLOTS, "MaterializeDims._loss", "materialize_dims")
_fits = family(_SLOTS, "MaterializeDims._fits", "materialize_dims")
_rules = family(_RULES, "access_misfit", "hint")
_streaming = family(_RULES, "streaming_misfit", "hint", "vectorize")
_place = family(_FILE, "SetLocation.check", "set_location")
_room = family(_FILE, "room", "set_location")
_capacity = family("dialect/analysis/capacity.py", "overflow", "set_location", "tile_dim", "pad_dim")
_dims = family(_LAYOUT, "SwapDims.check", "swap_dims")

MUTANTS = (
    family("transforms/slots.py", "_streamed", "reuse_dims", "fold_dim")(
        "slots: stores past the caches",
        "Vectors that are not known to be aligned bypass the caches.",
        "if access is leaf.output and NONTEMPORAL in access.hints.data:",
        "if False:",
    ),
    family(_FILE, "callers_memory", "reuse_dims", "set_location", "swap_dims")(
        "storage: the caller's memory",
        "The layout of an interface array changes under its owner.",
        "if array.intent is None:",
        "if True:",
    ),
    family(_SLOTS, "_lost", "reuse_dims", "fold_dim", "materialize_dims")(
        "slots: lost values do not matter",
        "A value is overwritten before its last read.",
        "None if violation is None else",
        "None if violation is None or True else",
    ),
    family(_SLOTS, "_shared_slot", "reuse_dims", "fold_dim")(
        "slots: threads may share one",
        "Threads overwrite each other's values.",
        "if race is None:",
        "if True:",
    ),
    family(_SLOTS, "_restored", "fold_dim", "reuse_dims", "materialize_dims")(
        "slots: undone to one slot or to all",
        "Undoing forgets how many slots a folded dimension had.",
        "move = FoldDim(count) if count > 1 else ReuseDims()",
        "move = ReuseDims()",
    ),
    _fold(
        "fold: any number of slots",
        "More slots than indices, which undoing does not give back.",
        "if not 2 <= self.slots < extent:",
        "if self.slots < 2:",
    ),
    _fold(
        "fold: vectors run round the end",
        "A vector access whose lanes are not a stride apart.",
        "folded_lanes(access, lanes, slots)",
        "folded_lanes(access, lanes, buffer.reuse)",
    ),
    _fold(
        "fold: any room",
        "Stack or registers overflow, or a loop indexes registers.",
        "return lost or room(program, replace(buffer, reuse=slots), buffer, buffer.memory)",
        "return lost",
    ),
    _loss(
        "materialize: private copies become one memory",
        "Threads that had their own copies write one element.",
        "if race is None:",
        "if True:",
    ),
    _fits(
        "materialize: any room",
        "Stack or registers overflow.",
        "return room(program, wanted, buffer, buffer.memory)",
        "return None",
    ),
    _fits(
        "materialize: any vector access",
        "Vectors that were contiguous in their slots become irregular.",
        "if problem is not None:",
        "if False:",
    ),
    _place(
        "location: memory that the machine lacks",
        "A buffer in shared memory on a machine without it.",
        "if memory is Memory.SHARED",
        "if False",
    ),
    _capacity(
        "location: room is not counted",
        "Stack or registers overflow.",
        "if total > limit:",
        "if False:",
    ),
    _capacity(
        "location: others take no room",
        "Every buffer fits for itself, together they overflow.",
        "total = needed + sum(physical_bytes(program.nest, b) for b in used)",
        "total = needed",
    ),
    _room(
        "location: registers with changing indices",
        "A loop indexes registers.",
        "if memory is Memory.REGISTER and (problem",
        "if False and (problem",
    ),
    family(_FILE, "SetLocation.inverse", "set_location")(
        "location: undone to the heap",
        "Undoing puts the buffer elsewhere than it was.",
        "site.buffer.memory.value",
        '"heap"',
    ),
    _dims(
        "swap dims: registers with strided vectors",
        "A vector of registers that are not neighbours.",
        "if buffer.memory is Memory.REGISTER:",
        "if False:",
    ),
    _dims(
        "swap dims: any vector access",
        "Vectors become strided where the machine has no gathers, or irregular.",
        "problem = lane_problem(access, leaf, lanes, program.machine, order)",
        "problem = lane_problem(access, leaf, lanes, program.machine)",
    ),
    family(_LAYOUT, "SwapDims.rewrite", "swap_dims")(
        "swap dims: reuse stays in its place",
        "Another dimension than before takes one slot.",
        "[buffer.reuse[d] for d in order]",
        "list(buffer.reuse)",
    ),
    family(_LAYOUT, "_permute", "swap_dims")(
        "swap dims: only writes follow",
        "Elements are read elsewhere than they are written.",
        "[permuted(i) for i in leaf.inputs]",
        "leaf.inputs",
    ),
    family(_LAYOUT, "_permute", "swap_dims")(
        "swap dims: only this array follows",
        "The arrays of one buffer are permuted differently.",
        "value.array.buffer is buffer",
        "value.array.name == buffer.names[0]",
    ),
    _rules(
        "hint: non-temporal accumulation",
        "A store that bypasses the caches, of a value that was just loaded.",
        "number != 0 or leaf.accumulate is not None or value != -1",
        "number != 0 or value != -1",
    ),
    _streaming(
        "hint: non-temporal masks",
        "A store that no backend can make.",
        "if any(g.uses(lanes.depth) for g in lanes.guard):",
        "if False:",
    ),
    _streaming(
        "hint: non-temporal lanes that are apart",
        "A store that no backend can make.",
        "if stride is not Stride.CONTIGUOUS:",
        "if False:",
    ),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: non-temporal stores at any address",
        "A store that no backend can make.",
        "if NONTEMPORAL in leaf.output.hints.data and",
        "if False and",
    ),
    family(_HINTS, "Hint.check", "hint")(
        "hint: set twice",
        "A hint replaces another; undoing gives none.",
        "if self.kind in access.hints.data:",
        "if False:",
    ),
    family(_HINTS, "Unhint._again", "unhint")(
        "unhint: undone without its value",
        "A prefetch comes back without its distance.",
        ", value_of(self._hints(site).data[self.kind]))",
        ")",
    ),
    family(_RULES, "_cache_misfit", "hint")(
        "hint: read-only memory that is written",
        "A grid reads old values through the read-only cache.",
        "if kind == READONLY and (number == 0 or _is_written(program, access)):",
        "if False:",
    ),
    family(_RULES, "_lane_misfit", "hint")(
        "hint: two streams in one lane",
        "Two streams are told to take one register.",
        "taken is not None and value_of(taken) == value",
        "taken is not None and False",
    ),
)
