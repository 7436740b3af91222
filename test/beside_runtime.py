"""Single nodes beside ONNX Runtime, which computes each as it is: random operands, and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from pdojo import onnx

runtime: Any = import_module("onnxruntime")
SEEDS = range(4)
TYPES: Mapping[str, Any] = {"u8": np.uint8, "i8": np.int8, "f32": np.float32, "f16": np.float16}


@dataclass
class Draw:
    """Random operands and attributes of a node."""

    seed: int
    random: np.random.Generator = field(init=False)
    steps: int = 0
    """Quantised elements that differ by one step."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def flip(self) -> bool:
        return bool(self.random.integers(2))

    def integers(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Any:
        return self.random.integers(low, high, shape).astype(dtype)

    def among(self, *values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def extents(self, rank: int, most: int = 9) -> tuple[int, ...]:
        return tuple(int(each) for each in self.random.integers(1, most, rank))

    def bytes(self, dtype: str, *shape: int) -> Any:
        bounds = np.iinfo(TYPES[dtype])
        return self.integers(bounds.min, bounds.max + 1, *shape, dtype=TYPES[dtype])

    def numbers(self, *shape: int, dtype: str = "f32") -> Any:
        return self.random.standard_normal(shape).astype(TYPES[dtype])

    def scale(self, *shape: int) -> Any:
        return np.asarray(self.random.uniform(0.01, 0.1, shape), np.float32)

    def zero(self, dtype: str, *shape: int) -> Any:
        """A zero point; None is an absent one."""
        return self.bytes(dtype, *shape) if self.random.integers(3) else None


def node_model(
    op: str,
    operands: Sequence[Any],
    known: Sequence[bool],
    attributes: Mapping[str, Any],
    outputs: Sequence[str],
    domain: str = "com.microsoft",
) -> ModelProto:
    """A model of one node; None is an absent operand, `known` are those that are initialisers."""
    names = ["" if each is None else f"x{n}" for n, each in enumerate(operands)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(op, names, outputs, name="n", domain=domain, **attributes)
    given = [(name, each, fixed) for name, each, fixed in zip(names, operands, known, strict=False) if name]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each, fixed in given
        if not fixed
    ]
    constants = [numpy_helper.from_array(each, name) for name, each, fixed in given if fixed]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([node], "node", inputs, results, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def by_runtime(model: ModelProto, inputs: Mapping[str, Any]) -> list[Any]:
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # with more, each thread quantises the states of its rows over their own range
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def check(
    draw: Draw,
    op: str,
    operands: Sequence[Any],
    outputs: Sequence[str] = ("y",),
    *,
    fixed: Sequence[int] = (),
    rtol: float = 1e-5,
    domain: str = "com.microsoft",
    attributes: Mapping[str, Any] | None = None,
    parts: Callable[[Any], Any] = list,
    theirs: Sequence[Any] | None = None,
) -> None:
    """Compare a node with ONNX Runtime's: bytes may differ by one step at ties.

    `fixed` operands are known, `parts` are those of the results that are defined, and `theirs` are equal operands in a
    form that ONNX Runtime takes.
    """
    known = [n in fixed or draw.flip() for n in range(len(operands))]
    if all(known):
        known[0] = False
    operands = [each if each is None else np.asarray(each) for each in operands]
    model = node_model(op, operands, known, attributes or {}, outputs, domain)
    inputs = {f"x{n}": each for n, each in enumerate(operands) if each is not None and not known[n]}
    if theirs is None:
        wanted = by_runtime(model, inputs)
    else:
        apart = node_model(op, theirs, [False] * len(theirs), attributes or {}, outputs, domain)
        wanted = by_runtime(apart, {f"x{n}": each for n, each in enumerate(theirs) if each is not None})
    made = onnx.load(model)
    found: Any = (made.interpret if draw.seed % 4 else made.run)(**inputs)
    for ours, other in zip(parts(found if len(wanted) > 1 else [found]), parts(wanted), strict=True):
        assert ours.dtype == other.dtype
        assert ours.shape == other.shape
        if ours.dtype.kind in "iu":
            difference = np.abs(ours.astype(np.int64) - other)
            assert difference.max() <= 1
            draw.steps += int(difference.sum())
            assert difference.sum() <= max(2, ours.size // 20)
        else:
            scale = float(np.abs(other.astype(np.float64)).max())
            np.testing.assert_allclose(ours.astype(np.float64), other, rtol=rtol, atol=rtol * (scale or 1))
