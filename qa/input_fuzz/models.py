"""ONNX models with mistakes: bytes that are changed or missing, and messages with wrong fields."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from pdojo.errors import UsageError
from qa.input_fuzz.mutations import damaged_bytes

_NAMES = ("", "x", "y", "If", "Loop", "Reshape", "Softmax", "Einsum", "NoSuchOperator", "String", "é", "a" * 300)
_NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))
_LARGEST_INPUT = 1 << 16
"""Most elements of an input for which a damaged model is specialised."""


@cache
def models() -> list[bytes]:
    """Small valid models: of ONNX's own tests."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    kinds = ("simple", "pytorch-operator", "pytorch-converted")
    files = [file for kind in kinds for file in (folder / kind).glob("*/*.onnx")]
    return [file.read_bytes() for file in sorted(files) if file.stat().st_size < 1 << 16]


def damaged_model(random: Random) -> bytes:
    """A valid model with some damage."""
    data = random.choice(models())
    if random.random() < 0.4:
        return damaged_bytes(data, random)
    model = ModelProto.FromString(data)
    for _ in range(random.randrange(1, 4)):
        random.choice(_EDITS)(model, random)
    return model.SerializeToString()


def read_model(data: bytes) -> None:
    """Load and specialise a model. Raises PdojoError if it is refused."""
    from pdojo import onnx as models

    model = models.load(data)
    arrays: list[Any] = []
    for each in model.inputs:
        shape = [extent if isinstance(extent, int) else 2 for extent in each.shape or ()]
        if any(extent < 0 for extent in shape) or np.prod(shape, dtype=float) > _LARGEST_INPUT:
            raise UsageError(f"input '{each.name}' is too large for this test")
        arrays.append(np.ones(shape, each.dtype))
    model.specialised(model.given(arrays, {}))


def _node(model: ModelProto, random: Random) -> NodeProto:
    return random.choice(model.graph.node) if model.graph.node else model.graph.node.add()


def _attribute(model: ModelProto, random: Random) -> AttributeProto:
    node = _node(model, random)
    return random.choice(node.attribute) if node.attribute else node.attribute.add(name="axis")


def _rename(model: ModelProto, random: Random) -> None:
    node = _node(model, random)
    names = random.choice([node.input, node.output])
    if names:
        names[random.randrange(len(names))] = random.choice([*_NAMES, *node.input, *node.output])


def _operator(model: ModelProto, random: Random) -> None:
    others = [node.op_type for node in model.graph.node]
    _node(model, random).op_type = random.choice([*_NAMES, *others])


def _numbers(model: ModelProto, random: Random) -> None:
    attribute = _attribute(model, random)
    match random.randrange(4):
        case 0:
            attribute.i = random.choice(_NUMBERS)
        case 1 if attribute.ints:
            attribute.ints[random.randrange(len(attribute.ints))] = random.choice(_NUMBERS)
        case 2:
            attribute.ints.extend([random.choice(_NUMBERS)] * random.randrange(1, 4))
        case _:
            cast("Any", attribute).type = random.randrange(1, 9)


def _tensor(model: ModelProto, random: Random) -> None:
    tensors = [*model.graph.initializer, *(a.t for node in model.graph.node for a in node.attribute if a.HasField("t"))]
    tensor = random.choice(tensors) if tensors else model.graph.initializer.add(name="x", data_type=1)
    match random.randrange(4):
        case 0 if tensor.dims:
            tensor.dims[random.randrange(len(tensor.dims))] = random.choice(_NUMBERS)
        case 1:
            tensor.data_type = random.randrange(30)
        case 2:
            tensor.data_location = TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", random.choice(["../x", "/etc/passwd", "x", ""])
        case _:
            tensor.raw_data = tensor.raw_data[: random.randrange(8)]


def _interface(model: ModelProto, random: Random) -> None:
    values = [*model.graph.input, *model.graph.output]
    if not values:
        return
    kind = random.choice(values).type.tensor_type
    if kind.shape.dim and random.random() < 0.6:
        extent = random.choice(kind.shape.dim)
        extent.dim_value = random.choice([0, 1, 2, 3, 5, 7, -1, 1000])
    else:
        kind.elem_type = random.randrange(30)


def _structure(model: ModelProto, random: Random) -> None:
    nodes = list(model.graph.node)
    if not nodes:
        return
    match random.randrange(4):
        case 0:
            nodes.pop(random.randrange(len(nodes)))
        case 1:
            nodes.append(random.choice(nodes))
        case 2:
            random.shuffle(nodes)
        case _:
            node = random.choice(nodes)
            if node.input:
                del node.input[random.randrange(len(node.input))]
            return
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _version(model: ModelProto, random: Random) -> None:
    if model.opset_import and random.random() < 0.7:
        random.choice(model.opset_import).version = random.choice([-1, 0, 1, 6, 9, 11, 13, 17, 28, 29, 1000])
    else:
        model.ir_version = random.choice([0, 1, 3, 8, 99])


_EDITS = (_rename, _operator, _numbers, _numbers, _tensor, _interface, _structure, _version)
