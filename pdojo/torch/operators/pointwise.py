"""Elementwise operators."""

from __future__ import annotations

from pdojo import build
from pdojo.torch.operators.registry import PROMOTION, pointwise

pointwise("add.Tensor", lambda a, b, *, alpha=1: a + b if alpha == 1 else a + b * alpha)
pointwise("sub.Tensor", lambda a, b, *, alpha=1: a - b if alpha == 1 else a - b * alpha)
pointwise("mul.Tensor", lambda a, b: a & b if getattr(a, "dtype", "") == "i1" else a * b)
pointwise("div.Tensor", lambda a, b: a / b, PROMOTION.INT_TO_FLOAT)
pointwise("relu.default", build.relu)
pointwise("neg.default", lambda x: -x)
pointwise("exp.default", build.exp, PROMOTION.INT_TO_FLOAT)
pointwise("tanh.default", build.tanh, PROMOTION.INT_TO_FLOAT)
pointwise("sigmoid.default", build.sigmoid, PROMOTION.INT_TO_FLOAT)
pointwise("gelu.default", lambda x, *, approximate="none": build.gelu(x, approximate=approximate == "tanh"))
