"""When values of a recurrence are known, and sums that add first what is known first."""

from __future__ import annotations

from pdojo.dialect.view.nest import Access, Input, Leaf
from pdojo.passes.common.builder import PassBuilder

_ITERATIONS = 8
"""Iterations after which the order of arrivals stays."""
_SUMS = ("arith.addf", "arith.subf")


def add_latest_last(builder: PassBuilder) -> None:
    """Exchange terms of two sums in loops, so that the one that depends on the iteration before is added last.

    `t = z * c - u; z = x + t` waits for the product, the difference and the sum; `t = x - u; z = z * c + t` waits for
    one multiply-add.
    """
    for identifier in [leaf.id for leaf in builder.nest.leaves if _is_sum(leaf)]:
        builder.transact(lambda i=identifier: _regroup(builder, builder.leaf(i)))


def approach_products(builder: PassBuilder, leaf: Leaf, why: str) -> bool:
    """Move the product that a sum adds directly before it, of two the one that is known last; False without one."""
    products = [one for one in _terms(builder, leaf) if one.function == "arith.mulf"] if _is_sum(leaf) else []
    if not products:
        return False
    known = _arrivals(leaf)
    return _approach(builder, max(products, key=lambda one: (max(known[one.id]), one.order)), leaf, why)


def _regroup(builder: PassBuilder, leaf: Leaf) -> bool:
    """Exchange a term that the iteration before computes with the other term of the sum that uses its sum."""
    why = "what the next iteration waits for is added last"
    earlier, known = _arrivals(leaf, _ITERATIONS - 1), _arrivals(leaf)
    for inner in filter(_is_sum, _terms(builder, leaf)):
        times = known[inner.id]
        (other,) = (
            time
            for value, time in zip(leaf.inputs, known[leaf.id], strict=True)
            if not (isinstance(value, Access) and value.key == inner.output.key)
        )
        term = times.index(max(times))
        is_carried = times[term] > earlier[inner.id][term]
        if is_carried and times[term] > max(other, min(times)):
            return _approach(builder, inner, leaf, why) and builder.attempt("reassociate", leaf, why, term=term)
    return False


def _approach(builder: PassBuilder, before: Leaf, leaf: Leaf, why: str) -> bool:
    """Move a statement and another one that follows it together; False if that is refused."""
    while (after := builder.nest.next_sibling(builder.leaf(before.id))) is not builder.leaf(leaf.id):
        above = builder.nest.previous_sibling(builder.leaf(leaf.id))
        assert after is not None
        assert above is not None
        if not any(builder.attempt("swap_nodes", f"%{node}", why) for node in (before.id, above.id)):
            return False
    return True


def _is_sum(leaf: Leaf) -> bool:
    return leaf.accumulate is None and leaf.function in _SUMS


def _arrivals(leaf: Leaf, iterations: int = _ITERATIONS) -> dict[str, list[int]]:
    """The times at which the inputs of the statements of a loop are known in its last iteration, in operations.

    Keyed by the identifiers of the statements.
    """
    siblings = _siblings(leaf)
    writers = {one.output.array.name: one for one in siblings}
    written: dict[tuple[str, int], int] = {}
    found: dict[str, list[int]] = {}

    def known(value: Input, iteration: int) -> int:
        """When an element is known: after its write, or the last one if all iterations write it."""
        if not isinstance(value, Access) or value.array.name not in writers:
            return 0
        name = value.array.name
        distance = _distance(value, writers[name].output, leaf.chain[-1].depth)
        here = written.get((name, iteration))
        if distance is None:
            return written.get((name, iteration - 1), 0) if here is None else here
        return written.get((name, iteration - distance), 0)

    for iteration in range(iterations):
        for one in siblings:
            found[one.id] = [known(value, iteration) for value in one.inputs]
            old = known(one.output, iteration) if one.accumulate is not None else 0
            is_operation = one.function is not None or one.accumulate is not None
            written[one.output.array.name, iteration] = max([old, *found[one.id]]) + is_operation
    return found


def _distance(read: Access, write: Access, depth: int) -> int | None:
    """The number of iterations from the write of an element to its read; None if that is not constant."""
    found = set[int]()
    for one, other in zip(write.index, read.index, strict=True):
        step, difference = one.coefficient(depth), one - other
        if not difference.is_constant:
            return None
        if step and difference.constant % step == 0:
            found.add(difference.constant // step)
    return found.pop() if len(found) == 1 else None


def _siblings(leaf: Leaf) -> list[Leaf]:
    """The statements of the innermost loop around a statement."""
    return [] if leaf.parent is None else [node for node in leaf.parent.children if isinstance(node, Leaf)]


def _terms(builder: PassBuilder, leaf: Leaf) -> list[Leaf]:
    """Earlier statements of the same loop whose values only a statement reads, once."""
    names = [access.array.name for access in leaf.reads]
    return [
        one
        for one in _siblings(leaf)
        if one.accumulate is None
        and one.order < leaf.order
        and names.count(one.output.array.name) == 1
        and one.output.array.buffer.op is not None
        and builder.nest.readers[one.output.array.name] == [leaf]
        and builder.nest.writers[one.output.array.name] == [one]
    ]
