"""A measuring program: it fills the TCDM, calls the kernel, reads `mcycle`, compares memory, prints.

It communicates with the host like programs of snitch_cluster (fesvr's HTIF: `tohost`, `fromhost`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.snitch_sim.assembler.program import TCDM_BASE

DATA_BASE = 0x8008_0000
"""The start of the harness's data, which follow the instructions."""
TOHOST = DATA_BASE
FROMHOST = DATA_BASE + 64
CYCLES = DATA_BASE + 128
"""The address of the word that receives the result."""
_DIFFERENCES = DATA_BASE + 136
_START = DATA_BASE + 144
_ROUND = DATA_BASE + 152
_SYSCALL = DATA_BASE + 192
_BUFFER = DATA_BASE + 256
IMAGE = DATA_BASE + 512
ENTRY = ".pdojo.start"
_COMPARED = ("lw t3, 0(t0)", "lw t5, 0(t1)", "sub t3, t3, t5", "snez t3, t3", "add t4, t4, t3")
"""Adds one to t4 if a word of memory is not the expected one."""


@dataclass(frozen=True)
class Harness:
    """The harness as text and data."""

    text: str
    data: bytes
    """Memory contents from address DATA_BASE on."""
    symbols: dict[str, int]


def harness(entry: str, arguments: Sequence[int], image: bytes, expected: bytes, stack: int) -> Harness:
    """Code that calls `entry` twice on memory that begins with `image`, and measures the second, warm call.

    `expected` is the beginning of the memory after the calls. Both have a multiple of 4 bytes.
    """
    data = bytes(IMAGE - DATA_BASE) + image + expected
    load = "\n".join(f"  li a{k}, {value & 0xFFFFFFFF}" for k, value in enumerate(arguments))
    text = f"""
.text
{ENTRY}:
  csrr t0, mhartid
  bnez t0, .pdojo.sleep
  li t0, {_ROUND}
  li t1, 2
  sw t1, 0(t0)
.pdojo.round:
{_loop("copy", IMAGE, TCDM_BASE, TCDM_BASE + len(image), "lw t3, 0(t0)", "sw t3, 0(t1)")}
  fence
  li sp, {stack}
{load}
  li t1, {_START}
  csrr t0, mcycle
  sw t0, 0(t1)
  call {entry}
  fmv.x.w t0, fa0
  mv zero, t0
  csrr t0, mcycle
  li t1, {_START}
  lw t2, 0(t1)
  sub t0, t0, t2
  li t1, {CYCLES}
  sw t0, 0(t1)
  li t0, {_ROUND}
  lw t1, 0(t0)
  addi t1, t1, -1
  sw t1, 0(t0)
  bnez t1, .pdojo.round
  li t4, 0
{_loop("compare", IMAGE + len(image), TCDM_BASE, TCDM_BASE + len(expected), *_COMPARED)}
  li t0, {_DIFFERENCES}
  sw t4, 0(t0)
  li t0, {CYCLES}
  lw a0, 0(t0)
{_say("cycles: ")}
  li t0, {_DIFFERENCES}
  lw a0, 0(t0)
{_say("differences: ")}
  li t0, {TOHOST}
  li t1, 1
  sw zero, 4(t0)
  sw t1, 0(t0)
.pdojo.sleep:
  wfi
  j .pdojo.sleep
{_PRINT}
"""
    return Harness(text, data, {"tohost": TOHOST, "fromhost": FROMHOST, "pdojo_cycles": CYCLES})


def _loop(name: str, source: int, first: int, end: int, *body: str) -> str:
    inner = "\n".join(f"  {line}" for line in body)
    return f"""  li t0, {source}
  li t1, {first}
  li t2, {end}
  bgeu t1, t2, .pdojo.{name}.end
.pdojo.{name}:
{inner}
  addi t0, t0, 4
  addi t1, t1, 4
  bltu t1, t2, .pdojo.{name}
.pdojo.{name}.end:"""


def _say(prefix: str) -> str:
    """Code that prints a line with the prefix and a0."""
    store = "\n".join(f"  li t1, {ord(c)}\n  sb t1, {k}(t0)" for k, c in enumerate(prefix))
    return f"""  li t0, {_BUFFER}
{store}
  addi t0, t0, {len(prefix)}
  call .pdojo.print"""


# Write a0 in decimal and a line feed at t0, and let the host print the buffer (system call 64, write, to 1).
_PRINT = f"""
.pdojo.print:
  li t1, 10
  li t2, 1
.pdojo.scale:
  divu t3, a0, t2
  bltu t3, t1, .pdojo.digit
  mul t2, t2, t1
  j .pdojo.scale
.pdojo.digit:
  divu t3, a0, t2
  addi t4, t3, 48
  sb t4, 0(t0)
  addi t0, t0, 1
  mul t3, t3, t2
  sub a0, a0, t3
  divu t2, t2, t1
  bnez t2, .pdojo.digit
  sb t1, 0(t0)
  li t1, {_BUFFER}
  addi t0, t0, 1
  sub t0, t0, t1
  li t2, {_SYSCALL}
  li t3, 64
  sw t3, 0(t2)
  li t3, 1
  sw t3, 8(t2)
  sw t1, 16(t2)
  sw t0, 24(t2)
  fence
  li t1, {TOHOST}
  sw zero, 4(t1)
  sw t2, 0(t1)
  li t1, {FROMHOST}
.pdojo.answer:
  lw t0, 0(t1)
  beqz t0, .pdojo.answer
  sw zero, 0(t1)
  ret
"""
