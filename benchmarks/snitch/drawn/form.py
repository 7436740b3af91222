"""A form: one computation as a kernel, as plain C and in NumPy, for any sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Reference: TypeAlias = Callable[[SimpleNamespace], Array | tuple[Array, ...]]
"""The outputs, in order, from the inputs in float64, sizes and numbers, all by name."""


@dataclass(frozen=True)
class Form:
    """One computation for any sizes. Kernel and C share the names of sizes and numbers; `T` is the element type."""

    name: str
    sizes: Mapping[str, tuple[int, int]]
    """Least and greatest value of each size."""
    kernel: str
    """The kernel in the notation, without sizes, numbers and `numerics`."""
    c: str
    """The parameters and the body of the C function. `MAX`, `MIN`, `SQRT` and `ABS` are those of the element type."""
    reference: Reference
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Constants. `ROUND` is the number of the type that rounds a smaller one to an integer when it is added."""
    drawn: str = ""
    """Names of drawn constants, divided by blanks: sixteenths from 1/4 to 3/4, which all types have."""
    derived: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further sizes, as terms of the sizes before."""
    divides: bool = False
    """True if it needs a divider."""
    has_maximum: bool = False
    """True if it computes a maximum or minimum, which may lose NaN (`numerics numbers`)."""
