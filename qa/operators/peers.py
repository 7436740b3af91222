"""Calls of peers, made of samples of operators. An argument that a peer lacks is no parameter of its function here."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdojo.build.arguments import listed, replaced
from pdojo.build.operator import Input, Operator, Sample, values_of


class AbsentError(Exception):
    """A peer computes no such call; the message says why."""


@dataclass(eq=False)
class Operand:
    """An array of a call."""

    values: NDArray[Any]
    """f64 for floats, rounded to the element type; the type itself for integers."""
    dtype: str
    """The element type of handles."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.values.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.values.ndim


@dataclass(frozen=True)
class ElementType:
    """An element type among the arguments of a call."""

    name: str
    """The element type of handles."""


@dataclass(frozen=True)
class Call:
    """A call of an operator; arguments are `Operand`s, NumPy arrays of known values, `ElementType`s, or anything."""

    operator: str
    """`add.Tensor` of ATen, or `pdojo.lstm.default`."""
    arguments: Sequence[Any]
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    read: tuple[int, ...] | None = None
    """The numbers of the results that are the operator's; None is all in order, as far as both have them."""
    shapes: Sequence[tuple[int, ...]] | None = None
    """The shapes of the operator's results, if the call's are others of the same elements."""

    @property
    def full(self) -> str:
        """The name with its namespace."""
        return self.operator if self.operator.count(".") > 1 else f"aten.{self.operator}"


@dataclass(frozen=True)
class Node:
    """A node of ONNX; inputs are `Operand`s, NumPy arrays of known values, or None."""

    operator: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    opset: int = 23
    domain: str = ""
    read: tuple[int | None, ...] | None = None
    """The numbers of the results that are the operator's, None for those that the node lacks; None is all in order."""
    shapes: Sequence[tuple[int, ...]] | None = None
    """The shapes of the operator's results, if the node's are others of the same elements."""


Peer: TypeAlias = Callable[..., Any]
_P = TypeVar("_P", bound=Peer)
Table: TypeAlias = dict[str, list[Peer]]
"""Peers by the names of operators."""


def peer(table: Table, *names: str) -> Callable[[_P], _P]:
    """A decorator that gives operators a peer: a function of a sample's arguments, with operands for arrays."""

    def register(function: _P) -> _P:
        for name in names:
            table.setdefault(name, []).append(function)
        return function

    return register


def operands_of(sample: Sample, dtype: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a sample with random operands, the same in every call."""
    seeds = iter(range(100))

    def made(given: Input) -> Operand:
        return Operand(values_of(given, dtype, next(seeds)), given.dtype or dtype)

    return sample.filled(made)


def asked(function: Peer, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The call of a peer. Raises AbsentError for an argument that it lacks."""
    try:
        inspect.signature(function).bind(*arguments, **keywords)
    except TypeError as error:
        raise AbsentError(f"it has no such argument: {error}") from None
    return function(*arguments, **keywords)


def wanted(record: Operator, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[NDArray[Any]]:
    """The results of the reference; one with a parameter `element` gets the type of the first array."""
    if "element" in inspect.signature(record.reference).parameters:
        keywords = {**keywords, "element": arguments[0].dtype}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        made = record.reference(*_bare(arguments), **_bare(keywords))
    return [np.asarray(each) for each in listed(made)]


def _bare(value: Any) -> Any:
    return replaced(value, Operand, lambda operand: operand.values)
