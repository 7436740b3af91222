"""Random inputs of ONNX models, with sizes from the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError

if TYPE_CHECKING:
    from pdojo.onnx.model import Input, OnnxModel

_EXAMPLE = "--shape batch=4,x=1x3x48x192"


def random_inputs(model: OnnxModel, sizes: str | None, seed: int) -> dict[str, NDArray[Any]]:
    """Random inputs of a model. `sizes` has unknown extents by name, and shapes of inputs: `batch=4,x=1x3x48x192`.

    Other unknown extents are 1. Raises UsageError for sizes that do not fit the model.
    """
    shapes = _shapes(model, sizes)
    random = np.random.default_rng(seed)
    return {each.name: _random(each, shapes[each.name], random) for each in model.inputs}


def _shapes(model: OnnxModel, sizes: str | None) -> dict[str, tuple[int, ...]]:
    """The shape of each input."""
    inputs = {each.name: each for each in model.inputs}
    extents: dict[str, int] = {}
    names = {extent for each in model.inputs for extent in each.shape or () if isinstance(extent, str)}
    shapes: dict[str, tuple[int, ...]] = {}
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


def _sizes(text: str | None) -> dict[str, tuple[int, ...]]:
    """The numbers that the command line gives for each name."""
    found: dict[str, tuple[int, ...]] = {}
    for part in text.split(",") if text else ():
        name, equals, numbers = part.rpartition("=")
        if not equals or not re.fullmatch(r"\d{1,9}(x\d{1,9})*", numbers):
            raise UsageError(f"'{part}' is no size of a model; write NAME=NUMBER or INPUT=AxBxC, as in {_EXAMPLE}")
        if name in found:
            raise UsageError(f"--shape gives '{name}' twice")
        found[name] = tuple(map(int, numbers.split("x")))
    return found


def _set(extents: dict[str, int], name: str, number: int) -> None:
    if extents.setdefault(name, number) != number:
        raise UsageError(f"--shape makes extent '{name}' both {extents[name]} and {number}")


def _check(given: Input, numbers: tuple[int, ...]) -> None:
    """Raise UsageError for a shape that contradicts the declared one."""
    if given.shape is None:
        return
    shown = "x".join(map(str, numbers))
    if len(numbers) != len(given.shape):
        raise UsageError(f"input '{given.name}' has {len(given.shape)} dimensions, {given.declared}, and not {shown}")
    for axis, (extent, number) in enumerate(zip(given.shape, numbers, strict=True)):
        if isinstance(extent, int) and extent != number:
            raise UsageError(
                f"input '{given.name}' is {given.declared}: axis {axis} has {extent} elements, not {number}"
            )


def _random(given: Input, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Floating-point numbers from -1 to 1, whole numbers from 0 to 9, truth values."""
    try:
        if given.dtype == np.bool_:
            return random.integers(0, 2, shape).astype(np.bool_)
        if np.issubdtype(given.dtype, np.integer):
            return random.integers(0, 10, shape).astype(given.dtype)
        return random.uniform(-1, 1, shape).astype(given.dtype)
    except (MemoryError, ValueError):
        raise UsageError(f"there is no memory for input '{given.name}' of shape {'x'.join(map(str, shape))}") from None
