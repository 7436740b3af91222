"""The hints that pdojo knows, and the form of each."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

NONTEMPORAL = "nontemporal"
"""A plain store that bypasses the caches."""
PREFETCH = "prefetch"
"""A load whose data is prefetched; the value is the distance in bytes."""
AHEAD = "ahead"
"""A load at an entry that a loop chooses, whose data is prefetched so many iterations of the loop ahead."""
STREAMING = "streaming"
"""An access in a grid whose data is used once; it leaves the caches first."""
READONLY = "readonly"
"""A load, in a grid, through the read-only cache; the kernel never writes the array."""
LANE = "lane"
"""The number of the stream register for an access."""
ORDINARY = "ordinary"
"""An access in a streaming region that remains a load or a store."""
LAUNCH_BOUNDS = "launch_bounds"
"""Number of blocks that each multiprocessor should hold at once; a hint of an outermost grid scope."""
PERSISTENT = "persistent"
"""Cache lines that leave the shared cache last, from one launch to the next; a hint of a heap buffer."""

FARTHEST = (1 << 31) - 1
"""The greatest prefetch distance in bytes that fits an instruction."""
MOST_BLOCKS = 32
"""Most blocks that a multiprocessor holds (CUDA programming guide, compute capability 9.0)."""

VALUES = {
    NONTEMPORAL: None,
    PREFETCH: range(1, FARTHEST + 1),
    AHEAD: range(1, FARTHEST + 1),
    STREAMING: None,
    READONLY: None,
    LANE: range(FARTHEST + 1),
    ORDINARY: None,
    LAUNCH_BOUNDS: range(1, MOST_BLOCKS + 1),
    PERSISTENT: None,
}
"""The integers that each hint takes; None for a hint without a value."""


def hint_problem(name: str, value: Attribute) -> str | None:
    """The reason why a hint that pdojo knows cannot have a value; None if it can, and for all other hints."""
    if name not in VALUES:
        return None
    known = VALUES[name]
    if known is None:
        return None if isinstance(value, UnitAttr) else f"hint '{name}' has no value"
    if isa(value, IntegerAttr[IntegerType]) and value.type == i64 and value.value.data in known:
        return None
    return f"hint '{name}' takes an integer from {known[0]} to {known[-1]}: {name}({known[0]})"
