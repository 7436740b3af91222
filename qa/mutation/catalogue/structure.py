"""Defects of fusing, splitting, tiling, collapsing, interchanging and exchanging."""

from __future__ import annotations

from qa.mutation.mutant import family

_FUSION = "transforms/fusion.py"
_TILING = "transforms/tiling.py"
_DIGITS = "transforms/digits.py"
_INTERCHANGE = "transforms/interchange.py"
_SIBLINGS = "transforms/siblings.py"
_ORDERING = "transforms/ordering.py"

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
    family("transforms/tiling.py", "CollapseScopes", "collapse_scopes")(
        "collapse: identifiers that others got",
        "Two nodes have one identifier.",
        'return self.id or (before if before not in taken else "") or',
        "return self.id or before or",
    ),
    family("transforms/reductions.py", "MergeReduction", "merge_reduction")(
        "merge: identifiers that others got",
        "Two nodes have one identifier.",
        'natural = f"{base}.o" == parts.outer.id and base not in taken',
        'natural = f"{base}.o" == parts.outer.id',
    ),
    family("dialect/analysis/validate.py", "_check", "unmap", "delete_op", "hint")(
        "validity: hints that no machine can use",
        "Moves lead away from such hints that cannot be taken back.",
        "for problem in (*meaning_problems(program), *unusable_hints(program)):",
        "for problem in meaning_problems(program):",
    ),
    _join(
        "join: only one direction between threads",
        "Threads that waited for each other do not wait any more.",
        "if found is None and threaded:",
        "if False:",
    ),
    _join(
        "join: accumulations of threads commute",
        "Two threads add to one cell at the same time, an update is lost.",
        "racing = threaded and not site.mapping.declares_tree",
        "racing = False",
    ),
    _join(
        "join: the later statements are not asked",
        "What the second scope overwrites counts only in its first statement.",
        "leaves = site.leaves, second.leaves",
        "leaves = site.leaves, second.leaves[:1]",
    ),
    _join(
        "join: dependences the wrong way",
        "A value is read before the fused scope writes it.",
        "found = program.conflict(*leaves, (*outside, AFTER), racing=racing, touches=touches)\n            if",
        "found = program.conflict(*leaves, (*outside, BEFORE), racing=racing, touches=touches)\n            if",
    ),
    _join(
        "join: extents may differ",
        "The second scope runs as often as the first.",
        "(site.extent, site.mapping) != (second.extent, second.mapping)",
        "site.mapping != second.mapping",
    ),
    _join(
        "join: mappings may differ",
        "A sequential scope becomes parallel, or a parallel one sequential.",
        "(site.extent, site.mapping) != (second.extent, second.mapping)",
        "site.extent != second.extent",
    ),
    _join(
        "join: guards may differ",
        "The second scope runs under the guard of the first.",
        "if site.guard != second.guard:",
        "if False:",
    ),
    _join(
        "join: vectors",
        "A vector scope with two statements, which no backend can express.",
        "if site.mapping is Mapping.VECTOR:",
        "if False:",
    ),
    family(_FUSION, "JoinScopes.numerics", "join_scopes")(
        "join: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        "program.reorders(site.leaves, second.leaves, (*same_iteration(site), AFTER), later)",
        "False",
    ),
    family(_FUSION, "JoinScopes.inverse", "join_scopes")(
        "join: undone behind the first child",
        "Undoing the fusion cuts at the wrong place.",
        "after = len(site.children)",
        "after = 1",
    ),
    family(_FUSION, "JoinScopes.inverse", "join_scopes")(
        "join: undone with another identifier",
        "Later moves of a trace do not find the second scope again.",
        ", second.id)",
        ")",
    ),
    family(_FUSION, "SplitScopes._plain", "split_scopes")(
        "split: dependences the wrong way",
        "The first part runs before the iterations of the second that it needs.",
        "relation = (*same_iteration(site), AFTER)",
        "relation = (*same_iteration(site), type(AFTER).BEFORE)",
    ),
    _split(
        "split: private copies",
        "A thread's copy is gone when the second part reads it.",
        "(*private_buffers(program, site), *registers)",
        "registers",
    ),
    _split(
        "split: registers of a thread",
        "A register is gone when the second part reads it.",
        "(*private_buffers(program, site), *registers)",
        "private_buffers(program, site)",
    ),
    family(_FUSION, "SplitScopes.rewrite", "split_scopes")(
        "split: the second part loses the guard",
        "The second part runs for iterations that the scope left out.",
        "place_guards(site.guard, chain,",
        "place_guards((), chain,",
    ),
    family(_FUSION, "SplitScopes.rewrite", "split_scopes")(
        "split: the second part is sequential",
        "The second part loses its mapping.",
        "mapping=site.mapping, ",
        "",
    ),
    family(_FUSION, "SplitScopes.numerics", "split_scopes")(
        "split: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        "program.reorders(*self._parts(site), (*same_iteration(site), AFTER))",
        "False",
    ),
    _tile(
        "tile: outer guards are lost",
        "Iterations run that the guard of the scope left out.",
        "guards = [g.substitute({depth: value}, extents) for g in site.guard]",
        "guards = [const(0) for _ in ()]",
    ),
    _tile(
        "tile: one iteration too many",
        "The tail runs one iteration beyond the extent.",
        "const(site.extent - 1) - value",
        "const(site.extent) - value",
    ),
    _tile(
        "tile: one iteration too few",
        "The last iteration of the tail is left out.",
        "const(site.extent - 1) - value",
        "const(site.extent - 2) - value",
    ),
    _tile(
        "tile: strided tiles",
        "The order of the iterations changes, though no dependence was asked.",
        "value = var(depth) * self.size + var(depth + 1)",
        "value = var(depth) + var(depth + 1) * (-(-site.extent // self.size))",
    ),
    _tile(
        "tile: divisions that do not come back",
        "Undoing the tiling gives another spelling of an index.",
        "unusable or irreversible_tiling(site, site.leaves, self.size)",
        "unusable",
    ),
    _tile(
        "tile: a mapped scope",
        "The mapping of the scope is lost.",
        "if site.mapping is not Mapping.SEQUENTIAL:",
        "if False:",
    ),
    family(_TILING, "TileScope.inverse", "tile_scope")(
        "tile: the identifier is not restored",
        "Later moves of a trace do not find the scope after undoing.",
        '"" if common_id(outer, inner) == site.id else site.id',
        '""',
    ),
    _collapse(
        "collapse: mapped scopes",
        "Threads or lanes become sequential iterations, or the other way round.",
        "if site.mapping is not Mapping.SEQUENTIAL or inner.mapping is not Mapping.SEQUENTIAL:",
        "if False:",
    ),
    _collapse(
        "collapse: divisions that do not come back",
        "Undoing the collapse gives another spelling of an index.",
        " or irreversible_collapse(site, inner)",
        "",
    ),
    _collapse(
        "collapse: guards that do not come back",
        "Undoing the collapse puts a guard on another scope.",
        "misplaced_guard(inner) or ",
        "",
    ),
    family(_DIGITS, "collapsed_guards", "collapse_scopes")(
        "collapse: the inner guard is lost",
        "Iterations run that the guard of the inner scope left out.",
        "(*site.guard, *inner.guard)",
        "site.guard",
    ),
    family(_DIGITS, "digits_of", "collapse_scopes")(
        "collapse: no remainder",
        "The inner index is that of the outer scope.",
        "depth + 1: modulo(",
        "depth + 1: floordiv(",
    ),
    _swap(
        "interchange: dependences (<, <) instead of (<, >)",
        "A dependence is turned round.",
        "(*outside, BEFORE, AFTER)",
        "(*outside, BEFORE, BEFORE)",
    ),
    _swap(
        "interchange: a concurrent scope moves out",
        "Threads run what one thread did in order.",
        "if found is None and threaded:",
        "if False:",
    ),
    _swap(
        "interchange: private copies that live long",
        "A thread's copy is gone when the next iteration of the new outer scope reads it.",
        "in private_buffers(program, site):",
        "in private_buffers(program, site)[:0]:",
    ),
    _swap(
        "interchange: a vector moves out",
        "A vector scope around a scope.",
        "if inner.mapping is Mapping.VECTOR:",
        "if False:",
    ),
    _swap(
        "interchange: sums of threads",
        "Iterations of the scope that was outside add to one cell at the same time.",
        "racing = threaded and not inner.mapping.declares_tree",
        "racing = False",
    ),
    family(_INTERCHANGE, "SwapScopes.rewrite", "swap_scopes")(
        "interchange: the outer guard is lost",
        "Iterations run that the guard of the outer scope left out.",
        "(*site.guard, *inner.guard)",
        "inner.guard",
    ),
    family(_INTERCHANGE, "SwapScopes.rewrite", "swap_scopes")(
        "interchange: indices stay",
        "Rows become columns.",
        "exchange = {depth: var(depth + 1), depth + 1: var(depth)}",
        "exchange = {depth: var(depth), depth + 1: var(depth + 1)}",
    ),
    family(_INTERCHANGE, "SwapScopes.numerics", "swap_scopes")(
        "interchange: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        "program.reorders(site.leaves, site.leaves, relation)",
        "False",
    ),
    _observed(
        "swap nodes: sums of what nobody stored",
        "An accumulation comes before what it adds to.",
        "for leaf in exchanged if leaf.accumulate is not None or leaf.asynchronous}",
        "for leaf in exchanged if leaf.asynchronous}",
    ),
    _observed(
        "swap nodes: sums in slots that nobody reads",
        "What is added to was overwritten by another element.",
        "if leaf.accumulate is not None and (any(buffer.reuse) or len(buffer.names) > 1):",
        "if False:",
    ),
    _observed(
        "swap nodes: nobody sees outputs",
        "The value that stays in an output is another one.",
        "seen = {b for b in program.nest.buffers if b.op is None}",
        "seen = set[Buffer]()",
    ),
    _nodes(
        "exchange: only the first statements count",
        "Dependences of the other statements are turned round.",
        "pair, relation = (leaves_of(site), leaves_of(second))",
        "pair, relation = (leaves_of(site)[:1], leaves_of(second)[:1])",
    ),
    family(_SIBLINGS, "SwapNodes.numerics", "swap_nodes")(
        "exchange: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        "program.reorders(leaves_of(site), leaves_of(second), same_iteration(site))",
        "False",
    ),
    _reordered(
        "order: conflicts do not matter",
        "A value is read before it is written, or overwritten before it is read.",
        "if conflict is None:",
        "if True:",
    ),
    _reordered(
        "order: elements instead of cells for all buffers",
        "Conflicts are asked about elements, and nobody asks about the storage after.",
        "return storage_after(program, move, site, folded) if conflict is None else conflict",
        "return conflict",
    ),
    family(_ORDERING, "folded_buffers", "join_scopes", "split_scopes", "swap_scopes", "swap_nodes")(
        "order: shared buffers are no folded ones",
        "Two arrays in one buffer are not asked whether they overwrite each other.",
        "if any(b.reuse) or len(b.names) > 1]",
        "if any(b.reuse)]",
    ),
    _after(
        "order: lost values do not matter",
        "In the new order a value is overwritten before its last read.",
        "if violation is not None:",
        "if False:",
    ),
    _after(
        "order: threads may share a slot",
        "In the new order threads overwrite each other's values.",
        "if race is not None:",
        "if False:",
    ),
)
