"""Accesses redirected to other arrays and indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.transforms.api import Access, Array, Expr, Input, Leaf, PatternRewriter, build_op, chain_ops

Target = tuple[Array, tuple[Expr, ...]]
"""The new target of an access: an array and an index."""


def redirect(leaves: Sequence[Leaf], targets: Mapping[Access, Target], rewriter: PatternRewriter) -> None:
    """Redirect accesses of statements; the rest of the statements stays."""

    def redirected(value: Input) -> Input:
        if isinstance(value, Access) and value in targets:
            return Access(*targets[value], value.hints)
        return value

    for leaf in leaves:
        if any(a in targets for a in leaf.accesses):
            new = build_op(
                targets.get(leaf.output, (leaf.output.array, leaf.output.index)),
                [redirected(i) for i in leaf.inputs],
                chain_ops(leaf),
                function=leaf.function,
                accumulate=leaf.accumulate,
                hints=leaf.op.access_hints,
                identifier=leaf.id,
                contracted=leaf.contracted,
                asynchronous=leaf.asynchronous,
            )
            rewriter.replace(leaf.op, new)
