"""Sixty held-out shapes: realistic sizes that nobody tunes for, drawn at random from ranges.

The ranges and the seed were fixed before any shape was measured, and do not change, so that we cannot prefer shapes
that suit us. `python -m benchmarks.held` prints `held.txt`; `python -m benchmarks.bench --held` measures its workloads.

A size between two numbers is drawn evenly by its logarithm. A draw counts if its work lies within the bounds below, and
if it is new.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from benchmarks.work import Work, work_of
from pdojo.kernels import workload

SEED = 20261127
COUNT = 60
OPERATIONS = (100_000, 2_000_000_000)
"""Least and most operations of a workload."""
BYTES = (64 << 10, 256 << 20)
"""Least and most bytes of a workload's interface arrays."""
SECONDS = (20e-6, 100e-3)
"""Shortest and longest call in seconds, by the nominal rates."""
NOMINAL_OPERATIONS, NOMINAL_BYTES = 50e9, 20e9
"""Operations and bytes per second of a few cores, in round numbers for no particular machine: they only bound the
sizes.
"""


class Odd(NamedTuple):
    """A size in [low, high] that is no multiple of 16."""

    low: int
    high: int

    def draw(self, random: Random) -> int:
        """A size."""
        while True:
            size = Between(self.low, self.high).draw(random)
            if size % 16:
                return size


class Between(NamedTuple):
    """A size in [low, high]."""

    low: int
    high: int

    def draw(self, random: Random) -> int:
        """A size, evenly distributed by its logarithm."""
        return min(self.high, int(self.low * ((self.high + 1) / self.low) ** random.random()))


class OneOf(NamedTuple):
    """One of a few sizes."""

    sizes: tuple[int, ...]

    def draw(self, random: Random) -> int:
        """A size."""
        return self.sizes[int(random.random() * len(self.sizes))]


Size: TypeAlias = Odd | Between | OneOf


class Family(NamedTuple):
    """Workloads of one kernel, or of one of several kernels with the same sizes."""

    shapes: int
    """The number of workloads to draw."""
    kernels: tuple[str, ...]
    sizes: Mapping[str, Size]
    """Sizes in the order of the kernels' files."""


ROWS = Odd(7, 50_000)
IMAGES = Between(1, 16)
IMAGE = Odd(7, 260)
"""Rows or columns of an image."""
FAMILIES: Sequence[Family] = (
    # No dimension is a multiple of a vector, and none dominates.
    Family(2, ("matmul",), {"M": Odd(50, 2000), "K": Odd(50, 2000), "N": Odd(50, 2000)}),
    # Tall: many samples, and few features and outputs.
    Family(1, ("matmul",), {"M": Odd(5000, 200_000), "K": Odd(3, 100), "N": Odd(2, 100)}),
    # Flat: a few tokens times a layer's weights.
    Family(1, ("matmul",), {"M": Odd(2, 20), "K": Odd(300, 6000), "N": Odd(300, 6000)}),
    # Small K: an outer product.
    Family(1, ("matmul",), {"M": Odd(200, 3000), "K": Between(1, 15), "N": Odd(200, 3000)}),
    # Large K: products of long columns, as in the gradients of weights.
    Family(1, ("matmul",), {"M": Odd(3, 150), "K": Odd(5000, 100_000), "N": Odd(3, 150)}),
    # Many small matrices, then a few of a head's size.
    Family(1, ("bmm",), {"B": Between(100, 5000), "M": Odd(3, 40), "K": Odd(3, 40), "N": Odd(3, 40)}),
    Family(1, ("bmm",), {"B": Between(2, 100), "M": Odd(40, 500), "K": Odd(20, 200), "N": Odd(40, 500)}),
    Family(1, ("matmul_bf16",), {"M": Odd(20, 1500), "K": Odd(50, 3000), "N": Odd(50, 3000)}),
    Family(1, ("matmul_i8",), {"M": Odd(20, 1500), "K": Odd(50, 3000), "N": Odd(50, 3000)}),
    Family(1, ("swiglu",), {"B": Between(1, 4), "M": Odd(5, 300), "K": Odd(100, 3000), "N": Odd(100, 3000)}),
    # Heads of lengths that match nobody's block size; self-attention, then attention to another sequence.
    Family(
        2,
        ("attention",),
        {"B": Between(1, 64), "L": Odd(17, 1200), "S": Odd(17, 1200), "D": OneOf((20, 40, 64, 72, 80, 96, 112))},
    ),
    # Rows: short ones (classes), long ones (vocabularies), and layers' widths.
    Family(1, ("softmax",), {"R": Odd(1000, 500_000), "C": Odd(3, 100)}),
    Family(1, ("softmax",), {"R": Odd(1, 500), "C": Odd(5000, 200_000)}),
    Family(1, ("log_softmax",), {"R": ROWS, "C": Odd(10, 60_000)}),
    Family(2, ("layernorm",), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(1, ("rmsnorm",), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(1, ("reducemean",), {"R": Odd(7, 100_000), "C": Odd(7, 100_000)}),
    Family(2, ("add", "mul", "relu"), {"R": Odd(1, 5000), "C": Odd(100, 10_000)}),
    Family(1, ("gelu",), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(1, ("sigmoid", "silu"), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(1, ("batchnorm",), {"N": IMAGES, "C": Odd(3, 500), "H": IMAGE, "W": IMAGE}),
    # A layer in the middle of a network, one with strides, and a first layer.
    Family(1, ("conv",), {"N": IMAGES, "O": Odd(8, 300), "C": Odd(8, 300), "H": IMAGE, "W": IMAGE, "K": OneOf((1, 3))}),
    Family(
        1,
        ("conv",),
        {
            **{"N": IMAGES, "O": Odd(8, 300), "C": Odd(8, 300), "H": IMAGE, "W": IMAGE},
            **{"K": OneOf((3, 5)), "S": OneOf((2,)), "P": OneOf((1,))},
        },
    ),
    Family(
        1,
        ("conv",),
        {
            **{"N": IMAGES, "O": Odd(8, 100), "C": OneOf((1, 3, 4)), "H": Odd(50, 500), "W": Odd(50, 500)},
            **{"K": OneOf((3, 5, 7, 11)), "S": OneOf((1, 2, 4)), "P": OneOf((0, 1, 2, 3))},
        },
    ),
    Family(
        1,
        ("depthwise_conv",),
        {"N": IMAGES, "C": Odd(8, 500), "H": IMAGE, "W": IMAGE, "K": OneOf((3, 5, 7)), "S": OneOf((1, 2))},
    ),
    Family(
        1,
        ("maxpool",),
        {"N": IMAGES, "C": Odd(8, 500), "H": IMAGE, "W": IMAGE, "K": OneOf((2, 3)), "S": OneOf((1, 2, 3))},
    ),
    # Products of transposed operands, of one vector, with a common operand, and of dequantised weights.
    Family(3, ("matmul_nt", "matmul_tn", "matmul_tt"), {"M": Odd(50, 2000), "K": Odd(50, 2000), "N": Odd(50, 2000)}),
    Family(1, ("gemv", "gemv_t"), {"R": Odd(50, 20_000), "C": Odd(50, 20_000)}),
    Family(
        1,
        ("bmm_broadcast_a", "bmm_broadcast_b"),
        {"B": Between(2, 200), "M": Odd(40, 500), "K": Odd(20, 200), "N": Odd(40, 500)},
    ),
    Family(1, ("dequant_matmul",), {"M": Odd(2, 500), "K": Odd(100, 3000), "N": Odd(100, 3000)}),
    Family(1, ("dot",), {"R": ROWS, "C": Odd(10, 10_000)}),
    # Layers in the middle of networks.
    Family(
        2,
        ("conv",),
        {
            **{"N": IMAGES, "O": Odd(8, 300), "C": Odd(8, 300), "H": IMAGE, "W": IMAGE},
            **{"K": OneOf((3,)), "S": OneOf((1,)), "P": OneOf((1,))},
        },
    ),
    Family(
        1,
        ("grouped_conv",),
        {
            **{"N": IMAGES, "O": OneOf((96, 160, 200)), "C": OneOf((96, 160, 200)), "H": IMAGE, "W": IMAGE},
            **{"K": OneOf((3,)), "G": OneOf((2, 4, 8))},
        },
    ),
    Family(
        1,
        ("conv_transpose",),
        {"N": IMAGES, "O": Odd(8, 200), "C": Odd(8, 200), "H": Odd(7, 60), "W": Odd(7, 60), "K": OneOf((2, 3, 4))},
    ),
    Family(
        1,
        ("avgpool", "sumpool"),
        {"N": IMAGES, "C": Odd(8, 500), "H": IMAGE, "W": IMAGE, "K": OneOf((2, 3)), "S": OneOf((1, 2))},
    ),
    # Normalisations over images, over rows with a residual, and over parts of rows.
    Family(
        2,
        ("groupnorm",),
        {"N": IMAGES, "C": OneOf((48, 80, 144)), "H": IMAGE, "W": IMAGE, "G": OneOf((2, 4, 8, 16))},
    ),
    Family(1, ("instancenorm",), {"N": IMAGES, "C": Odd(3, 500), "H": IMAGE, "W": IMAGE}),
    Family(1, ("batchnorm",), {"N": IMAGES, "C": Odd(3, 500), "H": Odd(3, 40), "W": Odd(3, 40)}),
    Family(1, ("residual_layernorm",), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(1, ("causal_softmax",), {"B": Between(1, 200), "L": Odd(17, 1200)}),
    Family(1, ("masked_softmax",), {"R": ROWS, "C": Odd(10, 9000)}),
    Family(1, ("cross_entropy",), {"R": ROWS, "C": Odd(10, 60_000)}),
    # Reductions of columns and of rows, running sums.
    Family(2, ("colsum", "colmean", "colmax"), {"R": Odd(7, 100_000), "C": Odd(7, 100_000)}),
    Family(2, ("reducemax", "reducesum", "argmax"), {"R": Odd(7, 100_000), "C": Odd(7, 100_000)}),
    Family(1, ("cumsum",), {"R": Odd(7, 20_000), "C": Odd(7, 20_000)}),
    Family(1, ("axpy", "batchnorm_folded"), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(
        1,
        ("rotary", "rotary_interleaved"),
        {"B": Between(1, 8), "L": Odd(17, 2000), "H": Between(4, 32), "D": OneOf((40, 64, 80, 96, 128))},
    ),
    # Elementwise.
    Family(2, ("exp", "tanh", "log"), {"R": ROWS, "C": Odd(30, 9000)}),
    Family(1, ("bias_gelu",), {"R": ROWS, "C": Odd(30, 9000)}),
)

FILE = Path(__file__).with_suffix(".txt")


def held_out() -> list[str]:
    """The workloads of `held.txt`."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def text_of(seed: int) -> str:
    """The text of `held.txt` for a seed."""
    return "".join(f"{line}\n" for line in (f"# python -m benchmarks.held, seed {seed}", *draw(seed)))


def draw(seed: int) -> list[str]:
    """The workloads of a seed, in the order of the families."""
    random = Random(seed)
    found: list[str] = []
    for family in FAMILIES:
        wanted = len(found) + family.shapes
        while len(found) < wanted:
            drawn = _draw(family, random)
            if drawn not in found and is_within(work_of(workload(drawn))):
                found.append(drawn)
    return found


def _draw(family: Family, random: Random) -> str:
    """The label of one workload of a family."""
    kernel = family.kernels[int(random.random() * len(family.kernels))]
    sizes = {name: size.draw(random) for name, size in family.sizes.items()}
    # The padding is limited so that no window lies in the padding only.
    if "P" in sizes:
        sizes["P"] = min(sizes["P"], sizes["K"] // 2)
    windows = ("S", "P") if "H" in sizes else ()
    by_name = [f"{name}={sizes.pop(name)}" for name in windows if name in sizes]
    return f"{kernel}:{','.join(['x'.join(map(str, sizes.values())), *by_name])}"


def is_within(work: Work) -> bool:
    """True if a workload is neither too small nor too large to measure."""
    seconds = max(work.operations / NOMINAL_OPERATIONS, work.bytes / NOMINAL_BYTES)
    return all(
        low <= value <= high
        for value, (low, high) in ((work.operations, OPERATIONS), (work.bytes, BYTES), (seconds, SECONDS))
    )


if __name__ == "__main__":
    sys.stdout.write(text_of(SEED))
