"""Temporaries in the memory of a later output: less cache traffic."""

from __future__ import annotations

from pdojo.dialect.attributes import Intent, Memory
from pdojo.dialect.rules.lanes import physical_bytes
from pdojo.passes.common.builder import PassBuilder

WHY = "rows exceed the first cache: two arrays in one memory leave more of it to others"


def share_outputs(builder: PassBuilder) -> None:
    """Put temporaries into an output of the same shape if they exceed the first cache, but not half of the second.

    Smaller temporaries stay in the first cache anyway. Larger ones would be written to memory twice, except if all
    arrays fit the last cache.
    """
    machine = builder.game.machine
    if not machine.cache_bytes:
        return
    fits = builder.interface_bytes() <= min(machine.usable_cache, machine.streaming_bytes)
    limit = machine.usable_cache if fits else machine.private_cache // 2
    for name in list(builder.temporaries()):
        array = builder.nest.arrays[name]
        size = physical_bytes(builder.nest, array.buffer)
        is_alone = array.buffer.memory is Memory.HEAP and len(array.buffer.names) == 1
        if is_alone and machine.cache_bytes[0] < size <= limit:
            outputs = (a.name for a in builder.nest.arrays.values() if a.buffer.intent is Intent.OUT)
            any(builder.transact(lambda name=name, other=other: _share(builder, name, other)) for other in outputs)


def _share(builder: PassBuilder, name: str, other: str) -> None:
    """Put an array with all its elements into the memory of another one."""
    reused = [d for d, slots in enumerate(builder.nest.arrays[name].buffer.reuse) if slots]
    for dimension in reused:
        builder.make("materialize_dims", f"{name}:{dimension}", WHY)
    builder.make("share_buffer", name, WHY, **{"with": other})
