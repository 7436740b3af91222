"""Constants of a graph."""

from __future__ import annotations

import numpy as np

from pdojo.onnx.operators.registry import Node, Value, operator


@operator("Constant")
def lower_constant(node: Node) -> Value:
    """The value of the only attribute."""
    for name, dtype in (("value", None), ("value_float", np.float32), ("value_floats", np.float32)):
        if name in node.attributes:
            return np.asarray(node.attributes[name], dtype)
    for name in ("value_int", "value_ints"):
        if name in node.attributes:
            return np.asarray(node.attributes[name], np.int64)
    node.refuse(f"kernels have no elements of such values: {', '.join(node.attributes) or 'no attribute'}")
