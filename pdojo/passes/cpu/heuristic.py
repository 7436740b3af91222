"""The heuristic pass for CPUs: a trace from the structure of the program and the machine description.

It takes shorter forms of functions, simplifies loops (`loops.py`), turns shared divisors into reciprocals
(`reciprocals.py`) and splits rows under strided windows (`windows.py`). Contractions get register tiles
(`contraction.py`) or the machine's dot products (`dots.py`); statements that depend on constants only are computed at
binding (`constants.py`). For everything else it fuses the outer loops
(`fusion.py`); gives every statement its own innermost vector loop along contiguous memory, with several accumulators
for reductions, and fuses the loops over vectors, so that intermediate values stay in registers (`vectors.py`); reuses
memory, also of outputs (`output_sharing.py`); parallelises the loops that balance best (`threads.py`); unrolls; and
hints non-temporal stores for outputs that exceed the caches (`streams.py`).
"""

from __future__ import annotations

from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.greedy import place_buffers
from pdojo.passes.common.loops import drop_unit_loops, flatten, order_terms, unfold
from pdojo.passes.common.output_sharing import share_outputs
from pdojo.passes.common.reciprocals import invert_numbers, share_reciprocals
from pdojo.passes.cpu.columns import join_terms, sum_columns
from pdojo.passes.cpu.constants import bind_temporaries
from pdojo.passes.cpu.contraction import tile_contractions
from pdojo.passes.cpu.dots import use_dot_units
from pdojo.passes.cpu.fusion import fuse_outer, inline_products
from pdojo.passes.cpu.narrow import expand_sums
from pdojo.passes.cpu.panels import panel_columns
from pdojo.passes.cpu.recurrences import join_recurrences
from pdojo.passes.cpu.streams import join_rows, part_streams, stream
from pdojo.passes.cpu.tall import split_tall
from pdojo.passes.cpu.threads import share_work
from pdojo.passes.cpu.vectors import part_temporaries, shrink_temporaries, unroll_groups, vectorize_statements
from pdojo.passes.cpu.windows import part_windows


def heuristic(builder: PassBuilder) -> None:
    """Tune for a CPU by general rules; no kernel gets special treatment."""
    inline_products(builder)
    builder.exhaust(lambda: builder.nest.leaves, "contract", "a fused multiply-add is one instruction")
    builder.exhaust(lambda: builder.nest.leaves, "approximate", "a shorter form of the function has fewer instructions")
    unfold(builder)
    drop_unit_loops(builder)
    order_terms(builder)
    flatten(builder)
    share_reciprocals(builder)
    invert_numbers(builder)
    bind_temporaries(builder)
    use_dot_units(builder)
    part_windows(builder)
    by_panels = panel_columns(builder)
    by_columns = sum_columns(builder, by_panels)
    split_tall(builder)
    tile_contractions(builder)
    expand_sums(builder)
    fuse_outer(builder)
    vectorize_statements(builder)
    join_rows(builder)
    join_recurrences(builder)
    part_temporaries(builder)
    join_terms(builder, by_columns | by_panels)
    shrink_temporaries(builder)
    share_outputs(builder)
    part_streams(builder)
    share_work(builder)
    unroll_groups(builder)
    place_buffers(builder)
    stream(builder)
