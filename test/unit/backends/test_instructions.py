"""Instructions that are slow on some processors of an architecture, and what code has instead."""

from __future__ import annotations

import re

import pytest

from differential.compiled import kernel
from pdojo.backends.llvm.build import module_text
from pdojo.backends.llvm.lowering import lower
from pdojo.backends.llvm.optimize import Processor, described_processor, parse
from pdojo.dialect.machines.registry import machine

ROWS = """
kernel k(x) -> (y)
x f32 [30, 11] heap
y f32 [30, 11] heap

30 2:u 8:v where ({1}*8+{2} < 11) y[{0},{1}*8+{2}] = x[{0},{1}*8+{2}] * 2
"""
BYTES = """
define <16 x i8> @f(<16 x i8> %x) {
  %y = shufflevector <16 x i8> %x, <16 x i8> zeroinitializer, <16 x i32> <i32 0, i32 1, i32 2, i32 16, i32 16, i32 16,
    i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16>
  ret <16 x i8> %y
}
"""


TURNS = """
kernel k(x) -> (y)
x f32 [30, 16] heap
y f32 [30, 8, 2] heap

30
| 8:v y[{0},{1},1] = x[{0},{1}]
| 8:v y[{0},{1},0] = x[{0},{1}+8]
"""


def text(name: str, program: str) -> str:
    """The LLVM IR of a program for a machine."""
    described = machine(name)
    processor = described_processor(described)
    lowered = lower(kernel(program), features=processor.enabled, described=described)
    return module_text(lowered, processor, described)


@pytest.mark.parametrize(("name", "lanes"), [("x86-64-avx2", [8, 2, 1]), ("x86-64-avx512", [8])])
def test_masked_stores_if_the_processor_has_fast_ones(name: str, lanes: list[int]) -> None:
    described = machine(name)
    processor = described_processor(described)
    text = module_text(lower(kernel(ROWS), features=processor.enabled, described=described), processor, described)
    assert [int(n) for n in re.findall(r"store <(\d+) x float>", text)] == lanes
    assert ('call void @"llvm.masked.store' in text) == (name == "x86-64-avx512")


def test_elements_in_turns_are_stored_as_whole_vectors() -> None:
    found = text("x86-64-avx2", TURNS)
    assert len(re.findall("store <8 x float>", found)) == 2
    assert "scatter" not in found


def test_no_instructions_that_the_upper_halves_of_registers_wait_for() -> None:
    described_processor(machine("x86-64-avx2"))
    processor = Processor("x86_64-unknown-linux-gnu", "znver3", "+avx2,+sse4a")
    target = processor.target_machine("full", jit=False)
    found = target.emit_assembly(parse(BYTES))  # pyright: ignore[reportUnknownMemberType]
    assert "extrq" not in found
