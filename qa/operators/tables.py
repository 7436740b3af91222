"""The tables of peers: `CALLS` of ATen and `NODES` of ONNX, filled by the modules of all kinds."""

from qa.operators import onnx_images, onnx_places, torch_images, torch_places
from qa.operators.onnx_nodes import NODES
from qa.operators.torch_calls import CALLS

KINDS = (onnx_images, onnx_places, torch_images, torch_places)
"""The modules."""
__all__ = ["CALLS", "KINDS", "NODES"]
