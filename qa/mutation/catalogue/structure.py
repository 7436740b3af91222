"""Defects of fusing, splitting, tiling, collapsing, interchanging and exchanging."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, always, answers, assigned, dropped, never, replaced, returns, without

_FUSION = "transforms/structure/fusion.py"
_TILING = "transforms/structure/tiling.py"
_DIGITS = "transforms/structure/digits.py"
_INTERCHANGE = "transforms/structure/interchange.py"
_SIBLINGS = "transforms/structure/siblings.py"
_ORDERING = "transforms/structure/ordering.py"

_join = family(_FUSION, "JoinScopes", "join_scopes")
_split = family(_FUSION, "SplitScopes", "split_scopes")
_tile = family(_TILING, "TileScope", "tile_scope")
_collapse = family(_TILING, "CollapseScopes.check", "collapse_scopes")
_swap = family(_INTERCHANGE, "SwapScopes", "swap_scopes")
_reordered = family(_ORDERING, "reordered", "join_scopes", "split_scopes", "swap_scopes", "swap_nodes")
_after = family(_ORDERING, "storage_after", "join_scopes", "split_scopes", "swap_scopes", "swap_nodes")
_observed = family(_SIBLINGS, "observed", "swap_nodes")
_nodes = family(_SIBLINGS, "SwapNodes.check", "swap_nodes")

MUTANTS = (
    family("transforms/structure/tiling.py", "CollapseScopes", "collapse_scopes")(
        "collapse: identifiers that others got", "Two nodes have one identifier.", always("taken before")
    ),
    family("transforms/reductions/partial_results.py", "MergeReduction._identifier", "merge_reduction")(
        "merge: identifiers that others got",
        "Two nodes have one identifier.",
        assigned("natural", "f'{base}.o' == parts.outer.id"),
    ),
    family("dialect/rules/validate.py", "_check", "unmap", "delete_op", "hint")(
        "validity: hints that no machine can use",
        "Moves lead away from such hints that cannot be taken back.",
        dropped("unusable_hints"),
    ),
    _join(
        "join: only one direction between threads",
        "Threads that waited for each other do not wait any more.",
        never("found threaded"),
    ),
    _join(
        "join: accumulations of threads commute",
        "Two threads add to one cell at the same time, an update is lost.",
        assigned("racing", "False"),
    ),
    family(_FUSION, "JoinScopes._plain", "join_scopes")(
        "join: the later statements are not asked",
        "What the second scope overwrites counts only in its first statement.",
        assigned("leaves", "(site.leaves, second.leaves[:1])"),
    ),
    family(_FUSION, "JoinScopes._plain", "join_scopes")(
        "join: dependences the wrong way",
        "A value is read before the fused scope writes it.",
        replaced("AFTER", "BEFORE"),
    ),
    _join(
        "join: extents may differ",
        "The second scope runs as often as the first.",
        replaced("(site.extent, site.mapping) != (second.extent, second.mapping)", "site.mapping != second.mapping"),
    ),
    _join(
        "join: mappings may differ",
        "A sequential scope becomes parallel, or a parallel one sequential.",
        replaced("(site.extent, site.mapping) != (second.extent, second.mapping)", "site.extent != second.extent"),
    ),
    _join("join: guards may differ", "The second scope runs under the guard of the first.", never("guard")),
    _join("join: vectors", "A vector scope with two statements, which no backend can express.", never("VECTOR")),
    family(_FUSION, "JoinScopes.numerics", "join_scopes")(
        "join: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    family(_FUSION, "JoinScopes.inverse", "join_scopes")(
        "join: undone behind the first child", "Undoing the fusion cuts at the wrong place.", answers("len", "1")
    ),
    family(_FUSION, "SplitScopes._plain", "split_scopes")(
        "split: dependences the wrong way",
        "The first part runs before the iterations of the second that it needs.",
        replaced("AFTER", "type(AFTER).BEFORE"),
    ),
    _split(
        "split: private copies", "A thread's copy is gone when the second part reads it.", dropped("private_buffers")
    ),
    _split("split: registers of a thread", "A register is gone when the second part reads it.", dropped("registers")),
    family(_FUSION, "SplitScopes.rewrite", "split_scopes")(
        "split: the second part loses the guard",
        "The second part runs for iterations that the scope left out.",
        replaced("site.guard", "()"),
    ),
    family(_FUSION, "SplitScopes.rewrite", "split_scopes")(
        "split: the second part is sequential", "The second part loses its mapping.", dropped("mapping")
    ),
    family(_FUSION, "SplitScopes.numerics", "split_scopes")(
        "split: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    family(_TILING, "TileScope.rewrite", "tile_scope")(
        "tile: outer guards are lost",
        "Iterations run that the guard of the scope left out.",
        assigned("guards", "[const(0) for _ in ()]"),
    ),
    _tile(
        "tile: one iteration too many",
        "The tail runs one iteration beyond the extent.",
        replaced("site.extent - 1", "site.extent"),
    ),
    _tile(
        "tile: one iteration too few",
        "The last iteration of the tail is left out.",
        replaced("site.extent - 1", "site.extent - 2"),
    ),
    _tile(
        "tile: strided tiles",
        "The order of the iterations changes, though no dependence was asked.",
        assigned("value", "var(depth) + var(depth + 1) * -(-site.extent // self.size)"),
    ),
    _tile("tile: a mapped scope", "The mapping of the scope is lost.", never("site.mapping")),
    _collapse(
        "collapse: mapped scopes",
        "Threads or lanes become sequential iterations, or the other way round.",
        never("inner site.mapping"),
    ),
    family(_DIGITS, "collapsed_guards", "collapse_scopes")(
        "collapse: the inner guard is lost",
        "Iterations run that the guard of the inner scope left out.",
        dropped("inner.guard"),
    ),
    family(_DIGITS, "digits_of", "collapse_scopes")(
        "collapse: no remainder", "The inner index is that of the outer scope.", replaced("modulo", "floordiv")
    ),
    family(_INTERCHANGE, "SwapScopes._dependences", "swap_scopes")(
        "interchange: dependences (<, <) instead of (<, >)",
        "A dependence is turned round.",
        replaced("AFTER", "BEFORE"),
    ),
    _swap(
        "interchange: a concurrent scope moves out",
        "Threads run what one thread did in order.",
        never("found threaded"),
    ),
    _swap(
        "interchange: private copies that live long",
        "A thread's copy is gone when the next iteration of the new outer scope reads it.",
        answers("private_buffers", "()"),
    ),
    _swap("interchange: a vector moves out", "A vector scope around a scope.", never("VECTOR")),
    _swap(
        "interchange: sums of threads",
        "Iterations of the scope that was outside add to one cell at the same time.",
        assigned("racing", "False"),
    ),
    family(_INTERCHANGE, "SwapScopes.rewrite", "swap_scopes")(
        "interchange: the outer guard is lost",
        "Iterations run that the guard of the outer scope left out.",
        dropped("site.guard"),
    ),
    family(_INTERCHANGE, "SwapScopes.rewrite", "swap_scopes")(
        "interchange: indices stay",
        "Rows become columns.",
        assigned("exchange", "{depth: var(depth), depth + 1: var(depth + 1)}"),
    ),
    family(_INTERCHANGE, "SwapScopes.numerics", "swap_scopes")(
        "interchange: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    _observed(
        "swap nodes: sums of what nobody stored",
        "An accumulation comes before what it adds to.",
        replaced("leaf.accumulate is not None or leaf.asynchronous", "leaf.asynchronous"),
    ),
    _observed(
        "swap nodes: sums in slots that nobody reads",
        "What is added to was overwritten by another element.",
        never("accumulate reuse"),
    ),
    _observed(
        "swap nodes: nobody sees outputs",
        "The value that stays in an output is another one.",
        assigned("seen", "set[Buffer]()"),
    ),
    _nodes(
        "exchange: only the first statements count",
        "Dependences of the other statements are turned round.",
        replaced("(leaves_of(site), leaves_of(second))", "(leaves_of(site)[:1], leaves_of(second)[:1])"),
    ),
    family(_SIBLINGS, "SwapNodes.numerics", "swap_nodes")(
        "exchange: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    _reordered(
        "order: conflicts do not matter",
        "A value is read before it is written, or overwritten before it is read.",
        Quoted("if conflict is None:", "if True:"),
    ),
    _reordered(
        "order: elements instead of cells for all buffers",
        "Conflicts are asked about elements, and nobody asks about the storage after.",
        returns("conflict", "storage_after"),
    ),
    family(_ORDERING, "folded_buffers", "join_scopes", "split_scopes", "swap_scopes", "swap_nodes")(
        "order: shared buffers are no folded ones",
        "Two arrays in one buffer are not asked whether they overwrite each other.",
        without("names"),
    ),
    _after(
        "order: lost values do not matter",
        "In the new order a value is overwritten before its last read.",
        never("violation"),
    ),
    _after("order: threads may share a slot", "In the new order threads overwrite each other's values.", never("race")),
)
