"""The sizes of a call: those that the shapes of its arrays determine, and those that callers give by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pdojo.backends.calling.arrays import Parameter
from pdojo.dialect.affine import Expr, Size, with_sizes
from pdojo.errors import UsageError


def sizes_of_call(
    kernel: str,
    sizes: Sequence[Size],
    parameters: Sequence[Parameter],
    shapes: Mapping[str, Sequence[int]],
    given: Mapping[str, int],
) -> dict[str, int]:
    """The value of each size; `shapes` are those of the arrays that the caller gave, by name.

    Raises UsageError for a size that neither a shape nor the caller gives, and for a value outside of its range.
    """
    found = dict(given)
    for parameter in parameters:
        for extent, length in zip(parameter.extents, shapes.get(parameter.name, ()), strict=False):
            match extent:
                case Expr(constant, ((Size() as size, factor),)) if size.name not in found:
                    found[size.name] = (length - constant) // factor * size.step
                case _:
                    pass
    for size in sizes:
        if size.name not in found:
            raise UsageError(f"kernel '{kernel}' needs its size {size.name}, which no shape gives: {size.name}=...")
        value = found[size.name]
        if not size.low <= value <= size.high or value % size.step:
            known = f"{size.low} to {size.high}" + f", a multiple of {size.step}" * (size.step > 1)
            raise UsageError(f"the size {size.name} of kernel '{kernel}' is {known}, not {value}")
    return {size.name: found[size.name] for size in sizes}


def for_sizes(parameters: Sequence[Parameter], values: Mapping[str, int]) -> tuple[Parameter, ...]:
    """The interface for given sizes."""
    return tuple(replace(p, shape=_shape(p, values)) if p.extents else p for p in parameters)


def _shape(parameter: Parameter, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([with_sizes(extent, values).constant for extent in parameter.extents])
