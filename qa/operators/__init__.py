"""The peers of the operators of `pdojo.build`: the calls of ATen and the nodes of ONNX that compute the same."""
