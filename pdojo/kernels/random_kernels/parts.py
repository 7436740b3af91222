"""Parts of random kernels: choices, features, arrays, axes and scopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from pdojo.dialect.functions import ACCUMULATIONS, DTYPES
from pdojo.dialect.machines.machine import Machine
from pdojo.math.functions import FUNCTIONS

T = TypeVar("T")

INSTANCES = 200
"""Greatest number of instances of a statement, not counting a tail."""


class Choices:
    """Choices by a random generator: Python's here, hypothesis' in the tests."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def one(self, options: Sequence[T]) -> T:
        """One of the options."""
        return self._random.choice(options)

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self._random.randint(low, high)

    def chance(self, out_of: int = 2) -> bool:
        """True with probability 1 / `out_of`."""
        return self._random.randrange(out_of) == 0


@dataclass(frozen=True)
class Features:
    """Permitted contents of random kernels."""

    dtypes: tuple[str, ...] = tuple(DTYPES)
    extents: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 12)
    stages: int = 4
    """Greatest number of nests or groups of nests."""
    mappings: tuple[str, ...] = ("u", "p", "v")
    """`p` maps a scope inside sequential ones, `v` innermost ones of 2 or 4 iterations; with `g`, the threaded mappings
    are a GPU's: a grid, with blocks and warps inside it."""
    guards: bool = True
    reuse: bool = True
    share: bool = True
    """True if arrays of disjoint live ranges may share a buffer."""
    hints: bool = True
    facts: bool = True
    """True if kernels may state numerics, machine and alignments."""
    trees: bool = False
    """True if the threads of a block may accumulate into one cell as a reduction tree."""
    functions: frozenset[str] = frozenset(FUNCTIONS)
    accumulations: frozenset[str] = frozenset(ACCUMULATIONS)


CPU = replace(Features(), facts=False)
"""Features for the moves of a CPU, without facts, since forbidding a numerics class leaves fewer moves."""

GPU = replace(CPU, mappings=("u", "v", "g", "b", "w"), trees=True)
"""Features for the moves of a GPU."""

SNITCH = replace(CPU, mappings=("u", "v", "s", "f"))
"""Features for the moves of a Snitch core: streams, hardware loops and packed registers."""


def features_for(machine: Machine) -> Features:
    """The features for a machine, by its kind."""
    return GPU if machine.gpu else SNITCH if machine.snitch else CPU


@dataclass(eq=False)
class Array:
    """An array of the kernel, with the first and last nest that uses it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    """`in`, `inout`, `out` or `temp`."""
    reuse: tuple[int, ...]
    """Slots per dimension: 0 for one per index, 1 for a single one, k for a circular buffer."""
    memory: str = "heap"
    home: str = ""
    """The output whose memory holds the temporary; '' if it has its own."""
    first_nest: int = 0
    last_nest: int = 0


@dataclass(frozen=True)
class Axis:
    """A value over `range(extent)`: an induction variable or an expression of several."""

    text: str
    extent: int
    vector: bool = False

    @property
    def operand(self) -> str:
        """The text in the form of an operand of `*`, `//` and `%`."""
        return self.text if self.text.endswith("}") and self.text.count("{") == 1 else f"({self.text})"


@dataclass
class Loops:
    """The scopes around a nest's statements."""

    scopes: list[str] = field(default_factory=list[str])
    axes: dict[int, Axis] = field(default_factory=dict[int, Axis])
    """Axes by dimension of the result."""

    def index(self) -> str:
        """The index of the result's element that an iteration writes."""
        return ",".join(self.axes[d].text for d in sorted(self.axes))
