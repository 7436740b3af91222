"""Constant factors that are computed from narrow numbers, such as quantised weights: expanded where they are used.

Such an array is bound, and copied in the order of the sum, like any constant. But it takes several times the memory of
the numbers that it is computed from. So blocks compute their own part from a copy of these, in the same order: vectors
of it where few blocks of rows share them, else a panel.
"""

from __future__ import annotations

from pdojo.dialect.affine import Div
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Access, Leaf, Nest, Scope
from pdojo.math.functions import FUNCTIONS
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import ONCE, arrange_copy, delete_unread, has_terms, split_lanes
from pdojo.passes.cpu.constants import SMALL, size_of
from pdojo.passes.cpu.squares import copy_squares

NARROW = 2
"""Least size of an array, as a multiple of the constants that it is computed from, that is expanded in blocks."""
LONGEST = 8
"""Most statements of an expansion."""
FEW = 2
"""Greatest number of blocks of rows that each expand the vectors of a panel."""
WHY = "narrow constants are expanded where they are used"


def expand_inside(builder: PassBuilder, identifier: str, depth: int, panel: int) -> list[str]:
    """Let a block expand its panel, if that is computed from narrow constants; returns the statements that do.

    The loop over blocks is at `depth`.
    """
    name = builder.leaf(identifier).reads[panel].array.name
    if not is_narrow(builder.nest, name):
        return []
    made: list[str] = []
    builder.transact(lambda: made.extend(_expand(builder, identifier, depth, panel)))
    return [each for each in made if each in builder.nest.by_id]


def expand_sums(builder: PassBuilder) -> None:
    """Let sums without blocks expand their factors, if these are computed from narrow constants."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        if has_terms(leaf) and not builder.is_sealed(leaf):
            for name in {read.array.name for read in leaf.reads}:
                if is_narrow(builder.nest, name):
                    builder.transact(lambda i=identifier, name=name: _expand_factor(builder, i, name))


def _expand_factor(builder: PassBuilder, identifier: str, name: str) -> None:
    _part_updates(builder, name)
    made = _inlined(builder, [identifier])
    split_lanes(builder, made, WHY)
    delete_unread(builder, name)


def is_narrow(nest: Nest, name: str) -> bool:
    """Whether an array is computed from constants that are much smaller, by few cheap functions of each element."""
    array = nest.arrays[name]
    if not array.buffer.constant or array.intent is not None:
        return False
    chain = _chain(nest, name)
    sources = {read.array for leaf in chain for read in leaf.reads} - {leaf.output.array for leaf in chain}
    functions = [FUNCTIONS[leaf.function] for leaf in chain if leaf.function is not None]
    is_cheap = len(chain) <= LONGEST and all(each.cycles <= 1 for each in functions)
    is_elementwise = all(leaf.accumulate is None for leaf in chain)
    largest = max((size_of(leaf.output.array) for leaf in chain), default=0)
    return 0 < NARROW * sum(map(size_of, sources)) <= largest and is_cheap and is_elementwise


def _chain(nest: Nest, name: str) -> list[Leaf]:
    """The statements that compute an array from what stays in memory."""
    found: dict[str, list[Leaf]] = {}
    waiting = [name]
    while waiting:
        if (each := waiting.pop()) not in found and not _stays(nest, each):
            found[each] = nest.writers[each]
            waiting += [read.array.name for leaf in found[each] for read in leaf.reads]
    return [leaf for writers in found.values() for leaf in writers]


def _stays(nest: Nest, name: str) -> bool:
    """Whether an array stays in memory: an argument, one made of pieces, or a small one that is computed from these."""
    if any(name not in {read.array.name for read in leaf.reads} for leaf in nest.writers[name][1:]):
        return True
    waiting, seen = [name], {name}
    while waiting:
        array = nest.arrays[waiting.pop()]
        if array.intent is not None:
            continue
        if size_of(array) > SMALL:
            return False
        read = {each.array.name for leaf in nest.writers[array.name] for each in leaf.reads}
        waiting += read - seen
        seen |= read
    return True


def _expand(builder: PassBuilder, identifier: str, depth: int, panel: int) -> list[str]:
    leaf = builder.leaf(identifier)
    blocks, rows = leaf.chain[depth], leaf.chain[-3]
    around = rows if blocks.extent <= FEW else blocks
    unread = leaf.reads[panel].array.name
    _part_updates(builder, unread)
    known = set(builder.nest.by_id)
    builder.make("stage_in", around, WHY, array=unread, location="heap")
    (copy,) = (each.id for each in builder.nest.leaves if each.id not in known)
    made = _inlined(builder, [copy])
    while (found := _division(builder, made)) is not None:
        scope, size = found
        builder.make("tile_scope", scope, WHY, size=size)
    for each in made:
        for name in [read.array.name for read in builder.leaf(each).reads if not _is_along(builder, each, read)]:
            _pack(builder, each, name)
    split_lanes(builder, made, WHY)
    delete_unread(builder, unread)
    return made


def _part_updates(builder: PassBuilder, name: str) -> None:
    """Give values before and after an update in place arrays of their own."""
    for leaf in _chain(builder.nest, name):
        if leaf.id != builder.nest.writers[leaf.output.array.name][0].id:
            builder.make("rename_array", builder.leaf(leaf.id), "values before an update are inlined, too")


def _inlined(builder: PassBuilder, made: list[str]) -> list[str]:
    """The statements, and those that now compute what they read, in order."""
    for each in made:
        while (read := _computed(builder, each)) is not None:
            known = set(builder.nest.by_id)
            builder.make("inline_op", builder.leaf(each), WHY, input=read)
            made += [leaf.id for leaf in builder.nest.leaves if leaf.id not in known]
    return sorted(made, key=lambda each: builder.leaf(each).order)


def _division(builder: PassBuilder, made: list[str]) -> tuple[Scope, int] | None:
    """A loop over groups of terms that share an element, such as a scale, and the size of the largest groups."""
    found: list[tuple[int, Scope]] = []
    for leaf in map(builder.leaf, made):
        atoms = [atom for read in leaf.reads for e in read.index for atom, _ in e.terms if isinstance(atom, Div)]
        for atom in atoms:
            match atom.numerator.terms:
                case ((int(depth), 1),) if leaf.chain[depth].extent > atom.divisor:
                    found.append((atom.divisor, leaf.chain[depth]))
                case _:
                    pass
    if not found:
        return None
    size, scope = max(found, key=lambda each: each[0])
    return scope, size


def _is_along(builder: PassBuilder, identifier: str, read: Access) -> bool:
    """Whether the lanes of a vector read neighbours, or one element."""
    stride = lane_stride(read.index, read.array.shape, builder.loop(identifier, -1).depth)
    return stride in (Stride.CONTIGUOUS, Stride.BROADCAST)


def _pack(builder: PassBuilder, identifier: str, name: str) -> None:
    """Copy a constant in the order of the loops, once."""
    known = builder.nest.arrays.keys()
    builder.make("stage_in", builder.loop(identifier, 0), WHY, array=name, location="heap")
    (copied,) = (read for read in builder.leaf(identifier).reads if read.array.name not in known)
    depths = [max(e.variables(), default=0) for e in copied.index]
    name = copied.array.name
    arrange_copy(builder, name, sorted(range(len(depths)), key=depths.__getitem__), WHY)
    (writer,) = builder.nest.writers[name]
    builder.attempt("vectorize", writer.chain[-1], "the lanes of a vector")
    copy_squares(builder, writer.id)
    builder.make("bind_array", name, ONCE)


def _computed(builder: PassBuilder, identifier: str) -> int | None:
    """The input of a statement that is an element of an array that is computed; None if there is none."""
    inputs = builder.leaf(identifier).inputs
    return next((k for k, x in enumerate(inputs) if isinstance(x, Access) and _is_made(builder, identifier, x)), None)


def _is_made(builder: PassBuilder, identifier: str, read: Access) -> bool:
    """Whether a statement reads an array that is computed elsewhere, and does not stay."""
    inside = builder.loop(identifier, -1).leaves
    return not _stays(builder.nest, read.array.name) and not any(leaf.output.array is read.array for leaf in inside)
