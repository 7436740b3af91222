"""Drawn programs of the expert pass for CPUs, audited: `python -m qa.audited --count 1000 --seed 7`.

A draw is a kernel (one of the library, or one written with `pdojo.build` as models have it, with constant weights), its
sizes, a number of threads and a machine. The pass tunes it, and `audit` says what is slow in the product. Prints one
line for each finding, and the number of programs with some.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import exp, log, prod
from random import Random
from typing import Any

from pdojo import build
from pdojo.backends.calling.arrays import parameters_of
from pdojo.build import Array
from pdojo.build.channels_last import conv_of_pairs, with_channels_first, with_channels_last
from pdojo.build.quantising import integer_conv, saturated
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.passes.cpu.audit import Finding, audit
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves

MACHINES = ("x86-64-avx2", "x86-64-avx512", "x86-64-zen4", "x86-64-amx", "aarch64-neon", "neoverse-v2")
THREADS = (1, 2, 2, 4, 8)
LIBRARY = """
matmul|matmul_nt|matmul_tn|matmul_tt M=1..800 K=8..800 N=8..800
matmul|matmul_nt M=1..32 K=300..4096 N=300..4096
matmul|matmul_tn M=3..150 K=3000..20000 N=3..150
bmm B=2..100 M=3..200 K=3..200 N=3..200
bmm_broadcast_a|bmm_broadcast_b B=2..60 M=20..200 K=20..200 N=20..200
dequant_matmul M=1..200 K=100..1500 N=100..1500
matmul_bf16|matmul_i8 M=1..600 K=30..1500 N=30..1500
gemv|gemv_t R=50..8000 C=50..8000
swiglu B=1..4 M=5..200 K=100..800 N=100..800
attention B=1..16 L=9..300 S=9..300 D=20|40|64|80|128
conv N=1..8 O=8..300 C=8..300 H=7..60 W=7..60 K=1|3|5 S=1|2 P=0|1
conv N=1..8 O=8..100 C=1|3|4 H=30..230 W=30..230 K=3|7|11 S=1|2|4 P=0|1|3
depthwise_conv N=1..8 C=8..500 H=7..100 W=7..100 K=3|5|7 S=1|2
grouped_conv N=1..8 O=96|160|200 C=96|160|200 H=7..60 W=7..60 K=3 G=2|4|8
conv_transpose N=1..8 O=8..100 C=8..100 H=7..40 W=7..40 K=2|3|4
maxpool|avgpool N=1..8 C=8..300 H=7..100 W=7..100 K=2|3 S=1|2
softmax|log_softmax|layernorm|rmsnorm|residual_layernorm R=1..5000 C=3..20000
batchnorm|instancenorm N=1..16 C=3..300 H=3..100 W=3..100
groupnorm N=1..8 C=48|80|144 H=7..60 W=7..60 G=2|4|8|16
causal_softmax B=1..100 L=17..600
masked_softmax|cross_entropy R=7..5000 C=10..3000
colsum|colmean|colmax|reducemax|reducesum|argmax|cumsum R=7..5000 C=7..5000
rotary|rotary_interleaved B=1..4 L=17..500 H=4..16 D=40|64|80|96|128
transpose R=7..3000 C=7..3000
add|mul|relu|gelu|silu|exp|bias_gelu|axpy R=7..5000 C=30..3000
"""
"""Kernels of the library and ranges of their sizes, evenly by logarithm; one line is drawn as often as another."""
LARGEST = 1 << 24
"""Most elements of an array."""


@dataclass(frozen=True)
class Drawn:
    """A drawn program."""

    title: str
    machine: str
    threads: int
    kernel: str
    """The plain kernel, in the notation."""


def draws(count: int, seed: int) -> Iterator[Drawn]:
    """Drawn programs, half of them from the library."""
    random = Random(seed)
    lines = [line.split() for line in LIBRARY.strip().splitlines()]
    while count:
        where, threads = random.choice(MACHINES), random.choice(THREADS)
        if random.random() < 0.5:
            name, *ranges = random.choice(lines)
            sizes = {part.split("=")[0]: _size(part.split("=")[1], random) for part in ranges}
            title = f"{random.choice(name.split('|'))}:{','.join(f'{k}={v}' for k, v in sizes.items())}"
            kernel = workload(title).instantiate()
        else:
            write = random.choice(WRITTEN)
            kernel = write(random)
            title = kernel.sym_name.data
        if any(prod(p.shape) > LARGEST for p in parameters_of(nest_of(kernel))):
            continue
        yield Drawn(title, where, threads, print_notation(kernel))
        count -= 1


def _size(text: str, random: Random) -> int:
    """One of `20|40`, or evenly by logarithm from `2..20`."""
    if ".." not in text:
        return int(random.choice(text.split("|")))
    low, high = map(int, text.split(".."))
    return min(high, int(exp(random.uniform(log(low), log(high + 1)))))


# Kernels as models have them


def _sizes(random: Random, *texts: str) -> list[int]:
    return [_size(text, random) for text in texts]


def _linear(random: Random) -> KernelOp:
    """A linear layer with constant weights, and what follows it."""
    rows, terms, columns = _sizes(random, "1..400", "16..3000", "16..3000")
    x = build.input("x", "f32", (rows, terms))
    w = build.input("w", "f32", (columns, terms), const=True)
    b, r = build.input("b", "f32", (columns,), const=True), build.input("r", "f32", (rows, columns))
    y = build.matmul(x, build.transpose(w, (1, 0))) + b
    ends: dict[str, Callable[[Array], Array]] = {
        "gelu": build.gelu,
        "relu": build.relu,
        "residual": lambda each: each + r,
    }
    end = random.choice([*ends])
    y = ends[end](y)
    return build.kernel(f"linear_{rows}x{terms}x{columns}_{end}", [x, w, b, r] if end == "residual" else [x, w, b], [y])


def _linear_grad(random: Random) -> KernelOp:
    """The gradients of a linear layer: of its input, its weights and its bias."""
    rows, terms, columns = _sizes(random, "8..600", "16..800", "16..800")
    g, x = build.input("g", "f32", (rows, columns)), build.input("x", "f32", (rows, terms))
    w = build.input("w", "f32", (columns, terms))
    results = [build.matmul(g, w), build.matmul(build.transpose(g, (1, 0)), x), build.sum(g, axis=0)]
    return build.kernel(f"linear_grad_{rows}x{terms}x{columns}", [g, x, w], results)


def _column_sums(random: Random) -> KernelOp:
    """Sums over rows of something computed, as in gradients of biases and scales."""
    rows, columns = _sizes(random, "30..5000", "8..3000")
    x, y = build.input("x", "f32", (rows, columns)), build.input("y", "f32", (rows, columns))
    m = build.input("m", "f32", (rows, 1))
    made = {
        "product": lambda: x * y,
        "difference": lambda: (x - m) * y,
        "gate": lambda: build.where(x > 0.0, y, y * 0.0),
        "square": lambda: x * x,
        "exp": lambda: build.exp(x - m),
        "sum": lambda: x + y,
    }
    name = random.choice([*made])
    reduce = random.choice((build.sum, build.mean, build.max))
    value = reduce(made[name](), axis=0)
    used = {"product": [x, y], "difference": [x, y, m], "gate": [x, y], "square": [x], "exp": [x, m], "sum": [x, y]}
    return build.kernel(f"columns_{name}_{rows}x{columns}", used[name], [value])


def layer_norm_gradients(rows: int, columns: int) -> KernelOp:
    """The gradients of a layer norm: of its input, its scale and its shift."""
    g, x = build.input("g", "f32", (rows, columns)), build.input("x", "f32", (rows, columns))
    scale = build.input("scale", "f32", (columns,))
    mean, spread = build.input("mean", "f32", (rows, 1)), build.input("spread", "f32", (rows, 1))
    normal = (x - mean) * spread
    scaled = g * scale
    inner = scaled - build.mean(scaled, axis=-1, keepdims=True)
    inner = inner - normal * build.mean(scaled * normal, axis=-1, keepdims=True)
    results = [inner * spread, build.sum(g * normal, axis=0), build.sum(g, axis=0)]
    return build.kernel(f"layer_norm_grad_{rows}x{columns}", [g, x, scale, mean, spread], results)


def _layer_norm_grad(random: Random) -> KernelOp:
    return layer_norm_gradients(*_sizes(random, "30..3000", "16..2000"))


def _conv(random: Random) -> KernelOp:
    """A convolution with constant weights and what follows it in networks."""
    batch, results, channels, side = _sizes(random, "1..8", "8..600", "8..600", "7..60")
    taps, stride = random.choice(((1, 1), (1, 2), (3, 1), (3, 1), (3, 2), (5, 1)))
    x = build.input("x", "f32", (batch, channels, side, side))
    w = build.input("w", "f32", (results, channels, taps, taps), const=True)
    b = build.input("b", "f32", (results,), const=True)
    y = build.conv(x, w, b, stride=stride, padding=taps // 2)
    r = build.input("r", "f32", y.shape)
    ends: dict[str, Callable[[Array], Array]] = {
        "relu": build.relu,
        "residual": lambda each: build.relu(each + r),
        "silu": build.silu,
    }
    end = random.choice([*ends])
    title = f"conv_{batch}x{results}x{channels}x{side}_{taps}x{taps}_by_{stride}_{end}"
    return build.kernel(title, [x, w, b, r] if end == "residual" else [x, w, b], [ends[end](y)])


def _first_conv(random: Random) -> KernelOp:
    """The first convolution of a network."""
    batch, results, side = _sizes(random, "1..4", "16..96", "60..230")
    taps, stride = random.choice(((7, 2), (3, 2), (4, 4), (3, 1), (16, 16)))
    x = build.input("x", "f32", (batch, 3, side, side))
    w = build.input("w", "f32", (results, 3, taps, taps), const=True)
    y = build.relu(build.conv(x, w, stride=stride, padding=0 if stride == taps else taps // 2))
    return build.kernel(f"first_conv_{batch}x{results}x{side}_{taps}x{taps}_by_{stride}", [x, w], [y])


def _conv_transpose(random: Random) -> KernelOp:
    """A transposed convolution with constant weights."""
    batch, results, channels, side = _sizes(random, "1..4", "8..100", "8..100", "7..40")
    taps, stride = random.choice(((2, 2), (3, 2), (4, 2)))
    x = build.input("x", "f32", (batch, channels, side, side))
    w = build.input("w", "f32", (channels, results, taps, taps), const=True)
    y = build.conv_transpose(x, w, stride=stride, padding=0 if taps == 2 else 1)
    return build.kernel(f"conv_transpose_{batch}x{results}x{channels}x{side}_{taps}", [x, w], [y])


def _permuted(random: Random) -> KernelOp:
    """A permutation of axes, and perhaps a statement."""
    extents = _sizes(random, "2..300", "2..300", "2..300", "2..100")[: random.choice((2, 3, 4))]
    order = [*range(len(extents))]
    random.shuffle(order)
    x = build.input("x", "f32", extents)
    y = build.transpose(x, order)
    y = y * 2.0 if random.random() < 0.5 else y + 0.0
    return build.kernel(f"permuted_{'x'.join(map(str, extents))}_{''.join(map(str, order))}", [x], [y])


def _over_axis(random: Random) -> KernelOp:
    """A statistic, or a normalisation, over one of three axes."""
    extents = _sizes(random, "2..300", "2..300", "2..300")
    axis = random.randrange(3)
    x = build.input("x", "f32", extents)
    made: dict[str, Callable[[], build.Array]] = {
        "softmax": lambda: build.softmax(x, axis=axis),
        "sum": lambda: build.sum(x, axis=axis),
        "max": lambda: build.max(x, axis=axis),
        "mean": lambda: build.mean(x, axis=axis),
        "norm": lambda: build.layer_norm(x, axis=axis),
        "squares": lambda: build.sum_squares(x, axis=axis),
        "argmax": lambda: build.argmax(x, axis=axis),
    }
    name = random.choice([*made])
    return build.kernel(f"{name}_{'x'.join(map(str, extents))}_over_{axis}", [x], [made[name]()])


def _attention(random: Random) -> KernelOp:
    """Attention with a mask of each form."""
    heads, queries, keys, width = _sizes(random, "1..16", "1..300", "5..300", "32|40|64|80")
    q = build.input("q", "f32", (heads, queries, width))
    k, v = build.input("k", "f32", (heads, keys, width)), build.input("v", "f32", (heads, keys, width))
    mask = build.input("mask", "f32", (queries, keys))
    with_mask = random.random() < 0.5
    y = build.attention(q, k, v, mask=mask if with_mask else None)
    title = f"attention_{heads}x{queries}x{keys}x{width}{'_masked' if with_mask else ''}"
    return build.kernel(title, [q, k, v, mask] if with_mask else [q, k, v], [y])


def _joined(random: Random) -> KernelOp:
    """Concatenated arrays, and a statement."""
    rows, first, second = _sizes(random, "1..3000", "3..800", "3..800")
    x, y = build.input("x", "f32", (rows, first)), build.input("y", "f32", (rows, second))
    z = build.concatenate([x, y], axis=1)
    return build.kernel(f"joined_{rows}x{first}_{second}", [x, y], [build.relu(z)])


def _last_conv(random: Random) -> KernelOp:
    """A convolution of narrow numbers, or by channels, of images with channels last, as models have them."""
    batch, results, channels, side = _sizes(random, "1..4", "8..300", "8..300", "7..60")
    taps, stride = random.choice(((1, 1), (3, 1), (3, 1), (3, 2), (5, 1)))
    dtype, by_channels = random.choice(("f32", "bf16", "u8")), random.random() < 0.4
    by_channels = by_channels or dtype == "f32"
    x = build.input("x", dtype, (batch, side, side, channels))
    shape = (channels, 1, taps, taps) if by_channels else (results, channels, taps, taps)
    w = build.input("w", "i8" if dtype == "u8" else dtype, shape, const=True)
    windows: dict[str, Any] = {"stride": stride, "padding": taps // 2, "groups": channels if by_channels else 1}
    images = with_channels_first(x)
    if dtype == "u8":
        sums = integer_conv(images, w, build.constant(7, "u8"), **windows)
        y = saturated(build.cast(sums, "f32") * 0.01, build.constant(3, "u8"), "u8")
    else:
        y = build.relu((build.conv if by_channels else conv_of_pairs)(images, w, **windows))
    title = f"last_conv_{dtype}_{batch}x{shape[0]}x{channels}x{side}_{taps}x{taps}_by_{stride}"
    title += "_by_channels" if by_channels else ""
    numerics = ("contract", "flush", "reassociate") if dtype == "bf16" else None
    return build.kernel(title, [x, w], [with_channels_last(y)], numerics=numerics)


def _narrow(random: Random) -> KernelOp:
    """A product with constants that are expanded from narrow numbers."""
    rows, terms, columns = _sizes(random, "1..100", "2..40", "64..2000")
    group = random.choice((32, 64, 128))
    x = build.input("x", "f32", (rows, terms * group))
    w = build.input("w", "i8", (columns, terms * group), const=True)
    by_group = random.random() < 0.5
    s = build.input("s", "f32", (columns, terms if by_group else 1), const=True)
    wide = build.cast(w, "f32") * (build.repeat(s, group, 1) if by_group else s)
    title = f"narrow_{rows}x{terms * group}x{columns}{f'_by_{group}' if by_group else ''}"
    return build.kernel(title, [x, w, s], [build.matmul(x, build.transpose(wide))])


WRITTEN: tuple[Callable[[Random], KernelOp], ...] = (
    _linear,
    _linear,
    _linear_grad,
    _column_sums,
    _column_sums,
    _layer_norm_grad,
    _conv,
    _conv,
    _first_conv,
    _conv_transpose,
    _permuted,
    _over_axis,
    _attention,
    _joined,
    _last_conv,
    _narrow,
)


def audited(drawn: Drawn) -> tuple[list[Finding], float]:
    """The findings in the pass's program, and the seconds of the pass."""
    from pdojo import parse

    described = replace(machine(drawn.machine), threads=drawn.threads)
    start = time.perf_counter()
    tuned = make_moves(assume_alignment(parse(drawn.kernel), None), described, PASS)
    return audit(tuned.game), time.perf_counter() - start


def main() -> None:
    """Run the tool."""
    parser = argparse.ArgumentParser(prog="python -m qa.audited", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    kinds, bad = Counter[str](), 0
    with ProcessPoolExecutor(given.jobs) as pool:
        programs = [*draws(given.count, given.seed)]
        for drawn, (findings, seconds) in zip(programs, pool.map(audited, programs, chunksize=4), strict=True):
            kinds.update({finding.kind for finding in findings})
            bad += bool(findings)
            for finding in findings:
                print(f"{drawn.title} {drawn.machine} {drawn.threads} threads, {seconds:.1f} s: {finding}", flush=True)
    print(f"{bad} of {given.count} programs with findings: {dict(kinds)}")


if __name__ == "__main__":
    main()
