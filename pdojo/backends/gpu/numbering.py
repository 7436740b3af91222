"""What the number of a thread says: the iterations it runs, and whether it is the one that stores for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.backends.gpu.launches import Launch
from pdojo.dialect.analysis.block_threads import threads_of
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Scope


@dataclass(frozen=True)
class Digit:
    """`thread mod w mod ... floordiv stride mod extent`, w from `within`; an extent of 0 takes no remainder."""

    within: tuple[int, ...] = ()
    stride: int = 1
    extent: int = 0

    @property
    def text(self) -> str:
        """The digit in C."""
        remainders = "".join(f" % {width}" for width in self.within)
        quotient = f" / {self.stride}" if self.stride > 1 else ""
        return f"thread{remainders}{quotient}" + (f" % {self.extent}" if self.extent else "")


@dataclass(frozen=True)
class Below:
    """The condition `digit < bound`."""

    digit: Digit
    bound: int

    @property
    def text(self) -> str:
        """The condition in C."""
        return f"{self.digit.text} == 0" if self.bound == 1 else f"{self.digit.text} < {self.bound}"


def within(found: Launch, scopes: Sequence[Scope]) -> tuple[int, ...]:
    """The divisors whose remainders, one after the other, number the threads of one iteration of nested thread scopes.

    A stride that is a multiple of the next one is left out: `t % (k * n) % n = t % n`.
    """
    kept: list[int] = []
    for stride in (found.strides[s] for s in reversed(scopes)):
        if not kept or stride % kept[-1]:
            kept.append(stride)
    return tuple(reversed(kept))


def iteration(found: Launch, scope: Scope) -> Digit:
    """The iteration of a thread scope that a thread runs; beyond the extent if it runs none."""
    if scope.mapping is Mapping.WARP:
        return Digit() if found.threads == scope.extent else Digit(extent=scope.extent)
    return Digit(within(found, threads_of(scope.chain[:-1])), found.strides[scope])


def group_around(found: Launch, scope: Scope) -> int:
    """How many threads run the node that a thread scope is."""
    around = threads_of(scope.chain[:-1])
    return found.strides[around[-1]] if around else found.threads


def is_complete(found: Launch, scope: Scope) -> bool:
    """Whether every thread that comes to a thread scope has an iteration of it."""
    return scope.mapping is Mapping.WARP or scope.extent * found.strides[scope] == group_around(found, scope)


def is_in_warp(found: Launch, chain: Sequence[Scope], warp: int) -> bool:
    """Whether the threads that run what is inside of a chain together are an aligned part of a warp, and all run it.

    The others of their warp may be elsewhere.
    """
    around = threads_of(chain)
    if not around or warp % found.group(chain):
        return False
    lanes = around[-1] if around[-1].mapping is Mapping.WARP else None
    if lanes is not None and any(g.uses(lanes.depth) for s in chain for g in s.guard):
        return False
    return len(within(found, around if lanes is None else around[:-1])) <= 1


def leader(found: Launch, chain: Sequence[Scope]) -> Below | None:
    """The one thread that stores for its group; None if every thread stores."""
    group = found.group(chain)
    around = threads_of(chain)
    if not around:
        return Below(Digit(), 1) if group > 1 else None
    innermost = around[-1]
    if innermost.mapping is Mapping.BLOCK:
        return Below(Digit(within(found, around)), 1) if group > 1 else None
    if group_around(found, innermost) == innermost.extent:
        return None
    return Below(Digit(within(found, around[:-1])), innermost.extent)
