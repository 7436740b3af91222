"""Absurd numbers and ranks in all functions of `pdojo.build`: one error, in time and with little memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pytest

from pdojo import build
from pdojo.build import Array
from pdojo.errors import PdojoError
from qa.fuzz_inputs import bounded_memory

SECONDS = 20.0
"""Far more than a call takes; a loop over an absurd number takes hours."""
MEMORY = 1 << 30
"""Far more bytes than a call takes."""
NUMBERS = (
    *(0, -1, -7, 9, 1 << 20, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 80, 10**400, 10**5000),
    *(True, 0.5, 1e300, float("nan"), float("inf"), float("-inf"), np.int64(1 << 40), np.float32("nan")),
    build.size("N", 2, 1 << 40, multiple=2) // 2 + 1,
)
X = build.input("x", "f32", (4, 8))
I = build.input("i", "i32", (4, 8))  # noqa: E741  # integers
M = build.input("m", "i1", (4, 8))
V = build.input("v", "f32", (8,))
P = build.table([3, 1, 2, 0, 3])
S, T = build.input("s", "f32", (1, 4, 1)), build.input("t", "i64", (4,))
U, START = build.input("u", "f32", (5,)), build.input("start", "i64", ())
IM = build.input("im", "f32", (2, 4, 9, 9))
K = build.input("k", "f32", (4, 4, 3, 3))
C = build.input("c", "f32", (4,))
Q, HEADS = (build.input(name, "f32", (heads, 4, 8)) for name, heads in {"q": 4, "heads": 2}.items())
ARRAYS = (
    build.input("scalar", "f32", ()),
    build.input("row", "f32", (8,)),
    build.input("deep", "f32", (1, 2, 3, 4, 5, 6)),
    build.input("empty", "f32", (0, 8)),
    build.input("large", "f32", (1 << 20, 1 << 20)),
    build.input("one", "f32", (1, 1)),
    build.iota((1 << 20, 1 << 20)),
)
"""Arrays of other ranks and sizes."""


def sums(states: Sequence[Array], elements: Sequence[Array]) -> list[Array]:
    """A step of a scan."""
    return [state + element for state, element in zip(states, elements, strict=False)]


CALLS: dict[str, Any] = {
    **{name: [((X,), {})] for name in ("acos", "acosh", "asin", "asinh", "atanh", "causal_softmax", "cosh", "exp",
                                       "gelu", "log", "relu", "selu", "sigmoid", "sign", "sign_bit", "silu", "sinh",
                                       "sqrt", "tan", "tanh")},
    **{name: [((X, 1), {}), ((X, (0, 1)), {})] for name in ("max", "mean", "min", "prod", "sum", "logsumexp", "flip",
                                                             "log_sum", "sum_squares")},
    **{name: [((M, 1), {}), ((M, (0, 1)), {})] for name in ("all", "any")},
    **{name: [((X, 1), {})] for name in ("argmax", "argmin", "log_softmax", "expand_dims", "cumulative_max",
                                               "cumulative_min", "hardmax", "safe_softmax")},
    **{name: [((X, X), {})] for name in ("atan2", "binary_cross_entropy", "mse_loss")},
    **{name: [((X, 2.0), {})] for name in ("celu", "elu", "leaky_relu", "softplus", "maximum", "minimum")},
    "assemble": [(((4, 16), [((slice(None), slice(0, 8, 1)), X)], 1.5), {}), (((4, 8), [((3, 2), X[0, 0])], 0), {})],
    **{name: [((X, X, X), {"scale": 0.5, "softcap": 2.0}), ((Q, HEADS, HEADS), {"mask": [X[:, :4]], "causal": True})]
       for name in ("attention", "attention_with_statistics")},
    "avg_pool": [((IM, (3, 3)), {"stride": 2, "padding": 1, "dilation": 1}),
                 ((IM, (3, 3)), {"stride": (2, 2), "padding": ((1, 1), (0, 1)), "dilation": (1, 1), "ceil": True,
                                 "count_padding": False})],
    "batch_norm": [((IM, C, C), {"axis": 1, "eps": 1e-5}), ((IM, C, C), {"statistics": (C, C)})],
    "batch_norm_with_statistics": [((IM, C, C), {"axis": 1, "eps": 1e-5})],
    "bitcast": [((X, "i32"), {})],
    "broadcast_to": [((X, (2, 4, 8)), {})],
    "cast": [((X, "f64"), {})],
    "clip": [((X, 0.0, 1.0), {}), ((I, 0, 1), {})],
    "concatenate": [(([X, X], 1), {})],
    "constant": [((2, "f32", (4, 8)), {}), ((2, "i32", (4,)), {})],
    "contract": [(("mk,nk->mn", X, X), {})],
    "conv": [((IM, K, C), {"stride": 1, "padding": 1, "dilation": 1, "groups": 1}),
             ((IM, K), {"stride": (1, 2), "padding": ((0, 1), (1, 1)), "dilation": (2, 1)})],
    "conv_transpose": [((IM, K, C), {"stride": 2, "padding": 1, "output_padding": 1, "dilation": 1, "groups": 1}),
                       ((IM, K), {"stride": (1, 2), "padding": ((0, 1), (1, 1)), "output_padding": (0, 1),
                                  "dilation": (2, 1)})],
    "conv_winograd": [((IM, K, C), {"padding": 1, "block": (1, 2)}), ((IM, K), {"padding": ((0, 1), (1, 1))})],
    "cross_entropy": [((X, T, 1), {})],
    "cumulative": [(("+", X, 1), {})],
    "det": [((X[:, :4],), {}), ((K,), {})],
    "distances": [((X, X, 2), {}), ((X, X[:2], 0.5), {})],
    "distance": [((X, V, 2, 1), {}), ((X, X, 3.0), {"axis": (0, 1)})],
    "gather": [((X, [P, [0, 1, 2, 3, 7]]), {}), ((X, [build.iota((4,)), [[7], [0]]]), {})],
    "gemm": [((X, build.transpose(X), C), {"alpha": 2.0, "beta": 0.5})],
    "group_norm": [((IM, 2, C, C), {"eps": 1e-5})],
    "group_norm_with_statistics": [((IM, 2, C, C), {"eps": 1e-5})],
    "huber_loss": [((X, X, 0.5), {})],
    "input": [(("z", "f32", (4, 8)), {})],
    "instance_norm": [((IM, C, C), {"eps": 1e-5})],
    "iota": [(((4, 8),), {"axis": 1, "start": 3, "step": 2}), (((4,), "f32"), {"start": 3, "step": 2})],
    "kernel": [(("k", [X], [X + 1]), {})],
    "layer_norm": [((X, V, V), {"axis": 1, "eps": 1e-5}), ((X,), {"axis": (0, 1)})],
    "layer_norm_with_statistics": [((X, V, V), {"axis": 1, "eps": 1e-5}), ((X,), {"axis": (0, 1)})],
    "local_response_norm": [((IM, 3), {"alpha": 1e-4, "beta": 0.75, "bias": 1.0})],
    "map": [(("+", X, 2), {}), (("max", X, 2.0), {})],
    "matmul": [((X, build.transpose(X)), {})],
    "mean_variance_norm": [((IM,), {"axis": (0, 2, 3), "eps": 1e-9})],
    **{name: [((X, 2, 1), {}), ((X, 0.5, (0, 1)), {})] for name in ("norm", "normalize")},
    "pad": [((X, 1, 2.0), {}), ((X, (1, 2)), {}), ((X, ((1, 2), (0, -1)), 0), {}),
            *(((X, ((1, 2), (0, 1)), 0, mode), {}) for mode in ("edge", "reflect", "wrap"))],
    "pool": [(("max", IM, (3, 3)), {"stride": 2, "padding": 1, "dilation": 1, "ceil": True}),
             (("+", IM, (3, 3)), {"stride": (2, 2), "padding": ((1, 1), (0, 1)), "dilation": (1, 1)})],
    "power": [((X, 3), {}), ((I, 7), {}), ((X, X), {}), ((2.0, X), {})],
    "put": [((X, [0, 2], X[:2], 0), {}), ((X, [0, 0, 2], X[:3], 0), {"accumulation": "+"})],
    "put_along": [((X, I, X, 1), {"accumulation": "+"})],
    "put_at": [((X, [T], X), {})],
    "put_from": [((X, START, X[:, :3], 1), {})],
    "reduce": [(("+", X, 1), {"initial": 1.0}), (("max", I, (0, 1)), {"initial": 1})],
    "repeat": [((X, 2, 1), {})],
    "reshape": [((X, (2, 16)), {}), ((X, (2, -1)), {})],
    "rms_norm": [((X, V), {"axis": 1, "eps": 1e-5}), ((X,), {"axis": (0, 1)})],
    "rms_norm_with_statistics": [((X, V), {"axis": 1, "eps": 1e-5})],
    "scan": [((sums, [X[0]], [X]), {})],
    "scatter": [((V, [build.iota((5,))], U), {}), ((V, [[0, 1, 2, 3, 7]], U), {})],
    "size": [(("N", 1, 8), {"multiple": 1})],
    "softmax": [((X, 1), {"mask": M})],
    "split": [((X, 2, 1), {}), ((X, [2, 6], 1), {})],
    "squeeze": [((S, 0), {}), ((S, (0, 2)), {})],
    "stack": [(([X, X], 1), {})],
    "table": [(([3, 1, 2],), {}), (([[3, 1], [2, 0]],), {})],
    "take_along": [((X, I, 1), {})],
    "take_from": [((X, START, 3, 1), {})],
    "take": [((X, [1, 0, 3], 0), {})],
    "tile": [((X, (2, 3)), {})],
    "topk": [((X, 3, 1), {})],
    "transpose": [((X, (1, 0)), {})],
    **{name: [((X, 1), {"correction": 1}), ((X, (0, 1)), {"correction": 1})] for name in ("var", "std", "var_mean")},
    "where": [((M, X, 2.0), {}), ((M, 1.0, X), {})],
    "windows": [((IM, (3, 3), 2, 1), {}), ((IM, (3, 3), (2, 2), (1, 1)), {})],
}  # fmt: skip
"""Valid calls by function: positional and named arguments."""


def variants(value: Any) -> Iterator[Any]:
    """The value with a number replaced by an absurd one, an array by one of another shape, or a sequence by another."""
    if isinstance(value, Array):
        yield from ARRAYS
    elif isinstance(value, slice):
        yield from (slice(number, 8, 1) for number in NUMBERS)
        yield from (slice(0, number, 1) for number in NUMBERS)
        yield from (slice(0, 8, number) for number in NUMBERS)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from NUMBERS
        yield from ((), [1], (2, 1, 1), [[1]], [])
    elif isinstance(value, tuple | list):
        rows: list[Any] = list(cast("Sequence[Any]", value))
        kind: Any = type(cast("object", value))
        yield from ([], rows[:-1], [*rows, rows[-1]], rows * 50, rows[0])
        for place, each in enumerate(rows):
            for other in variants(each):
                yield kind([*rows[:place], other, *rows[place + 1 :]])


def absurd(arguments: tuple[Any, ...], options: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls of which one argument is absurd."""
    for place, value in enumerate(arguments):
        for other in variants(value):
            yield (*arguments[:place], other, *arguments[place + 1 :]), options
    for name, value in options.items():
        for other in variants(value):
            yield arguments, {**options, name: other}


def test_the_table_has_every_function() -> None:
    assert set(CALLS) == set(build.__all__) - {"Array"}


def made(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Call a function and make a kernel of its results."""
    found: Any = getattr(build, name)(*arguments, **options)
    results = cast("list[Any]", found if isinstance(found, list) else [found])
    inputs = [X, I, M, V, U, START, S, T, IM, K, C, Q, HEADS, *(array for array in ARRAYS[:-1] if array.size)]
    if name == "size":
        build.kernel("k", [given := build.input("x", "f32", (cast("int", found),))], [given + 1])
    if name not in ("input", "size"):
        for each in results[:2] if name != "kernel" else ():
            build.kernel("k", inputs, [each])


@pytest.mark.parametrize("name", CALLS)
def test_absurd_numbers(name: str) -> None:
    for arguments, options in CALLS[name]:
        made(name, arguments, options)
        for given, named in absurd(arguments, options):
            begun = time.process_time()
            try:
                with bounded_memory(MEMORY):
                    made(name, given, named)
            except PdojoError:
                pass
            except Exception as error:
                raise AssertionError((given, named)) from error
            assert time.process_time() - begun < SECONDS, (given, named)
