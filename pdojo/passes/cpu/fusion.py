"""Fusion of whole nests: the order of outer loops, joins, and recomputation of temporaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.nodes import is_plain
from pdojo.dialect.view.storage import physical_shape
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import uses
from pdojo.passes.common.dimensions import Dimension, indices, spread
from pdojo.passes.common.loops import reorder
from pdojo.passes.common.sums import part_sum
from pdojo.passes.cpu.squares import runs_along
from pdojo.passes.cpu.threads import EVEN, balance, costs_threads, small
from pdojo.passes.cpu.vectors import ACCUMULATORS, is_vector_loop

CHEAP = frozenset({"arith.addf", "arith.subf", "arith.mulf", "arith.negf"})
"""Functions cheaper than a store and a load of their result."""
MOST_ROWS = 256
"""Most rows of products that are added up column by column, in registers; each row may lie in another page.

154 rows of 1808 take 0.011 ms so, 0.048 if whole rows are read (AMD EPYC, Zen 4)."""


def fuse_outer(builder: PassBuilder) -> None:
    """Fuse neighbouring loops, unless both become vector loops; these are fused later, tile by tile."""
    align(builder)
    _split_few(builder)

    def fusible() -> Iterator[Scope]:
        for scope in builder.nest.scopes:
            second = builder.nest.next_sibling(scope)
            if scope.mapping is not Mapping.SEQUENTIAL or not isinstance(second, Scope):
                continue
            sealed = scope.id in builder.sealed or second.id in builder.sealed
            later = is_vector_loop(scope) and is_vector_loop(second)
            if sealed or later or _binds(scope) is not _binds(second) or costs_threads(builder, scope, second):
                continue
            yield scope

    builder.exhaust(fusible, "join_scopes", "one pass over the outer iterations keeps values in cache")
    _recompute(builder)


def _binds(scope: Scope) -> bool:
    """True if a scope computes constants, which nests of other statements may not."""
    return any(leaf.output.array.buffer.constant for leaf in scope.leaves)


def align(builder: PassBuilder) -> None:
    """Move the loops of statistics outermost, beginning with the loops that most statistics share.

    A statistic is a temporary that a sum writes and a nest with more loops reads. If all nests share the loops that
    index it, values computed from it need no memory, and its inputs may still be cached.
    """
    shared = _shared(builder, _statistics(builder))
    plans = [(leaf.id, _wanted(leaf, shared)) for leaf in builder.nest.leaves]
    for identifier, wanted in plans:
        leaf = builder.leaf(identifier)
        if wanted != [s.id for s in leaf.chain] and not _is_finished(builder, leaf):
            builder.transact(lambda i=identifier, w=wanted: reorder(builder, i, w))


def _shared(builder: PassBuilder, statistics: set[Dimension]) -> dict[tuple[str, int], int]:
    """For each dimension, the number of statistics indexed by the loops that index it."""
    found: dict[tuple[str, int], int] = {}
    for dimension in sorted(statistics):
        if dimension not in found:
            together = spread(builder, dimension)
            count = len({name for name, _ in together & statistics})
            found |= dict.fromkeys(together, count)
    return found


def _statistics(builder: PassBuilder) -> set[Dimension]:
    """The dimensions of arrays written by sums and read in nests with more loops."""
    found: set[Dimension] = set()
    for name, writers in builder.nest.writers.items():
        array = builder.nest.arrays[name]
        readers = builder.nest.readers.get(name, [])
        summed = any(w.accumulate is not None for w in writers)
        wide = any(len(r.chain) > len(array.shape) and r not in writers for r in readers)
        if summed and wide and array.buffer.op is not None and not any(_is_finished(builder, w) for w in writers):
            found |= {(name, d) for d in range(len(array.shape))}
    return found


def _is_finished(builder: PassBuilder, leaf: Leaf) -> bool:
    """True if a loop around a statement is sealed, so that its order is fixed."""
    return any(scope.id in builder.sealed for scope in leaf.chain)


def _interchangeable(leaf: Leaf) -> int:
    """Number of outermost loops that are perfectly nested."""
    plain = 0
    for scope in leaf.chain:
        if not is_plain(scope):
            break
        plain += 1
        if len(scope.children) > 1:
            break
    return plain


def _wanted(leaf: Leaf, shared: dict[tuple[str, int], int]) -> list[str]:
    """The loops of a statement in the wanted order: the interchangeable loops that most statistics share come first.

    A loop along contiguous results stays inside.
    """
    counts = dict.fromkeys(range(leaf.depth), 0)
    for place, depth in indices(leaf):
        counts[depth] = max(counts[depth], shared.get(place, 0))
    for depth in counts:
        if lane_stride(leaf.output.index, leaf.output.array.shape, depth) is Stride.CONTIGUOUS:
            counts[depth] = 0
    free = _interchangeable(leaf)
    return [s.id for s in (*sorted(leaf.chain[:free], key=lambda s: -counts[s.depth]), *leaf.chain[free:])]


def _split_few(builder: PassBuilder) -> None:
    """Split sums with too few results for the threads: one partial result per iteration of the outermost loop."""
    threads = builder.game.machine.threads
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        leaf = builder.leaf(identifier)
        used = {v for e in leaf.output.index for v in e.variables()}
        terms = [s for s in leaf.chain if s.depth not in used]
        results = next((s.extent for s in leaf.chain if s.depth in used), 1)
        few = balance(results, threads) < EVEN and prod(s.extent for s in leaf.chain) >= small(builder.game.machine)
        if builder.is_sealed(leaf) or not few or not terms:
            continue
        why = f"{results} results are too few for {threads} threads"
        if len(terms) == 1 and leaf.chain == (terms[0],) and builder.transact(lambda i=identifier: _chunk(builder, i)):
            terms = list(builder.leaf(identifier).chain)
        if len(terms) != 2 or balance(terms[0].extent, threads) < EVEN:
            continue
        builder.transact(lambda i=identifier, d=terms[0].depth, n=terms[0].extent, w=why: _split(builder, i, d, n, w))


def _chunk(builder: PassBuilder, identifier: str) -> bool:
    """Cut the loop of a sum, and the loops fusible with it, into a chunk for each thread.

    Chunks are whole groups of vectors; the rest is peeled off first.
    """
    leaf = builder.leaf(identifier)
    threads, (loop,) = builder.game.machine.threads, leaf.chain
    size = loop.extent // threads // (group := builder.lanes(leaf) * ACCUMULATORS) * group
    why = f"a chunk of {size} iterations for each thread"
    family = _related(builder, leaf)
    for scope in family:
        if size * threads < loop.extent:
            builder.make("peel_scope", f"%{scope}", why, after=size * threads)
        builder.make("tile_scope", f"%{scope}", why, size=size)
    return size > 0


def _related(builder: PassBuilder, leaf: Leaf) -> list[str]:
    """The single loops of equal extent around statements that share arrays with `leaf`, directly or through others.

    The loop of the statement itself is included.
    """
    (loop,) = leaf.chain
    single = [
        s for s in builder.nest.children if isinstance(s, Scope) and s.extent == loop.extent and is_vector_loop(s)
    ]
    alike = [s for s in single if is_plain(s)]
    found, names = {loop.id}, {a.array.name for a in leaf.accesses}
    size = 0
    while size != len(found):
        size = len(found)
        for scope in alike:
            mine = {a.array.name for a in scope.leaves[0].accesses}
            if mine & names:
                found.add(scope.id)
                names |= mine
    return [s.id for s in builder.nest.scopes if s.id in found]


def _split(builder: PassBuilder, identifier: str, depth: int, count: int, why: str) -> None:
    """Split a sum for the threads; the loop that combines the partial results stays out of the threads' loops."""
    parts = part_sum(builder, identifier, depth, count, why)
    builder.sealed.add(builder.loop(parts.combined, -1).id)


def _recompute(builder: PassBuilder) -> None:
    """Recompute cheap temporaries at each use if keeping them exceeds the core's caches, or if one sum reads them."""
    for leaf in list(builder.nest.leaves):
        name = leaf.output.array.name
        if _is_cheap(builder, leaf) and (
            _kept(builder, name) > builder.game.machine.private_cache // 2 or _is_summed_in_parts(builder, name)
        ):
            builder.transact(lambda leaf=leaf, name=name: recompute(builder, leaf, name))


def inline_products(builder: PassBuilder) -> None:
    """Contract sums of products that another nest computes for them alone, element by element."""
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        product = _only_product(builder, builder.leaf(identifier))
        if product is not None:
            builder.transact(lambda i=identifier, leaf=product: _inline_product(builder, i, leaf))


def _only_product(builder: PassBuilder, leaf: Leaf) -> Leaf | None:
    """The product that a statement in another nest adds up, each element once, and nothing else reads; else None.

    Sums of columns stay apart if they read whole rows one after the other (many terms), or are computed beside a nest
    that computes a factor row by row.
    """
    if leaf.function is not None or len(leaf.reads) != 1 or not leaf.chain:
        return None
    name = leaf.reads[0].array.name
    writers = builder.nest.writers.get(name, [])
    if len(writers) != 1 or len(builder.nest.readers[name]) > 1 or writers[0].chain[:1] == leaf.chain[:1]:
        return None
    (writer,) = writers
    is_product = writer.function == "arith.mulf" and writer.accumulate is None
    if not runs_along(leaf.reads[0], leaf.chain[-1]):
        computed = any(builder.nest.writers.get(factor.array.name) for factor in writer.reads)
        terms = prod(s.extent for s in leaf.chain if not uses(leaf.output, s))
        if computed or terms > MOST_ROWS:
            return None
    once = prod(leaf.extents) <= prod(writer.extents)
    return writer if is_product and once and writer.output.array.buffer.op is not None else None


def _inline_product(builder: PassBuilder, identifier: str, product: Leaf) -> bool:
    recompute(builder, product, product.output.array.name)
    return builder.attempt("contract", builder.leaf(identifier), "a fused multiply-add is one instruction")


def _is_summed_in_parts(builder: PassBuilder, name: str) -> bool:
    """Whether all readers of an array are parts of one sum, such as whole blocks and a rest: each reads its terms."""
    readers = builder.nest.readers.get(name, [])
    sums = {(reader.output.array.name, reader.accumulate) for reader in readers}
    return len(readers) > 1 and len(sums) == 1 and readers[0].accumulate is not None


def _is_cheap(builder: PassBuilder, leaf: Leaf) -> bool:
    """True for a temporary with one cheap writer that reads one input array and values of lower rank."""
    name = leaf.output.array.name
    reads = {i.key: i for i in leaf.inputs if isinstance(i, Access)}.values()
    large = [a for a in reads if len(a.array.shape) >= len(leaf.output.array.shape)]
    return (
        leaf.accumulate is None
        and leaf.function in CHEAP
        and leaf.output.array.buffer.op is not None
        and builder.nest.writers[name] == [leaf]
        and len(large) == 1
        and large[0].array.intent is Intent.IN
    )


def _kept(builder: PassBuilder, name: str) -> int:
    """Bytes of an array that live between writer and readers, after reuse along the loops that they share."""
    nest = builder.nest
    array = nest.arrays[name]
    users = dict.fromkeys((*nest.writers[name], *nest.readers[name]))
    shared = 0
    chains = [leaf.chain for leaf in users]
    while all(len(c) > shared for c in chains) and len({c[shared].id for c in chains}) == 1:
        shared += 1
    writer = nest.writers[name][0]
    free = [d for d, e in enumerate(writer.output.index) if max(e.variables(), default=shared) >= shared]
    shape = physical_shape(nest, array.buffer)
    return prod(shape[d] for d in free) * byte_width(array.dtype)


def recompute(builder: PassBuilder, leaf: Leaf, name: str) -> None:
    """Inline a statement at all of its uses, and delete it."""
    inline(builder, name, [reader.id for reader in builder.nest.readers[name]])
    builder.make("delete_op", builder.leaf(leaf.id), "nobody reads it any more")


def inline(builder: PassBuilder, name: str, readers: Sequence[str]) -> None:
    """Inline the only statement that writes an array into statements that read the array."""
    why = f"computed once more where it is used: '{name}' need not be kept in between"
    for reader in readers:
        while (use := _use(builder, reader, name)) is not None:
            before = set(builder.nest.arrays)
            builder.make("inline_op", builder.leaf(reader), why, input=use)
            for made in builder.nest.arrays.keys() - before:
                materialize(builder, made)


def materialize(builder: PassBuilder, name: str) -> None:
    """Give every element its own memory, so that the loop can be distributed; later moves reuse the memory again."""
    builder.attempt("set_location", name, "room for an element for each lane", location="heap")
    for dimension in range(len(builder.nest.arrays[name].shape)):
        builder.attempt("materialize_dims", f"{name}:{dimension}", "vectors need an element for each lane")


def _use(builder: PassBuilder, reader: str, name: str) -> int | None:
    inputs = builder.leaf(reader).inputs
    return next((k for k, i in enumerate(inputs) if isinstance(i, Access) and i.array.name == name), None)
