"""Kinds of machine: the expert passes of each, and its cost model.

A kind has the name of the machine's backend. It is a folder here, or an entry point of the group `pdojo.kinds`
(`registry.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest

if TYPE_CHECKING:
    from pdojo.passes.common.builder import PassBuilder
    from pdojo.transforms.game import Game

ExpertPass: TypeAlias = "Callable[[PassBuilder], None]"
"""Makes moves; it may leave questions open (`PassBuilder.choices`), whose answers are raced."""


class Estimate(Protocol):
    """An estimated cost: a dataclass, whose other fields are shown as its parts."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def cycles(self) -> float:
        """Cycles of one call."""
        ...


@dataclass(frozen=True)
class CostModel:
    """Estimates of costs."""

    estimate: Callable[[Nest, Machine], Estimate | None]
    """The cost of one call; None for programs outside of the model."""
    version: int
    """The version of the model: costs of other versions are not comparable."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something slow in a program."""

    kind: str
    """The class of findings to which it belongs, in a few words."""
    statement: str
    """The location of the statement, or of the first statement of the nest."""
    share: float
    """The part of the estimated work of the statement or the nest."""
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.statement}, {self.share:.0%} of the work: {self.detail}"


@dataclass(frozen=True)
class MachineKind:
    """Tuning for a kind of machine."""

    passes: Mapping[str, Callable[[], ExpertPass]]
    """Expert passes by name, weakest first; each is imported when it is needed (`pdojo.dialect.plugins.lazy`)."""
    model: Callable[[], CostModel] | None = None
    """Imports the cost model; None if there is none."""
    versions: Callable[[], Callable[[KernelOp], list[dict[str, range]]]] | None = None
    """Imports the function that gives the parts of the ranges of a kernel's sizes that get programs of their own."""
    audit: Callable[[], Callable[[Game], list[Finding]]] | None = None
    """Imports the function that finds what is slow in a program, the largest part of the work first."""
