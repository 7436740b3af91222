"""The code of a kernel as calls of models see it."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter


class Executable(Protocol):
    """The code of a kernel."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface, in order."""
        ...

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The arguments of the code: arrays of the interface, and constants that are computed once."""
        ...

    @property
    def given(self) -> tuple[int, ...]:
        """The values of sizes that make general code this kernel; () for those of the call."""
        ...

    @property
    def constants(self) -> object | None:
        """The code that computes constants; None if calls compute all."""
        ...

    def bound_constants(self, **named: Any) -> dict[str, NDArray[Any]]:
        """The constants, computed from arrays."""
        ...
