"""Trees of plain data and tensors as bytes, in the format of safetensors: nothing is unpickled on reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy

from pdojo.errors import UsageError
from pdojo.files import read_bytes
from pdojo.perfllm.learner import import_torch
from pdojo.perfllm.schema import Schema, check

LARGEST = 1 << 28
"""Greatest size of a file in bytes."""
_TREE = "tree"
"""Name of the metadata text with the tree, in which tensors are numbered."""


def import_safetensors() -> Any:
    """safetensors' functions for PyTorch. Raises UsageError if it is not installed."""
    try:
        import safetensors.torch
    except ImportError:
        raise UsageError("files of the agent need safetensors: pip install 'pdojo[learn]'") from None
    return safetensors.torch


def dump(tree: Mapping[str, Any], stamp: Mapping[str, str] | None = None) -> bytes:
    """Dictionaries, lists, texts, numbers, tensors and NumPy arrays as bytes. `stamp` are texts readable first."""
    tensors: dict[str, Any] = {}
    text = json.dumps(_plain(tree, tensors))
    return bytes(import_safetensors().save(tensors, {**(stamp or {}), _TREE: text}))


def load(data: bytes, schema: Schema) -> dict[str, Any]:
    """The tree of `dump`, checked against the schema, with tensors for arrays. Raises UsageError for other data.

    Tensors take as much memory as in `data`.
    """
    try:
        tree = json.loads(stamp_of(data)[_TREE])
        found = _made(tree, import_safetensors().load(data))
    except (UsageError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  # safetensors has errors of its own for each kind of damage
        raise UsageError(f"it is no tree of tensors: {type(error).__name__} {error}") from None
    check(found, schema)
    return found


def read_file(path: str, what: str) -> bytes:
    """The bytes of a file; `what` names its kind. Raises UsageError if it cannot be read."""
    try:
        return read_bytes(Path(path), LARGEST)
    except OSError as error:
        raise UsageError(f"cannot read the {what} '{path}': {error.strerror}") from None


def read_stamped(path: str, what: str, kind: str) -> tuple[bytes, dict[str, str]]:
    """The bytes of a file and its stamp. Raises UsageError if it cannot be read, or if the stamp names another kind."""
    data = read_file(path, what)
    with suppress(UsageError):
        stamp = stamp_of(data)
        if stamp.get("kind") == kind:
            return data, stamp
    raise UsageError(f"'{path}' is no {what} of pdojo")


def load_stamped(data: bytes, schema: Schema, path: str, remedy: str) -> dict[str, Any]:
    """The tree of a file's bytes, as by `load`. Raises UsageError, naming the file and the remedy, for other data."""
    try:
        return load(data, schema)
    except UsageError as error:
        raise UsageError(f"'{path}' is damaged: {error}; {remedy}") from None


def stamp_of(data: bytes) -> dict[str, str]:
    """The stamp in front of the data. Raises UsageError for data of another kind."""
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        return {str(name): str(text) for name, text in header["__metadata__"].items()}
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise UsageError("it has no header of safetensors") from None


def _plain(value: object, tensors: dict[str, Any]) -> object:
    """The value with tensors replaced by their numbers. Keys of dictionaries may be numbers."""
    torch = import_torch()
    match value:
        case dict():
            known = cast("dict[object, object]", value)
            return {"dict": [[key, _plain(item, tensors)] for key, item in known.items()]}
        case list() | tuple():
            return [_plain(item, tensors) for item in cast("list[object]", value)]
        case numpy.ndarray() | torch.Tensor():
            name = str(len(tensors))
            tensors[name] = torch.as_tensor(value).contiguous()
            return {"tensor": name}
        case _:
            return value


def _made(value: Any, tensors: Mapping[str, Any]) -> Any:
    match value:
        case {"dict": pairs}:
            return {key: _made(item, tensors) for key, item in pairs}
        case {"tensor": name}:
            return tensors[name]
        case list():
            return [_made(item, tensors) for item in cast("list[Any]", value)]
        case _:
            return value
