"""Shared divisors, and numbers: one division and many products."""

from __future__ import annotations

from math import isfinite, prod

from pdojo.dialect.view.nest import Access, Constant
from pdojo.passes.common.builder import PassBuilder
from pdojo.transforms.common.declaring import fresh_name

SHARED = 4
"""Fewest elements that must share a divisor before its reciprocal is stored."""


def share_reciprocals(builder: PassBuilder) -> None:
    """Multiply by a reciprocal where many elements share a divisor, if the kernel permits it."""
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.function == "arith.divf"]:
        leaf = builder.leaf(identifier)
        divisor = leaf.inputs[1]
        if not isinstance(divisor, Access) or builder.is_finished(leaf):
            continue
        used = {depth for expression in divisor.index for depth in expression.variables()}
        shared = 1
        for scope in leaf.chain:
            shared *= 1 if scope.depth in used else scope.extent
        if shared >= SHARED:
            # As far out as the divisor is available.
            any(
                builder.transact(lambda depth=depth, i=identifier: _share(builder, i, depth))
                for depth in range(leaf.depth)
            )


def invert_numbers(builder: PassBuilder) -> None:
    """Multiply by the reciprocal of a number instead of dividing, if the kernel permits it.

    Not for GPUs: a statement outside of grids is a launch.
    """
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.function == "arith.divf"]:
        leaf = builder.leaf(identifier)
        divisor = leaf.inputs[1]
        if isinstance(divisor, Constant) and divisor.value and isfinite(divisor.value) and prod(leaf.extents) >= SHARED:
            builder.transact(lambda i=identifier, c=divisor: _multiply(builder, i, c))


def _multiply(builder: PassBuilder, identifier: str, divisor: Constant) -> None:
    """Compute the reciprocal of a number before the first nest."""
    why = "one division for all values that are divided by a number"
    name = fresh_name(builder.nest.arrays, "inverse")
    text, declared = f"{name}[] = 1 / {divisor.value!r}", f"{name} {divisor.dtype} [] heap"
    builder.make("insert_op", builder.nest.children[0], why, text=text, declare=declared)
    builder.make("reciprocal", builder.leaf(identifier), why, array=name)


def _share(builder: PassBuilder, identifier: str, depth: int) -> None:
    """Compute the reciprocal before the scope at `depth`, for all iterations of the loops that index the divisor."""
    leaf = builder.leaf(identifier)
    divisor = leaf.inputs[1]
    assert isinstance(divisor, Access)
    why = f"one division for all values that are divided by an element of '{divisor.array.name}'"
    loops = sorted({d for expression in divisor.index for d in expression.variables()})
    name = fresh_name(builder.nest.arrays, f"{divisor.array.name}_inverse")
    extents = [leaf.chain[d].extent for d in loops]
    inner = [d for d in loops if d >= depth]
    # The new statement has its own scopes for the loops from `depth` on.
    places = {d: d if d < depth else depth + inner.index(d) for d in loops}
    written = ",".join(f"{{{places[d]}}}" for d in loops)
    read = ",".join(e.render(lambda d: f"{{{places[d]}}}") for e in divisor.index)
    heads = "".join(f"{leaf.chain[d].extent} " for d in inner)
    builder.make(
        "insert_op",
        leaf.chain[depth],
        why,
        text=f"{heads}{name}[{written}] = 1 / {divisor.array.name}[{read}]",
        declare=f"{name} {divisor.array.dtype} [{', '.join(map(str, extents))}] heap",
    )
    index = ",".join(f"{{{d}}}" for d in loops)
    builder.make("reciprocal", builder.leaf(identifier), why, array=name, index=index)
