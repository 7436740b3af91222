"""ONNX models as graphs of kernels.

>>> from pdojo import onnx
>>> model = onnx.load("model.onnx")  # doctest: +SKIP
>>> y = model.run(x)  # doctest: +SKIP
"""

from importlib.util import find_spec

from pdojo.errors import UsageError

if find_spec("onnx") is None:
    raise UsageError("pdojo.onnx needs the package onnx: pip install 'pdojo[onnx]'")

from pdojo.onnx.explaining import Explanation
from pdojo.onnx.model import CallableOnnxModel, OnnxModel, load
from pdojo.onnx.operators import UnsupportedNode

__all__ = ["CallableOnnxModel", "Explanation", "OnnxModel", "UnsupportedNode", "load"]
