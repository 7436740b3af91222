"""The record of a composite function: its formula, its parameters, the types it computes in, its exact meaning."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites.elements import FLOATS, Element

Formula: TypeAlias = Callable[..., Element]
"""A function of elements, and of parameters by name."""
Reference: TypeAlias = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)
"""The exact function of arrays of f64, or of integers, and of the parameters in their order."""


class Precision(Enum):
    """The element type in which a formula is computed; its result is rounded once."""

    OWN = auto()
    """The type of the operands, which may be integers: no step rounds."""
    WIDE = auto()
    """f32 for f16 and bf16, else the type of the operands."""
    DOUBLE = auto()
    """f64. Results are exact to f32, and there are none of f64."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The greatest error of a result in f32 or f64, over the sampled arguments.

    No error means the bits that the reference gives for arrays of f32 or f64; other references are of f64.
    """

    ulps: float
    """Units in the last place of the exact result."""
    beside: float = 0.0
    """Units in the last place of 1, which are added: for results that cancel, or that underflow on the way."""


@dataclass(frozen=True, slots=True)
class Composite:
    """A function of elements that is a formula of functions of statements and of other composites."""

    name: str
    formula: Formula
    operands: tuple[str, ...]
    """The names of the operands, which have one element type."""
    parameters: Mapping[str, Any]
    """The parameters with their defaults."""
    precision: Precision
    reference: Reference
    accuracy: Accuracy
    points: tuple[float, ...]
    """Arguments beside those that all functions are tested at: poles, ties, ends of pieces."""
    domain: tuple[float, float]
    """The least and the greatest argument that the function is tested at."""
    variants: tuple[Mapping[str, Any], ...]
    """The parameters that the function is tested with; the first ones are the defaults."""
    integers: bool
    """Whether the operands may be integers."""

    @property
    def summary(self) -> str:
        """One sentence."""
        return inspect.getdoc(self.formula) or ""

    def exact(self, *operands: NDArray[Any], **parameters: Any) -> NDArray[Any]:
        """The exact results of arrays of f64 or of integers, in f64, or of integers or truth values."""
        reference: Callable[..., Any] = self.reference
        return np.asarray(reference(*operands, *{**self.parameters, **parameters}.values()))

    def applied(self, operands: Sequence[Element], parameters: Mapping[str, Any]) -> Element:
        """The function of operands of one type that it takes: truth values, or numbers of that type, rounded once."""
        dtype = operands[0].dtype
        computing = self.computing(dtype)
        assert computing is not None, (self.name, dtype)

        def cast(value: Any) -> Any:
            return value.cast(computing) if isinstance(value, Element) else value

        elements = [cast(each) for each in operands]
        found = self.formula(*elements, **{name: cast(value) for name, value in parameters.items()})
        return found.cast(dtype) if found.dtype == computing else found

    def computing(self, dtype: str) -> str | None:
        """The element type in which the formula is computed for operands of a type; None if it does not take them."""
        if dtype not in FLOATS:
            return dtype if self.integers else None
        if self.precision is Precision.OWN:
            return dtype
        if self.precision is Precision.WIDE:
            return "f64" if dtype == "f64" else "f32"
        return None if dtype == "f64" else "f64"


COMPOSITES: dict[str, Composite] = {}
"""Every composite function, keyed by name; importing `pdojo.math.composites` fills it."""


def composite(
    reference: Reference,
    accuracy: Accuracy,
    *,
    precision: Precision = Precision.WIDE,
    points: Sequence[float] = (),
    domain: tuple[float, float] = (-math.inf, math.inf),
    variants: Sequence[Mapping[str, Any]] = (),
    integers: bool = False,
) -> Callable[[Formula], Formula]:
    """A decorator that makes a formula a composite function: operands are positional, parameters by name."""

    def register(formula: Formula) -> Formula:
        known = inspect.signature(formula).parameters.values()
        operands = tuple(each.name for each in known if each.kind is not inspect.Parameter.KEYWORD_ONLY)
        defaults = {each.name: each.default for each in known if each.name not in operands}
        name = formula.__name__
        if name in COMPOSITES:
            raise ValueError(f"composite {name} has two records")
        COMPOSITES[name] = Composite(
            name,
            formula,
            operands,
            defaults,
            precision,
            reference,
            accuracy,
            tuple(points),
            domain,
            ({}, *variants),
            integers,
        )
        return formula

    return register
