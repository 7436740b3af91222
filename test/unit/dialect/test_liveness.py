"""Live ranges of buffers."""

from __future__ import annotations

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation

TEXT = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
a f32 [8] heap
b f32 [8] heap
unused f32 [8] heap

8
| a[{0}] = exp(x[{0}])
| a[{0}] = a[{0}] + x[{0}]
8 b[{0}] = x[{0}] * 2
8 y[{0}] = b[{0}] + x[{0}]
"""


def test_ranges() -> None:
    program = Program(parse_notation(TEXT)[0], machine("toy"))
    ranges = {buffer.names[0]: found for buffer, found in program.live_ranges.items()}
    assert {name: (r.first.order, r.last.order) for name, r in ranges.items()} == {
        "x": (0, 3),
        "y": (3, 3),
        "a": (0, 1),
        "b": (2, 3),
    }
    assert ranges["a"].scope is program.nest.scopes[0]
    assert ranges["b"].scope is None
    assert ranges["y"].carried
    assert not ranges["a"].carried
    assert not ranges["a"].overlaps(ranges["b"])
    assert ranges["b"].overlaps(ranges["y"])


PRIVATE = """kernel k(x) -> (y)
x f32 [8, 4] heap
y f32 [8, 4] heap
a f32 [8:N, 4] heap
b f32 [8:N, 4] heap
c f32 [4] heap

8
| 4 a[{0},{1}] = exp(x[{0},{1}])
| 4 y[{0},{1}] = a[{0},{1}] + x[{0},{1}]
| 4 b[{0},{1}] = y[{0},{1}] * 2
| 4 c[{1}] = b[{0},{1}]
| 4 y[{0},{1}] = c[{1}]
"""


def test_values_of_one_iteration_need_no_memory_behind_their_last_use() -> None:
    program = Program(parse_notation(PRIVATE)[0], machine("toy"))
    spans = {buffer.names[0]: found.span for buffer, found in program.live_ranges.items()}
    # What does not depend on the iteration may be needed by the next one.
    assert (spans["a"], spans["b"], spans["c"]) == ((0, 1), (2, 3), (0, 4))
