"""Sixty held-out shapes: realistic sizes that nobody tunes for, drawn at random from ranges.

The ranges and the seed were fixed before any shape was measured, and do not change, so that we cannot prefer shapes
that suit us. `python -m benchmarks.held` prints `held.txt`; `python -m benchmarks.bench --held` measures its workloads.

A draw counts if its work lies within the bounds below, and if it is new.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from benchmarks.work import Work, work_of
from pdojo.kernels import workload

SEED = 20261130
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


FAMILIES = """
# No dimension is a multiple of a vector, and none dominates.
2 matmul M=50..2000! K=50..2000! N=50..2000!
# Tall: many samples, and few features and outputs.
1 matmul M=5000..200000! K=3..100! N=2..100!
# Flat: a few tokens times a layer's weights.
1 matmul M=2..20! K=300..6000! N=300..6000!
# Small K: an outer product.
1 matmul M=200..3000! K=1..15 N=200..3000!
# Large K: products of long columns, as in the gradients of weights.
1 matmul M=3..150! K=5000..100000! N=3..150!
# Many small matrices, then a few of a head's size.
1 bmm B=100..5000 M=3..40! K=3..40! N=3..40!
1 bmm B=2..100 M=40..500! K=20..200! N=40..500!
1 matmul_bf16 M=20..1500! K=50..3000! N=50..3000!
1 matmul_i8 M=20..1500! K=50..3000! N=50..3000!
1 swiglu B=1..4 M=5..300! K=100..3000! N=100..3000!
# Heads of lengths that match nobody's block size; self-attention, then attention to another sequence.
2 attention B=1..64 L=17..1200! S=17..1200! D=20|40|64|72|80|96|112
# Rows: short ones (classes), long ones (vocabularies), and layers' widths.
1 softmax R=1000..500000! C=3..100!
1 softmax R=1..500! C=5000..200000!
1 log_softmax R=7..50000! C=10..60000!
2 layernorm R=7..50000! C=30..9000!
1 rmsnorm R=7..50000! C=30..9000!
1 reducemean R=7..100000! C=7..100000!
2 add|mul|relu R=1..5000! C=100..10000!
1 gelu R=7..50000! C=30..9000!
1 sigmoid|silu R=7..50000! C=30..9000!
1 batchnorm N=1..16 C=3..500! H=7..260! W=7..260!
# A layer in the middle of a network, one with strides, and a first layer.
1 conv N=1..16 O=8..300! C=8..300! H=7..260! W=7..260! K=1|3
1 conv N=1..16 O=8..300! C=8..300! H=7..260! W=7..260! K=3|5 S=2 P=1
1 conv N=1..16 O=8..100! C=1|3|4 H=50..500! W=50..500! K=3|5|7|11 S=1|2|4 P=0|1|2|3
1 depthwise_conv N=1..16 C=8..500! H=7..260! W=7..260! K=3|5|7 S=1|2
1 maxpool N=1..16 C=8..500! H=7..260! W=7..260! K=2|3 S=1|2|3
# Products of transposed operands, of one vector, with a common operand, and of dequantised weights.
3 matmul_nt|matmul_tn|matmul_tt M=50..2000! K=50..2000! N=50..2000!
1 gemv|gemv_t R=50..20000! C=50..20000!
1 bmm_broadcast_a|bmm_broadcast_b B=2..200 M=40..500! K=20..200! N=40..500!
1 dequant_matmul M=2..500! K=100..3000! N=100..3000!
1 dot R=7..50000! C=10..10000!
# Layers in the middle of networks.
2 conv N=1..16 O=8..300! C=8..300! H=7..260! W=7..260! K=3 S=1 P=1
1 grouped_conv N=1..16 O=96|160|200 C=96|160|200 H=7..260! W=7..260! K=3 G=2|4|8
1 conv_transpose N=1..16 O=8..200! C=8..200! H=7..60! W=7..60! K=2|3|4
1 avgpool|sumpool N=1..16 C=8..500! H=7..260! W=7..260! K=2|3 S=1|2
# Normalisations over images, over rows with a residual, and over parts of rows.
2 groupnorm N=1..16 C=48|80|144 H=7..260! W=7..260! G=2|4|8|16
1 instancenorm N=1..16 C=3..500! H=7..260! W=7..260!
1 batchnorm N=1..16 C=3..500! H=3..40! W=3..40!
1 residual_layernorm R=7..50000! C=30..9000!
1 causal_softmax B=1..200 L=17..1200!
1 masked_softmax R=7..50000! C=10..9000!
1 cross_entropy R=7..50000! C=10..60000!
# Reductions of columns and of rows, running sums.
2 colsum|colmean|colmax R=7..100000! C=7..100000!
2 reducemax|reducesum|argmax R=7..100000! C=7..100000!
1 cumsum R=7..20000! C=7..20000!
1 axpy|batchnorm_folded R=7..50000! C=30..9000!
1 rotary|rotary_interleaved B=1..8 L=17..2000! H=4..32 D=40|64|80|96|128
# Elementwise.
2 exp|tanh|log R=7..50000! C=30..9000!
1 bias_gelu R=7..50000! C=30..9000!
"""
"""Numbers of workloads, their kernels, and ranges of sizes in the order of the kernels' files (`size`)."""
FILE = Path(__file__).with_suffix(".txt")


def size(text: str, random: Random) -> int:
    """A size: one of `20|40`, or evenly by its logarithm from `2..20`; with `!` it is no multiple of 16."""
    if ".." not in text:
        options = text.split("|")
        return int(options[int(random.random() * len(options))])
    low, high = map(int, text.rstrip("!").split(".."))
    while True:
        found = min(high, int(low * ((high + 1) / low) ** random.random()))
        if found % 16 or not text.endswith("!"):
            return found


def stored(file: Path) -> list[str]:
    """The lines of a file of drawn workloads."""
    return [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def text_of(module: str, seed: int, drawn: Iterable[object]) -> str:
    """The text of a file of drawn workloads."""
    return "".join(f"{line}\n" for line in (f"# python -m {module}, seed {seed}", *drawn))


def held_out() -> list[str]:
    """The workloads of `held.txt`."""
    return stored(FILE)


def draw(seed: int) -> list[str]:
    """The workloads of a seed, in the order of the families."""
    random = Random(seed)
    found: list[str] = []
    for line in filter(None, (line.partition("#")[0] for line in FAMILIES.splitlines())):
        number, kernels, *sizes = line.split()
        wanted = len(found) + int(number)
        while len(found) < wanted:
            drawn = _draw(kernels.split("|"), sizes, random)
            if drawn not in found and is_within(work_of(workload(drawn))):
                found.append(drawn)
    return found


def _draw(kernels: Sequence[str], ranges: Sequence[str], random: Random) -> str:
    """The label of one workload of a family."""
    kernel = kernels[int(random.random() * len(kernels))]
    sizes = {name: size(text, random) for name, _, text in (each.partition("=") for each in ranges)}
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
    sys.stdout.write(text_of("benchmarks.held", SEED, draw(SEED)))
