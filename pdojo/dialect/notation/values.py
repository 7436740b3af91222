"""The right side of a statement before types are known: inputs and one function application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import SSAValue

from pdojo.dialect.affine import Expr, IndexArray, Size
from pdojo.dialect.notation.source import Span
from pdojo.dialect.table import Table


@dataclass(frozen=True, slots=True)
class ArrayName:
    """A declared array, with the facts that accesses need."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    value: SSAValue
    indices: IndexArray | None = None
    """The range, if it is an array of indices."""


Named: TypeAlias = ArrayName | Table | IndexArray | Size
"""A declared name: of an array or a table in front of brackets, or of a size; of an array of indices where no array can
be read."""


@dataclass(frozen=True, slots=True)
class AccessValue:
    """`x[{0},{1}]`."""

    array: ArrayName
    index: tuple[Expr, ...]
    hints: DictionaryAttr
    span: Span

    @property
    def dtype(self) -> str:
        """The element type of the array."""
        return self.array.dtype


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """`-inf`, `3`, `1.5:f32`; `dtype` is None if the text does not give it."""

    value: float | int
    dtype: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class IndexValue:
    """`{0}*16+{1}`, `index(3)`; `dtype` is None if the text does not give it."""

    expression: Expr
    dtype: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Application:
    """A function, as spelled, and its inputs."""

    spelling: str
    candidates: tuple[str, ...]
    inputs: tuple[InputValue, ...]
    span: Span


InputValue: TypeAlias = AccessValue | ConstantValue | IndexValue
Value: TypeAlias = InputValue | Application
