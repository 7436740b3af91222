"""Defects of staging, of sharing memory, and of peeling."""

from __future__ import annotations

from qa.mutation.mutant import family

_STAGING = "transforms/staging.py"
_UNSTAGING = "transforms/unstaging.py"
_COVERAGE = "dialect/analysis/coverage.py"
_FOOTPRINT = "transforms/footprint.py"
_SHARING = "transforms/sharing.py"
_PEELING = "transforms/peeling.py"
_MATCHING = "transforms/matching.py"
_CHECK = "dialect/analysis/storage_check.py"
_TURNS = "dialect/analysis/turns.py"
_PROGRAM = "dialect/analysis/program.py"

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
        "if witness is not None:",
        "if False:",
    ),
    _in(
        "stage in: beyond the array",
        "The copy nest reads elements that the array does not have.",
        "if low < 0 or high >= extent:",
        "if low < 0:",
    ),
    _out(
        "stage out: old values are not needed",
        "A partial update writes back elements that the copy never got.",
        'return "w" if needed is None else "rw"',
        'return "w"',
    ),
    _out(
        "stage out: an element twice in the copy",
        "Of two places of the copy the wrong one is written back.",
        "if own and (witness := program.collisions.find(twice)) is not None:",
        "if False and (witness := program.collisions.find(twice)) is not None:",
    ),
    _out(
        "stage out: more goes back than was written",
        "Elements that the scope did not write are overwritten.",
        "if spared is None:",
        "if True:",
    ),
    _out(
        "stage out: guests of the memory",
        "Another array of the buffer sees old values.",
        "if access.array is not copy.source and access.array.buffer is copy.source.buffer:",
        "if False:",
    ),
    _stage(
        "stage: registers with changing indices",
        "A loop indexes registers.",
        "if memory is Memory.REGISTER and copy.extents:",
        "if False:",
    ),
    _stage(
        "stage: shared memory of threads",
        "Each thread takes the memory of the block for itself.",
        "if memory is Memory.SHARED and (Mapping.GRID not in mappings or {Mapping.BLOCK, Mapping.WARP} & {*mappings}):",
        "if False:",
    ),
    _stage(
        "stage: hints are lost",
        "Undoing does not give the hints back.",
        "if access.hints.data:",
        "if False:",
    ),
    _stage(
        "stage: inside of streams",
        "An access to a stream goes to a copy.",
        "if scope.mapping in _PATTERNS:",
        "if False:",
    ),
    family(_STAGING, "_threads_inside", "stage_in", "stage_out")(
        "stage: registers for threads",
        "Threads share a copy in a register.",
        "if s.mapping.is_threaded",
        "if False",
    ),
    family(_UNSTAGING, "Unstage._staging", "unstage")(
        "unstage: whatever staging would give",
        "A copy that holds something else is taken for what it was copied from.",
        "and _fingerprint(move.rehearse(without, scope).kernel) == wanted:",
        "and wanted:",
    ),
    family(_UNSTAGING, "_shortest", "unstage")(
        "unstage: undone with other identifiers",
        "Later moves of a trace do not find the copy nest again.",
        "if move.natural_ids(program, scope, copy) == list(ids):",
        "if True:",
    ),
    _box(
        "box: no guards",
        "The copy nest reads elements that the array does not have.",
        "if g.bounds(around)[0] < 0]",
        "if g.bounds(around)[0] < -1000]",
    ),
    _box(
        "box: places from the start of the array",
        "The scope accesses the copy at the index of the array.",
        "a.index[d] - bases[d] for d in wide",
        "a.index[d] for d in wide",
    ),
    family(_FOOTPRINT, "_interval", *_BOTH)(
        "box: the last element is left out",
        "The box is shorter than what is accessed.",
        "extent = high - low + 1",
        "extent = max(1, high - low)",
    ),
    _iteration(
        "copy: guards of any access",
        "Elements that one access needs and another does not are not copied.",
        "set[Expr].intersection(*guarded.values())",
        "set[Expr].union(*guarded.values())",
    ),
    family(_FOOTPRINT, "_guards", *_BOTH)(
        "copy: guards that others decide",
        "Elements are not copied, because of a variable that the copy nest does not have.",
        "if all(v < depth or v in order for v in g.variables())]",
        "if any(v < depth or v in order for v in g.variables())]",
    ),
    _share(
        "share: lost values do not matter",
        "An array overwrites values of the other that are still needed.",
        "if violation is not None:",
        "if False:",
    ),
    _share(
        "share: threads may race",
        "A thread overwrites another array's value of another thread.",
        "if race is None:",
        "if True:",
    ),
    _share(
        "share: inputs as memory",
        "The caller's input is overwritten.",
        "if host.intent is Intent.IN:",
        "if False:",
    ),
    _share(
        "share: arrays that share already",
        "An array leaves its own companions behind.",
        "if len(site.buffer.names) > 1:",
        "if False:",
    ),
    family(_SHARING, "_difference", "share_buffer")(
        "share: other locations",
        "A buffer of registers in the heap.",
        "if mine != other), None)",
        'if mine != other and what != "location"), None)',
    ),
    family(_SHARING, "_difference", "share_buffer")(
        "share: other slots",
        "The array has more slots than the memory.",
        "if mine != other), None)",
        'if mine != other and what != "slots"), None)',
    ),
    family(_SHARING, "_fixed", "share_buffer", "unshare_buffer")(
        "share: hints stay",
        "Hints for one memory sit on another.",
        "if access.array is array and access.hints.data:",
        "if False:",
    ),
    family(_SHARING, "_several_threads", "share_buffer", "unshare_buffer")(
        "share: registers of several threads",
        "Threads are given one register.",
        "if len(owners) > 1 else None",
        "if False else None",
    ),
    _share(
        "share: undone to the end",
        "Undoing declares the array elsewhere.",
        "-1 if position == len(declared) - 1 else position",
        "-1",
    ),
    _unshare(
        "unshare: undone to the end",
        "Undoing lists the arrays in another order.",
        "-1 if at == len(names) - 1 else at",
        "-1",
    ),
    family(_CHECK, "_consecutive", "share_buffer")(
        "turns: overlapping ones",
        "Two arrays use one memory at the same time.",
        "return _parts(uses, names) if apart else [list(uses)]",
        "return _parts(uses, names)",
    ),
    _turns(
        "turns: what the caller gave",
        "The caller's values are overwritten before they are read.",
        "if caller.writes or not own",
        "if not own",
    ),
    _turns(
        "turns: what the caller gets",
        "The caller gets the values of the guest.",
        "if others and not _before(max(others), min(own), uses, places):",
        "if False:",
    ),
    _turns(
        "turns: one cell for all iterations",
        "The guest of a later iteration overwrites what the caller gets from an earlier one.",
        " or not _apart(uses, depth)",
        "",
    ),
    _peel(
        "peel: a mapped scope",
        "Threads of one scope become those of two.",
        "if site.mapping not in PEELED:",
        "if False:",
    ),
    _peel(
        "peel: guards that look at the scope are kept by both parts",
        "Taking the move back does not restore a guard.",
        "not any(g.uses(site.depth) for g in guards)",
        "True",
    ),
    _stage(
        "stage: any copy is what the scope accesses",
        "Bounds, races and values of what else is copied are not asked.",
        "(bool(copy.whole) and self.reads_first(site, copy))",
        "self.reads_first(site, copy)",
    ),
    _out(
        "stage out: what is written first needs no value before",
        "The copy nest reads elements that nothing wrote.",
        "return all(leaf.accumulate is not None for leaf, access in accesses if access is leaf.output)",
        "return True",
    ),
    _in(
        "stage in: inputs end nowhere",
        "The copy nest reads beyond an input.",
        "within = all(low >= 0 and high < n for (low, high), n in zip(ranges, copy.source.shape, strict=True))",
        "within = True",
    ),
    family(_STAGING, "_follows", *_BOTH)(
        "stage: a place that is written in other iterations",
        "A read is taken to follow a write that has fewer iterations.",
        "mine == other and all(reader.extents[v] <= writer.extents[v] for v in mine.variables())",
        "mine == other",
    ),
    family(_COVERAGE, "fills_box", *_BOTH)(
        "stage: a part of the box is the whole",
        "What is copied back was not all written.",
        "if interval(expression, extents) != (0, extent - 1):",
        "if False:",
    ),
    family(_TURNS, "_comes_after", "share_buffer")(
        "share: only statements in order count",
        "An array comes back to memory in a later iteration.",
        "relations: list[Relation] = [(*(EQUAL,) * k, BEFORE) for k in range(depth)]",
        "relations: list[Relation] = []",
    ),
    family(_TURNS, "_comes_after", "share_buffer")(
        "share: the order of statements is ignored",
        "An array comes back to memory in a later statement.",
        "if follows:",
        "if False:",
    ),
    family(_PROGRAM, "Program.sharing_violation", "share_buffer")(
        "share: what the caller gave may go",
        "An array takes the memory of values of the caller.",
        "if not any(host.reuse) and host.intent is not Intent.INOUT:",
        "if not any(host.reuse):",
    ),
    family(_PROGRAM, "Program.sharing_violation", "share_buffer")(
        "share: what the caller gets may be overwritten",
        "An array takes the memory of an output that is done with.",
        "if host.intent is None and done_before(hosts, guests, self.collisions):",
        "if done_before(hosts, guests, self.collisions):",
    ),
    _peel(
        "peel: registers of threads inside",
        "Registers of one thread are used in two scopes.",
        "if (register := _thread_register(site)) is not None:",
        "if (register := None) is not None:",
    ),
    _peel(
        "peel: the second part starts at zero",
        "The last iterations are those at the beginning.",
        "var(site.depth) + self.after))",
        "var(site.depth)))",
    ),
    _peel(
        "peel: parts that never run",
        "A scope without anything that runs.",
        "if site.id in dead:",
        "if False:",
    ),
    _unpeel(
        "unpeel: other mappings",
        "A sequential scope is unrolled, or an unrolled one is not.",
        "if site.mapping not in PEELED or site.mapping is not second.mapping:",
        "if site.mapping not in PEELED:",
    ),
    _cut(
        "match: indices of the first part only",
        "The second part accesses other elements than it did.",
        "if self.restrict(guess, whole) == (first, second):",
        "if self.restrict(guess, whole)[0] == first:",
    ),
    _cut(
        "match: guards of the first part only",
        "The second part runs other iterations than it did.",
        "if self.restrict_guard(plain, whole) == ([*first], [*second]):",
        "if self.restrict_guard(plain, whole)[0] == [*first]:",
    ),
    _matcher(
        "match: other functions",
        "The second part computes what the first does.",
        "if _facts(first.op, _LEAF) != _facts(second.op, _LEAF) or",
        "if",
    ),
    _matcher(
        "match: other arrays",
        "The second part accesses the array of the first.",
        "if first.array is not second.array:",
        "if False:",
    ),
    _matcher(
        "match: other constants",
        "The second part has the constant of the first.",
        "return first if repr(first) == repr(second) else None",
        "return first",
    ),
    _matcher(
        "match: other extents inside",
        "The second part runs as far as the first.",
        "same = mine.extent == other.extent and ",
        "same = ",
    ),
    _matcher(
        "match: nothing in common",
        "Two scopes that have nothing to do with each other become one.",
        "return found if common and in_second == len(second) else None",
        "return found if in_second == len(second) else None",
    ),
)
