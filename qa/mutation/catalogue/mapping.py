"""Defects of mapping iterations to threads, lanes and unrolled code."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import answers, dropped, never, replaced, returns, without

_CPU = "transforms/mapping/cpu.py"
_SCOPE = "transforms/mapping/scope.py"
_UNMAP = "transforms/mapping/unmap.py"
_GPU = "transforms/mapping/gpu.py"
_ATOMICS = "dialect/rules/atomics.py"
_SNITCH = "transforms/mapping/snitch.py"
_THREADS = "dialect/rules/threads.py"
_STREAMS = "dialect/rules/streams.py"
_RULES = "dialect/rules/special_mappings.py"

_storage = family(_UNMAP, "storage_reason", "unmap")
_parallel = family(_CPU, "Parallelize.check_mapping", "parallelize")
_vector = family(_CPU, "Vectorize", "vectorize")
_lanes = family(_CPU, "Vectorize._lanes_independent", "vectorize")
_unmap = family(_UNMAP, "Unmap", "unmap")

_threads = family(_GPU, "MapThreads.check_mapping", "map_grid", "map_block", "map_warp")
_atomics = family(_ATOMICS, "atomics_problem", "map_grid")
_memory = family(_THREADS, "memory_problem", "set_location", "map_grid", "map_block", "map_warp")
_level = family(_THREADS, "_Level", "map_block", "map_warp", "set_location")
_gpu = family(_THREADS, "gpu_limits", "map_grid", "map_block", "map_warp")
_index = family(_THREADS, "_index_problem", "map_grid", "map_block", "map_warp", "set_location")
_region = family(_STREAMS, "region_limits", "stream")
_access = family(_STREAMS, "_access_problem", "stream")
_walk = family(_STREAMS, "_walk_problem", "stream")
_loop = family(_STREAMS, "loop_limits", "frep")
_operand = family(_STREAMS, "_operand_problem", "frep")

MUTANTS = (
    family(_SCOPE, "MapScope.check", "parallelize", "vectorize")(
        "map: mapped scopes are mapped again",
        "A parallel scope becomes a vector; undoing gives a sequential one.",
        never("mapping"),
    ),
    _storage("unmap: lost values do not matter", "A value is overwritten before its last read.", never("violation")),
    _storage("unmap: races around the scope do not matter", "Threads around the scope share a slot.", never("race")),
    family(_UNMAP, "_reused_by", "unmap")(
        "unmap: only the outermost scope indexes slots",
        "Buffers that an inner scope indexes are not asked about.",
        replaced("site.depth", "0"),
    ),
    family(_CPU, "Unroll.check_mapping", "unroll")(
        "unroll: threads inside",
        "A parallel scope within an unrolled one, which no backend can express.",
        never("mapping"),
    ),
    _parallel(
        "parallelize: sums race", "Threads add to one cell at the same time, an update is lost.", dropped("racing")
    ),
    _parallel(
        "parallelize: races within an iteration only",
        "A thread reads what another writes.",
        replaced("BEFORE", "type(BEFORE).EQUAL"),
    ),
    _parallel(
        "parallelize: inside of other mappings",
        "A parallel scope within a parallel or unrolled one.",
        never("SEQUENTIAL"),
    ),
    _parallel("parallelize: around parallel scopes", "A parallel scope around a parallel one.", never("is_threaded")),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: any extent", "A vector of a length that the machine does not have.", never("extent lanes")
    ),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: any access",
        "Lanes of accesses that divide the lane number are neither contiguous nor strided.",
        never("problem"),
    ),
    family(_CPU, "Vectorize.check_mapping", "vectorize")(
        "vectorize: several statements", "Lanes run several statements, in another order.", without("children")
    ),
    _lanes("vectorize: all lanes write one cell", "It is undefined which lane's value stays.", never("accumulate")),
    _lanes(
        "vectorize: lanes read what later lanes write",
        "A lane misses the value of the lane before.",
        replaced("BEFORE", "type(BEFORE).AFTER"),
    ),
    family(_CPU, "Vectorize.numerics", "vectorize")(
        "vectorize: order of sums is exact",
        "Lanes are combined by a tree where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    _unmap(
        "unmap: slots are not asked", "One slot is left where each lane had its own.", returns("None", "storage_reason")
    ),
    _unmap("unmap: registers with changing indices", "A loop indexes registers.", never("in_register")),
    _atomics(
        "atomics: on a machine without",
        "Blocks add to one cell, an update is lost.",
        never("atomics operation"),
    ),
    _atomics("atomics: fused sums", "An atomic sum of products rounds twice.", never("contracted")),
    _atomics("atomics: denormal numbers", "Sums lose denormal numbers.", never("flushing_atomics")),
    _threads(
        "threads: races do not matter", "Threads overwrite each other's values.", replaced("race is None", "True")
    ),
    _threads(
        "threads: races within an iteration only",
        "A thread reads what another writes.",
        replaced("BEFORE", "type(BEFORE).EQUAL"),
    ),
    _threads("threads: on a machine without", "Blocks of threads on a processor.", never("block_threads")),
    family(_GPU, "MapThreads.numerics", "map_grid", "map_block", "map_warp")(
        "threads: trees are exact",
        "Threads are combined by a tree, or blocks atomically, where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    _memory(
        "threads: memory outlives its block",
        "A value in registers, on a stack or in shared memory is read after its block has ended.",
        never("len launches"),
    ),
    _memory(
        "threads: memory outlives its iteration",
        "A value in memory of a block crosses iterations of the grid.",
        dropped("within"),
    ),
    _memory(
        "threads: copies in shared memory",
        "All threads of a block write one copy, each thinking that it has its own.",
        never("copies"),
    ),
    _memory(
        "threads: only warps have memory of their own",
        "A thread of a block reads a register of another.",
        dropped("BLOCK"),
    ),
    _memory(
        "threads: only blocks have memory of their own",
        "A thread of a warp reads a register of another.",
        dropped("WARP"),
    ),
    _level(
        "threads: one thread has the value", "Threads read a register that only one of them wrote.", never("accumulate")
    ),
    _level(
        "threads: unfinished sums",
        "A thread reads a sum of which it has its own term only.",
        never("read.commutes_with threads"),
    ),
    _level(
        "threads: two threads and one register", "A thread reads a cell of another one's registers.", never("conflict")
    ),
    _level(
        "threads: other numbers of threads",
        "A register is told apart by threads at one access, not at another.",
        never("wanted"),
    ),
    _index(
        "threads: the grid indexes registers",
        "Each block takes another element of a buffer that it has for itself.",
        never("GRID"),
    ),
    _gpu("threads: any warp", "A warp of an extent that does not divide the machine's.", never("WARP extent")),
    _gpu("threads: any number", "Blocks of more threads than the machine has.", never("threads block_threads")),
    _gpu("threads: any grid", "Grids of more blocks than a launch may have.", never("problem")),
    family(_THREADS, "_memory_limits", "set_location", "map_grid", "map_block")(
        "threads: any room", "Shared memory, registers or stacks overflow.", never("size")
    ),
    family(_STREAMS, "_read_after_write", "stream")(
        "streams: what was written may be read",
        "A stream that runs ahead reads an element before the region writes it.",
        never("found"),
    ),
    family(_STREAMS, "_earlier", "stream")(
        "streams: only earlier iterations",
        "A stream reads ahead what an earlier statement of the same iteration writes.",
        never("order"),
    ),
    family(_STREAMS, "_write_after_write", "stream")(
        "streams: two that write one cell", "It is not known which of two streams writes last.", never("found")
    ),
    _region("streams: any number", "More streams than the machine has.", never("streams")),
    _region("streams: guards", "A stream fetches elements that the guard leaves out.", never("guarded")),
    _access("streams: divisions", "No address generator counts so.", never("isinstance atom")),
    _walk(
        "streams: any number of dimensions",
        "An address generator that counts more scopes than it can.",
        never("stream_dims"),
    ),
    family(_STREAMS, "_word_problem", "stream")(
        "streams: other words", "A stream that moves half a word.", replaced("width == WORD", "width")
    ),
    _loop("hardware loops: any length", "A loop that the buffer of instructions does not hold.", never("instructions")),
    _loop("hardware loops: any nest", "Loops in loops on a machine whose loops do not nest.", never("frep_nesting")),
    family(_STREAMS, "_are_one", "stream")(
        "streams: any reads are one",
        "One stream for reads that no nest of loops goes through.",
        returns("True", "joint_walk"),
    ),
    _loop("hardware loops: any number of iterations", "A loop that the counter does not count.", never("extent")),
    _loop("hardware loops: guards", "A loop repeats instructions that the guard leaves out.", never("guarded")),
    _operand("hardware loops: memory", "Instructions of a loop that load from memory.", never("HEAP streamed")),
    family(_STREAMS, "_function_problem", "frep")(
        "hardware loops: NaN is lost",
        "A maximum of NaN and a number is the number, though the kernel does not permit it.",
        never("EXTREMA permits"),
    ),
    family(_STREAMS, "_function_problem", "frep")(
        "hardware loops: functions", "A loop that calls the exponential function.", never("FPU_FUNCTIONS")
    ),
    family(_RULES, "meaning_problems", "map_block", "set_location")(
        "rules: who sees what is not asked", "Threads read memory of others.", answers("visibility_problems", "()")
    ),
)
