"""Making and recognising the nests that copy staged arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pdojo.transforms.api import (
    Access,
    Array,
    DictionaryAttr,
    Expr,
    InsertPoint,
    Leaf,
    Node,
    PatternRewriter,
    Program,
    Scope,
    ScopeOp,
    StatementOp,
    accesses_of,
    build_op,
    chain_ops,
    const,
    leaves_of,
    place_guards,
    var,
)
from pdojo.transforms.common.redirecting import Target
from pdojo.transforms.copies.footprint import Copy


def copy_nest(
    copy: Copy, site: Scope, output: Target, source: Target, ids: Sequence[str], rewriter: PatternRewriter
) -> ScopeOp | StatementOp:
    """A nest that copies, not yet inserted; `ids` are the identifiers of its scopes, followed by its statement's."""
    scopes = [ScopeOp(extent, id=i) for extent, i in zip(copy.extents, ids, strict=False)]
    chain = (*chain_ops(site), *scopes)
    read = Access(*source, DictionaryAttr({}))
    statement = build_op(output, [read], chain, identifier=ids[-1])
    nodes: list[ScopeOp | StatementOp] = [*scopes, statement]
    for outer, inner in zip(scopes, nodes[1:], strict=True):
        rewriter.insert(inner, InsertPoint.at_end(outer.body.block))
    depth = len(copy.outside)
    if scopes:
        place_guards(copy.guards, chain, range(depth, depth + len(scopes)), rewriter)
    return nodes[0]


@dataclass(frozen=True, eq=False)
class Nest:
    """A copy nest in a program."""

    root: Node
    leaf: Leaf


@dataclass(frozen=True, eq=False)
class Staged:
    """A staged array in a program, with a copy nest before the scope, one after it, or both."""

    copy: Array
    source: Array
    site: Scope
    before: Nest | None
    behind: Nest | None
    index: tuple[Expr, ...]
    """The index of the source in the copy nests."""

    def restored(self) -> dict[Access, Target]:
        """The original accesses of the scope to the source."""
        depth = self.site.depth
        targets: dict[Access, Target] = {}
        for leaf in self.site.leaves:
            for access in leaf.accesses:
                if access.array is self.copy:
                    own = {depth + k: e for k, e in enumerate(access.index[depth:])}
                    index = tuple(e.substitute(own, leaf.extents) for e in self.index)
                    targets[access] = (self.source, index)
        return targets


def staged(program: Program, array: Array) -> Iterator[Staged]:
    """The ways in which an array may have been staged: guesses to be confirmed by staging again.

    There are two if the scope is itself a copy: `x_in` between `x_in[i] = x[i]` and `y[i] = x_in[i]` is the copy of `x`
    for the second scope, and the copy of `y` for the first.
    """
    nest = program.nest
    if array.intent is not None or len(array.buffer.names) != 1:
        return
    into = [leaf for leaf in nest.writers[array.name] if _plain(leaf)]
    out_of = [leaf for leaf in nest.readers[array.name] if _plain(leaf)]
    users = list(dict.fromkeys(leaf for leaf, _ in accesses_of(nest, array.buffer)))
    for site in nest.scopes:
        previous = nest.previous_sibling(site)
        before = next((Nest(previous, w) for w in into if previous is not None and _wraps(previous, w)), None)
        following = nest.next_sibling(site)
        behind = next((Nest(following, r) for r in out_of if following is not None and _wraps(following, r)), None)
        inside = [leaf for leaf in users if leaf in site.leaves]
        outside = [n.leaf for n in (before, behind) if n is not None]
        if not inside or not outside or len(inside) + len(outside) != len(users):
            continue
        found = _matched(array, site, before, behind)
        if found is not None:
            yield found


def _plain(leaf: Leaf) -> bool:
    copies = leaf.function is None and leaf.accumulate is None and not leaf.asynchronous
    return copies and len(leaf.inputs) == 1 and len(leaf.reads) == 1


def _wraps(root: Node, leaf: Leaf) -> bool:
    """Whether a nest contains the statement and scopes around it only."""
    return leaves_of(root) == [leaf]


def _matched(array: Array, site: Scope, before: Nest | None, behind: Nest | None) -> Staged | None:
    """A staging whose copy nests copy between the array, at their own variables, and one index of one source."""
    pairs = [(n.leaf, n.leaf.output, n.leaf.reads[0]) for n in (before,) if n is not None]
    pairs += [(n.leaf, n.leaf.reads[0], n.leaf.output) for n in (behind,) if n is not None]
    source = pairs[0][2]
    for leaf, here, there in pairs:
        slot = tuple(var(d) if d >= site.depth or n != 1 else const(0) for d, n in enumerate(leaf.extents))
        if here.array is not array or here.index != slot or there.key != source.key or there.array is array:
            return None
    return Staged(array, source.array, site, before, behind, source.index)
