"""Defects of giving iterations to threads, lanes and copies of code."""

from __future__ import annotations

from qa.mutation.mutant import family

_CPU = "transforms/mapping/cpu.py"
_SCOPE = "transforms/mapping/scope.py"
_UNMAP = "transforms/mapping/unmap.py"
_GPU = "transforms/mapping/gpu.py"
_SNITCH = "transforms/mapping/snitch.py"
_THREADS = "dialect/analysis/threads.py"
_STREAMS = "dialect/analysis/streams.py"
_RULES = "dialect/analysis/placement.py"

_storage = family(_UNMAP, "storage_reason", "unmap")
_parallel = family(_CPU, "Parallelize.check_mapping", "parallelize")
_vector = family(_CPU, "Vectorize", "vectorize")
_lanes = family(_CPU, "Vectorize._lanes_independent", "vectorize")
_unmap = family(_UNMAP, "Unmap", "unmap")

_threads = family(_GPU, "MapThreads.check_mapping", "map_grid", "map_block", "map_warp")
_memory = family(_THREADS, "memory_problem", "set_location", "map_grid", "map_block", "map_warp")
_level = family(_THREADS, "_Level", "map_block", "map_warp", "set_location")
_gpu = family(_THREADS, "gpu_limits", "map_grid", "map_block", "map_warp")
_index = family(_THREADS, "_index_problem", "map_grid", "map_block", "map_warp", "set_location")
_region = family(_STREAMS, "_region_limits", "stream")
_access = family(_STREAMS, "_access_problem", "stream")
_walk = family(_STREAMS, "_walk_problem", "stream")
_loop = family(_STREAMS, "_loop_limits", "frep")
_operand = family(_STREAMS, "_operand_problem", "frep")

MUTANTS = (
    family(_SCOPE, "MapScope.check", "parallelize", "vectorize")(
        "map: mapped scopes are mapped again",
        "A parallel scope becomes a vector; undoing gives a sequential one.",
        "if site.mapping is not Mapping.SEQUENTIAL:",
        "if False:",
    ),
    _storage(
        "unmap: lost values do not matter",
        "A value is overwritten before its last read.",
        "if violation is not None:",
        "if False:",
    ),
    _storage(
        "unmap: races around the scope do not matter",
        "Threads around the scope share a slot.",
        "if race is not None:",
        "if False:",
    ),
    family(_UNMAP, "_reused_by", "unmap")(
        "unmap: only the outermost scope indexes slots",
        "Buffers that an inner scope indexes are not asked about.",
        "expression.uses(site.depth)",
        "expression.uses(0)",
    ),
    family(_CPU, "Unroll.check_mapping", "unroll")(
        "unroll: threads inside",
        "A parallel scope within an unrolled one, which no backend can express.",
        "if any(s.mapping in outermost for leaf in site.leaves for s in leaf.chain[site.depth + 1 :]):",
        "if False:",
    ),
    _parallel(
        "parallelize: sums race",
        "Threads add to one cell at the same time, an update is lost.",
        "racing=True, ",
        "",
    ),
    _parallel(
        "parallelize: races within an iteration only",
        "A thread reads what another writes.",
        "relation = (*same_iteration(site), BEFORE)",
        "relation = (*same_iteration(site), type(BEFORE).EQUAL)",
    ),
    _parallel(
        "parallelize: inside of other mappings",
        "A parallel scope within a parallel or unrolled one.",
        "if outer.mapping is not Mapping.SEQUENTIAL:",
        "if False:",
    ),
    _parallel(
        "parallelize: around parallel scopes",
        "A parallel scope around a parallel one.",
        "if inner.mapping.is_threaded:",
        "if False:",
    ),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: any extent",
        "A vector of a length that the machine does not have.",
        "if site.extent not in lanes:",
        "if False:",
    ),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: any access",
        "Lanes of accesses that divide the lane number are neither contiguous nor strided.",
        "if problem is not None:",
        "if False:",
    ),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: several statements",
        "Lanes run several statements, in another order.",
        "if len(site.children) != 1 or not isinstance(leaf, Leaf):",
        "if not isinstance(leaf, Leaf):",
    ),
    _lanes(
        "vectorize: all lanes write one cell",
        "It is undefined which lane's value stays.",
        "if leaf.accumulate is None and not any(",
        "if False and not any(",
    ),
    _lanes(
        "vectorize: lanes read what later lanes write",
        "A lane misses the value of the lane before.",
        "relation = (*same_iteration(site), BEFORE)",
        "relation = (*same_iteration(site), type(BEFORE).AFTER)",
    ),
    family(_CPU, "Vectorize.numerics", "vectorize")(
        "vectorize: order of sums is exact",
        "Lanes are combined by a tree where the kernel forbids it.",
        "return reassociates(summed and not any(e.uses(site.depth) for e in leaf.output.index))",
        "return reassociates(False)",
    ),
    _unmap(
        "unmap: slots are not asked",
        "One slot is left where each lane had its own.",
        "return storage_reason(program, site)",
        "return None",
    ),
    _unmap(
        "unmap: registers with changing indices",
        "A loop indexes registers.",
        "if in_register and any(",
        "if False and any(",
    ),
    _threads(
        "threads: sums race between blocks",
        "Blocks of a grid add to one cell at the same time, an update is lost.",
        "racing = not self.mapping.declares_tree",
        "racing = False",
    ),
    _threads(
        "threads: races do not matter",
        "Threads overwrite each other's values.",
        "if race is None:",
        "if True:",
    ),
    _threads(
        "threads: races within an iteration only",
        "A thread reads what another writes.",
        "relation = (*same_iteration(site), BEFORE)",
        "relation = (*same_iteration(site), type(BEFORE).EQUAL)",
    ),
    _threads(
        "threads: on a machine without",
        "Blocks of threads on a processor.",
        "if not program.machine.gpu.block_threads:",
        "if False:",
    ),
    family(_GPU, "MapTree.numerics", "map_block", "map_warp")(
        "threads: trees are exact",
        "Threads are combined by a tree where the kernel forbids it.",
        "program.reorders(site.leaves, site.leaves, (*same_iteration(site), BEFORE))",
        "False",
    ),
    _memory(
        "threads: memory outlives its block",
        "A value in registers, on a stack or in shared memory is read after its block has ended.",
        "if len(launches) > 1:",
        "if False:",
    ),
    _memory(
        "threads: memory outlives its iteration",
        "A value in memory of a block crosses iterations of the grid.",
        "violation = program.storage_violation(name, buffer.reuse, within=launch.depth)",
        "violation = program.storage_violation(name, buffer.reuse)",
    ),
    _memory(
        "threads: copies in shared memory",
        "All threads of a block write one copy, each thinking that it has its own.",
        "if any(depth > launch.depth for depth in copies):",
        "if False:",
    ),
    _memory(
        "threads: only warps have memory of their own",
        "A thread of a block reads a register of another.",
        "for level in (Mapping.BLOCK, Mapping.WARP):",
        "for level in (Mapping.WARP,):",
    ),
    _memory(
        "threads: only blocks have memory of their own",
        "A thread of a warp reads a register of another.",
        "for level in (Mapping.BLOCK, Mapping.WARP):",
        "for level in (Mapping.BLOCK,):",
    ),
    _level(
        "threads: one thread has the value",
        "Threads read a register that only one of them wrote.",
        "if write.leaf.accumulate is None:",
        "if False:",
    ),
    _level(
        "threads: unfinished sums",
        "A thread reads a sum of which it has its own term only.",
        "if threads[0] in read.leaf.chain and read.commutes_with != write.commutes_with:",
        "if False:",
    ),
    _level(
        "threads: two threads and one register",
        "A thread reads a cell of another one's registers.",
        "if conflict is not None:",
        "if False:",
    ),
    _level(
        "threads: other numbers of threads",
        "A register is told apart by threads at one access, not at another.",
        "if [s.extent for s in self._threads(touch.leaf)] != wanted:",
        "if False:",
    ),
    _index(
        "threads: the grid indexes registers",
        "Each block takes another element of a buffer that it has for itself.",
        "if scope.mapping is Mapping.GRID:",
        "if False:",
    ),
    _gpu(
        "threads: any warp",
        "A warp of an extent that does not divide the machine's.",
        "elif scope.mapping is Mapping.WARP and machine.gpu.warp_size % scope.extent:",
        "elif False:",
    ),
    _gpu(
        "threads: any number",
        "Blocks of more threads than the machine has.",
        "threads > machine.gpu.block_threads > 0",
        "False",
    ),
    family(_THREADS, "_memory_limits", "set_location", "map_grid", "map_block")(
        "threads: any room",
        "Shared memory, registers or stacks overflow.",
        "if size > limits[memory]:",
        "if False:",
    ),
    family(_STREAMS, "_read_after_write", "stream")(
        "streams: what was written may be read",
        "A stream that runs ahead reads an element before the region writes it.",
        "if found is not None:",
        "if False:",
    ),
    family(_STREAMS, "_earlier", "stream")(
        "streams: only earlier iterations",
        "A stream reads ahead what an earlier statement of the same iteration writes.",
        "if first.order < second.order:",
        "if False:",
    ),
    family(_STREAMS, "_write_after_write", "stream")(
        "streams: two that write one cell",
        "It is not known which of two streams writes last.",
        "if found is not None:",
        "if False:",
    ),
    _region(
        "streams: any number",
        "More streams than the machine has.",
        "if len(streams) > machine.snitch.stream_registers:",
        "if False:",
    ),
    _region(
        "streams: guards",
        "A stream fetches elements that the guard leaves out.",
        "if guarded is not None:",
        "if False:",
    ),
    _access(
        "streams: divisions",
        "No address generator counts so.",
        "if not isinstance(atom, int) and any(",
        "if False and any(",
    ),
    _walk(
        "streams: any number of dimensions",
        "An address generator that counts more scopes than it can.",
        "if len(pattern.bounds) > machine.snitch.stream_dims:",
        "if False:",
    ),
    family(_STREAMS, "_word_problem", "stream")(
        "streams: other words",
        "A stream that moves half a word.",
        'return None if width == WORD else f"{described} is of type',
        'return None if width else f"{described} is of type',
    ),
    _loop(
        "hardware loops: any length",
        "A loop that the buffer of instructions does not hold.",
        "if instructions > core.frep_instructions:",
        "if False:",
    ),
    _loop(
        "hardware loops: any nest",
        "Loops in loops on a machine whose loops do not nest.",
        "if nested > max(1, core.frep_nesting):",
        "if False:",
    ),
    family(_STREAMS, "_are_one", "stream")(
        "streams: any reads are one",
        "One stream for reads that no nest of loops goes through.",
        "return joint_walk(nest, region, accesses) is not None",
        "return True",
    ),
    _loop(
        "hardware loops: any number of iterations",
        "A loop that the counter does not count.",
        "if loop.extent > core.frep_trips:",
        "if False:",
    ),
    _loop(
        "hardware loops: guards",
        "A loop repeats instructions that the guard leaves out.",
        "if guarded is not None:",
        "if False:",
    ),
    _operand(
        "hardware loops: memory",
        "Instructions of a loop that load from memory.",
        "if memory is Memory.HEAP and not streamed:",
        "if False:",
    ),
    family(_STREAMS, "_function_problem", "frep")(
        "hardware loops: NaN is lost",
        "A maximum of NaN and a number is the number, though the kernel does not permit it.",
        "if function in EXTREMA and not program.permits(Numerics.NUMBERS):",
        "if False:",
    ),
    family(_STREAMS, "_function_problem", "frep")(
        "hardware loops: functions",
        "A loop that calls the exponential function.",
        "if function is not None and function not in FPU_FUNCTIONS:",
        "if function is not None and not function:",
    ),
    family(_RULES, "meaning_problems", "map_block", "set_location")(
        "rules: who sees what is not asked",
        "Threads read memory of others.",
        "yield from visibility_problems(program)",
        "yield from ()",
    ),
)
