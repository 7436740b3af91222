"""The whole models of a library: those of its specification, or the one on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdojo_tools.onnx_inputs import input_shapes, inputs_of

from pdojo.errors import PdojoError
from pdojo.library.models import ModelSource
from pdojo.library.naming import operator_problem, word_of
from pdojo.library.spec import LibrarySpec, ModelSpec
from pdojo.model.model import Model


def sources(spec: LibrarySpec) -> Sequence[ModelSource]:
    """The models of a specification, read. Raises UsageError, with the key, for one that is not kernels only."""
    found: list[ModelSource] = []
    for each in spec.models:
        try:
            found.append(ModelSource(_name(each), _read(each, spec.folder), each.is_apart))
        except PdojoError as error:
            raise spec.error(f"{each.key}: {error}" if each.key else str(error)) from None
    return found


def _name(spec: ModelSpec) -> str:
    """The function: the key 'name', or a word from the name of the file or the function."""
    title = Path(spec.onnx).stem if spec.onnx is not None else str(spec.torch).rpartition(":")[2]
    made = spec.name or word_of(title, "model", 40)
    return made if operator_problem(made) is None or spec.name is not None else f"{made}_model"


def _read(spec: ModelSpec, folder: Path) -> Model:
    if spec.torch is not None:
        from pdojo_tools.torch_models import torch_model

        return torch_model(str(folder / spec.torch) if ".py:" in spec.torch else spec.torch).model
    from pdojo import onnx

    model = onnx.load(str(folder / str(spec.onnx)))
    shapes = input_shapes(model, spec.shape)
    inputs = inputs_of(model, shapes, 0)
    is_open = any(isinstance(extent, range) for shape in shapes.values() for extent in shape)
    return model.opened(inputs, shapes) if is_open else model.specialised(model.given((), inputs)).only_kernels()
