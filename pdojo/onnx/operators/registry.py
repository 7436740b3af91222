"""The table of lowerings: functions from a node's operands to handles of its results.

A lowering sees one node with operands of known shape. It returns handles, or NumPy arrays for results that are known
without running anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.array import scalar
from pdojo.build.pieces import MOST_PIECES
from pdojo.build.sizes import OpenExtent
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.errors import UsageError
from pdojo.model.element_types import element_type, numpy_type, uniform
from pdojo.model.extents import is_extents

Known: TypeAlias = NDArray[Any]
"""A value that is known before the model runs: an initialiser, a constant, a folded or a specialised value."""
Value: TypeAlias = build.Array | Known
"""A value of the graph; one without elements is always known."""
Lowering: TypeAlias = "Callable[[Node], Value | Sequence[Value]]"
_L = TypeVar("_L", bound=Lowering)
_Word = TypeVar("_Word", bound=str)


class UnsupportedNode(UsageError):
    """A node that no kernel can be made of; the message names the node, its operator, and the reason."""


class InvalidNode(UnsupportedNode):
    """A node that contradicts the definition of its operator, so that no function can take its place either."""


class NeedsValue(Exception):
    """A lowering needs the value of an operand that is not known yet."""

    def __init__(self, operand: int) -> None:
        super().__init__(operand)
        self.operand = operand


class NeedsParts(Exception):
    """A lowering needs parts of an operand as arrays of their own, in the place of the operand."""

    def __init__(self, operand: int, split: Callable[[Any], Sequence[Value]]) -> None:
        super().__init__(operand)
        self.operand, self.split = operand, split


class NeedsArrays(Exception):
    """A lowering needs computed arrays in memory, such as indices, which an operation of its own computes first.

    `make` lowers that operation, of the same operands. `then` lowers the rest; its operands are those at the places
    `kept`, and the arrays. `is_copy`: no kernel reads through the operation, if it puts elements into another order.
    """

    def __init__(self, make: Lowering, then: Lowering, kept: Sequence[int] = (0,), *, is_copy: bool = False) -> None:
        super().__init__(make, then, kept)
        self.make, self.then, self.kept, self.is_copy = make, then, tuple(kept), is_copy


@dataclass
class Node:
    """A node of the graph as its lowering sees it."""

    op_type: str
    domain: str
    name: str
    opset: int
    """The version of the operator set of `domain` that the model imports."""
    inputs: tuple[Value | None, ...]
    """The operands; None for optional ones that are absent."""
    outputs: tuple[str, ...]
    """Names of the results; empty for those that nobody wants."""
    attributes: Mapping[str, Any]
    """Python values: int, float, str, tuples of them, arrays for tensors, a GraphProto for a graph."""
    constants: dict[int, build.Array] = field(default_factory=dict[int, build.Array])
    """Handles of operands that are known, keyed by operand: inputs of the kernel, bound by the model."""
    prefix: str = "k"
    """The first letters of the names of these inputs."""

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or `default` if the node lacks it."""
        return self.attributes.get(name, default)

    def given(self, operand: int) -> bool:
        """Whether an operand is present."""
        return operand < len(self.inputs) and self.inputs[operand] is not None

    def value(self, operand: int) -> Value:
        """An operand. Raises UnsupportedNode if it is absent."""
        found = self.inputs[operand] if operand < len(self.inputs) else None
        if found is None:
            self.refuse(f"operand {operand} is absent")
        return found

    def array(self, operand: int) -> build.Array:
        """The handle of an operand. A known operand becomes an input of the kernel; a single number stays a number."""
        value = self.value(operand)
        if isinstance(value, build.Array):
            return value
        if is_extents(value):
            return self._number(value)
        if value.size <= 1:
            return uniform(value)
        if operand not in self.constants:
            kind = element_type(value.dtype)
            self.constants[operand] = build.input(f"{self.prefix}{operand}", kind, value.shape, const=True)
        return self.constants[operand]

    def indices(self, operand: int) -> build.Array | NDArray[np.int64]:
        """Indices; the values of known ones that kernels have as a table or as evenly spaced parts."""
        value = self.value(operand)
        if isinstance(value, build.Array):
            return value
        known = value.astype(np.int64)
        is_large = known.size > MOST_ENTRIES and np.count_nonzero(np.diff(known.reshape(-1), 2)) > MOST_PIECES
        return self.array(operand) if is_large else known

    def _number(self, value: Known) -> build.Array:
        """The handle of an extent that depends on sizes. Raises OpenExtent for several."""
        if value.size > 1:
            raise OpenExtent("a shape that depends on sizes is an array of numbers here")
        return build.broadcast_to(scalar(value.reshape(()).item(), "i64"), value.shape)

    def constant(self, values: Known, dtype: str) -> build.Array:
        """The handle, of an element type, of values that a lowering made: a further operand, which is known."""
        self.inputs = (*self.inputs, values.astype(numpy_type(dtype), copy=False))
        return self.array(len(self.inputs) - 1)

    def static(self, operand: int) -> Known:
        """The value of an operand. Raises NeedsValue if it is not known before the model runs."""
        value = self.value(operand)
        if isinstance(value, build.Array):
            raise NeedsValue(operand)
        return value

    def refuse(self, reason: str) -> NoReturn:
        """Raise UnsupportedNode with the reason."""
        raise UnsupportedNode(f"node '{self.name}' ({self.op_type}): {reason}")

    def choice(self, name: str, allowed: Sequence[_Word], default: _Word | None = None) -> _Word:
        """The value of an attribute, one of the `allowed`; the first of them by default. Raises InvalidNode."""
        found = self.attributes.get(name, allowed[0] if default is None else default)
        if found not in allowed:
            self.contradicts(f"attribute '{name}' is '{found}', not one of {', '.join(allowed)}")
        return found

    def contradicts(self, reason: str) -> NoReturn:
        """Raise InvalidNode with the reason."""
        raise InvalidNode(f"node '{self.name}' ({self.op_type}): {reason}")


MOST_BYTES = 1 << 31
"""Most bytes of a value that is computed before the model runs."""


def check_room(size: int) -> None:
    """Raise MemoryError for a value of `size` bytes that is too large to be known before the model runs."""
    if size > MOST_BYTES:
        raise MemoryError(f"{size} bytes; values that are known before the model runs have at most {MOST_BYTES}")


_LOWERINGS: dict[tuple[str, str], dict[int, Lowering]] = {}


def operator(*names: str, domain: str = "", since: int = 1) -> Callable[[_L], _L]:
    """A decorator that registers the lowering of operators from version `since` of their operator set on."""

    def register(lowering: _L) -> _L:
        for name in names:
            versions = _LOWERINGS.setdefault((_domain(domain), name), {})
            if since in versions:
                raise ValueError(f"operator {name} has two lowerings since version {since}")
            versions[since] = lowering
        return lowering

    return register


def lowering_of(op_type: str, domain: str, opset: int) -> Lowering | None:
    """The newest lowering for a version of the operator set; None if there is none."""
    versions = _LOWERINGS.get((_domain(domain), op_type), {})
    return versions[max(found)] if (found := [since for since in versions if since <= opset]) else None


def registered() -> Mapping[tuple[str, str], Sequence[int]]:
    """All operators with a lowering, as (domain, name), and the versions since which lowerings apply."""
    return {key: sorted(versions) for key, versions in _LOWERINGS.items()}


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
