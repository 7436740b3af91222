"""Gathers and scatters in NumPy, for ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

_ACCUMULATIONS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
Place = tuple[Any, ...]
"""An index of NumPy: arrays of indices for the first axes."""


class GatherElements(OpRun):
    """The elements at indices of an axis, an index for each."""

    op_domain = ""

    def _run(self, x: NDArray[Any], indices: NDArray[Any], axis: int | None = None) -> tuple[NDArray[Any]]:
        return (x[_along(indices, axis or 0)],)


class GatherND(OpRun):
    """The slices at indices of several axes."""

    op_domain = ""

    def _run(self, x: NDArray[Any], indices: NDArray[Any], batch_dims: int | None = None) -> tuple[NDArray[Any]]:
        return (np.asarray(x[_columns(indices, batch_dims or 0)]),)


class ScatterElements(OpRun):
    """The array with single elements at indices replaced or joined."""

    op_domain = ""

    def _run(
        self,
        x: NDArray[Any],
        indices: NDArray[Any],
        updates: NDArray[Any],
        axis: int | None = None,
        reduction: str | None = None,
    ) -> tuple[NDArray[Any]]:
        return (_put(x, _along(indices, axis or 0), updates, reduction),)


class Scatter(ScatterElements):
    """The old name of ScatterElements, which onnx lacks."""


class ScatterND(OpRun):
    """The array with slices at indices replaced or joined."""

    op_domain = ""

    def _run(
        self, x: NDArray[Any], indices: NDArray[Any], updates: NDArray[Any], reduction: str | None = None
    ) -> tuple[NDArray[Any]]:
        return (_put(x, _columns(indices, 0), updates, reduction),)


def _along(indices: NDArray[Any], axis: int) -> Place:
    """The place of each index, which stands for its own place on the axis."""
    place: list[NDArray[Any]] = list(np.indices(indices.shape, sparse=True))
    place[axis] = indices
    return tuple(place)


def _columns(indices: NDArray[Any], batch: int) -> Place:
    """The places of tuples of indices, behind those in a batch."""
    return (*np.indices(indices.shape[:-1], sparse=True)[:batch], *np.moveaxis(indices, -1, 0))


def _put(x: NDArray[Any], place: Place, updates: NDArray[Any], reduction: str | None) -> NDArray[Any]:
    """An array with updates at a place, in their order."""
    found = x.copy()
    if reduction in (None, "none"):
        found[place] = updates
    else:
        _ACCUMULATIONS[reduction].at(found, place, updates)
    return found
