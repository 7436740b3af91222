"""Random inputs of ONNX models, with sizes from the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.kernels.workload import size_of, size_text

if TYPE_CHECKING:
    from pdojo.onnx.model import Input, OnnxModel

Shape: TypeAlias = tuple[int | range, ...]
"""Extents, or ranges of them."""
_EXTENT = r"\d{1,9}(?:\.\.\d{1,9}(?:/[1-9]\d{0,8})?)?"
_EXAMPLE = "--shape batch=4,x=1x3x48x192"


def random_inputs(model: OnnxModel, sizes: str | None, seed: int) -> dict[str, NDArray[Any]]:
    """Random inputs of a model. `sizes` has unknown extents by name, and shapes of inputs: `batch=4,x=1x3x48x192`.

    Other unknown extents are 1. Raises UsageError for sizes that do not fit the model, and for ranges.
    """
    shapes = input_shapes(model, sizes)
    for name, shape in shapes.items():
        for extent in shape:
            if isinstance(extent, range):
                raise UsageError(f"--shape gives input '{name}' the range {size_text(extent)}; a model runs at numbers")
    return inputs_of(model, shapes, seed)


def inputs_of(model: OnnxModel, shapes: Mapping[str, Shape], seed: int) -> dict[str, NDArray[Any]]:
    """Random inputs of these shapes, at the least values of ranges. Raises UsageError if there is no memory."""
    random = np.random.default_rng(seed)
    least = {name: [each if isinstance(each, int) else each[0] for each in shape] for name, shape in shapes.items()}
    return {each.name: _random(each, least[each.name], random) for each in model.inputs}


def input_shapes(model: OnnxModel, sizes: str | None) -> dict[str, Shape]:
    """The shape of each input, as for `random_inputs`; extents may be ranges: `batch=1..8`. Raises UsageError."""
    inputs = {each.name: each for each in model.inputs}
    extents: dict[str, int | range] = {}
    names = {extent for each in model.inputs for extent in each.shape or () if isinstance(extent, str)}
    shapes: dict[str, Shape] = {}
    for name, numbers in _sizes(sizes).items():
        if name in names and len(numbers) == 1:
            _set(extents, name, numbers[0])
        elif name in inputs:
            _check(inputs[name], numbers)
            shapes[name] = numbers
            for extent, number in zip(inputs[name].shape or (), numbers, strict=False):
                if isinstance(extent, str):
                    _set(extents, extent, number)
        else:
            known = (
                f"its unknown extents are {', '.join(sorted(names))}"
                if names
                else "all extents of its shapes are known"
            )
            raise UsageError(
                f"model '{model.name}' has no extent or input '{name}'; {known}, its inputs are {', '.join(inputs)}"
            )
    for name, each in inputs.items():
        if each.shape is None and name not in shapes:
            raise UsageError(f"input '{name}' has no declared shape; give it one, as in --shape {name}=1x3x224x224")
        declared = [extents.get(e, 1) if isinstance(e, str) else 1 if e is None else e for e in each.shape or ()]
        shapes.setdefault(name, tuple(declared))
    return shapes


def _sizes(text: str | None) -> dict[str, Shape]:
    """The numbers and ranges that the command line gives for each name."""
    found: dict[str, Shape] = {}
    for part in text.split(",") if text else ():
        name, equals, numbers = part.rpartition("=")
        if not equals or not re.fullmatch(rf"{_EXTENT}(x{_EXTENT})*", numbers, re.ASCII):
            raise UsageError(f"'{part}' is no size of a model; write NAME=NUMBER or INPUT=AxBxC, as in {_EXAMPLE}")
        if name in found:
            raise UsageError(f"--shape gives '{name}' twice")
        found[name] = tuple(map(_extent, numbers.split("x")))
    return found


def _extent(text: str) -> int | range:
    """A number, or a range of several. Raises UsageError for a range without values."""
    found = size_of(text)
    if isinstance(found, int):
        return found
    values = range(-(-max(found.start, 1) // found.step) * found.step, found.stop, found.step)
    if not values:
        raise UsageError(f"the range {text} has no values")
    if found.start == 0:
        raise UsageError(f"the range {text} begins at 0; the sizes of a model are at least 1")
    return values if len(values) > 1 else values[0]


def _set(extents: dict[str, int | range], name: str, number: int | range) -> None:
    if extents.setdefault(name, number) != number:
        raise UsageError(f"--shape makes extent '{name}' both {size_text(extents[name])} and {size_text(number)}")


def _check(given: Input, numbers: Shape) -> None:
    """Raise UsageError for a shape that contradicts the declared one."""
    if given.shape is None:
        return
    shown = "x".join(map(size_text, numbers))
    if len(numbers) != len(given.shape):
        raise UsageError(f"input '{given.name}' has {len(given.shape)} dimensions, {given.declared}, and not {shown}")
    for axis, (extent, number) in enumerate(zip(given.shape, numbers, strict=True)):
        if isinstance(extent, int) and extent != number:
            raise UsageError(
                f"input '{given.name}' is {given.declared}: axis {axis} has {extent} elements, not {size_text(number)}"
            )


def _random(given: Input, shape: Sequence[int], random: np.random.Generator) -> NDArray[Any]:
    """Floating-point numbers from -1 to 1, whole numbers from 0 to 9, truth values."""
    try:
        if given.dtype == np.bool_:
            return random.integers(0, 2, shape).astype(np.bool_)
        if np.issubdtype(given.dtype, np.integer):
            return random.integers(0, 10, shape).astype(given.dtype)
        return random.uniform(-1, 1, shape).astype(given.dtype)
    except (MemoryError, ValueError):
        raise UsageError(f"there is no memory for input '{given.name}' of shape {'x'.join(map(str, shape))}") from None
