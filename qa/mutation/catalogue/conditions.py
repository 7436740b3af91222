"""Defects of what every state must keep, whatever move led to it, and of where that is asked."""

from __future__ import annotations

from qa.mutation.mutant import family

_CONDITIONS = "dialect/analysis/conditions.py"
_FRAMES = "dialect/analysis/frames.py"
_EXCERPTS = "dialect/analysis/excerpts.py"
_BASE = "transforms/base.py"

_all = family(_CONDITIONS, "_problems", "set_location", "hint", "unroll", "stream")
_values = family(_CONDITIONS, "_storage", "unshare_buffer", "unstage")
_kinds = family(_CONDITIONS, "buffer_problems", "unshare_buffer", "unstage", "unpeel_scope")
_breach = family(_BASE, "Transformation.breach", "unstage", "unshare_buffer")
_proves = family(_BASE, "Transformation.proves", "unstage", "stage_in")

MUTANTS = (
    _values(
        "conditions: values are lost",
        "A move that argues wrongly leads to a program that overwrites values.",
        "return None if violation is None else",
        "return None if True else",
    ),
    _values(
        "conditions: only arrays alone keep values",
        "Arrays that share memory are not asked about.",
        "if not any(buffer.reuse) and len(buffer.names) == 1:",
        "if not any(buffer.reuse):",
    ),
    _kinds(
        "conditions: threads race",
        "A move that argues wrongly leads to a race.",
        '(_race, "race"), ',
        "",
    ),
    _kinds(
        "conditions: registers are indexed",
        "Loops index registers.",
        '(_registers, "registers"), ',
        "",
    ),
    _kinds(
        "conditions: registers of another function",
        "Registers are out of reach of the threads that use them.",
        '(_frame, "frame"), ',
        "",
    ),
    family(_CONDITIONS, "_lane_problem", "stage_in", "unstage")(
        "conditions: lanes access anything",
        "Vectors go over elements that no instruction accesses at once.",
        "return lane_problem(access, leaf, lanes, program.machine)",
        "return None",
    ),
    family(_CONDITIONS, "_lane_counts", "inline_op")(
        "conditions: vectors of any length",
        "A vector has more lanes than the machine has for the type.",
        "if lanes.extent not in program.machine.vector_lanes(widest):",
        "if False:",
    ),
    _all(
        "conditions: hints that nothing can use",
        "Hints stand where the code for them cannot be made.",
        "yield from unusable_hints(program)",
        "pass",
    ),
    _all(
        "conditions: buffers of any size",
        "Stack and registers are too small for what is there.",
        "if (full := overflow(program, memory)) is not None:",
        "if (full := None) is not None:",
    ),
    _all(
        "conditions: code of any size",
        "The kernel unrolls to more statements than a compiler takes.",
        "if (large := unrolled(program.nest)) is not None:",
        "if (large := None) is not None:",
    ),
    _all(
        "conditions: rules of the machine",
        "A move leads to a mapping that the machine cannot do.",
        "yield from machine_problems(program)",
        "pass",
    ),
    _all(
        "conditions: rules of special mappings",
        "Threads access memory that is not theirs.",
        "yield from meaning_problems(program)",
        "pass",
    ),
    family(_FRAMES, "_owners", "stage_in", "stage_out")(
        "frames: any scope of threads has registers",
        "Registers are gone when the scope runs again.",
        "and scopes[0].parent is None:",
        "and scopes[0] is not None:",
    ),
    family(_FRAMES, "frame_problem", "stage_in", "set_location")(
        "frames: private copies are not asked about",
        "A thread reads a copy that nobody wrote.",
        "if private and len(groups) > 1 and",
        "if False and",
    ),
    family(_CONDITIONS, "Conditions.broken", "tile_scope")(
        "conditions: what was broken is broken anew",
        "Moves are refused on kernels that are written for another machine.",
        "if about not in self.problems",
        "if about",
    ),
    _breach(
        "conditions: a breach is no fault",
        "Programs that break a condition are reached.",
        "if (broken := before.broken(present, proved=proved)) is not None:",
        "if False and (broken := before.broken(present)) is not None:",
    ),
    _breach(
        "hint: lost by other moves",
        "A move loses the hints of a scope.",
        "(changed := _other_hints(before.hints, present.hints)) is not None:",
        "(changed := None) is not None:",
    ),
    family(_BASE, "Transformation.fault", "unpeel_scope", "contract")(
        "conditions: malformed programs",
        "Statements depend on other iterations of themselves.",
        "return Reason(str(error))",
        "return None",
    ),
    _proves(
        "conditions: all checks are trusted",
        "Moves are listed that cannot be made.",
        "return self.argued and not",
        "return True or not",
    ),
    _proves(
        "conditions: special programs are trusted",
        "Moves on programs with special mappings are listed that cannot be made.",
        "(self.introduces_rules or program.is_special or program.is_crowded)",
        "(self.introduces_rules or program.is_crowded)",
    ),
    _proves(
        "conditions: full memories are trusted",
        "Moves are listed that let too many buffers be in use at once.",
        "(self.introduces_rules or program.is_special or program.is_crowded)",
        "(self.introduces_rules or program.is_special)",
    ),
    _proves(
        "conditions: moves to registers are trusted",
        "Moves are listed that put into registers what threads around cannot reach.",
        "(self.introduces_rules or program.is_special or program.is_crowded)",
        "(program.is_special or program.is_crowded)",
    ),
    family("transforms/apply.py", "confirm", "unstage")(
        "conditions: not asked where a move is made",
        "A wrong check ships a wrong program.",
        "if fault is not None:",
        "if False:",
    ),
    family("transforms/base.py", "Transformation.match_and_rewrite", "tile_scope")(
        "conditions: not asked by patterns",
        "A wrong check ships a wrong program in a pass.",
        "if self.fault(program.conditions, after, proved=self.proves(program)) is None:",
        "if True:",
    ),
    family(_EXCERPTS, "content_of_buffer", "unmap", "unroll")(
        "excerpts: scopes around uses",
        "Answers about one mapping are taken for those about another.",
        "[program.chain_texts[leaf] for leaf in users],",
        "",
    ),
    family("dialect/analysis/program.py", "Program.content_of", "set_location", "pad_dim")(
        "excerpts: room in memory",
        "What was room enough before other buffers came is taken to be.",
        "return self.uses_content(buffer), self.memory_use",
        "return self.uses_content(buffer), ()",
    ),
    family("transforms/unstaging.py", "Unstage._find", "unstage", "stage_in")(
        "unstage: either of two arrays",
        "The inverse of staging gives another program.",
        "if len(again) > 1:",
        "if False:",
    ),
    family("dialect/analysis/collision.py", "_digits", "join_scopes", "split_scopes")(
        "collision: different factors of an equal variable",
        "2*i + j and i + j are taken to be equal for equal j only.",
        "            if a != b:\n",
        "            if False:\n",
    ),
    family("dialect/analysis/collision.py", "tells_apart", "share_buffer")(
        "collision: one variable tells instances apart",
        "Instances that write one cell are taken to write different ones.",
        "forced >= frozenset(range(len(domain.extents)))",
        "bool(forced & frozenset(range(len(domain.extents))))",
    ),
    family("dialect/analysis/storage_check.py", "_before", "share_buffer")(
        "storage: a statement that runs again on its cell",
        "Arrays meet in a statement that reads what it wrote before.",
        "return tells_apart(meeting[0].cell, Domain(leaf.extents, leaf.guards), depth)",
        "return True",
    ),
    family("dialect/analysis/coverage.py", "_dimension_covers", "reuse_dims", "stage_out")(
        "coverage: elements of another iteration",
        "Reads of elements that this iteration did not write are taken to be covered.",
        "if outer_mine is None or outer_mine != outer_other:",
        "if outer_mine is None:",
    ),
    family("transforms/sums.py", "ExposeInit.check", "expose_init")(
        "expose: factors of a fused product",
        "A factor is overwritten before it is read.",
        "if _shares(site.output, site.reads):",
        'if site.function != "math.fma" and _shares(site.output, site.reads):',
    ),
    family("transforms/sums.py", "ForwardSum.check", "forward_sum")(
        "forward: another element of the array",
        "What is copied is another element than the one that was accumulated.",
        "if step.output.key != site.reads[0].key:",
        "if step.output.array is not site.reads[0].array:",
    ),
    family("transforms/sums.py", "_are_equal", "copy_sum")(
        "copy: another element of the array",
        "The copy is of a sum with another element.",
        "i.key == j.key if isinstance(i, Access)",
        "i.array is j.array if isinstance(i, Access)",
    ),
    family("transforms/dead_code.py", "needed", "delete_op")(
        "delete: the caller's values",
        "The last writer of an array that the caller gave goes.",
        "if array.intent in (Intent.OUT, Intent.INOUT) and",
        "if array.intent is Intent.OUT and",
    ),
)
