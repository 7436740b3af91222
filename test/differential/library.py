"""Library kernels at sizes that vectors divide, and do not, for tests that run them on real arrays."""

from __future__ import annotations

from random import Random

import numpy as np

from differential.compiled import Arrays
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.functions import is_float
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.semantics.rounding import from_interface
from pdojo.dialect.view.build import nest_of
from pdojo.errors import NotationError
from pdojo.kernels import Workload, workload

_INSTANCES = 60_000
_TOLERANCE = {"f16": 4e-3, "bf16": 3e-2}


def library_kernel(name: str, seed: int) -> KernelOp:
    """A library kernel at random sizes up to 80, some of which vectors divide."""
    random = Random(seed)
    own = workload(name).sizes
    for attempt in range(1000):
        # Ever smaller, so that this ends. What is small by default (a stride, a padding) stays so.
        most = max(3, 80 - attempt)
        given = {n: random.randint(min(default, 1), min(most, default)) for n, default in own.items()}
        given = {n: size // 16 * 16 if size > 16 and random.random() < 0.4 else size for n, size in given.items()}
        try:
            kernel = Workload(name, tuple(given.items())).instantiate()
        except NotationError:
            # No program at these sizes: a window larger than its image, half of an odd size.
            continue
        if count_instances(nest_of(kernel)) <= _INSTANCES:
            return kernel
    raise AssertionError(name)


def small(name: str) -> KernelOp:
    """A library kernel at the smallest sizes of at least 3 that have a program."""
    own = workload(name).sizes
    for size in range(3, 20):
        try:
            return Workload(name, tuple((n, min(default, size)) for n, default in own.items())).instantiate()
        except NotationError:
            continue
    raise AssertionError(name)


def close(found: Arrays, wanted: Arrays, program: KernelOp) -> None:
    """Equal up to the rounding of sums in another order, and of functions that are approximated."""
    for parameter in parameters_of(nest_of(program)):
        if not parameter.written:
            continue
        left, right, dtype = found[parameter.name], wanted[parameter.name], parameter.dtype
        if not is_float(dtype):
            assert np.array_equal(left, right), parameter.name
            continue
        left, right = (from_interface(v, dtype).astype(np.float64) for v in (left, right))
        step = _TOLERANCE.get(dtype, 1e-4)
        # Sums of large terms may be small.
        size = np.abs(right, where=np.isfinite(right), out=np.ones_like(right)).max(initial=1)
        assert np.allclose(left, right, step, step * size / 10, equal_nan=True), parameter.name
