"""Calls of other libraries, and transfers of their results into the output array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass
class Fresh:
    """A call that returns new memory."""

    function: Callable[..., Any]
    inputs: Sequence[Any]
    output: NDArray[Any]
    result: Any = None

    def __call__(self) -> None:
        """Run the call."""
        self.result = self.function(*self.inputs)

    def finish(self) -> None:
        """Copy the result into the output array."""
        self.output[...] = self.result
        self.result = None


class Into:
    """A call that writes into the output array."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def __call__(self) -> None:
        """Run the call."""
        self._call()

    def finish(self) -> None:
        """Do nothing: the result is in the output array."""
