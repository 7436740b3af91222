"""A product of odd sizes for a graphics processor: its device code is right, and no longer than that of even sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from differential.device_code import run_fibers
from pdojo.backends.gpu.nvrtc import CudaImage, compile_cuda, disassemble
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

TRACE = Path(__file__).parents[1] / "property" / "traces" / "matmul1000-nvidia-sm90.trace"
TAILS = ("fill_tail", "drop_guard")


def product(rows: int, columns: int, terms: int) -> KernelOp:
    """The product of two matrices, aligned to vectors of four, by the moves of the trace."""
    kernel = parse_notation(
        f"""kernel matmul(a, b) -> (c)
a f32 [{rows}, {terms}] heap align 16
b f32 [{terms}, {columns}] heap align 16
c f32 [{rows}, {columns}] heap align 16
t f32 [{rows}:N, {columns}:N, {terms}:N] stack

{rows} {columns}
| c[{{0}},{{1}}] = 0
| {terms}
| | t[{{0}},{{1}},{{2}}] = a[{{0}},{{2}}] * b[{{2}},{{1}}]
| | c[{{0}},{{1}}] += t[{{0}},{{1}},{{2}}]
"""
    )[0]
    trace = Trace.load(TRACE)
    game = Game(kernel, machine(trace.machine))
    divided = not (rows % 128 or columns % 128 or terms % 16)
    game.apply_all(move for move in trace.moves if not (divided and move.name in TAILS))
    return game.kernel


@pytest.mark.usefixtures("fibers")
@pytest.mark.parametrize("special", [False, True])
def test_the_threads_of_a_block(special: bool) -> None:
    """In all orders of threads; infinities and NaN stay in their rows and columns."""
    rows, columns, terms = 132, 140, 36
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((rows, terms), (terms, columns)))
    if special:
        a[rows - 1], b[:, columns - 1], b[terms - 1, 5] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        wanted: npt.NDArray[Any] = a.astype(np.float64) @ b.astype(np.float64)
    for found in run_fibers(product(rows, columns, terms), {"a": a, "b": b}, described=machine("nvidia-sm90")):
        np.testing.assert_allclose(found["c"], wanted, rtol=0, atol=1e-5)


def image(kernel: KernelOp) -> CudaImage:
    """The machine code of a kernel."""
    try:
        return compile_cuda(device_text(kernel, spelling=CudaSpelling(), machine=machine("nvidia-sm90")).text)
    except MissingTool as missing:
        pytest.skip(str(missing))


def instructions(code: CudaImage) -> int:
    """The number of machine instructions, without padding."""
    found = re.findall(r"/\*[0-9a-f]{4,}\*/ +(?:@!?U?P\d+ +)?(\w+)", disassemble(code.cubin))
    return sum(name != "NOP" for name in found)


def test_the_length_of_the_code() -> None:
    odd, even = image(product(1000, 1000, 1000)), image(product(1024, 1024, 1024))
    (resources,) = odd.kernels.values()
    assert (resources.spill_loads, resources.spill_stores, resources.stack) == (0, 0, 0)
    try:
        lengths = instructions(odd), instructions(even)
    except MissingTool as missing:
        pytest.skip(str(missing))
    assert lengths[0] <= 1.1 * lengths[1]
