"""Vectors: every statement along contiguous memory, and fused loops over vectors."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.rules.lanes import Stride, lane_stride, linear_address
from pdojo.dialect.view.nest import Leaf, Scope, fact
from pdojo.dialect.view.nodes import is_whole, run_time_extent
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.dimensions import indexed_by
from pdojo.passes.common.siblings import fuse_siblings
from pdojo.passes.cpu.squares import square_lanes, use_lines
from pdojo.passes.cpu.threads import costs_threads

ACCUMULATORS = 2
"""Vectors per iteration of a loop: independent accumulators hide the latency of additions.

Two were the fastest or equal on the library's row kernels (of 1, 2, 4, 8; AVX-512, two threads): the processor itself
overlaps the iterations of a loop around them, and more copies only lengthen the code.
"""

SHORT = 4
"""Greatest number of vectors of a loop that keeps its rest: it is unrolled, only the last vector is masked, and a sum
is added up once.

A separate loop for the rest took 25 % longer on rows of 42 elements; from six vectors on it is faster."""


MEDIUM = 32
"""Greatest number of vectors of a row whose rest is summed up in the accumulator of the whole vectors.

The sum over the lanes of an accumulator takes as long as some ten vectors, and a longer row has two accumulators."""


def vectorize_statements(builder: PassBuilder) -> None:
    """Distribute innermost loops, vectorise every statement, and fuse the loops over vectors again."""
    _distribute(builder)
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        if not builder.is_sealed(builder.leaf(identifier)):
            vectorize_statement(builder, identifier)
    _fuse_vector_loops(builder)


def is_vector_loop(scope: Scope) -> bool:
    """True for a loop around one statement."""
    return len(scope.children) == 1 and isinstance(scope.children[0], Leaf)


def _distribute(builder: PassBuilder) -> None:
    """Give every statement of an innermost loop its own loop, so that it can be vectorised."""

    def crowded() -> Iterator[Scope]:
        for scope in builder.nest.scopes:
            statements = all(isinstance(c, Leaf) for c in scope.children) and scope.id not in builder.sealed
            if scope.mapping is Mapping.SEQUENTIAL and statements and len(scope.children) > 1:
                yield scope

    changed = True
    while changed:
        changed = any(
            builder.attempt("split_scopes", scope, "a vector loop wraps one statement", after=after)
            for scope in crowded()
            for after in range(1, len(scope.children))
        )


def _own_loops(leaf: Leaf) -> list[Scope]:
    """The sequential loops that wrap only this statement, innermost first."""
    loops: list[Scope] = []
    scope = leaf.parent
    while scope is not None and len(scope.children) == 1 and scope.mapping is Mapping.SEQUENTIAL:
        loops.append(scope)
        scope = scope.parent
    return loops


TURNS = (2, 4)
"""Numbers of statements that may write the elements of an array in turns."""
_VALUE = {
    Stride.CONTIGUOUS: 2.0,
    Stride.BROADCAST: 1.0,
    Stride.STRIDED: -3.0,
    Stride.FIXED: -3.0,
    Stride.LOOKED_UP: -100.0,
    Stride.IRREGULAR: -100.0,
}


def _vector_loop(builder: PassBuilder, leaf: Leaf) -> Scope | None:
    """The innermost loop among those with the most contiguous accesses; None if no loop pays."""
    best: tuple[float, Scope] | None = None
    for scope in _own_loops(leaf):
        value = sum(_VALUE[lane_stride(a.index, a.array.shape, scope.depth)] for a in leaf.accesses)
        if _takes_turns(builder, leaf, scope):
            value += _VALUE[Stride.CONTIGUOUS] - _VALUE[Stride.STRIDED]
        if best is None or value > best[0]:
            best = value, scope
    if best is not None and best[0] > 0:
        return best[1]
    return _stored_along(leaf) if leaf.accumulate is None else None


def _takes_turns(builder: PassBuilder, leaf: Leaf, scope: Scope) -> bool:
    """True if statements write the elements of an array in turns, with a loop like `scope` around each.

    Backends store their vectors together, as whole vectors.
    """
    writers = builder.nest.writers[leaf.output.array.name]
    step, array = len(writers), leaf.output.array
    if step not in TURNS or any(writer.accumulate is not None for writer in writers):
        return False
    addresses = [linear_address(writer.output.index, array.shape) for writer in writers]
    own = linear_address(leaf.output.index, array.shape)
    along = all(
        any(each.coefficient(s.depth) == step for s in w.chain) for w, each in zip(writers, addresses, strict=True)
    )
    return own.coefficient(scope.depth) == step and along and len({each.constant % step for each in addresses}) == step


def _stored_along(leaf: Leaf) -> Scope | None:
    """The loop with stores of whole vectors but gathered reads; None if there is none."""
    for scope in _own_loops(leaf):
        strides = [lane_stride(a.index, a.array.shape, scope.depth) for a in leaf.accesses]
        if strides[0] is Stride.CONTIGUOUS and not {Stride.LOOKED_UP, Stride.IRREGULAR} & {*strides}:
            return scope
    return None


def vectorize_statement(builder: PassBuilder, identifier: str) -> None:
    """Vectorise a statement along its contiguous loop, with the rest peeled off."""
    loop = _vector_loop(builder, builder.leaf(identifier))
    if loop is None:
        return
    while (inner := builder.leaf(identifier).parent) is not None and inner.id != loop.id:
        current = builder.find_scope(loop.id)
        if current is None or not builder.attempt("swap_scopes", current, "contiguous memory belongs innermost"):
            return
    lanes = fitting_lanes(builder, builder.leaf(identifier), loop.extent)
    if lanes is None:
        return
    lanes = square_lanes(builder, builder.leaf(identifier), lanes)
    if _share_accumulator(builder, identifier, lanes):
        return
    for piece in _cut(builder, identifier, lanes):
        _vectorize_piece(builder, piece, lanes)
        use_lines(builder, piece)


def _share_accumulator(builder: PassBuilder, identifier: str, lanes: int) -> bool:
    """Sum up a row of a medium number of vectors, or of an extent that depends on sizes, and its rest in one place.

    Returns False for other rows, and if a move is refused.
    """
    scope = _parent(builder, identifier)
    if not _reduces(builder.leaf(identifier)):
        return False
    if run_time_extent(scope) is not None:
        size = _group(scope.extent, lanes)
        return (
            size > 0
            and not is_whole(scope, size)
            and builder.transact(lambda: _collect(builder, identifier, lanes, size))
        )
    whole = _whole(scope.extent, lanes)
    if not whole or scope.extent > MEDIUM * lanes:
        return False
    return builder.transact(lambda: _accumulate(builder, identifier, lanes, whole))


def _collect(builder: PassBuilder, identifier: str, lanes: int, size: int) -> None:
    """Split a sum into `size` partial results, which the terms after the last whole group take, too."""
    terms, others = _split(builder, identifier, size, "partial results, for the rest of the row, too")
    builder.make("collapse_scopes", builder.leaf(terms).chain[-2], "terms in one row again")
    before = {leaf.id for leaf in builder.nest.leaves}
    builder.make(
        "peel_scope", _parent(builder, terms), "whole vectors without masks; the rest by itself", multiple=size
    )
    rest = [leaf.id for leaf in builder.nest.leaves if leaf.id not in before]
    _tile_and_vectorize(builder, terms, lanes, size // lanes)
    for part in (*others, *rest):
        _tile_and_vectorize(builder, part, lanes, 1)


def _split(builder: PassBuilder, identifier: str, size: int, why: str) -> tuple[str, list[str]]:
    """Split a sum into partial results; returns the statement of its terms, and those before and after."""
    before = {leaf.id for leaf in builder.nest.leaves}
    result = builder.leaf(identifier).output.array.name
    builder.make("split_reduction", _parent(builder, identifier), why, size=size)
    parts = [leaf for leaf in builder.nest.leaves if leaf.id == identifier or leaf.id not in before]
    (terms,) = (part.id for part in parts if part.accumulate is not None and part.output.array.name != result)
    return terms, [part.id for part in parts if part.id != terms]


def _accumulate(builder: PassBuilder, identifier: str, lanes: int, whole: int) -> None:
    """Split a sum into a vector of partial results, and peel off the vectors after `whole` terms."""
    terms, others = _split(builder, identifier, lanes, "one vector of partial results, for the rest of the row, too")
    for part in (*others, terms):
        builder.make("vectorize", _parent(builder, part), f"vectors of {lanes} lanes")
    loop = builder.leaf(terms).chain[-2]
    builder.make("peel_scope", loop, "whole vectors without masks; the rest by itself", after=whole // lanes)
    if whole % (lanes * ACCUMULATORS) == 0 and whole > lanes * ACCUMULATORS:
        why = f"{ACCUMULATORS} vectors an iteration"
        builder.make("tile_scope", builder.leaf(terms).chain[-2], why, size=ACCUMULATORS)


def _group(extent: int, lanes: int) -> int:
    """The number of iterations of a loop over vectors between whose tiles and rest it is cut; 0 if it is not cut."""
    if extent <= SHORT * lanes:
        return 0
    return lanes * (ACCUMULATORS if extent >= 4 * lanes * ACCUMULATORS else 1)


def _whole(extent: int, lanes: int) -> int:
    """The number of iterations before the rest of a loop over vectors; 0 if the rest is not peeled off."""
    size = _group(extent, lanes)
    whole = extent // size * size if size else extent
    if 0 < extent - whole < lanes:
        # A rest shorter than a vector takes whole vectors along.
        whole -= size
    return 0 if whole == extent else whole


def _cut(builder: PassBuilder, identifier: str, lanes: int) -> list[str]:
    """Peel off the remainder after whole groups of vectors; returns the statements of both parts."""
    scope, why = _parent(builder, identifier), "whole vectors without masks; the rest by itself"
    before = {leaf.id for leaf in builder.nest.leaves}
    if run_time_extent(scope) is not None:
        size = _group(scope.extent, lanes)
        if not size or is_whole(scope, size) or not builder.attempt("peel_scope", scope, why, multiple=size):
            return [identifier]
    else:
        whole = _whole(scope.extent, lanes)
        if not whole or not builder.attempt("peel_scope", scope, why, after=whole):
            return [identifier]
    return [identifier, *(leaf.id for leaf in builder.nest.leaves if leaf.id not in before)]


def _vectorize_piece(builder: PassBuilder, identifier: str, lanes: int) -> None:
    """Vectorise the innermost loop, several vectors at a time; reductions get as many accumulators."""
    scope = _parent(builder, identifier)
    group = next((n for n in (ACCUMULATORS, 1) if is_whole(scope, lanes * n) and scope.extent > lanes * n), 1)
    leaf = builder.leaf(identifier)
    if _reduces(leaf) and scope.extent > lanes:
        why = f"{group} vectors of {lanes} partial results"
        if builder.attempt("split_reduction", scope, why, size=lanes * group):
            for part in (leaf for leaf in list(builder.nest.leaves) if _is_part(leaf, identifier, lanes * group)):
                _tile_and_vectorize(builder, part.id, lanes, 1)
        return
    _tile_and_vectorize(builder, identifier, lanes, group)


def _reduces(leaf: Leaf) -> bool:
    """True for an accumulation over the innermost loop."""
    return leaf.accumulate is not None and not any(e.uses(len(leaf.chain) - 1) for e in leaf.output.index)


def _is_part(leaf: Leaf, identifier: str, size: int) -> bool:
    """True if a statement belongs to another one's split reduction and is not vectorised yet."""
    scope = leaf.parent
    if scope is None or scope.extent != size or scope.mapping is not Mapping.SEQUENTIAL:
        return False
    base = scope.id.rsplit(".", 1)[0]
    return leaf.id == identifier or (is_vector_loop(scope) and leaf.id.startswith(base))


def fitting_lanes(builder: PassBuilder, leaf: Leaf, extent: int) -> int | None:
    """The widest vector for long loops, else the longest one that divides the extent or fits; None if none fits."""
    lengths = builder.vector_lanes(leaf)
    widest = max(lengths, default=1)
    if widest > 1 and extent >= 4 * widest:
        return widest
    lanes = [n for n in lengths if n <= extent]
    return max((n for n in lanes if extent % n == 0), default=max(lanes, default=None))


def _tile_and_vectorize(builder: PassBuilder, identifier: str, lanes: int, group: int) -> None:
    """Tile a loop of N iterations to N / (group * lanes), group, lanes, and vectorise the last."""
    if group > 1:
        builder.attempt("tile_scope", _parent(builder, identifier), f"{group} vectors an iteration", size=lanes * group)
    scope = _parent(builder, identifier)
    if scope.extent > lanes:
        builder.attempt("tile_scope", scope, f"vectors of {lanes} lanes", size=lanes)
    builder.attempt("vectorize", _parent(builder, identifier), f"vectors of {lanes} lanes")


def _parent(builder: PassBuilder, identifier: str) -> Scope:
    parent = builder.leaf(identifier).parent
    assert parent is not None
    return parent


def _fuse_vector_loops(builder: PassBuilder) -> None:
    """Fuse neighbouring loops over vectors; move statements between them away where legal."""
    failed: set[tuple[str, ...]] = set()

    def fuse(first: Scope, second: Scope) -> bool:
        # A failed pair fails again until its surroundings change.
        question = first.id, second.id, *(node.id for node in builder.nest.siblings(first))
        if question in failed:
            return False
        if fuse_siblings(builder, first.id, second.id, "values that the next statement needs stay in registers"):
            return True
        failed.add(question)
        return False

    changed = True
    while changed:
        changed = any(fuse(first, second) for first, second in _pairs(builder))


def _pairs(builder: PassBuilder) -> list[tuple[Scope, Scope]]:
    """Loops of one parent that may be fused: first those between which values flow, and near pairs first."""
    found: list[tuple[Scope, Scope]] = []
    open_scopes = [scope for scope in builder.nest.scopes if scope.id not in builder.sealed]
    arrays = {scope: _arrays(scope) for scope in open_scopes}
    users: dict[tuple[Scope | None, str], list[Scope]] = {}
    for scope in open_scopes:
        for name in arrays[scope]:
            users.setdefault((scope.parent, name), []).append(scope)
    for scope in open_scopes:
        if scope.mapping is not Mapping.SEQUENTIAL:
            continue
        near = {later for name in arrays[scope] for later in users[scope.parent, name]}
        for later in sorted(near, key=lambda later: later.position):
            alike = (later.extent, later.mapping) == (scope.extent, scope.mapping)
            if later.position > scope.position and alike and not costs_threads(builder, scope, later):
                found.append((scope, later))
    return sorted(found, key=lambda pair: not _flows(*pair))


def _flows(first: Scope, second: Scope) -> bool:
    """True if `second` reads an array that `first` writes."""
    written = {leaf.output.array.name for leaf in first.leaves}
    return any(access.array.name in written for leaf in second.leaves for access in leaf.reads)


def _arrays(scope: Scope) -> set[str]:
    """Names of the arrays that a scope accesses."""
    return fact(scope.facts, "arrays", lambda: {access.array.name for leaf in scope.leaves for access in leaf.accesses})


def part_temporaries(builder: PassBuilder) -> None:
    """Split temporaries into arrays of the values that are read together, for example the values of a peeled rest.

    Memory used in only one loop is private to its iterations.
    """
    why = "values that are not read together need no common memory"
    for name in list(builder.temporaries()):
        later = [leaf.id for leaf in builder.nest.writers[name] if leaf.accumulate is None][1:]
        for identifier in later:
            builder.attempt("rename_array", f"%{identifier}", why)


def shrink_temporaries(builder: PassBuilder) -> None:
    """Reuse dimensions that are dead after each iteration; of long rows keep a vector, or a group of vectors."""
    why = "the dimension is dead after each iteration: less memory"
    made = 1
    while made:
        # A round tries all dimensions, since some dimensions must wait for others.
        made = sum(builder.attempt("reuse_dims", place, why) for place in _without_lanes(builder))
    for name in list(builder.temporaries()):
        array = builder.nest.arrays[name]
        if not array.shape or array.buffer.memory is Memory.REGISTER or array.buffer.reuse[-1]:
            continue
        last = len(array.shape) - 1
        lanes = _lanes(builder, name, last)
        for size in (lanes, lanes * ACCUMULATORS):
            if size >= array.shape[last] or not _fits(builder, name, last, size):
                continue
            if builder.transact(lambda n=name, d=last, s=size: _cut_row(builder, n, d, s)):
                break


def _fits(builder: PassBuilder, name: str, dimension: int, size: int) -> bool:
    """False if every write of a temporary and every read, in one iteration of the loops around both, walk more than
    `size` elements of a dimension: no part of it is dead before the next is written."""
    nest = builder.nest

    def walked(leaf: Leaf, inside: int) -> int:
        return prod(scope.extent for scope in leaf.chain[inside:] if (name, dimension) in indexed_by(leaf, scope.depth))

    return not nest.arrays[name].buffer.constant and any(
        max(walked(writer, inside), walked(reader, inside)) <= size
        for writer in nest.writers.get(name, ())
        for reader in nest.readers.get(name, ())
        for inside in (common_depth((writer, reader)),)
    )


def _lanes(builder: PassBuilder, name: str, dimension: int) -> int:
    """Lanes of the longest vector loop that indexes a dimension; without one, lanes of a vector of the array's type.

    They may be fewer than the lanes of the array's own type, if a statement has wider types as well.
    """
    nest = builder.nest
    scopes = {leaf: leaf.parent for leaf in (*nest.writers.get(name, ()), *nest.readers.get(name, ()))}
    return max(
        (
            scope.extent
            for leaf, scope in scopes.items()
            if scope is not None
            and scope.mapping is Mapping.VECTOR
            and (name, dimension) in indexed_by(leaf, scope.depth)
        ),
        default=max(builder.game.machine.vector_lanes(nest.arrays[name].dtype), default=1),
    )


def _without_lanes(builder: PassBuilder) -> list[str]:
    """Dimensions of temporaries that no vector loop indexes; lanes need an element each."""
    nest = builder.nest
    laned: set[str] = set()
    for leaf in nest.leaves:
        if leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR:
            laned |= {f"{name}:{d}" for name, d in indexed_by(leaf, leaf.parent.depth)}
    return [place for place in builder.dimensions() if place not in laned]


def _cut_row(builder: PassBuilder, name: str, dimension: int, size: int) -> None:
    """Keep `size` elements of a row instead of the whole row."""
    why = "values stay in registers between the statements of a group"
    builder.make("tile_dim", f"{name}:{dimension}", why, size=size)
    builder.make("reuse_dims", f"{name}:{dimension}", why)


def unroll_groups(builder: PassBuilder) -> None:
    """Unroll the groups of vectors."""
    for identifier in [s.id for s in reversed(builder.nest.scopes)]:
        scope = builder.find_scope(identifier)
        if scope is None or scope.mapping is not Mapping.SEQUENTIAL or scope.extent > 2 * ACCUMULATORS:
            continue
        copies = sum(
            prod(s.extent for s in leaf.chain[scope.depth :] if s.mapping is not Mapping.VECTOR)
            for leaf in scope.leaves
        )
        vectors = all(leaf.chain[-1].mapping is Mapping.VECTOR for leaf in scope.leaves)
        if vectors and copies <= 16 * ACCUMULATORS:
            builder.attempt("unroll", scope, "a group of vectors without a loop")
