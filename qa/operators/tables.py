"""The tables of peers: `CALLS` of ATen and `NODES` of ONNX, filled by the modules of all kinds."""

from qa.operators import onnx_images, torch_images
from qa.operators.onnx_nodes import NODES
from qa.operators.torch_calls import CALLS

__all__ = ["CALLS", "NODES", "onnx_images", "torch_images"]
