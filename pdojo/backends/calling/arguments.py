"""The arrays of a call: matched with a kernel's interface, checked, and returned in the caller's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import AnyArray, Parameter, check_overlap, empty_for, parameters_at, view
from pdojo.backends.calling.tensors import are_tensors, is_tensor, tensor_of
from pdojo.dialect.affine import Size
from pdojo.dialect.attributes import Intent
from pdojo.dialect.indices import check_indices
from pdojo.dialect.sizes import solve_sizes
from pdojo.errors import UsageError

Outputs: TypeAlias = Any
"""The array of the only `out` argument, a tuple if there are several, None if there is none."""


@dataclass(slots=True)
class CallArguments:
    """The arrays of one call; `out` arrays that the caller left out are allocated."""

    parameters: Sequence[Parameter]
    views: list[NDArray[Any]]
    """The memory of each array, in the order of the interface."""
    given: Mapping[str, AnyArray]
    are_tensors: bool
    sizes: tuple[int, ...] = ()
    """The values of the kernel's sizes, in order."""

    @staticmethod
    def of(
        kernel: str,
        parameters: Sequence[Parameter],
        arrays: Sequence[AnyArray],
        named: Mapping[str, AnyArray],
        sizes: Sequence[Size] = (),
    ) -> CallArguments:
        """Match arrays with the interface. Raises UsageError, naming the array, if one or an index in it does not fit.

        `named` may also have the values of `sizes` that no shape gives.
        """
        values: dict[str, int] = {}
        if sizes:
            values, _ = sizes_by_shapes(kernel, parameters, arrays, named, sizes)
            named = {name: value for name, value in named.items() if name not in values}
            parameters = parameters_at(parameters, values)
        given = matched(kernel, [p.name for p in parameters], arrays, named)
        missing = [p.name for p in parameters if p.name not in given and p.intent is not Intent.OUT]
        if missing:
            raise UsageError(f"kernel '{kernel}' needs {', '.join(missing)}; only 'out' arrays may be left out")
        tensors = are_tensors(given)
        views = [view(given[p.name], p) if p.name in given else empty_for(p) for p in parameters]
        check_overlap(views, parameters)
        for parameter, array in zip(parameters, views, strict=True):
            if parameter.indices is not None:
                check_indices(kernel, parameter.indices, array, values)
        return CallArguments(parameters, views, given, tensors, tuple(values.values()))

    @property
    def outputs(self) -> Outputs:
        """The `out` arrays: tensors if the caller gave tensors, else NumPy arrays."""
        rows = zip(self.views, self.parameters, strict=True)
        found = [self._output(array, p) for array, p in rows if p.intent is Intent.OUT]
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    def _output(self, array: NDArray[Any], parameter: Parameter) -> AnyArray:
        if not self.are_tensors:
            return array
        given = self.given.get(parameter.name)
        return given if is_tensor(given) else tensor_of(array, parameter.dtype)


def sizes_by_shapes(
    kernel: str,
    parameters: Sequence[Parameter],
    arrays: Sequence[AnyArray],
    named: Mapping[str, AnyArray],
    sizes: Sequence[Size],
) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
    """The values of sizes for the arrays of a call, in order, and the arrays' shapes by name.

    Raises UsageError for a size that no shape and no name gives, and for a value outside of its range.
    """
    known = {size.name: int(named[size.name]) for size in sizes if size.name in named}
    present = matched(kernel, [p.name for p in parameters], arrays, {n: a for n, a in named.items() if n not in known})
    shapes = {name: tuple(np.shape(array)) for name, array in present.items()}
    extents = {p.name: p.extents for p in parameters}
    return solve_sizes(kernel, sizes, extents, shapes, known), shapes


def matched(
    kernel: str, names: Sequence[str], arrays: Sequence[AnyArray], named: Mapping[str, AnyArray]
) -> dict[str, AnyArray]:
    """The arrays of a call by parameter name. Raises UsageError for too many arrays, unknown or repeated names."""
    if len(arrays) > len(names):
        raise UsageError(f"kernel '{kernel}' takes {len(names)} arrays ({', '.join(names)}), not {len(arrays)}")
    given = dict(zip(names, arrays, strict=False))
    for name, array in named.items():
        if name not in names:
            raise UsageError(f"kernel '{kernel}' has no array '{name}'; it has {', '.join(names)}")
        if name in given:
            raise UsageError(f"array '{name}' of kernel '{kernel}' is given twice")
        given[name] = array
    return given
