"""The definitions of operators (`onnx.defs`), and what they say against a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import NodeProto, TypeProto, defs, helper, numpy_helper, shape_inference
from onnx.checker import ValidationError

from pdojo.build.sizes import Open
from pdojo.model.extents import is_extents
from pdojo.model.graph import Operand, Tensor
from pdojo.onnx.kinds import array_type, kind_of_operand

_MOST_ELEMENTS = 1024
"""Most elements of a known operand whose value the inference of shapes sees."""


@cache
def definition(op_type: str, opset: int, domain: str) -> Any:
    """The definition of an operator (`onnx.defs.OpSchema`) in a version of its set; None if onnx has none."""
    return defs.get_schema(op_type, opset, domain) if defs.has(op_type, opset, domain) else None


def type_of(value: Operand | Sequence[Operand]) -> TypeProto:
    """The type of a value: the type and shape of a tensor, or of the first element of a sequence."""
    if not isinstance(value, Tensor | np.ndarray):
        return helper.make_sequence_type_proto(type_of(value[0])) if value else TypeProto()
    kind = helper.np_dtype_to_tensor_dtype(array_type(kind_of_operand(value)))
    # Extents that depend on sizes have names.
    shape = [str(extent) if isinstance(extent, Open) else extent for extent in value.shape]
    return helper.make_tensor_type_proto(kind, shape)


@dataclass(frozen=True)
class Defect:
    """The complaint of a definition about a node."""

    reason: str
    certain: bool
    """Whether numbers and types of operands or attributes are wrong. The inference of shapes is stricter than onnx's
    own evaluator and tests are, as with one element for a scalar."""


def defect(node: NodeProto, schema: Any, operands: Sequence[Operand | Sequence[Operand] | None]) -> Defect | None:
    """The complaint of a definition about a node with these operands; None if there is none.

    The attributes of `node` are values: none refers to an attribute of a function call.
    """
    try:
        inferred(node, schema, operands)
    except ValidationError as error:
        return Defect(reason_of(error), certain=True)
    except Exception as error:  # noqa: BLE001  # onnx raises errors of its C++ part as various exceptions
        return Defect(reason_of(error), certain=False)
    return None


def inferred(
    node: NodeProto, schema: Any, operands: Sequence[Operand | Sequence[Operand] | None]
) -> dict[str, TypeProto]:
    """The types and shapes of a node's results, keyed by name. Raises the errors of onnx."""
    called = NodeProto()
    called.CopyFrom(node)
    # Names of absent values, which only functions have, stand for no operand.
    called.input[:] = [name if value is not None else "" for name, value in zip(node.input, operands, strict=True)]
    given = {name: value for name, value in zip(node.input, operands, strict=True) if value is not None}
    types = {name: type_of(value) for name, value in given.items()}
    known = {
        name: numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
        for name, value in given.items()
        if isinstance(value, np.ndarray) and value.size <= _MOST_ELEMENTS and not is_extents(value)
    }
    return shape_inference.infer_node_outputs(schema, called, types, known)


def reason_of(error: Exception) -> str:
    """The message of an error of onnx in one line, without the context and labels that it adds."""
    lines = [line for line in str(error).splitlines() if not line.startswith("==> Context")]
    text = " ".join(" ".join(lines).split())
    for label in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.replace(label, "")
    return " ".join(text.split())[:300]
