"""Operations that are composite functions, as statements on scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pdojo.dialect.element_types import is_float
from pdojo.dialect.notation.spelling import CALLS, INFIX, PREFIX, resolve
from pdojo.dialect.view.nest import Constant, Input
from pdojo.math.composites import COMPOSITES
from pdojo.math.composites.elements import Element
from pdojo.math.functions import FUNCTIONS, Signature

Statement: TypeAlias = Callable[[str, Sequence[Input], str], Input]
"""Adds a statement that computes a function of inputs in an element type; returns its value."""

OPERATIONS = {f"math.{name}": name for name in "acos acosh asin asinh atan2 atanh cosh log10 sinh tan".split()}
"""The composites that operations of MLIR compute."""


@dataclass(eq=False)
class ScalarElement(Element):
    """A scalar: a function that is not computed yet, or the only one of `inputs`."""

    dtype: str
    function: str | None
    inputs: list[Input]
    statement: Statement = field(repr=False)

    @property
    def input(self) -> Input:
        """The value; a function is computed by a statement, once."""
        if self.function is not None:
            self.inputs, self.function = [self.statement(self.dtype, self.inputs, self.function)], None
        return self.inputs[0]

    @property
    def known(self) -> float | None:
        """The number of a constant."""
        return value.value if self.function is None and isinstance(value := self.inputs[0], Constant) else None

    def cast(self, dtype: str) -> ScalarElement:
        """The scalar in another element type."""
        if dtype == self.dtype:
            return self
        if self.known is not None:
            return self._number(self.known, dtype)
        function = resolve("cast", CALLS["cast"], [self.dtype], dtype).function
        return ScalarElement(dtype, function, [self.input], self.statement)

    def mapped(self, function: str, operands: Sequence[Any], parameters: Mapping[str, Any]) -> ScalarElement:
        """A function of scalars and numbers by its name."""
        own = next(each for each in reversed(operands) if isinstance(each, ScalarElement)).dtype
        scalars = [each if isinstance(each, ScalarElement) else self._number(each, own) for each in operands]
        if function in COMPOSITES:
            found = COMPOSITES[function].applied(scalars, parameters)
            assert isinstance(found, ScalarElement)
            return found
        candidates = (PREFIX if len(scalars) == 1 else INFIX).get(function) or CALLS[function]
        compares = FUNCTIONS[candidates[0]].signature in (Signature.COMPARE_FLOAT, Signature.COMPARE_INTEGER)
        result = "i1" if compares else scalars[-1].dtype
        name = resolve(function, candidates, [each.dtype for each in scalars], result).function
        return ScalarElement(result, name, [each.input for each in scalars], self.statement)

    def _number(self, number: float, dtype: str) -> ScalarElement:
        value = Constant(float(number) if is_float(dtype) else int(number), dtype)
        return ScalarElement(dtype, None, [value], self.statement)
