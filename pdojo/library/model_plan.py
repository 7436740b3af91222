"""The plan of a model in a library: the calls of its kernels, and where each finds its arrays.

Manifests have plans as they are. Extents and sizes in bytes are numbers, or expressions of the sizes that calls choose.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, TypeAlias

from pdojo.build.numbers import storage_of
from pdojo.dialect.functions import byte_width
from pdojo.library.records import Array, Entry, Sizes

Extent: TypeAlias = int | str
PlaceKind: TypeAlias = Literal["input", "output", "weight", "block"]


@dataclass(frozen=True)
class Place:
    """Where an argument of a call is."""

    kind: PlaceKind
    """An input or an output of the model, a weight, or a block of intermediates."""
    number: int
    """Its number among those of its kind."""
    offset: Extent
    """Bytes before it there."""


@dataclass(frozen=True)
class Weight:
    """An array that the model has."""

    offset: int
    """Its place in the file of weights, a multiple of 64."""
    bytes: int


@dataclass(frozen=True)
class Block:
    """Memory of intermediates."""

    bytes: Extent
    below: tuple[int, ...]
    """The numbers of blocks before it that it does not share memory with: it lies behind all of them."""


@dataclass(frozen=True)
class Call:
    """A call of a kernel."""

    kernel: int
    """The number of its entry."""
    arguments: tuple[Place, ...]
    """Its arrays, in the order of the kernel's."""
    sizes: tuple[Extent, ...]
    """Its sizes, in the order of the kernel's."""


@dataclass(frozen=True)
class Copy:
    """An output that no kernel writes."""

    output: int
    source: Place


@dataclass(frozen=True)
class ModelPlan:
    """A model of a library."""

    name: str
    """The C function without the library's prefix."""
    sizes: Sizes
    """The ranges of the sizes that calls choose, in the order of the function's arguments."""
    arrays: tuple[Array, ...]
    """Inputs, then outputs."""
    kernels: tuple[Entry, ...]
    """The entries of its kernels, which are no functions of the library."""
    weights: tuple[Weight, ...]
    is_apart: bool
    """Whether the weights are a file beside the library, not a part of it."""
    digest: str
    """SHA-256 of the weights."""
    blocks: tuple[Block, ...]
    calls: tuple[Call, ...]
    copies: tuple[Copy, ...]

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The inputs."""
        return tuple(array for array in self.arrays if array.direction == "in")

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The outputs."""
        return tuple(array for array in self.arrays if array.direction == "out")

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return max((-(-(each.offset + each.bytes) // 64) * 64 for each in self.weights), default=0)

    @property
    def weights_path(self) -> str:
        """The file of weights, relative to the library's folder."""
        return weights_path(self.name)


def weights_path(model: str) -> str:
    """The file of a model's weights, relative to the library's folder."""
    return f"weights/{model}.bin"


def with_kernels(plan: ModelPlan, kernels: tuple[Entry, ...]) -> ModelPlan:
    """The plan with the entries of its kernels, in their order."""
    return replace(plan, kernels=kernels)


def bytes_at(array: Array, sizes: Mapping[str, int]) -> int:
    """The bytes of an array at sizes. Raises ValueError like `value_of`."""
    return prod(shape_at(array, sizes)) * byte_width(storage_of(array.dtype))


def shape_at(array: Array, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array at sizes. Raises ValueError like `value_of`."""
    return tuple(value_of(extent, sizes) for extent in array.shape)


def value_of(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The value of an extent at sizes. Raises ValueError for a text that is no expression of them."""
    return extent if isinstance(extent, int) else _value(ast.parse(extent, mode="eval").body, sizes)


def _value(node: ast.AST, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if name in sizes:
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left, sizes) + _value(right, sizes)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left, sizes) - _value(right, sizes)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left, sizes) * _value(right, sizes)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return _value(left, sizes) // _value(right, sizes)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return _value(left, sizes) % _value(right, sizes)
        case _:
            raise ValueError(f"no expression of sizes: {ast.unparse(node)}")


def plan_from_json(data: Mapping[str, Any], entry: Callable[[Any], Entry], sizes: Callable[[Any], Sizes]) -> ModelPlan:
    """The inverse of `asdict`; `entry` and `sizes` read parts. Raises KeyError or TypeError for other data."""
    arrays = tuple(Array(a["name"], a["dtype"], tuple(a["shape"]), a["direction"]) for a in data["arrays"])
    calls = [
        Call(each["kernel"], tuple(Place(**place) for place in each["arguments"]), tuple(each["sizes"]))
        for each in data["calls"]
    ]
    values: dict[str, Any] = {
        **data,
        "sizes": sizes(data["sizes"]),
        "arrays": arrays,
        "kernels": tuple(map(entry, data["kernels"])),
        "weights": tuple(Weight(**each) for each in data["weights"]),
        "blocks": tuple(Block(each["bytes"], tuple(each["below"])) for each in data["blocks"]),
        "calls": tuple(calls),
        "copies": tuple(Copy(each["output"], Place(**each["source"])) for each in data["copies"]),
    }
    return ModelPlan(**values)
