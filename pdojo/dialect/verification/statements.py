"""Verification of statements: types, bounds, vectors, asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from functools import partial
from typing import NoReturn

from pdojo.dialect.affine import Expr, IndexArray
from pdojo.dialect.attributes import Intent, Mapping, Memory
from pdojo.dialect.exception import KernelVerifyException, fail
from pdojo.dialect.flow.dependent import dependent_iteration, describe_dependence
from pdojo.dialect.flow.enclosure import guarded_bounds
from pdojo.dialect.flow.integer_sets import bounds_over_domain, domain_constraints, sample, spell, variables
from pdojo.dialect.functions import accumulates, check_types
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.dialect.ops import Swizzle
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access, describe_element, describe_scope
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.storage import granule_numbers


def verify_statement(leaf: Leaf) -> None:
    """Raise `KernelVerifyException` if a statement is malformed, runs out of bounds or depends on itself."""
    if leaf.output.array.intent is Intent.IN:
        fail(leaf.op, f"array '{leaf.output.array.name}' is an input of the kernel and cannot be written")
    dtype = leaf.output.array.dtype
    wrong = check_types(
        leaf.function, [i.array.dtype if isinstance(i, Access) else i.dtype for i in leaf.inputs], dtype
    )
    if wrong is not None:
        fail(leaf.op, f"{wrong} in the op that writes {describe_access(leaf.output)}")
    if leaf.accumulate is not None and not accumulates(leaf.accumulate, dtype):
        fail(leaf.op, f"'{leaf.accumulate}' does not accumulate into {dtype} array '{leaf.output.array.name}'")
    if leaf.contracted and (leaf.accumulate, leaf.function) != ("arith.addf", "arith.mulf"):
        fail(leaf.op, "'fma=' must add a floating-point product: 'x fma= a * b'")
    if leaf.asynchronous and (problem := async_problem(leaf)) is not None:
        fail(leaf.op, f"'async=' of {describe_access(leaf.output)}: {problem}")
    _verify_lookups(leaf)
    for access in leaf.accesses:
        array, described = access.array, partial(describe_access, access)
        for dimension, expression in enumerate(access.index):
            _verify_bounds(leaf, described, array.name, array.buffer.extents, dimension, expression)
        _verify_lanes(leaf, access)
    _verify_independent(leaf)


def _verify_independent(leaf: Leaf) -> None:
    """Check that no statement depends on another iteration of itself; only a statement that reads its array can."""
    if all(access.array is not leaf.output.array for access in leaf.reads):
        return
    found = dependent_iteration(leaf)
    if found is not None:
        raise KernelVerifyException(
            f"dependent iteration is not supported: the statement reads '{leaf.output.array.name}' where another "
            f"iteration writes it ({describe_dependence(leaf, found)})",
            leaf.op,
            found.access,
            "accumulate with += *= max= ..., or write the result to another array",
        )


def _verify_lanes(leaf: Leaf, access: Access) -> None:
    """Check that no vector runs through slots of a folded dimension or splits granules of a swizzled one."""
    for scope in leaf.chain:
        if scope.mapping is Mapping.VECTOR:
            for problem in (folded_lanes(access, scope, access.array.buffer.reuse), swizzled_lanes(access, scope)):
                if problem is not None:
                    fail(leaf.op, problem.text)


def folded_lanes(access: Access, scope: Scope, slots: Sequence[int]) -> Reason | None:
    """The reason why the access cannot be a vector access over `scope` under `slots`; None if it can."""
    if any(count > 1 and e.uses(scope.depth) for e, count in zip(access.index, slots, strict=True)):
        return Reason(f"{describe_access(access)} runs through a folded dimension over {describe_scope(scope)}")
    return None


def swizzled_lanes(access: Access, scope: Scope, swizzles: MappingABC[int, Swizzle] | None = None) -> Reason | None:
    """The reason why `swizzles` (None: the buffer's) forbid a vector access over `scope`; None if they do not."""
    extents = [s.extent for s in scope.chain]
    buffer = access.array.buffer
    for dimension, swizzle in (buffer.swizzles if swizzles is None else swizzles).items():
        granule, by = granule_numbers(access.index, buffer.shape, dimension, swizzle, extents)
        if granule.uses(scope.depth) or by.uses(scope.depth):
            return Reason(f"{describe_access(access)} runs through granules of a swizzle over {describe_scope(scope)}")
    return None


def async_problem(leaf: Leaf) -> Reason | None:
    """The reason why a statement can be an asynchronous copy on no machine; None if it can on some."""
    (source, *others) = leaf.inputs
    plain = leaf.function is None and leaf.accumulate is None and not others
    if not plain or not isinstance(source, Access):
        return Reason("only a plain copy of an array can be asynchronous")
    memories = source.array.buffer.memory, leaf.output.array.buffer.memory
    if memories != (Memory.HEAP, Memory.SHARED):
        return Reason(
            f"it must copy from heap to shared memory, not from {memories[0].value} to {memories[1].value} memory"
        )
    if not any(s.mapping is Mapping.GRID for s in leaf.chain):
        return Reason("only blocks of a grid (a scope ':g' around it) have asynchronous copies")
    return None


def index_bounds(leaf: Leaf, expression: Expr, extent: int) -> tuple[int, int]:
    """Bounds of an index over the statement's domain; the least and the greatest value if a bound exceeds `extent`.

    A statement that never runs is never out of bounds.
    """
    low, high = expression.bounds(leaf.extents)
    if (low >= 0 and high < extent) or (expression.is_linear and not leaf.guards):
        return low, high
    low, high = guarded_bounds(expression, leaf.extents, leaf.guards, 0, extent - 1)
    if low >= 0 and high < extent:
        return low, high
    found = bounds_over_domain(expression, leaf.extents, leaf.guards)
    return (0, extent - 1) if found is None else found


def bounds_within(leaf: Leaf, expression: Expr, extent: Expr) -> tuple[int, int]:
    """`index_bounds` for an extent that may depend on sizes.

    The greatest value is then as far from the greatest extent as the index may be from the present one.
    """
    greatest = extent.bounds(())[1]
    low, high = index_bounds(leaf, expression, greatest)
    if low >= 0 and not extent.is_constant:
        high = index_bounds(leaf, expression - extent + greatest, greatest)[1]
    return low, high


def _verify_lookups(leaf: Leaf) -> None:
    """Check that all tables and arrays of indices have the entries that a statement and its guards look up."""
    for found in lookups_in((*leaf.expressions, *leaf.guards)):
        table = found.table
        if isinstance(table, IndexArray):
            described = partial(describe_element, table.name, found.operands)
            for dimension, expression in enumerate(found.operands):
                _verify_bounds(leaf, described, table.name, table.extents, dimension, expression)
            continue
        extent = len(table.entries)
        low, high = index_bounds(leaf, found.operands[0], extent)
        if low < 0 or high >= extent:
            fail(
                leaf.op,
                f"table '{table.name}' has {extent} entries, but {describe_access(leaf.output)} is computed with "
                f"entries {low} to {high}",
            )


def _verify_bounds(
    leaf: Leaf, describe: Callable[[], str], array: str, extents: Sequence[Expr], dimension: int, expression: Expr
) -> None:
    """Check one index of an access, which messages `describe`, to an array with these extents."""
    sized, extent = extents[dimension], extents[dimension].bounds(())[1]
    low, high = bounds_within(leaf, expression, sized)
    if low >= 0 and high >= extent and not sized.is_constant:
        _fail_beyond(leaf, f"access {describe()}", f"dimension {dimension} of '{array}'", sized, expression, high)
    if low < 0 or high >= extent:
        fail(
            leaf.op,
            f"access {describe()} is out of bounds: dimension {dimension} of '{array}' has extent {extent}, the index "
            f"runs from {low} to {high}",
        )


def _fail_beyond(leaf: Leaf, access: str, dimension: str, extent: Expr, index: Expr, high: int) -> NoReturn:
    """Fail for an index beyond a dimension with sizes, naming sizes; `high` is as far beyond the greatest extent."""
    names, sizes = variables("i", leaf.depth), sizes_in((extent, index, *leaf.guards))
    there = [*domain_constraints(leaf.extents, leaf.guards, names), f"{spell(index - extent, names)} >= 0"]
    places = [spell(size.expression, names) for size in sizes]
    values = variables("n", len(sizes))
    point = sample([*names, *values], [*there, *(f"{v} = {place}" for v, place in zip(values, places, strict=True))])
    assert point is not None, "an index that is out of bounds is so in some iteration"
    at = ", ".join(f"{size.name} = {value}" for size, value in zip(sizes, point[leaf.depth :], strict=True))
    fail(
        leaf.op,
        f"{access} is out of bounds at {at}: {dimension} has extent {extent.render(str)}, the index is up to "
        f"{high - extent.bounds(())[1] + 1} beyond the last element",
    )
