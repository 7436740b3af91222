"""Sixty functions of PyTorch drawn at random: an operator, and what a model does with its result.

The parts, the ranges and the seed were fixed before any function was measured, and do not change, so that we cannot
prefer functions that suit us. `python -m benchmarks.torch_fusions` prints `torch_fusions.txt`.

A function starts with a matrix product, a convolution, an array or a small composite (rotary embedding, gated products,
scores of attention). Steps follow: a bias, an activation, a residual, a scale, a normalisation, a softmax along any
axis, a pool, a reduction. All tensors are arguments: nobody may prepare weights. A draw counts if its arguments and its
result have between 1 and 64 MB, and its products fewer than 4e9 operations.

`python -m benchmarks.programs functions` measures them beside PyTorch (eager) and `torch.compile`.
"""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.held import size, stored, text_of
from benchmarks.torch_cases import EAGER, INDUCTOR, Case, chosen
from benchmarks.torch_cases import measure as measure_case

SEED = 20261127
COUNT = 60
BYTES = (1_000_000, 64_000_000)
"""Least and most bytes of the arguments and the result together."""
OPERATIONS = 4e9
"""Most operations of products."""
FILE = Path(__file__).with_suffix(".txt")

Sizes: TypeAlias = Mapping[str, int]


class Start(NamedTuple):
    """The first part of a function."""

    weight: int
    """How often it is drawn, relative to others."""
    arguments: str
    """Shapes of the arguments, by names of sizes: `N C H W; O C K K`."""
    sizes: Mapping[str, str]
    function: Callable[..., Tensor]
    """From the sizes and the arguments to the first result."""


def _pairs(_: Sizes, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _interleaved(_: Sizes, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def _masked(_: Sizes, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 + mask, -1)


WIDTH, ROWS, IMAGE = "100..2000", "30..4000", "7..120"
CHANNELS, BATCH = "3..260", "1..8"
PRODUCT: Mapping[str, str] = {"M": ROWS, "K": WIDTH, "N": WIDTH}
WINDOW: Mapping[str, str] = {"N": BATCH, "O": CHANNELS, "C": CHANNELS, "H": IMAGE, "W": IMAGE}
ROTARY: Mapping[str, str] = {"B": BATCH, "H": "2..32", "L": ROWS, "D": "32|64|96|128"}
HEADS: Mapping[str, str] = {"B": BATCH, "H": "2..16", "L": "17..600", "D": "32|64|80"}

STARTS: Mapping[str, Start] = {
    "linear": Start(4, "M K; N K", PRODUCT, lambda _, x, w: functional.linear(x, w)),
    "matmul": Start(2, "M K; K N", PRODUCT, lambda _, x, w: x @ w),
    "bmm": Start(
        1,
        "B L D; B D S",
        {"B": "2..64", "L": "17..500", "D": "17..200", "S": "17..500"},
        lambda _, a, b: a @ b,
    ),
    "conv": Start(
        8,
        "N C H W; O C K K",
        {**WINDOW, "K": "1|3|3|5", "S": "1|1|2"},
        lambda z, x, w: functional.conv2d(x, w, stride=z["S"], padding=z["K"] // 2),
    ),
    "depthwise": Start(
        1,
        "N C H W; C 1 K K",
        {"N": BATCH, "C": CHANNELS, "H": IMAGE, "W": IMAGE, "K": "3|5|7", "S": "1|2"},
        lambda z, x, w: functional.conv2d(x, w, stride=z["S"], padding=z["K"] // 2, groups=z["C"]),
    ),
    "rows": Start(4, "M N", {"M": ROWS, "N": "100..8000"}, lambda _, x: x),
    "tokens": Start(3, "B L D", {"B": BATCH, "L": ROWS, "D": WIDTH}, lambda _, x: x),
    "image": Start(5, "N C H W", {"N": BATCH, "C": CHANNELS, "H": IMAGE, "W": IMAGE}, lambda _, x: x),
    "rotary": Start(1, "B H L D; L D; L D", ROTARY, _pairs),
    "interleaved": Start(1, "B H L D; L D/2; L D/2", ROTARY, _interleaved),
    "scores": Start(1, "B H L D; B H L D", HEADS, lambda _, q, k: q @ k.mT),
    "masked": Start(1, "B H L D; B H L D; B 1 1 L", HEADS, _masked),
    "swiglu": Start(
        1,
        "M K; N K; N K",
        PRODUCT,
        lambda _, x, w, v: functional.silu(functional.linear(x, w)) * functional.linear(x, v),
    ),
    "geglu": Start(1, "M N; M N", {"M": ROWS, "N": WIDTH}, lambda _, x, gate: x * functional.gelu(gate)),
}


class Step(NamedTuple):
    """A later part of a function, `NAME` or `NAME@AXIS`."""

    weight: int
    arguments: str
    """Shapes of further arguments, by letters: `r` the shape before, `l` the last axis, `c` axis 1, `b` axis 1 to
    broadcast along images.
    """
    function: Callable[..., Tensor]
    """From the result before, the further arguments, and the axis if there is one."""
    ranks: tuple[int, ...] = (2, 3, 4)
    has_axis: bool = False
    reduces: bool = False
    """Whether nothing but elementwise steps follows."""


def _causal(x: Tensor) -> Tensor:
    rows, columns = x.shape[-2:]
    mask = torch.ones(rows, columns, dtype=torch.bool, device=x.device).tril()
    return torch.softmax(x.masked_fill(~mask, float("-inf")), -1)


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def _batch_norm(x: Tensor, mean: Tensor, deviation: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.batch_norm(x, mean, deviation.square() + 0.5, weight, bias)


def _groups(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    groups = max(each for each in (1, 2, 4, 8, 16) if x.shape[1] % each == 0)
    return functional.group_norm(x, groups, weight, bias)


STEPS: Mapping[str, Step] = {
    "bias": Step(3, "l", lambda x, b: x + b, (2, 3)),
    "channel_bias": Step(4, "b", lambda x, b: x + b, (4,)),
    "residual": Step(4, "r", lambda x, r: x + r),
    "gate": Step(2, "r", lambda x, g: x * torch.sigmoid(g)),
    "scale": Step(2, "", lambda x: x * 0.125),
    "relu": Step(3, "", torch.relu),
    "gelu": Step(3, "", functional.gelu),
    "gelu_tanh": Step(1, "", partial(functional.gelu, approximate="tanh")),
    "silu": Step(2, "", functional.silu),
    "tanh": Step(1, "", torch.tanh),
    "hardswish": Step(1, "", functional.hardswish),
    "leaky_relu": Step(1, "", functional.leaky_relu),
    "clamp": Step(1, "", partial(torch.clamp, min=-1.0, max=1.0)),
    "dropout_off": Step(1, "", partial(functional.dropout, training=False)),
    "layer_norm": Step(3, "l; l", lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b), (2, 3)),
    "rms_norm": Step(2, "l", _rms_norm, (2, 3)),
    "batch_norm": Step(3, "c; c; c; c", _batch_norm, (4,)),
    "group_norm": Step(2, "c; c", _groups, (4,)),
    "softmax": Step(3, "", lambda x, axis: torch.softmax(x, axis), has_axis=True),
    "log_softmax": Step(1, "", lambda x, axis: torch.log_softmax(x, axis), has_axis=True),
    "causal_softmax": Step(1, "", _causal, (3, 4)),
    "normalize": Step(1, "", lambda x, axis: functional.normalize(x, dim=axis), has_axis=True),
    "max_pool": Step(2, "", partial(functional.max_pool2d, kernel_size=3, stride=2, padding=1), (4,)),
    "avg_pool": Step(1, "", partial(functional.avg_pool2d, kernel_size=2), (4,)),
    "transpose": Step(1, "", lambda x: x.mT.contiguous()),
    "sum": Step(2, "", lambda x, axis: x.sum(axis), has_axis=True, reduces=True),
    "mean": Step(2, "", lambda x, axis: x.mean(axis, keepdim=True), has_axis=True, reduces=True),
    "amax": Step(1, "", lambda x, axis: x.amax(axis), has_axis=True, reduces=True),
    "logsumexp": Step(1, "", lambda x, axis: torch.logsumexp(x, axis), has_axis=True, reduces=True),
    "square_sum": Step(1, "r", lambda x, y: (x * y).sum(), reduces=True),
    "pooled": Step(1, "", lambda x: x.mean((2, 3)), (4,), reduces=True),
}
ELEMENTWISE = ("scale", "relu", "gelu", "silu", "tanh", "clamp")
"""Steps that may follow a reduction."""


@dataclass(frozen=True)
class Fusion:
    """A function of tensors: a line of `torch_fusions.txt`."""

    start: str
    sizes: Sizes
    steps: tuple[tuple[str, int | None], ...]
    """Names, and axes for those that have one."""

    def __str__(self) -> str:
        sizes = ",".join(f"{name}={size}" for name, size in self.sizes.items())
        steps = [name if axis is None else f"{name}@{axis}" for name, axis in self.steps]
        return " ".join([f"{self.start}:{sizes}", *steps])

    @staticmethod
    def of(line: str) -> Fusion:
        """The function of a line."""
        first, *rest = line.split()
        start, _, given = first.partition(":")
        sizes = {name: int(size) for name, _, size in (each.partition("=") for each in given.split(","))}
        steps = [each.partition("@") for each in rest]
        return Fusion(start, sizes, tuple((name, int(axis) if axis else None) for name, _, axis in steps))

    def with_sizes(self, sizes: Sizes) -> Fusion:
        """The same function for other sizes."""
        return Fusion(self.start, sizes, self.steps)

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the arguments."""
        found = [_shape(each, self.sizes) for each in STARTS[self.start].arguments.split(";")]
        x = STARTS[self.start].function(self.sizes, *[torch.empty(shape, device="meta") for shape in found])
        for name, axis in self.steps:
            further = [_further(each.strip(), x.shape) for each in STEPS[name].arguments.split(";") if each]
            x = self._step(name, axis, x, [torch.empty(shape, device="meta") for shape in further])
            found += further
        return found

    def __call__(self, *arguments: Tensor) -> Tensor:
        """The result for tensors of the shapes `shapes`."""
        rest = list(arguments)
        start = STARTS[self.start]
        x = start.function(self.sizes, *[rest.pop(0) for _ in start.arguments.split(";")])
        for name, axis in self.steps:
            count = len([each for each in STEPS[name].arguments.split(";") if each])
            x = self._step(name, axis, x, [rest.pop(0) for _ in range(count)])
        return x

    @staticmethod
    def _step(name: str, axis: int | None, x: Tensor, further: Sequence[Tensor]) -> Tensor:
        return STEPS[name].function(x, *further) if axis is None else STEPS[name].function(x, *further, axis)

    def arguments(self, seed: int = 0) -> list[Tensor]:
        """Random arguments."""
        generator = torch.Generator().manual_seed(seed)
        return [torch.randn(shape, generator=generator) for shape in self.shapes()]


def fusions() -> list[Fusion]:
    """The functions of `torch_fusions.txt`."""
    return [Fusion.of(line) for line in stored(FILE)]


def draw(seed: int) -> list[Fusion]:
    """The functions of a seed."""
    random = Random(seed)
    found: list[Fusion] = []
    while len(found) < COUNT:
        drawn = _draw(random)
        if drawn is not None and all(_parts(drawn) != _parts(other) for other in found):
            found.append(drawn)
    return found


def _parts(fusion: Fusion) -> tuple[str, ...]:
    """The names of the parts; no two functions have the same."""
    return fusion.start, *(name for name, _ in fusion.steps)


def _draw(random: Random) -> Fusion | None:
    """A function; None if it is too small, too large, or nothing but an array."""
    start = _weighted(random, STARTS)
    sizes = {name: size(text, random) for name, text in STARTS[start].sizes.items()}
    fusion = Fusion(start, sizes, ())
    if _operations(fusion) > OPERATIONS:
        return None
    for _ in range(int(random.random() * 4) + (start in ("rows", "tokens", "image"))):
        shape = _result(fusion).shape
        is_reduced = any(STEPS[name].reduces for name, _ in fusion.steps)
        fit = {
            name: step
            for name, step in STEPS.items()
            if (name in ELEMENTWISE if is_reduced else len(shape) in step.ranks) and not _repeats(fusion, name)
        }
        name = _weighted(random, fit)
        axis = int(random.random() * len(shape)) if STEPS[name].has_axis else None
        fusion = Fusion(start, sizes, (*fusion.steps, (name, axis)))
    if not fusion.steps and start in ("linear", "matmul", "bmm", "conv", "depthwise", "scores"):
        return None
    shapes = [*fusion.shapes(), tuple(_result(fusion).shape)]
    bytes_ = 4 * sum(prod(shape) for shape in shapes)
    return fusion if BYTES[0] <= bytes_ <= BYTES[1] else None


def _repeats(fusion: Fusion, name: str) -> bool:
    return any(name == other for other, _ in fusion.steps)


def _weighted(random: Random, parts: Mapping[str, Any]) -> str:
    """The name of a part, drawn by weight."""
    place = random.random() * sum(part.weight for part in parts.values())
    for name, part in parts.items():
        place -= part.weight
        if place < 0:
            return name
    raise AssertionError


def _result(fusion: Fusion) -> Tensor:
    """The result, without memory."""
    return fusion(*[torch.empty(shape, device="meta") for shape in fusion.shapes()])


def _operations(fusion: Fusion) -> float:
    """The operations of the products with which a function starts."""
    shapes = fusion.shapes()
    result = prod(_result(fusion).shape)
    match fusion.start:
        case "linear" | "bmm" | "matmul" | "scores" | "masked" | "swiglu":
            return 2 * result * shapes[0][-1] * (len(shapes) - 1 if fusion.start == "swiglu" else 1)
        case "conv" | "depthwise":
            return 2 * result * prod(shapes[1][1:])
        case _:
            return 0


def _shape(names: str, sizes: Sizes) -> tuple[int, ...]:
    """A shape from names of sizes, halves of sizes, and numbers."""
    found: list[int] = []
    for each in names.split():
        name, _, divisor = each.partition("/")
        found.append((sizes[name] if name in sizes else int(name)) // int(divisor or 1))
    return tuple(found)


def _further(letter: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a further argument of a step."""
    match letter:
        case "r":
            return tuple(shape)
        case "l":
            return (shape[-1],)
        case "c":
            return (shape[1],)
        case "b":
            return (shape[1], 1, 1)
        case _:
            raise AssertionError(letter)


def _case(fusion: Fusion) -> Case:
    return Case(fusion, tuple(fusion.arguments()))


CASES = {str(fusion): partial(_case, fusion) for fusion in fusions()}
names = partial(chosen, CASES)


def measure(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Rows and notes of a function."""
    torch.set_num_threads(asked["threads"])
    return measure_case(CASES[asked["case"]](), (EAGER, INDUCTOR))


if __name__ == "__main__":
    sys.stdout.write(text_of("benchmarks.torch_fusions", SEED, draw(SEED)))
