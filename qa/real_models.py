"""The models of images in ONNX's own tests with random weights, against ONNX's reference evaluator in float64.

    python -m qa.real_models                              all models, compiled with the pass
    python -m qa.real_models --engine interpreter         with the reference interpreter, which takes minutes for each
    python -m qa.real_models --only squeezenet --image 64
    python -m qa.real_models --json results.jsonl         append results; go on with the rest

All weights of the models as ONNX has them are equal, so that elements in wrong places would not be seen.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod, sqrt
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from pdojo.onnx.backend import Engine
from pdojo.onnx.model import load
from pdojo.onnx.reference import reference

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TOLERANCE = 2e-5
"""Largest error of an output, relative to its largest element."""


@dataclass(frozen=True)
class ModelResult:
    """The outcome of one model."""

    name: str
    engine: Engine
    image: int | None
    """Height and width of the image; None for those of the file."""
    nodes: int
    error: float
    """The largest error relative to the largest element of the output."""
    seconds: float
    """Processor seconds, including compilation."""

    @property
    def passed(self) -> bool:
        """Whether the outputs are right; an error of NaN is none."""
        return self.error <= TOLERANCE


def names() -> list[str]:
    """The names of the models, the smallest file first."""
    files = sorted(FOLDER.glob("light_*.onnx"), key=lambda file: file.stat().st_size)
    return [file.stem.removeprefix("light_") for file in files]


def with_random_weights(name: str, seed: int = 0, image: int | None = None) -> ModelProto:
    """A model with weights of a scale that keeps the numbers of all layers near 1."""
    model = ModelProto.FromString((FOLDER / f"light_{name}.onnx").read_bytes())
    model.ir_version = 8
    graph, random = model.graph, np.random.default_rng(seed)
    known = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {node.output[0]: tuple(int(extent) for extent in known[node.input[0]]) for node in made}
    shapes |= {each: value.shape for each, value in known.items() if value.dtype == np.float32}
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {each for node in nodes for each in node.input}
    weights = {each: _weights(shape, _uses(nodes, each), random) for each, shape in shapes.items() if each in used}
    kept = {each: value for each, value in known.items() if each in used and each not in weights}
    images = [each for each in graph.input if each.name not in known]
    if image is not None:
        for each in images:
            for extent in each.type.tensor_type.shape.dim[2:]:
                extent.dim_value = image
    tensors = [numpy_helper.from_array(value, each) for each, value in {**weights, **kept}.items()]
    return helper.make_model(
        helper.make_graph(nodes, name, images, list(graph.output), tensors),
        opset_imports=list(model.opset_import),
        ir_version=model.ir_version,
    )


def _uses(nodes: Sequence[NodeProto], name: str) -> list[tuple[str, int]]:
    """The operators that read a value, with the position of the operand; reshaped values are the same."""
    found: list[tuple[str, int]] = []
    for node in nodes:
        for position, each in enumerate(node.input):
            if each == name:
                found += _uses(nodes, node.output[0]) if node.op_type == "Unsqueeze" else [(node.op_type, position)]
    return found


def _weights(shape: tuple[int, ...], uses: Sequence[tuple[str, int]], random: np.random.Generator) -> NDArray[Any]:
    """Random weights: normal with the variance of He et al. (2015), scales and variances from 0.5 to 1.5."""
    if len(shape) > 1:
        return (random.standard_normal(shape, np.float32) * sqrt(2 / prod(shape[1:]))).astype(np.float32)
    if any(use in (("BatchNormalization", 1), ("BatchNormalization", 4)) or use[0] == "Mul" for use in uses):
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    return random.normal(0, 0.1, shape).astype(np.float32)


def in_double(model: ModelProto) -> ModelProto:
    """A model of float32 with all numbers in float64."""
    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.initializer[:]
    for each in model.graph.initializer:
        value = numpy_helper.to_array(each)
        wide = value.astype(np.float64) if value.dtype == np.float32 else value
        made.graph.initializer.append(numpy_helper.from_array(wide, each.name))
    for each in (*made.graph.input, *made.graph.output):
        if each.type.tensor_type.elem_type == TensorProto.FLOAT:
            each.type.tensor_type.elem_type = TensorProto.DOUBLE
    return made


def judge(name: str, engine: Engine, image: int | None = None, seed: int = 0) -> ModelResult:
    """Run a model with random weights and compare it with the reference in float64."""
    proto = with_random_weights(name, seed, image)
    random = np.random.default_rng(seed + 1)
    inputs = {
        each.name: random.standard_normal([d.dim_value for d in each.type.tensor_type.shape.dim], np.float32)
        for each in proto.graph.input
    }
    begun = process_time()
    model = load(proto)
    call: Any = model.interpret if engine == "interpreter" else model.compile(tune=engine)
    found: NDArray[Any] = call(**inputs)
    seconds = process_time() - begun
    return ModelResult(name, engine, image, len(proto.graph.node), _error(found, expected(proto, inputs)), seconds)


def expected(model: ModelProto, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """The only output, computed in float64 by ONNX's reference evaluator."""
    evaluator: Any = reference(in_double(model))
    (found,) = evaluator.run(None, {name: value.astype(np.float64) for name, value in inputs.items()})
    assert found.dtype == np.float64, found.dtype
    return found


def _error(found: NDArray[Any], wanted: NDArray[np.float64]) -> float:
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max())


def stored(path: Path) -> list[ModelResult]:
    """The results in a file; none if there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [ModelResult(**json.loads(line)) for line in lines]


def results(
    words: Sequence[str], engine: Engine, image: int | None, done: Sequence[ModelResult]
) -> Iterator[ModelResult]:
    """Judge the models whose names contain a word, but for those that are done."""
    finished = {each.name for each in done}
    for name in names():
        if name not in finished and (not words or any(word in name for word in words)):
            yield judge(name, engine, image)


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns 1 if an output is wrong."""
    parser = argparse.ArgumentParser(prog="python -m qa.real_models", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="models whose names contain a word")
    parser.add_argument("--engine", choices=get_args(Engine), default="pass", help="what runs ('pass' by default)")
    parser.add_argument("--image", type=int, metavar="N", help="height and width of the image")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append results, one line each; go on with the rest")
    given = parser.parse_args(args)
    done = stored(given.json) if given.json else []
    found = [each for each in done if (each.engine, each.image) == (given.engine, given.image)]
    for each in results(given.only, given.engine, given.image, found):
        found.append(each)
        if given.json:
            with given.json.open("a") as file:
                file.write(json.dumps(asdict(each)) + "\n")
        print(f"{each.name}: error {each.error:.1e}, {each.seconds:.0f} s", file=sys.stderr, flush=True)
    for each in found:
        outcome = "right" if each.passed else "wrong"
        print(f"{each.name:16} {each.nodes:5} nodes  {outcome}  error {each.error:.1e}  {each.seconds:7.1f} s")
    return int(not all(each.passed for each in found))


if __name__ == "__main__":
    sys.exit(main())
