"""Ranges of sizes and of indices, and values of sizes: by the shapes of arrays, or given by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from pdojo.dialect.affine import Expr, Extents, IndexArray, Size, const, var
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.errors import UsageError

MOST_TRIES = 64
"""Most values of a size that are tried to find one at which guards hold."""


def solve_sizes(
    kernel: str,
    sizes: Sequence[Size],
    extents: Mapping[str, Sequence[Expr]],
    shapes: Mapping[str, Sequence[int]],
    given: Mapping[str, int],
) -> dict[str, int]:
    """The value of each size, in the order of `sizes`.

    `extents` and `shapes` are by array; an array without a shape determines nothing, and `given` goes before shapes.
    Raises UsageError for a size that nothing determines, and for a value outside of its range.
    """
    found = {size.name: (size.low, "") for size in sizes if size.low == size.high}
    found.update({name: (value, "") for name, value in given.items()})
    for name, shape in shapes.items():
        for dimension, (extent, length) in enumerate(zip(extents[name], shape, strict=False)):
            match extent:
                case Expr(constant, ((Size() as size, factor),)) if size.name not in found:
                    value, rest = divmod((length - constant) * size.step, factor)
                    place = f"dimension {dimension} of array '{name}'"
                    if rest:
                        raise UsageError(f"kernel '{kernel}': {place} is {extent.render(str)}, which is never {length}")
                    found[size.name] = value, f", by {place}"
                case _:
                    pass
    for size in sizes:
        if size.name not in found:
            raise UsageError(f"kernel '{kernel}' needs its size {size.name}, which no shape gives: {size.name}=...")
        value, source = found[size.name]
        if (problem := value_problem(size, value)) is not None:
            raise UsageError(f"kernel '{kernel}': {problem}{source}")
    return {size.name: found[size.name][0] for size in sizes}


def value_problem(size: Size, value: object) -> str | None:
    """The reason why a size cannot have a value; None if it can."""
    if isinstance(value, int) and size.low <= value <= size.high and not value % size.step:
        return None
    known = f"{size.low} to {size.high}" + f", a multiple of {size.step}" * (size.step > 1)
    return f"the size {size.name} is {known}, not {value}"


def probes(sizes: Sequence[Size]) -> Iterator[dict[str, int]]:
    """Values at which programs are compared: all least ones, all a little greater, and all greatest ones."""
    yield {size.name: size.low for size in sizes}
    yield {size.name: min(size.low + 3 * size.step, size.high) for size in sizes}
    yield {size.name: size.high for size in sizes}


@lru_cache(maxsize=1 << 12)
def telling_sizes(guards: frozenset[Expr]) -> dict[Size, int]:
    """Sizes at which many guards hold in the first two iterations of scopes, or in the first one: the greatest of few.

    What goes wrong in a statement goes wrong where it runs.
    """
    found: dict[Size, int] = {}
    own: dict[Size, list[Expr]] = {}
    for guard in guards:
        if len(sizes := sizes_in([guard])) == 1 and not lookups_in([guard]):
            own.setdefault(sizes[0], []).append(guard)
    for size, about in own.items():
        values = range(size.high, size.low - 1, -size.step)[:MOST_TRIES]
        deepest = max((max(guard.variables(), default=0) for guard in about), default=0)
        tries = ((value, [k] * (deepest + 1)) for k in (1, 0) for value in values)
        found[size] = next(
            (value for value, at in tries if all(guard.evaluate(at, {size: value}) >= 0 for guard in about)), size.high
        )
    return found


def spelled(values: Mapping[str, int]) -> str:
    """Values of sizes for people: `N = 4, M = 8`."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def shape_for(extents: Sequence[Expr], values: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array for given sizes."""
    return tuple([with_sizes(extent, values).constant for extent in extents])


def with_sizes(expression: Expr, values: Mapping[str, int], extents: Extents = ()) -> Expr:
    """The expression for given values of sizes, by name; other sizes stay."""
    total = const(expression.constant)
    for atom, factor in expression.terms:
        if isinstance(atom, Size) and atom.name in values:
            part = const(values[atom.name] // atom.step)
        elif isinstance(atom, int):
            part = var(atom)
        else:
            part = atom.with_operands([with_sizes(e, values, extents) for e in atom.operands], extents)
        total = total + part * factor
    return total


def size_problem(size: Size) -> str | None:
    """The reason why a size is malformed; None if it is not."""
    if size.step < 1:
        return f"a size is a multiple of at least 1, not of {size.step}"
    if size.low < 1 or size.high < size.low:
        return f"a size runs from at least 1 to a value that is not less, not from {size.low} to {size.high}"
    if size.low % size.step or size.high % size.step:
        return f"the ends of the range of '{size.name}' are multiples of {size.step}"
    return None


def range_problem(indices: IndexArray) -> str | None:
    """The reason why the range of an array of indices is malformed; None if it is not."""
    if indices.low < 0 or (indices.last - indices.low).bounds(())[0] < 0:
        spelled = f"{indices.low} to {indices.last.render(str)}"
        return f"indices of '{indices.name}' run from at least 0 to a value that is not less, not from {spelled}"
    return None
