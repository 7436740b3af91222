"""ONNX files and messages as Python values, checked: every defect raises UsageError, and nothing else is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    defs,
    helper,
    numpy_helper,
)
from onnx import __version__ as ONNX_VERSION  # noqa: N812
from onnx.external_data_helper import load_external_data_for_model, uses_external_data

from pdojo.errors import UsageError
from pdojo.files import read_bytes
from pdojo.onnx.definitions import reason_of
from pdojo.onnx.operators.registry import UnsupportedNode

_LARGEST = 2**31 - 1
"""Largest size of a file in bytes; weights of larger models are in files of external data."""
_CONTEXT = re.compile(r"Bad node spec for node\. Name: (?P<name>.*) OpType: (?P<operator>\S+)")
_CHECK: Callable[[object], None] = cast("Any", checker).check_model
_T = TypeVar("_T")


def read_model(source: str | os.PathLike[str] | bytes | ModelProto) -> ModelProto:
    """A model, checked: of a file with its external data, of the bytes of a file, or given.

    External data is read from files in the model's folder only. Raises UsageError for a missing or malformed model.
    """
    if isinstance(source, ModelProto):
        _check_versions(source)
        _check(lambda: _CHECK(_as_checked(source)), "the model")
        _refuse_external(source)
        return source
    if isinstance(source, bytes):
        return read_model(_parsed(source, "the model"))
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"a model is a path, the bytes of a file or a ModelProto, not {source!r:.60}")
    path = Path(source)
    try:
        content = read_bytes(path, _LARGEST)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    title = f"'{path}'"
    model = _parsed(content, title)
    _check_versions(model)
    shaped = _as_checked(model) is model
    if shaped:
        _check(lambda: _CHECK(str(path)), title)
    _check(lambda: load_external_data_for_model(model, str(path.parent)), title)
    if not shaped:
        _check(lambda: _CHECK(_as_checked(model)), title)
    _refuse_external(model)
    return model


def _check_versions(model: ModelProto) -> None:
    """Raise UsageError for a version of a set of operators that the installed package onnx does not know."""
    known: Mapping[str, tuple[int, int]] = cast("Any", defs).C.schema_version_map()
    for each in (*model.opset_import, *(each for function in model.functions for each in function.opset_import)):
        domain = "" if each.domain == "ai.onnx" else each.domain
        least, most = known.get(domain, (each.version, each.version))
        if not least <= each.version <= most:
            raise UsageError(
                f"the model needs version {each.version} of the operators of '{domain or 'ai.onnx'}'; "
                f"onnx {ONNX_VERSION} has versions {least} to {most}"
            )


UNDEFINED = frozenset(["SimplifiedLayerNormalization"])
"""Operators that ONNX Runtime adds to the default domain; the package onnx has no definition of them."""
_OTHER = "com.microsoft"
"""The domain in which the checker takes operators that it does not know."""


def _as_checked(model: ModelProto) -> ModelProto:
    """The model, or a copy that the checker takes.

    It wants a shape for each input and output, and operators of the default domain that it knows. Raises UsageError
    for an input without type.
    """
    for each in model.graph.input:
        if not each.type.WhichOneof("value") or (
            each.type.HasField("tensor_type") and not each.type.tensor_type.elem_type
        ):
            raise UsageError(f"input '{each.name}' has no element type")
    is_known = not any(each.op_type in UNDEFINED for each in nodes_of(model))
    if is_known and all(map(_has_shape, (*model.graph.input, *model.graph.output))):
        return model
    found = ModelProto()
    found.CopyFrom(model)
    for each in (*found.graph.input, *found.graph.output):
        if not _has_shape(each):
            each.type.tensor_type.elem_type = each.type.tensor_type.elem_type or TensorProto.FLOAT
            each.type.tensor_type.shape.SetInParent()
    for each in nodes_of(found):
        if each.op_type in UNDEFINED and each.domain in ("", "ai.onnx"):
            each.domain = _OTHER
    if not is_known and not any(each.domain == _OTHER for each in found.opset_import):
        found.opset_import.append(helper.make_opsetid(_OTHER, 1))
    return found


def nodes_of(model: ModelProto) -> Iterator[NodeProto]:
    """All nodes of a model's graph and of the graphs inside of it."""
    waiting = [model.graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            waiting += [graph for each in node.attribute for graph in (each.g, *each.graphs)]


def _has_shape(value: ValueInfoProto) -> bool:
    """Whether a value has a type, and a shape if it is a tensor."""
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.HasField("shape"))


def _parsed(content: bytes, title: str) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, UnicodeDecodeError, RuntimeError) as error:
        raise UsageError(f"{title} is no ONNX model: {error}") from None
    _check_texts(model, title)
    return model


def _check_texts(message: Message, title: str) -> None:
    """Raise UsageError for a text that is not UTF-8, which protobuf gives as bytes."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            wrong = next((each for each in ([value] if isinstance(value, str | bytes) else value)
                          if isinstance(each, bytes)), None)  # fmt: skip
            if wrong is not None:
                raise UsageError(f"{title} is no valid ONNX model: text {wrong!r} is not UTF-8")
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in [value] if isinstance(value, Message) else value:
                _check_texts(each, title)


def _check(action: Callable[[], _T], title: str) -> _T:
    """The result of an action of onnx. Raises UsageError if it fails."""
    try:
        return action()
    except UsageError:
        raise
    except Exception as error:  # onnx raises errors of its C++ part as plain exceptions
        raise UsageError(_message(error, title)) from error


def _message(error: Exception, title: str) -> str:
    """The message for an error of onnx, which names the node that it is about."""
    reason = reason_of(error) or type(error).__name__
    if found := _CONTEXT.search(str(error)):
        return f"node '{found['name']}' ({found['operator']}): {reason}"
    return f"{title} is no valid ONNX model: {reason}"


def _refuse_external(model: ModelProto) -> None:
    outside = next((t.name for t in model.graph.initializer if uses_external_data(t)), None)
    if outside is not None:
        raise UsageError(f"initialiser '{outside}' has external data; load the model from its file")


def declared_type(number: int, title: str) -> np.dtype[Any]:
    """The NumPy type of an element type by its number. Raises UsageError for an unknown one."""
    try:
        return helper.tensor_dtype_to_np_dtype(number)
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{title} has an unknown element type, number {number}") from None


def array_of(tensor: TensorProto) -> NDArray[Any]:
    """The value of a tensor. Raises UsageError for one that contradicts itself, or is no array of numbers."""
    title = f"tensor '{tensor.name}'"
    if uses_external_data(tensor):
        raise UsageError(f"{title} has external data, which only initialisers of a file may have")
    if tensor.data_type == TensorProto.STRING:
        return np.array([_text(text) for text in tensor.string_data], object).reshape(tensor.dims)
    return _check(lambda: numpy_helper.to_array(tensor), title)


def attributes_of(node: NodeProto, outer: Mapping[str, AttributeProto]) -> dict[str, AttributeProto]:
    """The attributes of a node, keyed by name; references refer to `outer`, the attributes of the function call."""
    found: dict[str, AttributeProto] = {}
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            found[attribute.name] = attribute
        elif attribute.ref_attr_name in outer:
            found[attribute.name] = value = AttributeProto()
            value.CopyFrom(outer[attribute.ref_attr_name])
            value.name = attribute.name
    return found


_VALUES: Mapping[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.INT: lambda given: given.i,
    AttributeProto.FLOAT: lambda given: given.f,
    AttributeProto.STRING: lambda given: _text(given.s),
    AttributeProto.INTS: lambda given: tuple(given.ints),
    AttributeProto.FLOATS: lambda given: tuple(given.floats),
    AttributeProto.STRINGS: lambda given: tuple(map(_text, given.strings)),
    AttributeProto.TENSOR: lambda given: array_of(given.t),
    AttributeProto.TENSORS: lambda given: tuple(map(array_of, given.tensors)),
    AttributeProto.GRAPH: lambda given: given.g,
    AttributeProto.TYPE_PROTO: lambda given: given.tp,
}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def python_value(attribute: AttributeProto) -> Any:
    """The value of an attribute: int, float, str, tuples of them, an array, or a GraphProto."""
    if attribute.type not in _VALUES:
        raise UsageError(f"attribute '{attribute.name}' is of a kind that kernels have no use for")
    return _VALUES[attribute.type](attribute)


def title_of(proto: NodeProto) -> str:
    """The name of a node in messages: its own, or the name of its first result."""
    return proto.name or next((name for name in proto.output if name), "")


def named(proto: NodeProto) -> str:
    """A node with its operator, in messages."""
    return f"node '{title_of(proto)}' ({proto.op_type})"


def refuse(proto: NodeProto, reason: str) -> NoReturn:
    """Raise UnsupportedNode, which names the node and its operator."""
    raise UnsupportedNode(f"{named(proto)}: {reason}")


def names_used(node: NodeProto) -> set[str]:
    """The values that a node reads, also inside its subgraphs."""
    found = set(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found |= _used_inside(graph)
    return found


def _used_inside(graph: GraphProto) -> set[str]:
    found = {output.name for output in graph.output}
    for node in graph.node:
        found |= names_used(node)
    return found
