"""Functions of PyTorch at nine sizes each, compiled once for all of them.

`python -m benchmarks.programs sizes` measures `torch.compile(backend="pdojo", dynamic=True)` beside PyTorch (eager) and
Inductor (`dynamic=True`), and beside our own programs for each of the sizes (`dynamic=False`). All are compiled at two
sizes before any is measured. A sample is the geometric mean of the times at the nine sizes; the notes have
the ratios at each.
"""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.contests import CONSTANT
from benchmarks.origin import JSON
from benchmarks.records import OURS
from benchmarks.torch_cases import (
    EAGER,
    LEAST,
    ROUNDS,
    Case,
    Implementation,
    chosen,
    compiled,
    described,
    error_of,
    numbers,
    sample,
)
from pdojo.backends.measure import CompileError, Ok, Outcome, WrongResult
from pdojo.backends.measure.outcome import Check
from pdojo.torch.backend import CompiledGraph

OUR_OWN, AT_EACH, INDUCTOR = (OURS, ""), (CONSTANT, ""), ("torch.compile", "inductor, dynamic")
IMPLEMENTATIONS = EAGER, OUR_OWN, AT_EACH, INDUCTOR
Sizes: TypeAlias = tuple[int, ...]
Turn: TypeAlias = list[float]
"""Seconds per call at each size."""
MATRICES = (2, 64), (4, 10), (16, 100), (64, 512), (100, 1000), (512, 33), (1000, 197), (1024, 1024), (2048, 1500)
ROWS = (2,), (3,), (8,), (17,), (64,), (128,), (500,), (1024,), (4096,)
LENGTHS = (2,), (7,), (16,), (33,), (64,), (100,), (197,), (384,), (512,)
PRODUCTS = (2, 64, 64), (7, 33, 50), (16, 16, 16), (64, 64, 64), (100, 100, 100), (128, 512, 256), (200, 300, 400)
PRODUCTS += (511, 511, 511), (512, 512, 512)
BLOCK = 16
"""Tokens of a block of a paged cache."""


class Sized(NamedTuple):
    """A function and its sizes."""

    function: Callable[..., Any]
    arguments: Callable[..., tuple[Tensor, ...]]
    """From sizes to random arguments."""
    sizes: Sequence[Sizes]


class _Compiled(NamedTuple):
    """An implementation."""

    function: Callable[..., Any]
    seconds: float
    """Compilation for two sizes."""
    others: float
    """The first calls at all sizes after that."""
    error: float
    """The largest, relative to the largest element at that size."""


class _Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(self.linear(x))


class _Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(768)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(x + residual)


class _Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(5000, 256), nn.Embedding(4096, 256)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.tokens(tokens) + self.places.weight[: tokens.shape[0]]


class _Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 32, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.conv(x))


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def _causal_softmax(x: Tensor) -> Tensor:
    length = x.shape[-1]
    places = torch.arange(length)
    return torch.softmax(x.masked_fill(places > places[:, None], float("-inf")), -1)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * 0.125, -1) @ v


def _paged(q: Tensor, keys: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Attention of one token to a cache of blocks (blocks, 16, heads, 64), those of a sequence in a table."""
    k, v = (each[table].flatten(0, 1).transpose(0, 1) for each in (keys, values))
    return _attention(q, k, v)


def _scatter_add(x: Tensor, places: Tensor) -> Tensor:
    return x.new_zeros(256, x.shape[1]).index_add(0, places, x)


def _heads(rows: int, length: int) -> tuple[Tensor, ...]:
    return torch.randn(8, rows, 64), torch.randn(8, length, 64), torch.randn(8, length, 64)


FUNCTIONS: Mapping[str, Callable[[], Sized]] = {
    "linear_gelu": lambda: Sized(_Linear(), lambda m: (torch.randn(m, 512),), ROWS),
    "matmul": lambda: Sized(lambda a, b: a @ b, lambda m, k, n: (torch.randn(m, k), torch.randn(k, n)), PRODUCTS),
    "bmm": lambda: Sized(
        lambda a, b: a @ b,
        lambda n, m: (torch.randn(n, m, 64), torch.randn(n, 64, m)),
        [(2, 2), (2, 16), (4, 33), (8, 64), (8, 100), (12, 128), (12, 197), (16, 255), (16, 256)],
    ),
    "layer_norm": lambda: Sized(_Norm(), lambda m: (torch.randn(m, 768), torch.randn(m, 768)), ROWS),
    "rms_norm": lambda: Sized(_rms_norm, lambda m, n: (torch.randn(m, n), torch.randn(n)), MATRICES),
    "softmax": lambda: Sized(lambda x: torch.softmax(x, -1), lambda *s: (torch.randn(s),), MATRICES),
    "causal_softmax": lambda: Sized(_causal_softmax, lambda m: (torch.randn(8, m, m),), LENGTHS),
    "gelu": lambda: Sized(functional.gelu, lambda *s: (torch.randn(s),), MATRICES),
    "column_sums": lambda: Sized(lambda x: x.sum(0), lambda *s: (torch.randn(s),), MATRICES),
    "attention": lambda: Sized(_attention, lambda n: _heads(n, n), LENGTHS),
    "attention_growing": lambda: Sized(_attention, lambda n: _heads(1, n), ROWS),
    "convolution": lambda: Sized(
        _Convolution(),
        lambda *s: (torch.randn(1, 32, *s),),
        [(8, 8), (9, 17), (16, 16), (28, 28), (32, 48), (40, 40), (56, 56), (63, 64), (64, 64)],
    ),
    "embedding": lambda: Sized(_Embedding(), lambda n: (torch.randint(0, 5000, (n,)),), ROWS),
    "scatter_add": lambda: Sized(_scatter_add, lambda n: (torch.randn(n, 64), torch.randint(0, 256, (n,))), ROWS),
    "attention_paged": lambda: Sized(
        _paged,
        lambda n: (torch.randn(8, 1, 64), *torch.randn(2, 128, BLOCK, 8, 64), torch.randperm(128)[:n]),
        [(2,), (3,), (4,), (7,), (8,), (16,), (25,), (33,), (64,)],
    ),
}


def names(words: Sequence[str]) -> list[str]:
    """The names of functions that contain one of the words; all without words."""
    return chosen(FUNCTIONS, words)


def measure(asked: Mapping[str, Any]) -> JSON:
    """Rows and notes of a function."""
    torch.set_num_threads(asked["threads"])
    torch._dynamo.config.recompile_limit = 64
    torch.manual_seed(0)
    function, arguments, sizes = FUNCTIONS[asked["case"]]()
    cases = [Case(function, arguments(*each)) for each in sizes]
    made: list[CompiledGraph] = []
    with torch.no_grad():
        wanted = [numbers(case.doubled()) for case in cases]
        tried = {name: _compiled(name, cases, wanted, made) for name in IMPLEMENTATIONS}
        known = {name: each for name, each in tried.items() if isinstance(each, _Compiled)}
        samples = _samples(known, cases)
    rows: list[JSON] = []
    notes = [
        f"{' '.join(n).strip()}: {k.seconds:.2f} s for two sizes, {k.others:.2f} s for others" for n, k in known.items()
    ]
    for name, found in tried.items():
        if isinstance(found, _Compiled):
            least = max(2 * known[EAGER].error, LEAST)
            outcome = _outcome(found, samples[name], least if name in (OUR_OWN, AT_EACH) else float("inf"))
        else:
            outcome = found
        rows.append({"library": name[0], "variant": name[1], "outcome": outcome.to_json()})
        if OUR_OWN in known and name in known and name != OUR_OWN:
            notes.append(f"{' '.join(name).strip()} / ours: {_at_each(samples[name], samples[OUR_OWN], sizes)}")
    return {"rows": rows, "notes": [*notes, *described(made)]}


def _compiled(
    name: Implementation, cases: Sequence[Case], wanted: Sequence[Sequence[Tensor]], made: list[CompiledGraph]
) -> _Compiled | CompileError:
    """An implementation after it has run at all sizes."""
    start = time.perf_counter()
    function = compiled(name, cases[0].function, made, dynamic=name != AT_EACH)
    try:
        for case in (cases[2], cases[4]):
            function(*case.arguments)
        seconds = time.perf_counter() - start
        results = [numbers(Case(function, case.arguments)) for case in cases]
    except Exception as error:  # noqa: BLE001  # a compiler's failure is a result
        return CompileError(f"{type(error).__name__}: {error}"[:500])
    others = time.perf_counter() - start - seconds
    errors = [
        error_of(found, right) / float(right[0].abs().max()) for found, right in zip(results, wanted, strict=True)
    ]
    return _Compiled(function, seconds, others, max(errors))


def _samples(known: Mapping[Implementation, _Compiled], cases: Sequence[Case]) -> dict[Implementation, list[Turn]]:
    """Seconds per call, by implementation, for each turn at each size."""
    samples: dict[Implementation, list[Turn]] = {name: [] for name in known}
    names = list(known)
    for number in range(ROUNDS):
        turns: dict[Implementation, Turn] = {name: [] for name in names}
        for case in cases:
            for name in names[number % len(names) :] + names[: number % len(names)]:
                turns[name].append(sample(known[name].function, case.arguments))
        for name in names:
            samples[name].append(turns[name])
    return samples


def _outcome(found: _Compiled, turns: Sequence[Turn], bound: float) -> Outcome:
    """The outcome of an implementation; it is wrong if its relative error is beyond a bound."""
    if not found.error <= bound:
        return WrongResult(f"the largest relative error is {found.error:.3g}, the bound is {bound:.3g}")
    check = Check("float64 PyTorch", 0.0, found.error, found.error)
    times = tuple(map(geometric_mean, turns))
    return Ok(times, 1, 1, None, found.seconds, check, turns=tuple(range(len(times))))


def _at_each(others: Sequence[Turn], own: Sequence[Turn], sizes: Sequence[Sizes]) -> str:
    """The ratios of another implementation's time to ours, by size."""
    ratios = [[a / b for a, b in zip(*turns, strict=True)] for turns in zip(others, own, strict=True)]
    found = map(median, zip(*ratios, strict=True))
    return ", ".join(f"{'x'.join(map(str, size))} {ratio:.2f}" for size, ratio in zip(sizes, found, strict=True))
