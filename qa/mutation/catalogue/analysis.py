"""Defects of the analyses that all moves ask: collisions, races, lanes, flows of values, owners of copies."""

from __future__ import annotations

from qa.mutation.mutant import family

_SCHEDULE = ("join_scopes", "split_scopes", "swap_scopes", "swap_nodes", "parallelize")
_STORAGE = ("reuse_dims", "materialize_dims", "parallelize", "vectorize", "unmap")

_COLLISION = "dialect/analysis/collision.py"
_CHECK = "dialect/analysis/storage_check.py"
_EXCERPTS = "dialect/analysis/excerpts.py"
_ORIGINS = "dialect/analysis/origins.py"
_COVERAGE = "dialect/analysis/coverage.py"
_RACES = "dialect/analysis/races.py"
_LANES = "dialect/analysis/lanes.py"
_PROGRAM = "dialect/analysis/program.py"
_PLACES = "dialect/storage.py"

_impossible = family(_COLLISION, "impossible", *_SCHEDULE)
_digits = family(_COLLISION, "_digits", *_SCHEDULE)
_exact = family(_COLLISION, "exact", *_SCHEDULE)
_within = family(_CHECK, "within_iteration", *_STORAGE)
_flows = family(_CHECK, "compare_flows", *_STORAGE)
_VALUES = ("inline_op", "outline_op", "delete_op")
_stays = family(_ORIGINS, "_stays_until", *_VALUES)
_covers = family(_COVERAGE, "covers", *_STORAGE)
_reaches = family(_COVERAGE, "reaches", *_STORAGE)
_collide = family(_PROGRAM, "Program._collide", *_SCHEDULE)
_registers = family(_LANES, "register_problem", "set_location", "swap_dims")
_lane = family(_LANES, "lane_problem", "vectorize", "swap_dims")

MUTANTS = (
    _impossible(
        "collision: two iterations are none",
        "Conflicts between the iterations of a scope of extent 2 are missed.",
        "(order is BEFORE and last_second < 1)",
        "(order is BEFORE and last_second < 2)",
    ),
    _impossible(
        "collision: one equal variable is enough",
        "Conflicts are missed where only some variable must be equal.",
        "order in (BEFORE, AFTER) and depth in forced",
        "forced",
    ),
    _impossible(
        "collision: elements of a cell never differ",
        "Accumulations into different elements of one cell are taken to commute.",
        "all(_same(a, b, forced) for a, b in query.differs)",
        "any(_same(a, b, forced) for a, b in query.differs)",
    ),
    _digits(
        "collision: a digit may be as large as its base",
        "Indices such as 4*i + j with j up to 4 are taken to be different.",
        "low <= -magnitude or high >= magnitude",
        "low < -magnitude or high > magnitude",
    ),
    _digits(
        "collision: a remainder is no carry",
        "Only values that are too small are seen to overlap the next digit.",
        "or low <= -magnitude or high >= magnitude",
        "or low <= -magnitude",
    ),
    _digits(
        "collision: constants do not matter",
        "A write of element i + 1 and a read of element i are taken to be different.",
        "if low > 0 or high < 0:",
        "if constant or low > 0 or high < 0:",
    ),
    _digits(
        "collision: extents of the first instance count twice",
        "Conflicts with iterations that only the second statement has are missed.",
        "span = query.first.extents[atom] - 1, query.second.extents[atom] - 1",
        "span = query.first.extents[atom] - 1, query.first.extents[atom] - 1",
    ),
    family(_COLLISION, "_add_interval", *_SCHEDULE)(
        "collision: intervals start at zero",
        "Differences below zero are missed.",
        "min(0, factor * last)",
        "0",
    ),
    family(_COLLISION, "_add_enclosure", *_SCHEDULE)(
        "collision: quotients are small",
        "Quotients above the first are missed.",
        "free.append((abs(factor), -1, ends[0], ends[1]))",
        "free.append((abs(factor), -1, ends[0], ends[0]))",
    ),
    _exact(
        "collision: guards of the second statement are negated",
        "Conflicts of iterations that do run are missed.",
        "query.second.extents, query.second.guards, second)",
        "query.second.extents, [-g - 1 for g in query.second.guards], second)",
    ),
    _exact(
        "collision: one differing dimension is too few",
        "Elements of one cell that differ in one dimension only are taken to be equal.",
        "' or '.join(either)",
        "' and '.join(either)",
    ),
    family(_COLLISION, "holds", *_SCHEDULE)(
        "collision: witnesses outside of guards",
        "Moves are refused for iterations that never run.",
        "if any(g.evaluate(values) < 0 for g in domain.guards):",
        "if False:",
    ),
    _collide(
        "conflict: accumulations always commute",
        "Accumulations into different elements of one reused cell are exchanged.",
        "if not differs:",
        "if True:",
    ),
    _collide(
        "conflict: all accumulations commute",
        "A sum and a product into one element are exchanged.",
        "or one.commutes_with != other.commutes_with",
        "or other.commutes_with is None",
    ),
    family(_PROGRAM, "_pairs", *_SCHEDULE)(
        "conflict: only writes of the second",
        "Values that the second statement reads are overwritten.",
        "if touch.writes or other.writes:",
        "if other.writes:",
    ),
    family(_PROGRAM, "_pairs", *_SCHEDULE)(
        "conflict: arrays instead of buffers",
        "Arrays that share memory overwrite each other.",
        "in others.get(touch.memory, ()):",
        "in [o for o in others.get(touch.memory, ()) if o.access.array is touch.access.array]:",
    ),
    family(_PROGRAM, "Program.reorders", "join_scopes", "swap_scopes", "swap_nodes")(
        "numerics: sums are exact",
        "Sums are reassociated where the kernel forbids it.",
        "if mine is None or mine != other.commutes_with or ACCUMULATIONS[mine[1]].exact:",
        "if mine is None or mine != other.commutes_with or mine[1]:",
    ),
    family(_PROGRAM, "Program.permits", "contract", "expand", "split_reduction")(
        "numerics: everything is permitted",
        "Rounding changes where the kernel forbids it.",
        "numerics is Numerics.EXACT or ",
        "True or ",
    ),
    _within(
        "flow: any read is covered",
        "An element that an earlier iteration wrote is read from a reused slot.",
        "return all(any(covers(w.leaf, w.access, r.leaf, r.access) for w in writes) for r in uses if r.reads)",
        "return bool(writes)",
    ),
    _within(
        "flow: one read is enough",
        "Some read gets a value of another iteration.",
        "return all(any(covers(",
        "return any(any(covers(",
    ),
    _within(
        "flow: elements of a cell may differ",
        "Two elements that one iteration needs share a slot.",
        "if len(parts) != 1 or any(",
        "if any(",
    ),
    _within(
        "flow: inner scopes may tell elements apart",
        "A slot is overwritten within one iteration.",
        "any(v >= depth for v in next(iter(parts)).variables())",
        "False",
    ),
    _flows(
        "flow: lost values",
        "A value is overwritten before its last read.",
        "if not lost.is_empty():",
        "if False:",
    ),
    _flows(
        "flow: values that cross threads",
        "A thread reads the copy of another.",
        "if owner is not None:",
        "if False:",
    ),
    family(_CHECK, "_misplaced", *_STORAGE)(
        "flow: private copies may be used outside",
        "Others read a copy that belongs to a thread.",
        "if outside is None:",
        "if True:",
    ),
    family(_CHECK, "_time", *_STORAGE)(
        "flow: a statement writes before it reads",
        "A statement is taken to read what it writes itself.",
        "+ [str(step)]",
        "+ [str(1 - step)]",
    ),
    family(_CHECK, "uses_together", *_STORAGE)(
        "flow: mappings that would change are ignored",
        "Slots of lanes and copies are taken to be those of before.",
        "(leaf, access, remapped_chain(leaf, mappings))",
        "(leaf, access, leaf.chain)",
    ),
    _covers(
        "coverage: later writes",
        "A read before the write is taken to be covered by it.",
        "writer.order >= reader.order or ",
        "",
    ),
    _covers(
        "coverage: accumulations",
        "An accumulation is taken to start a new value.",
        " or writer.accumulate is not None",
        "",
    ),
    _reaches(
        "coverage: guarded writes",
        "A write that does not always happen is taken to.",
        "if any(s.guard for s in writer.chain[depth:]):",
        "if False:",
    ),
    _reaches(
        "coverage: diagonals",
        "A write of the diagonal is taken to fill the matrix.",
        "if inner & used or not",
        "if not",
    ),
    family(_COVERAGE, "_dimension_covers", *_STORAGE)(
        "coverage: intervals that begin early enough",
        "Elements behind the last written one are taken to be written.",
        "reached[0] <= low and high <= reached[1]",
        "reached[0] <= low",
    ),
    family(_COVERAGE, "interval", *_STORAGE)(
        "coverage: gaps",
        "A write of every second element is taken to fill the array.",
        "if not 0 < coefficient <= reach:",
        "if not 0 < coefficient:",
    ),
    _stays(
        "origins: writes in between",
        "A value is taken to come from a write that another one follows.",
        "elif (_place(other.leaf, use.leaf, depth) or 0) > 0 > (_place(other.leaf, reader, depth) or 0):",
        "elif False:",
    ),
    _stays(
        "origins: writes in other iterations",
        "A value is taken to come from the last write in the text, whatever elements it writes.",
        "if not reaches(use.leaf, use.access, reader, uses[read].access):",
        "if False:",
    ),
    _stays(
        "origins: other writes of the same part",
        "A value is taken to come from a write that another one follows in a later iteration.",
        "if other.leaf.order > use.leaf.order or not reaches(use.leaf, use.access, other.leaf, other.access):",
        "if other.leaf.order > use.leaf.order:",
    ),
    family(_ORIGINS, "latest_write", *_VALUES)(
        "origins: writes of earlier iterations",
        "A value is taken to come from a write that one with the read follows.",
        "return None if any(_place(leaf, reader, depth) == 0 for leaf in others) else found",
        "return found",
    ),
    family(_ORIGINS, "feeds", *_VALUES)(
        "origins: reads that never run",
        "An op is kept because of a read that guards exclude.",
        "return runs and not any(",
        "return not any(",
    ),
    family(_EXCERPTS, "_together", *_SCHEDULE)(
        "excerpts: nests that share slots",
        "Values in slots that another nest needs are lost.",
        "while joined := [g for g in groups if g & wanted and not g <= wanted]:",
        "while joined := []:",
    ),
    family(_EXCERPTS, "_content", *_SCHEDULE)(
        "excerpts: other declarations",
        "What was decided for other slots or extents is taken for decided.",
        "[declaration_line(b) for b in nest.buffers if b in used],",
        "[],",
    ),
    family(_EXCERPTS, "content_of_buffer", *_STORAGE)(
        "excerpts: places of uses",
        "What was decided about a buffer in another order is taken for decided.",
        "relative_paths(users),",
        "[],",
    ),
    family(_RACES, "find_race", *_STORAGE)(
        "race: threads",
        "Threads that share a slot are not noticed.",
        "if scope.mapping.is_threaded:",
        "if False:",
    ),
    family(_RACES, "_lanes_conflict", *_STORAGE)(
        "race: lanes that write one slot",
        "Lanes overwrite each other's values.",
        "return flow or program.conflict(leaves, leaves, relation, touches=writes, only=only)",
        "return flow",
    ),
    family(_RACES, "_lanes_conflict", *_STORAGE)(
        "race: lanes that read another's slot",
        "A lane reads what an earlier lane writes, before it is written.",
        "return flow or program",
        "return program",
    ),
    family(_RACES, "racing_scope", "split_reduction", "expand")(
        "race: only the innermost scope",
        "Threads further out share what each of them writes.",
        "for scope in leaf.chain:",
        "for scope in leaf.chain[-1:]:",
    ),
    family(_PLACES, "_is_lane", *_STORAGE)(
        "slots: threads are lanes",
        "Slots of a thread's copy depend on the thread.",
        "scope.mapping.is_concurrent and not scope.mapping.is_threaded",
        "scope.mapping.is_concurrent",
    ),
    family(_PLACES, "slot_index", "fold_dim", *_STORAGE)(
        "slots: a folded dimension has one more",
        "The circular buffer is analysed with another size than it has.",
        "s.mapping.is_threaded), slots, [",
        "s.mapping.is_threaded), slots + 1, [",
    ),
    family(_PLACES, "copy_depths", *_STORAGE)(
        "slots: only the innermost owner has copies",
        "Threads further out share a copy.",
        "owner = tuple(chain[: depth + 1])",
        "owner = (chain[depth],)",
    ),
    family(_PLACES, "cell_of", *_STORAGE)(
        "slots: no private copies",
        "All threads use one copy; moves that need copies are refused.",
        "return (*within, *inside)",
        "return tuple(within)",
    ),
    family(_PLACES, "physical_shape", "set_location", "materialize_dims")(
        "slots: lanes take no room",
        "Buffers with a slot per lane are taken to be smaller than they are.",
        "shape[dimension] = max(shape[dimension], expression.bounds(leaf.extents)[1] + 1)",
        "shape[dimension] = 1",
    ),
    _lane(
        "lanes: irregular accesses",
        "A vector access whose lanes are not a stride apart.",
        "if stride is Stride.IRREGULAR:",
        "if False:",
    ),
    _lane(
        "lanes: registers may be strided",
        "A vector of registers that are not neighbours.",
        'if stride is Stride.STRIDED and access.array.buffer.memory.value == "register":',
        "if False:",
    ),
    _lane(
        "lanes: the order of dimensions is ignored",
        "Vectors that a permutation makes strided are taken to stay contiguous.",
        "ordered = order or range(len(shape))",
        "ordered = range(len(shape))",
    ),
    _lane(
        "lanes: the old shape counts",
        "Vectors across rows stay where padding comes between the rows.",
        "zip(flags, extents or access.array.shape, strict=True)",
        "zip(flags, (access.array.shape if len(access.array.shape) == len(flags) else extents) or (), strict=True)",
    ),
    family(_LANES, "lane_stride", "vectorize", "hint")(
        "lanes: any linear distance is contiguous",
        "Columns are taken to be rows.",
        "case 1:",
        "case 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8:",
    ),
    family(_LANES, "stride_over", "vectorize", "swap_dims", "set_location")(
        "lanes: any dimension is contiguous",
        "Columns are taken to be rows.",
        "using == [len(index) - 1] and ",
        "",
    ),
    _registers(
        "registers: strided vectors",
        "A vector of registers that are not neighbours.",
        "if lanes is not None and lane_stride(",
        "if False and lane_stride(",
    ),
    _registers(
        "registers: several threads",
        "A thread reads a register of another.",
        "if len(owners) > 1:",
        "if False:",
    ),
    _registers(
        "registers: changing indices",
        "A loop indexes registers.",
        "if scope.mapping not in (Mapping.UNROLL, Mapping.VECTOR) and not in_tensor_scope(scope):",
        "if False:",
    ),
    family(_LANES, "known_alignment", "hint")(
        "alignment: offsets do not matter",
        "A store that needs aligned addresses is taken to have them.",
        "gcd(known, distance.constant * width, *(",
        "gcd(known, *(",
    ),
    family("dialect/analysis/clobber.py", "_written_between", "fold_dim", *_STORAGE)(
        "lost values: nobody writes again",
        "Legal reuse is refused, because an element that is written again counts as lost.",
        "return any(",
        "return False and any(",
    ),
    family("dialect/analysis/clobber.py", "lost_value", "fold_dim", *_STORAGE)(
        "lost values: any other element in the cell",
        "Legal reuse is refused, because elements that nobody wrote before count as lost.",
        "element in written and found.element != element",
        "found.element != element",
    ),
    family(_PROGRAM, "Program.touches_if", *_STORAGE)(
        "conflict: slots that would change are ignored",
        "Races in slots that are to be shared are missed.",
        "flags = {buffer: buffer.reuse for buffer in self.nest.buffers} | dict(reuse or {})",
        "flags = {buffer: buffer.reuse for buffer in self.nest.buffers}",
    ),
    family("dialect/verify.py", "folded_lanes", "fold_dim", "vectorize")(
        "lanes: round the end of a circular buffer",
        "A vector access whose lanes are not a stride apart.",
        "if any(count > 1 and e.uses(scope.depth)",
        "if any(count > 2 and e.uses(scope.depth)",
    ),
)
