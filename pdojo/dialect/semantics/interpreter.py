"""The reference interpreter: the executable definition of what a kernel computes.

The meaning of a kernel is its result on unfolded arrays, with all scopes in order. `interpret` computes as many
iterations as it can in one NumPy expression (`batched.py`); `interpret_stepwise` runs one statement instance after the
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from pdojo.dialect.attributes import Intent
from pdojo.dialect.indices import with_indices
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.batched import BatchedRun
from pdojo.dialect.semantics.rounding import INTERFACE, Values, from_interface, to_interface
from pdojo.dialect.semantics.stepwise import run_stepwise
from pdojo.dialect.sizes import solve_sizes
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Array, Nest
from pdojo.errors import PdojoError

Storage: TypeAlias = Literal["elements", "cells"]


def interpret(
    kernel: KernelOp | Nest,
    inputs: Mapping[str, Values],
    *,
    seed: int | None = None,
    storage: Storage = "elements",
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Values]:
    """Run a kernel on NumPy arrays; returns new arrays for its `out` and `inout` arrays.

    `inputs` maps names of `in` and `inout` arrays to values, `bf16` as `uint16` bit patterns, `i1` as `bool`. If `seed`
    is None, every scope runs in order; else it permutes the iterations of threaded scopes and runs vector scopes in
    lock step. With storage `cells`, reused dimensions and shared buffers take the memory of a compiled program.
    Unwritten memory holds NaN, or a pattern for integers. `sizes` are the values of sizes that no shape of an input
    determines. Raises PdojoError for inputs that do not fit.
    """
    nest, given = _for_inputs(kernel if isinstance(kernel, Nest) else nest_of(kernel), inputs, sizes)
    return _outputs(nest, BatchedRun(nest, given, seed, cells=storage == "cells").run())


def interpret_stepwise(
    kernel: KernelOp | Nest,
    inputs: Mapping[str, Values],
    *,
    seed: int | None = None,
    storage: Storage = "elements",
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Values]:
    """`interpret`, one statement instance at a time; a seed also interleaves threads.

    Raises PdojoError for programs that are too large for the exact oracle to enumerate.
    """
    nest, given = _for_inputs(kernel if isinstance(kernel, Nest) else nest_of(kernel), inputs, sizes)
    return _outputs(nest, run_stepwise(nest, given, seed, storage))


def _for_inputs(
    nest: Nest, inputs: Mapping[str, Values], sizes: Mapping[str, int] | None
) -> tuple[Nest, dict[str, Values]]:
    """The program for the sizes and indices that inputs determine, and the inputs in their carriers."""
    nest = _for_sizes(nest, inputs, sizes)
    given = _checked(nest, inputs)
    if not nest.index_arrays:
        return nest, given
    indices = {name: np.asarray(inputs[name]) for name in nest.index_arrays}
    return nest_of(with_indices(nest.kernel, indices)), given


def _for_sizes(nest: Nest, inputs: Mapping[str, Values], sizes: Mapping[str, int] | None) -> Nest:
    """The program for the sizes that the shapes of inputs determine, and for the given ones."""
    if not nest.sizes:
        return nest
    extents = {name: array.buffer.extents for name, array in nest.arrays.items()}
    shapes = {name: np.shape(array) for name, array in inputs.items() if name in extents}
    return nest_of(bound(nest.kernel, solve_sizes(nest.name, [*nest.sizes.values()], extents, shapes, sizes or {})))


def _checked(nest: Nest, inputs: Mapping[str, Values]) -> dict[str, Values]:
    """The inputs in their carriers, copied."""
    wanted = {a.name: a for a in nest.arrays.values() if a.intent in (Intent.IN, Intent.INOUT)}
    for name in inputs:
        if name not in wanted:
            known = ", ".join(wanted) or "none"
            raise PdojoError(f"kernel '{nest.name}' has no input array '{name}'; its inputs: {known}")
    return {name: _check(nest, array, inputs) for name, array in wanted.items()}


def _check(nest: Nest, array: Array, inputs: Mapping[str, Values]) -> Values:
    if array.name not in inputs:
        raise PdojoError(f"kernel '{nest.name}': input array '{array.name}' is missing")
    given = np.asarray(inputs[array.name])
    if given.shape != array.shape:
        raise PdojoError(f"kernel '{nest.name}': input array '{array.name}' has shape {given.shape}, not {array.shape}")
    if given.dtype != INTERFACE[array.dtype]:
        raise PdojoError(
            f"kernel '{nest.name}': input array '{array.name}' of type {array.dtype} has NumPy type {given.dtype}, "
            f"not {INTERFACE[array.dtype]}"
        )
    return from_interface(given, array.dtype)


def _outputs(nest: Nest, results: Mapping[str, Values]) -> dict[str, Values]:
    return {
        a.name: to_interface(results[a.name], a.dtype)
        for a in nest.arrays.values()
        if a.intent in (Intent.OUT, Intent.INOUT)
    }
