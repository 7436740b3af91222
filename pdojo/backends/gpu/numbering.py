"""What the number of a thread says: the iterations it runs, and whether it is the one that stores for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.backends.gpu.launches import Launch, threads_of
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Scope


@dataclass(frozen=True)
class Digit:
    """`thread mod within floordiv stride mod extent`; a divisor of 0 takes no remainder."""

    within: int = 0
    stride: int = 1
    extent: int = 0

    @property
    def text(self) -> str:
        """The digit in C."""
        remainder = f" % {self.within}" if self.within else ""
        quotient = f" / {self.stride}" if self.stride > 1 else ""
        return f"thread{remainder}{quotient}" + (f" % {self.extent}" if self.extent else "")


@dataclass(frozen=True)
class Below:
    """The condition `digit < bound`."""

    digit: Digit
    bound: int

    @property
    def text(self) -> str:
        """The condition in C."""
        return f"{self.digit.text} == 0" if self.bound == 1 else f"{self.digit.text} < {self.bound}"


def iteration(found: Launch, scope: Scope) -> Digit:
    """The iteration of a thread scope that a thread runs; beyond the extent if it runs none."""
    if scope.mapping is Mapping.WARP:
        return Digit() if found.threads == scope.extent else Digit(extent=scope.extent)
    around = threads_of(scope.chain[:-1])
    return Digit(found.strides[around[-1]] if around else 0, found.strides[scope])


def group_around(found: Launch, scope: Scope) -> int:
    """How many threads run the node that a thread scope is."""
    around = threads_of(scope.chain[:-1])
    return found.strides[around[-1]] if around else found.threads


def is_complete(found: Launch, scope: Scope) -> bool:
    """Whether every thread that comes to a thread scope has an iteration of it."""
    return scope.mapping is Mapping.WARP or scope.extent * found.strides[scope] == group_around(found, scope)


def partly_run(found: Launch, chain: Sequence[Scope]) -> list[Scope]:
    """The thread scopes of a chain of which some threads do not run what is inside of the chain."""
    guards = [g for s in chain for g in s.guard]
    around = threads_of(chain)
    return [s for s in around if s.guard or any(g.uses(s.depth) for g in guards) or not is_complete(found, s)]


def leader(found: Launch, chain: Sequence[Scope]) -> Below | None:
    """The one thread that stores for its group; None if every thread stores."""
    group = found.group(chain)
    around = threads_of(chain)
    if not around:
        return Below(Digit(), 1) if group > 1 else None
    innermost = around[-1]
    if innermost.mapping is Mapping.BLOCK:
        return Below(Digit(within=group), 1) if group > 1 else None
    whole = group_around(found, innermost)
    if whole == innermost.extent:
        return None
    return Below(Digit(within=whole if len(around) > 1 else 0), innermost.extent)
