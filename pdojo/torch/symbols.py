"""The symbols of a graph as sizes: expressions of Dynamo's symbols as extents that hold for ranges of sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add, getitem, mul
from typing import Any, NamedTuple, TypeAlias, cast

import sympy
import torch
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_symbols
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, PythonMod

from pdojo.build.sizes import OpenExtent, lesser, open_extent
from pdojo.dialect.affine import Size

_ROOM = 8
"""The greatest value of a size is this many times the greatest one seen, or more."""
_LEAST_ROOM = 64
_FUNCTIONS: dict[Any, Callable[[int, int], int]] = {
    FloorDiv: lambda a, b: a // b,
    CleanDiv: lambda a, b: a // b,
    Mod: lambda a, b: a % b,
    PythonMod: lambda a, b: a % b,
    Min: lesser,
    Max: lambda a, b: a + b - lesser(a, b),
}


@dataclass(frozen=True)
class OpenTensor:
    """A tensor of a graph whose extents depend on sizes, without memory: what the planning asks of an example."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout

    def stride(self) -> tuple[int, ...]:
        """The strides in elements; 0 for those that are no extents."""
        return self.strides

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def storage_offset(self) -> int:
        """The place of the first element in memory."""
        return self.offset


Example: TypeAlias = torch.Tensor | OpenTensor
"""A tensor of a graph, without memory."""


def is_example(value: object) -> bool:
    """Whether a value of a graph is a tensor."""
    return isinstance(value, torch.Tensor | OpenTensor)


class SizedSymbol(NamedTuple):
    """A symbol as a size and a number that is added to it."""

    size: Size
    offset: int

    @property
    def extent(self) -> int:
        """The value of the symbol."""
        return open_extent(self.size.expression + self.offset)


class Symbols:
    """The symbols of a graph, and where its arguments have their values."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._places: dict[sympy.Symbol, Callable[[Sequence[Any]], int]] = {}
        self.environment: ShapeEnv | None = None
        for position, node in enumerate(placeholders):
            self._find(position, node.meta["val"])

    @staticmethod
    def of(module: GraphModule) -> Symbols | None:
        """The symbols of a graph; None if arguments have some in expressions only."""
        found = Symbols(module)
        values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
        symbols = {symbol for value in values for symbol in free_symbols(_numbers(value))}
        return found if symbols <= found._places.keys() else None

    def values(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The values of all symbols in a call."""
        return tuple([place(arguments) for place in self._places.values()])

    def opened(self, sized: Sequence[SizedSymbol]) -> GraphModule:
        """The graph with extents of sizes in the place of symbols, wherever these are extents.

        Raises OpenExtent if shapes are not known before the graph runs.
        """
        sizes = {symbol: each.extent for symbol, each in zip(self._places, sized, strict=True)}
        found = copy.deepcopy(self.module)
        for node, made in zip(self.module.graph.nodes, found.graph.nodes, strict=True):
            if "val" in node.meta:
                made.meta["val"] = _opened(node.meta["val"], sizes)
            elif node.op == "call_function" and any(user.target is not getitem for user in node.users):
                raise OpenExtent(f"PyTorch does not tell the shape of {node.name}")
        return found

    def sizes(self, values: Sequence[int], before: Sequence[int]) -> list[SizedSymbol] | None:
        """A size for each symbol whose range has its value, and one before; None if one has no range, such as 0."""
        found: list[SizedSymbol] = []
        for symbol, value, known in zip(self._places, values, before or [0] * len(values), strict=True):
            assert self.environment is not None
            given = self.environment.var_to_range[symbol]
            low, room = max(1, int(given.lower)), max(_LEAST_ROOM, _ROOM * value, known)
            high = int(sympy.Min(1 << (room - 1).bit_length(), given.upper))
            if not low <= value <= high:
                return None
            found.append(SizedSymbol(Size(symbol.name, low, high), 0))
        return found

    def _find(self, position: int, value: Any) -> None:
        """Note the symbols of an argument that it has by themselves."""
        if isinstance(value, torch.SymInt):
            self._note(value, partial(_argument, position))
        elif isinstance(value, torch.Tensor):
            for axis, extent in enumerate(value.shape):
                self._note(extent, partial(_extent, position, axis))
            for axis, stride in enumerate(value.stride() if value.layout == torch.strided else ()):
                self._note(stride, partial(_stride, position, axis))

    def _note(self, number: Any, place: Callable[[Sequence[Any]], int]) -> None:
        if isinstance(number, torch.SymInt):
            self.environment = number.node.shape_env
            if isinstance(number.node.expr, sympy.Symbol) and not _is_unbacked(number):
                self._places.setdefault(number.node.expr, place)


def joined(sized: Sequence[SizedSymbol], values: Sequence[int]) -> list[SizedSymbol]:
    """The sizes of symbols, of which those of neighbouring values are one size and a difference.

    The lengths of several caches are one number, for which Dynamo has as many symbols.
    """
    found: list[SizedSymbol] = []
    for (size, _), value in zip(sized, values, strict=True):
        others = [(each, value - other) for each, other in zip(found, values, strict=False) if not each.offset]
        near = next(((each.size, difference) for each, difference in others if abs(difference) <= 1), None)
        found.append(SizedSymbol(size, 0) if near is None else SizedSymbol(*near))
    rows = list(zip(found, sized, strict=True))
    lows: dict[str, int] = {}
    highs: dict[str, int] = {}
    for (size, offset), (own, _) in rows:
        lows[size.name] = max(lows.get(size.name, 1), own.low - offset)
        highs[size.name] = min(highs.get(size.name, own.high), own.high - offset)
    return [SizedSymbol(Size(size.name, lows[size.name], highs[size.name]), offset) for size, offset in found]


def known_sizes(sized: Sequence[SizedSymbol], values: Sequence[int]) -> dict[Size, int] | None:
    """The values of sizes for these values of symbols; None if a symbol has a value that is not in its range."""
    found: dict[Size, int] = {}
    for (size, offset), value in zip(sized, values, strict=True):
        if found.setdefault(size, value - offset) != value - offset or not size.low <= value - offset <= size.high:
            return None
    return found


def _numbers(value: Any) -> list[Any]:
    """The numbers that an argument has, or is."""
    if not isinstance(value, torch.Tensor):
        return [value] if isinstance(value, torch.SymInt) else []
    strides = (*value.stride(), value.storage_offset()) if value.layout == torch.strided else ()
    return [each for each in (*value.shape, *strides) if isinstance(each, torch.SymInt)]


def _argument(position: int, arguments: Sequence[Any]) -> int:
    return int(arguments[position])


def _extent(position: int, axis: int, arguments: Sequence[Any]) -> int:
    return arguments[position].shape[axis]


def _stride(position: int, axis: int, arguments: Sequence[Any]) -> int:
    return arguments[position].stride()[axis]


def _is_unbacked(number: torch.SymInt) -> bool:
    environment: ShapeEnv = number.node.shape_env
    return any(environment.is_unbacked_symint(each) for each in free_symbols(number))


def _opened(value: Any, sizes: Mapping[sympy.Symbol, int]) -> Any:
    """A value of a node; a number that is no extent stays what it is."""
    if isinstance(value, tuple | list):
        return tuple(_opened(each, sizes) for each in value)
    if isinstance(value, torch.SymInt):
        return _number(value, sizes)
    if not isinstance(value, torch.Tensor) or not value._has_symbolic_sizes_strides:
        return value
    shape = tuple(_number(each, sizes) for each in value.shape)
    is_strided = value.layout == torch.strided
    strides = [_number(each, sizes) for each in (value.stride() if is_strided else ())]
    known = tuple(0 if isinstance(each, torch.SymInt) else each for each in strides)
    offset = _number(value.storage_offset(), sizes) if is_strided else 0
    return OpenTensor(shape, known, offset, value.dtype, value.device, value.layout)


def _number(value: Any, sizes: Mapping[sympy.Symbol, int]) -> Any:
    """A number as an extent; the symbol itself if it is none."""
    if not isinstance(value, torch.SymInt):
        return value
    try:
        return extent_of(value.node.expr, sizes)
    except OpenExtent:
        return value


def extent_of(expression: sympy.Basic, sizes: Mapping[sympy.Symbol, int]) -> int:
    """An expression of symbols as an extent. Raises OpenExtent if it is none."""
    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Symbol) and expression in sizes:
        return sizes[expression]
    if isinstance(expression, sympy.Pow) and isinstance(expression.exp, sympy.Integer) and expression.exp > 0:
        base = extent_of(expression.base, sizes)
        return reduce(mul, [base] * int(expression.exp))
    parts = [extent_of(cast("sympy.Basic", each), sizes) for each in expression.args]
    if isinstance(expression, sympy.Add):
        return reduce(add, parts)
    if isinstance(expression, sympy.Mul):
        return reduce(mul, parts)
    function = _FUNCTIONS.get(expression.func)
    if function is None:
        raise OpenExtent(f"{expression} is no extent")
    return reduce(function, parts)
