"""ONNX models as graphs of kernels."""
