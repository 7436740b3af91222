"""Lowerings of ONNX operators to handles of `pdojo.build`."""
