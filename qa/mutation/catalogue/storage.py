"""Defects of reusing dimensions, giving memory back, moving buffers, permuting dimensions, and hints."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import always, answers, assigned, dropped, never, replaced, returns, without

_FILE = "transforms/storage/location.py"
_SLOTS = "transforms/storage/slots.py"
_LAYOUT = "transforms/storage/layout.py"
_HINTS = "transforms/hints.py"
_RULES = "dialect/rules/hints.py"
_CPU = "transforms/mapping/cpu.py"

_fold = family(_SLOTS, "FoldDim.check", "fold_dim")
_loss = family(_SLOTS, "MaterializeDims._loss", "materialize_dims")
_fits = family(_SLOTS, "MaterializeDims._fits", "materialize_dims")
_rules = family(_RULES, "access_misfit", "hint")
_streaming = family(_RULES, "streaming_misfit", "hint", "vectorize")
_place = family(_FILE, "SetLocation.check", "set_location")
_room = family(_FILE, "room", "set_location")
_capacity = family("dialect/rules/capacity.py", "overflow", "set_location", "tile_dim", "pad_dim")
_dims = family(_LAYOUT, "SwapDims.check", "swap_dims")

MUTANTS = (
    family("transforms/storage/slots.py", "_streamed", "reuse_dims", "fold_dim")(
        "slots: stores past the caches",
        "Vectors that are not known to be aligned bypass the caches.",
        never("NONTEMPORAL output"),
    ),
    family(_FILE, "callers_memory", "reuse_dims", "set_location", "swap_dims")(
        "storage: the caller's memory", "The layout of an interface array changes under its owner.", always("intent")
    ),
    family(_SLOTS, "_lost", "reuse_dims", "fold_dim", "materialize_dims")(
        "slots: lost values do not matter",
        "A value is overwritten before its last read.",
        returns("None", "storage_violation"),
    ),
    family(_SLOTS, "_shared_slot", "reuse_dims", "fold_dim")(
        "slots: threads may share one", "Threads overwrite each other's values.", always("race")
    ),
    family(_SLOTS, "_restored", "fold_dim", "reuse_dims", "materialize_dims")(
        "slots: undone to one slot or to all",
        "Undoing forgets how many slots a folded dimension had.",
        never("count 1"),
    ),
    _fold(
        "fold: any number of slots",
        "More slots than indices, which undoing does not give back.",
        replaced("not 2 <= self.slots < extent", "self.slots < 2"),
    ),
    _fold(
        "fold: vectors run round the end",
        "A vector access whose lanes are not a stride apart.",
        replaced("folded_lanes(access, lanes, slots)", "folded_lanes(access, lanes, buffer.reuse)"),
    ),
    _fold("fold: any room", "Stack or registers overflow, or a loop indexes registers.", without("room")),
    _loss(
        "materialize: private copies become one memory",
        "Threads that had their own copies write one element.",
        always("race"),
    ),
    _fits("materialize: any room", "Stack or registers overflow.", returns("None", "room")),
    _fits(
        "materialize: any vector access",
        "Vectors that were contiguous in their slots become irregular.",
        never("problem"),
    ),
    _place(
        "location: memory that the machine lacks", "A buffer in shared memory on a machine without it.", never("SHARED")
    ),
    _capacity("location: room is not counted", "Stack or registers overflow.", never("total")),
    _capacity(
        "location: others take no room", "Every buffer fits for itself, together they overflow.", answers("sum", "0")
    ),
    _room("location: registers with changing indices", "A loop indexes registers.", never("REGISTER")),
    family(_FILE, "SetLocation.inverse", "set_location")(
        "location: undone to the heap",
        "Undoing puts the buffer elsewhere than it was.",
        replaced("site.buffer.memory.value", "'heap'"),
    ),
    _dims(
        "swap dims: registers with strided vectors", "A vector of registers that are not neighbours.", never("memory")
    ),
    _dims(
        "swap dims: any vector access",
        "Vectors become strided where the machine has no gathers, or irregular.",
        answers("lane_problem", "lane_problem(access, leaf, lanes, program.machine)"),
    ),
    family(_LAYOUT, "SwapDims.rewrite", "swap_dims")(
        "swap dims: reuse stays in its place",
        "Another dimension than before takes one slot.",
        assigned("slots", "list(buffer.reuse)"),
    ),
    family(_LAYOUT, "_permute", "swap_dims")(
        "swap dims: only writes follow",
        "Elements are read elsewhere than they are written.",
        replaced("[permuted(i) for i in leaf.inputs]", "leaf.inputs"),
    ),
    family(_LAYOUT, "_permute", "swap_dims")(
        "swap dims: only this array follows",
        "The arrays of one buffer are permuted differently.",
        replaced("value.array.buffer is buffer", "value.array.name == buffer.names[0]"),
    ),
    _rules(
        "hint: non-temporal accumulation",
        "A store that bypasses the caches, of a value that was just loaded.",
        without("accumulate"),
    ),
    _streaming("hint: non-temporal masks", "A store that no backend can make.", never("uses")),
    _streaming("hint: non-temporal lanes that are apart", "A store that no backend can make.", never("CONTIGUOUS")),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: non-temporal stores at any address", "A store that no backend can make.", never("NONTEMPORAL")
    ),
    family(_HINTS, "Hint.check", "hint")(
        "hint: set twice", "A hint replaces another; undoing gives none.", never("access.hints")
    ),
    family(_HINTS, "Unhint._again", "unhint")(
        "unhint: undone without its value", "A prefetch comes back without its distance.", dropped("value_of")
    ),
    family(_RULES, "_cache_misfit", "hint")(
        "hint: read-only memory that is written",
        "A grid reads old values through the read-only cache.",
        never("READONLY _is_written"),
    ),
    family(_RULES, "_lane_misfit", "hint")(
        "hint: two streams in one lane", "Two streams are told to take one register.", never("value_of")
    ),
)
