"""Small Snitch programs for tests: a function `main`, streams from their dimensions, issue times from the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pdojo.snitch_sim.assembler import TCDM_BASE, assemble
from pdojo.snitch_sim.simulator import Configuration, Result, simulate

BASE = TCDM_BASE
ON = "csrrsi zero, 1984, 1\n"
OFF = "csrrci zero, 1984, 1\n"
FENCE = "fmv.x.w t2, fa0\nmv zero, t2\n"
"""What the cluster's run-time library calls snrt_fpu_fence."""
RECENT = Configuration()
OLD = Configuration(
    name="snitch-2024", ring=16, nesting=1, waiting_loops=8, crossings=frozenset(), inner_repetition=True
)


def run(body: str, **options: Any) -> Result:
    """Simulate `main` with this body."""
    return simulate(assemble(f"main:\n{body}\nret\n", "t.s"), options.pop("configuration", RECENT), **options)


def stream(
    lane: int,
    dims: Sequence[tuple[int, int]],
    pointer: int,
    *,
    write: bool = False,
    repeat: int = 1,
    register: str = "t1",
) -> str:
    """Configure and start a stream: (extent, stride in bytes) for each dimension, innermost first."""
    lines: list[str] = []
    inner = 0
    for k, (extent, stride) in enumerate(dims):
        lines += [f"li {register}, {extent - 1}", f"scfgwi {register}, {lane + 32 * (2 + k)}"]
        lines += [f"li {register}, {stride - inner}", f"scfgwi {register}, {lane + 32 * (6 + k)}"]
        inner += stride * (extent - 1)
    if repeat > 1:
        lines += [f"li {register}, {repeat - 1}", f"scfgwi {register}, {lane + 32}"]
    place = (28 if write else 24) + len(dims) - 1
    lines += [f"li {register}, {pointer}", f"scfgwi {register}, {lane + 32 * place}"]
    return "\n".join(lines) + "\n"


def loop(trips: int, body: str, register: str = "t0", stagger: str = "0, 0") -> str:
    """A hardware loop."""
    count = len([line for line in body.splitlines() if line.strip()])
    return f"li {register}, {trips - 1}\nfrep.o {register}, {count}, {stagger}\n{body}\n"


Stream = tuple[int, Sequence[tuple[int, int]], int, bool, int]
"""Lane, dimensions (innermost first), pointer, whether it writes, reads of an element."""


def configure(*streams: Stream) -> str:
    """Configuration in which each constant is loaded once, as compilers do; pointers last."""
    registers: dict[int, list[int]] = {}
    pointers: list[tuple[int, int]] = []
    for lane, dims, pointer, writes, repeat in streams:
        inner = 0
        for k, (extent, stride) in enumerate(dims):
            registers.setdefault(extent - 1, []).append(lane + 32 * (2 + k))
            registers.setdefault(stride - inner, []).append(lane + 32 * (6 + k))
            inner += stride * (extent - 1)
        if repeat > 1:
            registers.setdefault(repeat - 1, []).append(lane + 32)
        pointers.append((pointer, lane + 32 * ((28 if writes else 24) + len(dims) - 1)))
    lines: list[str] = []
    for value, targets in registers.items():
        lines += [f"li t1, {value}"] if value else []
        lines += [f"scfgwi {'t1' if value else 'zero'}, {target}" for target in targets]
    for pointer, target in pointers:
        lines += [f"li t1, {pointer}", f"scfgwi t1, {target}"]
    return "\n".join(lines) + "\n"


def gemm(size: int, a: int, b: int, c: int) -> str:
    """snitch_cluster's product of square matrices of doubles: eight results at a time, a loop in a loop."""
    row, blocks = 8 * size, size // 8
    body = configure(
        (0, [(size, 8), (blocks, 0), (size, row)], a, False, 8),
        (1, [(8, 8), (size, row), (blocks, 64), (size, 0)], b, False, 1),
        (2, [(8, 8), (blocks, 64), (size, row)], c, True, 1),
    )
    body += ON + f"li t0, {size * blocks - 1}\nli t2, {size - 3}\nfrep.o t0, 24, 0, 0\n"
    body += "".join(f"fmul.d fs{k}, ft0, ft1\n" for k in range(8)) + "frep.o t2, 8, 0, 0\n"
    body += "".join(f"fmadd.d fs{k}, ft0, ft1, fs{k}\n" for k in range(8))
    return body + "".join(f"fmadd.d ft2, ft0, ft1, fs{k}\n" for k in range(8)) + FENCE + OFF


def issues(body: str, unit: str, name: str, **options: Any) -> list[int]:
    """The cycles in which instructions that begin like this issued."""
    result = run(body, trace=True, **options)
    instructions = result.program.instructions
    return [
        e.cycle for e in result.events if e.unit == unit and not e.cause and instructions[e.index].text.startswith(name)
    ]


def distance(first: str, then: str, unit: str = "core", **options: Any) -> int:
    """Cycles between the issue of two instructions, which are all of the program apart from `ret`."""
    result = run(f"{first}\n{then}", trace=True, **options)
    at: dict[int, int] = {}
    for event in result.events:
        if not event.cause and event.unit == (unit if event.index else options.get("from_unit", unit)):
            at.setdefault(event.index, event.cycle)
    last = max(at)
    return at[last if unit == "fp" else last - 1] - at[0]


def registers(**values: int) -> Mapping[str, int]:
    """Arguments by register."""
    return values
