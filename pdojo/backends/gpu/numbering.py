"""Mapping from a thread's number to its loop iterations, and to the thread that stores for its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.backends.gpu.launches import Launch
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.rules.block_threads import threads_of
from pdojo.dialect.view.nest import Scope


@dataclass(frozen=True)
class Digit:
    """`thread mod w mod ... floordiv stride mod extent`, with each w in `within`; extent 0 omits the last `mod`."""

    within: tuple[int, ...] = ()
    stride: int = 1
    extent: int = 0

    @property
    def text(self) -> str:
        """The value in C."""
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
    """The divisors whose successive remainders number the threads inside one iteration of nested thread scopes.

    A stride that is a multiple of the next one is left out: `t % (k * n) % n = t % n`.
    """
    kept: list[int] = []
    for stride in (found.strides[s] for s in reversed(scopes)):
        if not kept or stride % kept[-1]:
            kept.append(stride)
    return tuple(reversed(kept))


def iteration(found: Launch, scope: Scope) -> Digit:
    """The thread's iteration of a thread scope; at least the extent if the thread has none."""
    if scope.mapping is Mapping.WARP:
        return Digit() if found.threads == scope.extent else Digit(extent=scope.extent)
    return Digit(within(found, threads_of(scope.chain[:-1])), found.strides[scope])


def group_around(found: Launch, scope: Scope) -> int:
    """Number of threads that run the node of a thread scope."""
    around = threads_of(scope.chain[:-1])
    return found.strides[around[-1]] if around else found.threads


def is_complete(found: Launch, scope: Scope) -> bool:
    """Whether every thread that reaches a thread scope has an iteration of it."""
    return scope.mapping is Mapping.WARP or scope.extent * found.strides[scope] == group_around(found, scope)


def is_in_warp(found: Launch, chain: Sequence[Scope], warp: int) -> bool:
    """Whether the threads of a group inside a chain of scopes form an aligned part of a warp, and all take part.

    Other threads of the warp may be elsewhere.
    """
    around = threads_of(chain)
    if not around or warp % found.group(chain):
        return False
    lanes = around[-1] if around[-1].mapping is Mapping.WARP else None
    if lanes is not None and any(g.uses(lanes.depth) for s in chain for g in s.guard):
        return False
    return len(within(found, around if lanes is None else around[:-1])) <= 1


def leader(found: Launch, chain: Sequence[Scope]) -> Below | None:
    """The condition of the thread that stores for its group; None if every thread stores."""
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
