"""Records of operators: a definition by `pdojo.build`, one in NumPy, and calls of both.

`pdojo.build.records` has the table. Nothing imports it but tests, pages of operators, and the references of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdojo.build.arguments import replaced

_F = TypeVar("_F", bound=Callable[..., Any])
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64")


@dataclass(frozen=True)
class Input:
    """An array of a call."""

    shape: tuple[int, ...]
    dtype: str | None = None
    """The element type of handles; None is the element type of the call."""
    low: float | None = None
    high: float = 1.0
    """Bounds of uniform random elements; normal ones, or all small integers, if `low` is None."""
    whole: bool = False
    """Whether all elements are whole numbers."""
    given: tuple[Any, ...] | None = None
    """The elements in order; None if they are random."""


def array(
    text: str,
    dtype: str | None = None,
    *,
    low: float | None = None,
    high: float = 1.0,
    whole: bool = False,
    given: Sequence[Any] | None = None,
) -> Input:
    """An array of a call with its extents in `text`, such as `3 5`: the fields are those of `Input`."""
    return Input(tuple(map(int, text.split())), dtype, low, high, whole, None if given is None else tuple(given))


@dataclass(frozen=True, eq=False)
class Sample:
    """The arguments of a call, with an `Input` for each array."""

    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    types: tuple[str, ...] | None
    """The element types with which it is called; None is all of its operator."""

    def filled(self, replace: Callable[[Input], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with what `replace` makes of each input, in order."""
        return replaced([*self.arguments], Input, replace), replaced(self.keywords, Input, replace)

    def __str__(self) -> str:
        words = [*map(_shown, self.arguments), *(f"{name}={_shown(value)}" for name, value in self.keywords.items())]
        return f"({', '.join(words)})"


def call(*arguments: Any, types: Sequence[str] | None = None, **keywords: Any) -> Sample:
    """A sample: the arguments of the function, with `array(...)` in the place of each array, in lists too."""
    return Sample(arguments, keywords, None if types is None else tuple(types))


def _shown(value: Any) -> str:
    return f"{value.dtype or ''}{list(value.shape)}" if isinstance(value, Input) else repr(value)


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator.

    To add one, write its reference beside those of its kind in `pdojo/build/records`: a function of NumPy arrays with
    the parameters of the function of `pdojo.build`, decorated by `@operator(build.NAME, call(...), ...)`. Samples have
    odd attributes, negative axes, extents of 1 and of no multiple of vectors, equal elements, repeated indices, NaN and
    infinities where they matter, and no elements where the function takes that. Then give it peers:
    `qa/operators/torch_calls.py` and `qa/operators/onnx_nodes.py` turn a call into one of ATen, and into a node.
    """

    build: Callable[..., Any]
    """The function of handles; its result is a handle or a sequence of them."""
    reference: Callable[..., Any]
    """The same function of NumPy arrays: f64 for floats, the types themselves for integers.

    A parameter `element` of it is the element type of handles of the first array.
    """
    samples: tuple[Sample, ...]
    results: tuple[str, ...] = ("result",)
    """The names of the results."""
    types: tuple[str, ...] = FLOATS
    """The element types of arrays that samples give no type."""
    ulps: float = 8
    """Units in the last place, of the type of the computation, that a result may be off."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.build.__name__)

    def computes_in(self, dtype: str) -> str:
        """The type of the computation for operands of an element type."""
        policy: Mapping[str, str] = getattr(self.build, "policy", {})
        return policy.get(dtype, dtype)


OPERATORS: dict[str, Operator] = {}
"""The table, by name; `pdojo.build.records` fills it."""


def operator(
    build: Callable[..., Any],
    *samples: Sample,
    results: Sequence[str] = ("result",),
    types: Sequence[str] = FLOATS,
    ulps: float = 8,
) -> Callable[[_F], _F]:
    """A decorator that makes a function of NumPy arrays the reference of an operator, in the table."""

    def register(reference: _F) -> _F:
        record = Operator(build, reference, samples, tuple(results), tuple(types), ulps)
        if OPERATORS.setdefault(record.name, record) is not record:
            raise ValueError(f"operator {record.name} has two records")
        return reference

    return register


def values_of(given: Input, dtype: str, seed: int) -> NDArray[Any]:
    """The elements of an input: f64 for floats, rounded to the element type, and the type itself for integers."""
    # The interpreter's tables of types are loaded with the first sample.
    from pdojo.dialect.semantics.rounding import round_float64

    kind = given.dtype or dtype
    generator = np.random.default_rng([seed, *given.shape])
    if kind in FLOATS:
        if given.given is not None:
            exact = np.array(given.given, np.float64).reshape(given.shape)
        elif given.low is None:
            exact = generator.normal(size=given.shape)
        else:
            exact = generator.uniform(given.low, given.high, given.shape)
        exact = np.rint(exact) if given.whole else exact
        return np.asarray(round_float64(exact, kind), np.float64)
    numpy = np.dtype(np.bool_ if kind == "i1" else f"{'uint' if kind[0] == 'u' else 'int'}{kind[1:]}")
    if given.given is not None:
        return np.array(given.given).astype(numpy).reshape(given.shape)
    if given.low is None:
        low, high = (0, 2) if kind == "i1" else (0, 200) if kind[0] == "u" else (-100, 100)
    else:
        low, high = int(given.low), int(given.high)
    return generator.integers(low, high, given.shape).astype(numpy)
