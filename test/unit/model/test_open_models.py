"""Models with sizes: one plan and one set of kernels, bound to the values of a call."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo import build
from pdojo.errors import UsageError
from pdojo.model.graph import Tensor
from pdojo.model.model import Model
from pdojo.model.present import Present
from unit.model.graphs import Graphs, constant


def joined(a: build.Array, b: build.Array) -> build.Array:
    return build.concatenate([a, b], 0)


def square(a: build.Array) -> build.Array:
    return build.matmul(a, build.transpose(a))


def scaled(a: build.Array) -> build.Array:
    return a / a.shape[0]


def whole() -> Model:
    """Rows beside their doubles in one array, their products with one another, and a constant."""
    made = Graphs()
    x = made.input("x", build.size("N", 1, 40), 16)
    one = made("exp", build.exp, made("times", build.matmul, x, constant(16, 16)))
    both = made("join", joined, one, made("double", lambda a: a + a, x))
    return Model.of(made.finish(made("scale", scaled, made("square", square, both)), both))


def wanted(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    both = np.concatenate([np.exp(x.astype(np.float64) @ constant(16, 16)), 2 * x.astype(np.float64)])
    return both @ both.T / len(both), both


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_one_model_runs_at_all_values_of_its_sizes(tune: str) -> None:
    model = whole()
    assert [*model.sizes] == ["N"]
    run = model.compile(tune=tune, threads=2)  # pyright: ignore[reportArgumentType]
    for rows in (1, 40, 2, 7, 39):
        x = np.random.default_rng(rows).uniform(-1, 1, (rows, 16)).astype(np.float32)
        poisoned = {f"out{k}": np.full((2 * rows, 2 * rows if k == 0 else 16), np.nan, np.float32) for k in (0, 1)}
        found = run(x, **poisoned)
        for own, right in zip(found, wanted(x), strict=True):
            np.testing.assert_allclose(own, right, rtol=1e-4, atol=1e-5)
        for own, right in zip(run.at([rows]).model.interpret(x), found, strict=True):
            np.testing.assert_allclose(own, right, rtol=1e-4, atol=1e-5)
    run.check_memory()


def test_bound_models_share_code_and_know_their_shapes() -> None:
    run = whole().compile(tune="none")
    bound = run.at([3])
    assert run.at([3]) is bound
    assert [tensor.shape for tensor in bound.inputs_read] == [(3, 16)]
    assert sorted(tensor.shape for tensor in bound.results) == [(6, 6), (6, 16)]
    assert "f32[3, 16]" in repr(bound)
    assert "f32[N*2, 16]" in repr(run)
    with pytest.raises(UsageError, match="the size N is 1 to 40, not 41"):
        run.at([41])
    with pytest.raises(UsageError, match="has 1 sizes"):
        run.at([3, 4])


def test_operands_of_a_concatenation_are_computed_in_open_places() -> None:
    """The second part begins where the first one ends, at a place that depends on the size."""
    places = [step.places for step in whole().steps if step.places]
    assert [[str(place) for _, place in each] for each in places] == [["0", "N*64"]]


@pytest.mark.parametrize("rows", [1, 2, 5, 13, 40])
def test_intermediates_that_live_at_the_same_time_lie_apart_at_all_sizes(rows: int) -> None:
    made = Graphs()
    x = made.input("x", build.size("N", 1, 40), 8)
    value = made("times", build.matmul, x, constant(8, 8))
    for _ in range(4):
        products = made("square", square, value)
        wide = made("join", joined, value, made("times", build.matmul, products, value))
        value = made("times", build.matmul, wide, constant(8, 8))
    model = Model.of(made.finish(value))
    present = Present.of("test", [*model.sizes.values()], [rows])
    offsets, size = model.memory.at(present.number)
    lives: dict[Tensor, list[int]] = {}
    for number, step in enumerate(model.steps):
        for operand in (*step.inputs, *step.outputs):
            if isinstance(operand, Tensor) and operand.memory in offsets:
                lives.setdefault(model.memory.place(operand.memory)[0], []).append(number)
    ends = {tensor: start + present.tensor(tensor).bytes for tensor, start in offsets.items()}
    assert len(lives) > 4
    assert max(ends.values()) <= size
    assert all(start % 64 == 0 for start in offsets.values())
    for one, steps in lives.items():
        for other, others in lives.items():
            if one is not other and steps[0] <= others[-1] and others[0] <= steps[-1]:
                assert ends[one] <= offsets[other] or ends[other] <= offsets[one]
