"""Defects of staging, of sharing memory, and of peeling."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import always, assigned, never, replaced, returns, without

_STAGING = "transforms/copies/staging.py"
_UNSTAGING = "transforms/copies/unstaging.py"
_COVERAGE = "dialect/flow/coverage.py"
_FOOTPRINT = "transforms/copies/footprint.py"
_SHARING = "transforms/storage/sharing.py"
_PEELING = "transforms/structure/peeling.py"
_MATCHING = "transforms/structure/matching.py"
_CHECK = "dialect/shortcuts/iterations.py"
_TURNS = "dialect/shortcuts/turns.py"

_BOTH = ("stage_in", "stage_out", "unstage")

_stage = family(_STAGING, "Staging", *_BOTH)
_in = family(_STAGING, "StageIn", "stage_in", "unstage")
_out = family(_STAGING, "StageOut", "stage_out", "unstage")
_box = family(_FOOTPRINT, "box_copy", *_BOTH)
_iteration = family(_FOOTPRINT, "iteration_copy", *_BOTH)
_order = family(_FOOTPRINT, "_order", *_BOTH)
_share = family(_SHARING, "ShareBuffer", "share_buffer")
_unshare = family(_SHARING, "UnshareBuffer", "unshare_buffer")
_peel = family(_PEELING, "PeelScope", "peel_scope")
_unpeel = family(_PEELING, "UnpeelScope", "unpeel_scope")
_matcher = family(_MATCHING, "_Matcher", "unpeel_scope")
_cut = family(_MATCHING, "Cut", "peel_scope", "unpeel_scope")
_turns = family(_CHECK, "in_turn", "share_buffer")

MUTANTS = (
    _in(
        "stage in: what is written may be copied",
        "The scope reads a copy that is older than what it wrote.",
        never("witness"),
    ),
    _in("stage in: beyond the array", "The copy nest reads elements that the array does not have.", without("extent")),
    _out(
        "stage out: old values are not needed",
        "A partial update writes back elements that the copy never got.",
        returns("'w'", "rw"),
    ),
    _out(
        "stage out: an element twice in the copy",
        "Of two places of the copy the wrong one is written back.",
        never("own"),
    ),
    _out(
        "stage out: more goes back than was written",
        "Elements that the scope did not write are overwritten.",
        always("spared"),
    ),
    _out(
        "stage out: guests of the memory", "Another array of the buffer sees old values.", never("copy.source.buffer")
    ),
    _stage("stage: registers with changing indices", "A loop indexes registers.", never("REGISTER extents")),
    _stage(
        "stage: shared memory of threads", "Each thread takes the memory of the block for itself.", never("SHARED GRID")
    ),
    _stage("stage: hints are lost", "Undoing does not give the hints back.", never("hints")),
    _stage("stage: inside of streams", "An access to a stream goes to a copy.", never("_PATTERNS")),
    family(_STAGING, "_threads_inside", "stage_in", "stage_out")(
        "stage: registers for threads", "Threads share a copy in a register.", never("is_threaded")
    ),
    family(_UNSTAGING, "Unstage._staging", "unstage")(
        "unstage: whatever staging would give",
        "A copy that holds something else is taken for what it was copied from.",
        always("_text"),
    ),
    _box("box: no guards", "The copy nest reads elements that the array does not have.", never("bounds")),
    _box(
        "box: places from the start of the array",
        "The scope accesses the copy at the index of the array.",
        replaced("a.index[d] - bases[d]", "a.index[d]"),
    ),
    family(_FOOTPRINT, "_interval", *_BOTH)(
        "box: the last element is left out",
        "The box is shorter than what is accessed.",
        assigned("extent", "max(1, high - low)"),
    ),
    _iteration(
        "copy: guards of any access",
        "Elements that one access needs and another does not are not copied.",
        replaced("set[Expr].intersection", "set[Expr].union"),
    ),
    family(_FOOTPRINT, "_guards", *_BOTH)(
        "copy: guards that others decide",
        "Elements are not copied, because of a variable that the copy nest does not have.",
        replaced("all", "any"),
    ),
    _share(
        "share: lost values do not matter",
        "An array overwrites values of the other that are still needed.",
        never("violation"),
    ),
    _share("share: threads may race", "A thread overwrites another array's value of another thread.", always("race")),
    family(_SHARING, "ShareBuffer._unlike", "share_buffer")(
        "share: inputs as memory", "The caller's input is overwritten.", never("intent")
    ),
    _share(
        "share: arrays that share already", "An array leaves its own companions behind.", never("site.buffer.names")
    ),
    family(_SHARING, "unlike_in", "share_buffer")(
        "share: other locations",
        "A buffer of registers in the heap.",
        replaced("mine != other", "mine != other and what != 'location'"),
    ),
    family(_SHARING, "unlike_in", "share_buffer")(
        "share: other slots",
        "The array has more slots than the memory.",
        replaced("mine != other", "mine != other and what != 'slots'"),
    ),
    family(_SHARING, "pinned", "share_buffer", "unshare_buffer")(
        "share: hints stay", "Hints for one memory sit on another.", never("array data")
    ),
    family(_SHARING, "_several_threads", "share_buffer", "unshare_buffer")(
        "share: registers of several threads", "Threads are given one register.", never("owners")
    ),
    family(_CHECK, "_consecutive", "share_buffer")(
        "turns: overlapping ones", "Two arrays use one memory at the same time.", returns("_parts(uses, names)")
    ),
    _turns(
        "turns: what the caller gave", "The caller's values are overwritten before they are read.", without("writes")
    ),
    _turns("turns: what the caller gets", "The caller gets the values of the guest.", never("_before")),
    _turns(
        "turns: one cell for all iterations",
        "The guest of a later iteration overwrites what the caller gets from an earlier one.",
        without("_apart"),
    ),
    _peel("peel: a mapped scope", "Threads of one scope become those of two.", never("site.mapping")),
    _stage(
        "stage: any copy is what the scope accesses",
        "Bounds, races and values of what else is copied are not asked.",
        without("whole"),
    ),
    _out(
        "stage out: what is written first needs no value before",
        "The copy nest reads elements that nothing wrote.",
        returns("True", "accumulate"),
    ),
    _in("stage in: inputs end nowhere", "The copy nest reads beyond an input.", assigned("within", "True")),
    family(_STAGING, "_follows", *_BOTH)(
        "stage: a place that is written in other iterations",
        "A read is taken to follow a write that has fewer iterations.",
        without("variables"),
    ),
    family(_COVERAGE, "fills_box", *_BOTH)(
        "stage: a part of the box is the whole", "What is copied back was not all written.", never("interval")
    ),
    family(_TURNS, "_comes_after", "share_buffer")(
        "share: only statements in order count",
        "An array comes back to memory in a later iteration.",
        assigned("relations", "[]"),
    ),
    family(_TURNS, "_comes_after", "share_buffer")(
        "share: the order of statements is ignored",
        "An array comes back to memory in a later statement.",
        never("follows"),
    ),
    family(_TURNS, "apart", "share_buffer")(
        "share: what the caller gave may go", "An array takes the memory of values of the caller.", without("INOUT")
    ),
    family(_TURNS, "apart", "share_buffer")(
        "share: what the caller gets may be overwritten",
        "An array takes the memory of an output that is done with.",
        without("intent None"),
    ),
    _peel(
        "peel: registers of threads inside",
        "Registers of one thread are used in two scopes.",
        assigned("register", "None"),
    ),
    _peel(
        "peel: the second part starts at zero",
        "The last iterations are those at the beginning.",
        replaced("var(site.depth) + self.after", "var(site.depth)"),
    ),
    _peel("peel: parts that never run", "A scope without anything that runs.", never("site.id")),
    family(_PEELING, "UnpeelScope.check", "unpeel_scope")(
        "unpeel: other mappings", "A sequential scope is unrolled, or an unrolled one is not.", without("second")
    ),
    _cut(
        "match: indices of the first part only",
        "The second part accesses other elements than it did.",
        replaced("self.restrict(guess, whole) == (first, second)", "self.restrict(guess, whole)[0] == first"),
    ),
    _cut(
        "match: guards of the first part only",
        "The second part runs other iterations than it did.",
        replaced(
            "self.restrict_guard(plain, whole) == ([*first], [*second])",
            "self.restrict_guard(plain, whole)[0] == [*first]",
        ),
    ),
    _matcher("match: other functions", "The second part computes what the first does.", without("_LEAF")),
    _matcher("match: other arrays", "The second part accesses the array of the first.", never("array")),
    _matcher("match: other constants", "The second part has the constant of the first.", returns("first", "repr")),
    _matcher("match: other extents inside", "The second part runs as far as the first.", without("extent")),
    _matcher(
        "match: nothing in common", "Two scopes that have nothing to do with each other become one.", without("common")
    ),
)
