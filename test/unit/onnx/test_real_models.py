"""Models of images with random weights: against ONNX's reference evaluator in float64."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")

from onnx import numpy_helper

from pdojo.onnx.backend import Engine
from pdojo.onnx.model import load
from qa.real_models import TOLERANCE, expected, judge, names, with_random_weights


@pytest.mark.parametrize("engine", ["interpreter", "none"])
def test_a_small_model(engine: Engine) -> None:
    found = judge("squeezenet", engine, image=64)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["interpreter", "pass"])
@pytest.mark.parametrize("name", names())
def test_all_models(name: str, engine: Engine) -> None:
    found = judge(name, engine)
    assert found.passed, found


def test_other_weights_are_seen() -> None:
    """Two channels of one filter exchanged; with equal weights, as ONNX has them, the result would be the same."""
    proto = with_random_weights("squeezenet", image=64)
    x = np.random.default_rng(1).standard_normal((1, 3, 64, 64), np.float32)
    wanted = expected(proto, {proto.graph.input[0].name: x})
    weights = next(each for each in proto.graph.initializer if len(each.dims) == 4 and each.dims[1] > 3)
    turned = numpy_helper.to_array(weights).copy()
    turned[0, [0, 1]] = turned[0, [1, 0]]
    weights.CopyFrom(numpy_helper.from_array(turned, weights.name))
    found = load(proto).interpret(x)
    assert np.abs(found - wanted).max() > 10 * TOLERANCE * np.abs(wanted).max()


def test_weights_repeat() -> None:
    one, same, other = (with_random_weights("squeezenet", seed, 64) for seed in (0, 0, 1))
    assert one == same
    assert one != other
    assert len(names()) == 9
