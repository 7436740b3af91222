"""Defects of the analyses behind all moves: collisions, races, lanes, flows of values, owners of copies."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, always, answers, assigned, dropped, never, replaced, returns, without

_SCHEDULE = ("join_scopes", "split_scopes", "swap_scopes", "swap_nodes", "parallelize")
_STORAGE = ("reuse_dims", "materialize_dims", "parallelize", "vectorize", "unmap")

_COLLISION = "dialect/flow/collision.py"
_DIGITS = "dialect/shortcuts/digits.py"
_VALUES_FILE = "dialect/shortcuts/values.py"
_CHECK = "dialect/flow/storage_check.py"
_FLOWS = "dialect/flow/flows.py"
_EXCERPTS = "dialect/shortcuts/excerpts.py"
_ORIGINS = "dialect/flow/origins.py"
_COVERAGE = "dialect/flow/coverage.py"
_RACES = "dialect/rules/races.py"
_LANES = "dialect/rules/lanes.py"
_PROGRAM = "dialect/flow/program.py"
_PLACES = "dialect/view/storage.py"

_impossible = family(_DIGITS, "impossible", *_SCHEDULE)
_digits = family(_DIGITS, "_digits", *_SCHEDULE)
_largest = family(_DIGITS, "_largest_digits", *_SCHEDULE)
_exact = family(_COLLISION, "exact", *_SCHEDULE)
_within = family("dialect/shortcuts/iterations.py", "within_iteration", *_STORAGE)
_flows = family(_CHECK, "compare_flows", *_STORAGE)
_events = family("dialect/shortcuts/instances.py", "compare_events", *_STORAGE)
_VALUES = ("inline_op", "outline_op", "delete_op")
_stays = family(_VALUES_FILE, "_stays_until", *_VALUES)
_covers = family(_COVERAGE, "covers", *_STORAGE)
_reaches = family(_COVERAGE, "reaches", *_STORAGE)
_collide = family(_PROGRAM, "Program._collide", *_SCHEDULE)
_registers = family(_LANES, "register_problem", "set_location", "swap_dims")
_lane = family(_LANES, "lane_problem", "vectorize", "swap_dims")

MUTANTS = (
    _impossible(
        "collision: two iterations are none",
        "Conflicts between the iterations of a scope of extent 2 are missed.",
        replaced("last_second < 1", "last_second < 2"),
    ),
    _impossible(
        "collision: one equal variable is enough",
        "Conflicts are missed where only some variable must be equal.",
        replaced("order in (BEFORE, AFTER) and depth in forced", "forced"),
    ),
    _impossible(
        "collision: elements of a cell never differ",
        "Accumulations into different elements of one cell are taken to commute.",
        replaced("all", "any"),
    ),
    _largest(
        "collision: a digit may be as large as its base",
        "Indices such as 4*i + j with j up to 4 are taken to be different.",
        replaced(
            "depth < 0 or low <= -magnitude or high >= magnitude", "depth < 0 or low < -magnitude or high > magnitude"
        ),
    ),
    _largest(
        "collision: a remainder is no carry",
        "Only values that are too small are seen to overlap the next digit.",
        without("high magnitude"),
    ),
    _digits(
        "collision: constants do not matter",
        "A write of element i + 1 and a read of element i are taken to be different.",
        replaced("low > 0 or high < 0", "constant or low > 0 or high < 0"),
    ),
    _digits(
        "collision: extents of the first instance count twice",
        "Conflicts with iterations that only the second statement has are missed.",
        replaced(
            "(query.first.extents[atom] - 1, query.second.extents[atom] - 1)",
            "(query.first.extents[atom] - 1, query.first.extents[atom] - 1)",
        ),
    ),
    family(_DIGITS, "_add_interval", *_SCHEDULE)(
        "collision: intervals start at zero", "Differences below zero are missed.", answers("min", "0")
    ),
    family(_DIGITS, "_add_enclosure", *_SCHEDULE)(
        "collision: quotients are small", "Quotients above the first are missed.", replaced("ends[1]", "ends[0]")
    ),
    _exact(
        "collision: guards of the second statement are negated",
        "Conflicts of iterations that do run are missed.",
        replaced("query.second.guards", "[-g - 1 for g in query.second.guards]"),
    ),
    _exact(
        "collision: one differing dimension is too few",
        "Elements of one cell that differ in one dimension only are taken to be equal.",
        Quoted("' or '.join(either)", "' and '.join(either)"),
    ),
    family(_COLLISION, "holds", *_SCHEDULE)(
        "collision: witnesses outside of guards", "Moves are refused for iterations that never run.", never("guards")
    ),
    _collide(
        "conflict: accumulations always commute",
        "Accumulations into different elements of one reused cell are exchanged.",
        always("differs"),
    ),
    _collide(
        "conflict: all accumulations commute",
        "A sum and a product into one element are exchanged.",
        replaced("one.commutes_with != other.commutes_with", "other.commutes_with is None"),
    ),
    family(_PROGRAM, "_pairs", *_SCHEDULE)(
        "conflict: only writes of the second",
        "Values that the second statement reads are overwritten.",
        without("use.writes"),
    ),
    family(_PROGRAM, "_pairs", *_SCHEDULE)(
        "conflict: arrays instead of buffers",
        "Arrays that share memory overwrite each other.",
        replaced(
            "others.get(use.memory, ())",
            "[o for o in others.get(use.memory, ()) if o.access.array is use.access.array]",
        ),
    ),
    family(_PROGRAM, "Program.reorders", "join_scopes", "swap_scopes", "swap_nodes")(
        "numerics: sums are exact",
        "Sums are reassociated where the kernel forbids it.",
        replaced("ACCUMULATIONS[mine[1]].exact", "mine[1]"),
    ),
    family(_PROGRAM, "Program.permits", "contract", "expand", "split_reduction")(
        "numerics: everything is permitted", "Rounding changes where the kernel forbids it.", always("EXACT")
    ),
    _within(
        "flow: any read is covered",
        "An element that an earlier iteration wrote is read from a reused slot.",
        returns("bool(writes)", "left"),
    ),
    family(_COVERAGE, "cover_together", *_STORAGE)(
        "coverage: parts that come later count",
        "A read gets what a later statement has not written yet.",
        replaced("leaf.order < reader.order", "True"),
    ),
    _within("flow: one read is enough", "Some read gets a value of another iteration.", replaced("all", "any")),
    _within(
        "flow: elements of a cell may differ",
        "Two elements that one iteration needs share a slot.",
        without("len parts"),
    ),
    _within(
        "flow: inner scopes may tell elements apart", "A slot is overwritten within one iteration.", never("variables")
    ),
    _flows("flow: lost values", "A value is overwritten before its last read.", never("gone")),
    _flows("flow: values that cross threads", "A thread reads the copy of another.", never("owner")),
    _events("instances: lost values", "A value is overwritten before its last read.", never("gone")),
    _events("instances: stale values", "A value is read before it is written.", never("wrong")),
    _events("instances: values that cross threads", "A thread reads the copy of another.", never("owner")),
    family(_CHECK, "_misplaced", *_STORAGE)(
        "flow: private copies may be used outside", "Others read a copy that belongs to a thread.", always("outside")
    ),
    family(_FLOWS, "_time", *_STORAGE)(
        "flow: a statement writes before it reads",
        "A statement is taken to read what it writes itself.",
        replaced("str(step)", "str(1 - step)"),
    ),
    family("dialect/flow/uses.py", "uses_together", *_STORAGE)(
        "flow: mappings that would change are ignored",
        "Slots of lanes and copies are taken to be those of before.",
        answers("remapped_chain", "leaf.chain"),
    ),
    _covers("coverage: later writes", "A read before the write is taken to be covered by it.", without("order")),
    _covers("coverage: accumulations", "An accumulation is taken to start a new value.", without("accumulate")),
    _reaches("coverage: guarded writes", "A write that does not always happen is taken to.", never("guard")),
    _reaches("coverage: diagonals", "A write of the diagonal is taken to fill the matrix.", without("inner")),
    family(_COVERAGE, "_dimension_covers", *_STORAGE)(
        "coverage: intervals that begin early enough",
        "Elements behind the last written one are taken to be written.",
        without("high"),
    ),
    family(_COVERAGE, "interval", *_STORAGE)(
        "coverage: gaps",
        "A write of every second element is taken to fill the array.",
        replaced("0 < coefficient <= reach", "0 < coefficient"),
    ),
    _stays(
        "origins: writes in between",
        "A value is taken to come from a write that another one follows.",
        never("reader 0"),
    ),
    _stays(
        "origins: writes in other iterations",
        "A value is taken to come from the last write in the text, whatever elements it writes.",
        never("read"),
    ),
    _stays(
        "origins: other writes of the same part",
        "A value is taken to come from a write that another one follows in a later iteration.",
        without("reaches"),
    ),
    family(_VALUES_FILE, "latest_write", *_VALUES)(
        "origins: writes of earlier iterations",
        "A value is taken to come from a write that one with the read follows.",
        returns("found", "_place"),
    ),
    family(_VALUES_FILE, "feeds", *_VALUES)(
        "origins: reads that never run", "An op is kept because of a read that guards exclude.", without("runs")
    ),
    family(_EXCERPTS, "_joined", *_SCHEDULE)(
        "excerpts: nests that share slots",
        "Values in slots that another nest needs are lost.",
        returns("[{place} for place in range(len(program.nest.children))]"),
    ),
    family(_EXCERPTS, "_content", *_SCHEDULE)(
        "excerpts: other declarations",
        "What was decided for other slots or extents is taken for decided.",
        assigned("declarations", "[]"),
    ),
    family("dialect/flow/content.py", "_uses_content", *_STORAGE)(
        "excerpts: places of uses",
        "What was decided about a buffer in another order is taken for decided.",
        answers("relative_paths", "[]"),
    ),
    family(_RACES, "find_race", *_STORAGE)(
        "race: threads", "Threads that share a slot are not noticed.", never("is_threaded")
    ),
    family(_RACES, "_lanes_conflict", *_STORAGE)(
        "race: lanes that write one slot", "Lanes overwrite each other's values.", without("conflict")
    ),
    family(_RACES, "_lanes_conflict", *_STORAGE)(
        "race: lanes that read another's slot",
        "A lane reads what an earlier lane writes, before it is written.",
        without("flow"),
    ),
    family(_RACES, "racing_scope", "split_reduction", "expand")(
        "race: only the innermost scope",
        "Threads further out share what each of them writes.",
        Quoted("for scope in leaf.chain:", "for scope in leaf.chain[-1:]:"),
    ),
    family(_PLACES, "_is_lane", *_STORAGE)(
        "slots: threads are lanes", "Slots of a thread's copy depend on the thread.", without("is_threaded")
    ),
    family(_PLACES, "slot_index", "fold_dim", *_STORAGE)(
        "slots: a folded dimension has one more",
        "The circular buffer is analysed with another size than it has.",
        Quoted("s.mapping.is_threaded), slots, [", "s.mapping.is_threaded), slots + 1, ["),
    ),
    family(_PLACES, "copy_depths", *_STORAGE)(
        "slots: only the innermost owner has copies",
        "Threads further out share a copy.",
        replaced("tuple(chain[:depth + 1])", "(chain[depth],)"),
    ),
    family(_PLACES, "cell_of", *_STORAGE)(
        "slots: no private copies", "All threads use one copy; moves that need copies are refused.", dropped("inside")
    ),
    family(_PLACES, "physical_shape", "set_location", "materialize_dims")(
        "slots: lanes take no room",
        "Buffers with a slot per lane are taken to be smaller than they are.",
        answers("max", "1"),
    ),
    _lane("lanes: irregular accesses", "A vector access whose lanes are not a stride apart.", never("IRREGULAR")),
    _lane(
        "lanes: registers may be strided", "A vector of registers that are not neighbours.", never("STRIDED register")
    ),
    _lane(
        "lanes: the order of dimensions is ignored",
        "Vectors that a permutation makes strided are taken to stay contiguous.",
        without("order"),
    ),
    _lane(
        "lanes: the old shape counts",
        "Vectors across rows stay where padding comes between the rows.",
        replaced(
            "extents or access.array.shape",
            "(access.array.shape if len(access.array.shape) == len(flags) else extents) or ()",
        ),
    ),
    family(_LANES, "lane_stride", "vectorize", "hint")(
        "lanes: any linear distance is contiguous",
        "Columns are taken to be rows.",
        Quoted("case 1:", "case 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8:"),
    ),
    family(_LANES, "stride_over", "vectorize", "swap_dims", "set_location")(
        "lanes: any dimension is contiguous", "Columns are taken to be rows.", without("using")
    ),
    _registers("registers: strided vectors", "A vector of registers that are not neighbours.", never("lanes None")),
    _registers("registers: several threads", "A thread reads a register of another.", never("owners")),
    _registers("registers: changing indices", "A loop indexes registers.", never("UNROLL in_tensor_scope")),
    family(_LANES, "_divisor", "hint", "vectorize")(
        "alignment: offsets do not matter",
        "A store that needs aligned addresses is taken to have them.",
        dropped("constant"),
    ),
    family("dialect/shortcuts/clobber.py", "_written_between", "fold_dim", *_STORAGE)(
        "lost values: nobody writes again",
        "Legal reuse is refused, because an element that is written again counts as lost.",
        returns("False", "_solvable"),
    ),
    family("dialect/shortcuts/clobber.py", "lost_value", "fold_dim", *_STORAGE)(
        "lost values: any other element in the cell",
        "Legal reuse is refused, because elements that nobody wrote before count as lost.",
        without("written"),
    ),
    family(_PROGRAM, "Program.uses_if", *_STORAGE)(
        "conflict: slots that would change are ignored",
        "Races in slots that are to be shared are missed.",
        assigned("reused", "buffer.reuse"),
    ),
    family("dialect/verification/statements.py", "folded_lanes", "fold_dim", "vectorize")(
        "lanes: round the end of a circular buffer",
        "A vector access whose lanes are not a stride apart.",
        replaced("count > 1", "count > 2"),
    ),
)
