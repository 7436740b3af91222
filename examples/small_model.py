"""Writes a small ONNX model: a convolutional network for images of 8 by 8 pixels, with random weights.

python examples/small_model.py digits.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
SHAPES = {"filters": (8, 1, 3, 3), "offsets": (8,), "weights": (128, 10), "biases": (10,)}
weights = [numpy_helper.from_array(random.normal(0, 0.3, s).astype(np.float32), name) for name, s in SHAPES.items()]
nodes = [
    helper.make_node("Conv", ["image", "filters", "offsets"], ["c"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Flatten", ["m"], ["f"]),
    helper.make_node("Gemm", ["f", "weights", "biases"], ["g"]),
    helper.make_node("Softmax", ["g"], ["digit"]),
]
image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])
digit = helper.make_tensor_value_info("digit", TensorProto.FLOAT, ["batch", 10])
graph = helper.make_graph(nodes, "digits", [image], [digit], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
Path(sys.argv[1]).write_bytes(model.SerializeToString())
