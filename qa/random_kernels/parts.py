"""What random kernels are made of: drawing, features, arrays, axes and scopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol, TypeVar

from pdojo.dialect.functions import ACCUMULATIONS, DTYPES, FUNCTIONS
from pdojo.dialect.machine import Machine

T = TypeVar("T")

INSTANCES = 200
"""Instances of a statement, at most, but for those that a tail adds."""


class Choices(Protocol):
    """Drawing: by a random generator here, by hypothesis in the tests."""

    def one(self, options: Sequence[T]) -> T:
        """One of the options."""
        ...

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        ...

    def chance(self, out_of: int = 2) -> bool:
        """True once in `out_of` times."""
        ...


class RandomChoices:
    """Choices of a random generator."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def one(self, options: Sequence[T]) -> T:
        """One of the options."""
        return self._random.choice(options)

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self._random.randint(low, high)

    def chance(self, out_of: int = 2) -> bool:
        """True once in `out_of` times."""
        return self._random.randrange(out_of) == 0


@dataclass(frozen=True)
class Features:
    """What random kernels may contain."""

    dtypes: tuple[str, ...] = tuple(DTYPES)
    extents: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 12)
    stages: int = 4
    """Most nests or groups of nests."""
    mappings: tuple[str, ...] = ("u", "p", "v")
    """`p` goes to a scope inside sequential ones, `v` to innermost ones of 2 or 4 iterations; with `g`, the threaded
    mappings are those of a GPU: a grid, blocks and warps inside it."""
    guards: bool = True
    reuse: bool = True
    share: bool = True
    """Whether arrays of disjoint live ranges may live in one buffer."""
    hints: bool = True
    facts: bool = True
    """Whether kernels may state numerics, machine and alignments."""
    trees: bool = False
    """Whether the threads of a block may accumulate into one cell, as in a reduction tree."""
    functions: frozenset[str] = frozenset(FUNCTIONS)
    accumulations: frozenset[str] = frozenset(ACCUMULATIONS)


CPU = replace(Features(), facts=False)
"""What the moves of a CPU may meet. Without facts: a kernel that forbids a numerics class has fewer moves."""

GPU = replace(CPU, mappings=("u", "v", "g", "b", "w"), trees=True)
"""What the moves of a GPU may meet."""

SNITCH = replace(CPU, mappings=("u", "s", "f"))
"""What the moves of a Snitch core may meet: streams and hardware loops."""


def features_for(machine: Machine) -> Features:
    """What kernels for a machine may contain, by its kind."""
    return GPU if machine.gpu else SNITCH if machine.snitch else CPU


@dataclass(eq=False)
class Array:
    """An array of the kernel, and the nests between which it is used."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    """in, inout, out or temp."""
    reuse: tuple[int, ...]
    """Slots per dimension: 0 one per index, 1 a single one, k a circular buffer."""
    memory: str = "heap"
    home: str = ""
    """The output in whose memory the temporary lives, if any."""
    first_nest: int = 0
    last_nest: int = 0


@dataclass(frozen=True)
class Axis:
    """A value that runs over `range(extent)`: an iteration or an expression over several."""

    text: str
    extent: int
    vector: bool = False

    @property
    def operand(self) -> str:
        """The text as an operand of `*`, `//` and `%`."""
        return self.text if self.text.endswith("}") and self.text.count("{") == 1 else f"({self.text})"


@dataclass
class Loops:
    """The scopes around the statements of one nest."""

    scopes: list[str] = field(default_factory=list[str])
    axes: dict[int, Axis] = field(default_factory=dict[int, Axis])
    """Per dimension of the result."""

    def index(self) -> str:
        """The place of the result that an iteration writes."""
        return ",".join(self.axes[d].text for d in sorted(self.axes))
