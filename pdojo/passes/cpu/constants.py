"""Temporaries that depend on constants only, such as casts and transforms of weights, are computed once, at binding."""

from __future__ import annotations

from math import prod

from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Array
from pdojo.passes.common.builder import PassBuilder

LARGEST = 4
"""Greatest size of a bound temporary, as a multiple of the constants that it is computed from."""
SMALL = 1 << 16
"""Greatest size in bytes of a temporary that is bound whatever it is computed from."""


def bind_temporaries(builder: PassBuilder) -> None:
    """Bind the temporaries that can be bound; one that is much larger than its constants costs more than it saves."""
    if not any(buffer.constant for buffer in builder.nest.buffers):
        return
    for name in list(builder.temporaries()):
        writers = builder.nest.writers[name]
        read = {access.array for leaf in writers for access in leaf.reads if access.array.name != name}
        if size_of(builder.nest.arrays[name]) <= max(SMALL, LARGEST * sum(map(size_of, read))):
            builder.attempt("bind_array", name, "it depends on constants only")


def size_of(array: Array) -> int:
    """Bytes of an array."""
    return prod(array.shape) * byte_width(array.dtype)
