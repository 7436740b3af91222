"""Defects of the conditions that every state must meet, and of their checks."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, always, answers, assigned, dropped, never, replaced, returns, without

_CONDITIONS = "dialect/rules/conditions.py"
_FRAMES = "dialect/rules/frames.py"
_EXCERPTS = "dialect/shortcuts/excerpts.py"
_BASE = "transforms/base.py"

_all = family(_CONDITIONS, "_problems", "set_location", "hint", "unroll", "stream")
_values = family(_CONDITIONS, "_storage", "unshare_buffer", "unstage")
_kinds = family(_CONDITIONS, "buffer_problems", "unshare_buffer", "unstage", "unpeel_scope")
_breach = family(_BASE, "Transformation.breach", "unstage", "unshare_buffer")
_proves = family(_BASE, "Transformation.proves", "unstage", "stage_in")
_proof = family(_BASE, "Transformation.proof", "unstage", "stage_in")

MUTANTS = (
    _values(
        "conditions: values are lost",
        "A move that argues wrongly leads to a program that overwrites values.",
        returns("None", "storage_violation"),
    ),
    _values(
        "conditions: only arrays alone keep values", "Arrays that share memory are not asked about.", without("names")
    ),
    _kinds("conditions: threads race", "A move that argues wrongly leads to a race.", dropped("_race race")),
    _kinds("conditions: registers are indexed", "Loops index registers.", dropped("_registers registers")),
    _kinds(
        "conditions: registers of another function",
        "Registers are out of reach of the threads that use them.",
        dropped("_frame frame"),
    ),
    family(_CONDITIONS, "_lanes", "stage_in", "unstage")(
        "conditions: lanes access anything",
        "Vectors go over elements that no instruction accesses at once.",
        returns("None", "problem"),
    ),
    family(_CONDITIONS, "_lane_counts", "inline_op")(
        "conditions: vectors of any length",
        "A vector has more lanes than the machine has for the type.",
        never("extent"),
    ),
    _all(
        "conditions: hints that nothing can use",
        "Hints stand where the code for them cannot be made.",
        answers("unusable_hints", "()"),
    ),
    family(_CONDITIONS, "room_problems", "set_location", "hint", "unroll", "stream")(
        "conditions: buffers of any size",
        "Stack and registers are too small for what is there.",
        assigned("full", "None"),
    ),
    _all(
        "conditions: code of any size",
        "The kernel unrolls to more statements than a compiler takes.",
        assigned("large", "None"),
    ),
    _all(
        "conditions: rules of the machine",
        "A move leads to a mapping that the machine cannot do.",
        answers("machine_problems", "()"),
    ),
    _all(
        "conditions: rules of special mappings",
        "Threads access memory that is not theirs.",
        answers("meaning_problems", "()"),
    ),
    family(_FRAMES, "_owners", "stage_in", "stage_out")(
        "frames: any scope of threads has registers", "Registers are gone when the scope runs again.", always("parent")
    ),
    family(_FRAMES, "frame_problem", "stage_in", "set_location")(
        "frames: private copies are not asked about", "A thread reads a copy that nobody wrote.", never("private")
    ),
    family(_CONDITIONS, "Conditions.broken", "tile_scope")(
        "conditions: what was broken is broken anew",
        "Moves are refused on kernels that are written for another machine.",
        always("problems"),
    ),
    _breach("conditions: a breach is no fault", "Programs that break a condition are reached.", never("broken")),
    _breach("hint: lost by other moves", "A move loses the hints of a scope.", assigned("changed", "None")),
    family(_BASE, "Transformation.fault", "unpeel_scope", "contract")(
        "conditions: malformed programs",
        "Statements depend on other iterations of themselves.",
        answers("malformed", "None"),
    ),
    _proves("conditions: all checks are trusted", "Moves are listed that cannot be made.", returns("True")),
    _proof(
        "conditions: special programs are trusted",
        "Moves on programs with special mappings are listed that cannot be made.",
        without("is_special"),
    ),
    _proof(
        "conditions: full memories are trusted",
        "Moves are listed that let too many buffers be in use at once.",
        without("is_full"),
    ),
    family("transforms/copies/staging.py", "Staging.argues", "unstage", "stage_in")(
        "conditions: moves to registers are trusted",
        "Moves are listed that put into registers what threads around cannot reach.",
        Quoted("return self.location not in (Memory.SHARED.value, Memory.REGISTER.value)", "return True"),
    ),
    family("transforms/structure/tiling.py", "TileScope.argues", "tile_scope")(
        "conditions: tails of tiles are trusted",
        "Tiles are listed whose tail would leave the scope that owns private copies.",
        Quoted("return self.tail != PEEL or self._peel(site).argues(program, site)", "return True"),
    ),
    family("transforms/apply.py", "confirm", "unstage")(
        "conditions: not asked where a move is made", "A wrong check ships a wrong program.", never("fault")
    ),
    family("transforms/base.py", "Transformation.match_and_rewrite", "tile_scope")(
        "conditions: not asked by patterns", "A wrong check ships a wrong program in a pass.", always("fault")
    ),
    family("dialect/flow/content.py", "_uses_content", "unmap", "unroll")(
        "excerpts: scopes around uses",
        "Answers about one mapping are taken for those about another.",
        dropped("chain_text"),
    ),
    family(_EXCERPTS, "content_of", "set_location", "pad_dim")(
        "excerpts: room in memory",
        "What was room enough before other buffers came is taken to be.",
        answers("once", "()"),
    ),
    family("transforms/copies/unstaging.py", "Unstage._find", "unstage", "stage_in")(
        "unstage: either of two arrays", "The inverse of staging gives another program.", never("len sources")
    ),
    family("dialect/shortcuts/digits.py", "_digits", "join_scopes", "split_scopes")(
        "collision: different factors of an equal variable",
        "2*i + j and i + j are taken to be equal for equal j only.",
        replaced("a != b", "False"),
    ),
    family("dialect/shortcuts/digits.py", "share_iterations", "share_buffer")(
        "collision: one variable tells iterations apart",
        "Instances that collide are taken to be in one iteration if they share one variable.",
        replaced("forced >= frozenset(range(depth))", "bool(forced & frozenset(range(depth)))"),
    ),
    family("dialect/shortcuts/iterations.py", "_in_order", "share_buffer")(
        "storage: a statement that runs again on its cell",
        "Arrays meet in a statement that reads what it wrote before.",
        answers("share_iterations", "True"),
    ),
    family("dialect/flow/coverage.py", "_dimension_covers", "reuse_dims", "stage_out")(
        "coverage: elements of another iteration",
        "Reads of elements that this iteration did not write are taken to be covered.",
        without("outer_other"),
    ),
    family("transforms/reductions/sums.py", "ExposeInit.check", "expose_init")(
        "expose: factors of a fused product",
        "A factor is overwritten before it is read.",
        replaced(
            "_shares(site.output, site.reads)", "site.function != 'math.fma' and _shares(site.output, site.reads)"
        ),
    ),
    family("transforms/reductions/sums.py", "ForwardSum.check", "forward_sum")(
        "forward: another element of the array",
        "What is copied is another element than the one that was accumulated.",
        replaced("step.output.key != site.reads[0].key", "step.output.array is not site.reads[0].array"),
    ),
    family("transforms/reductions/sums.py", "_are_equal", "copy_sum")(
        "copy: another element of the array",
        "The copy is of a sum with another element.",
        replaced("i.key == j.key", "i.array is j.array"),
    ),
    family("transforms/values/dead_code.py", "needed", "delete_op")(
        "delete: the caller's values", "The last writer of an array that the caller gave goes.", dropped("INOUT")
    ),
)
