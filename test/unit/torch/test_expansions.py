"""Products with weights that are dequantised in the model: kernels get the narrow numbers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from math import prod

import numpy as np

import pdojo
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.build import nest_of

N, K, GROUP = 320, 384, 64


class Quantised(torch.nn.Module):
    """A linear layer of bytes, or of halves of bytes, with a scale for each output or group."""

    def __init__(self, form: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.form = form
        halves = form == "halves"
        numbers = torch.randint(0, 256, (N, K // 2)) if halves else torch.randint(-127, 128, (N, K))
        self.register_buffer("w", numbers.to(torch.uint8 if halves else torch.int8))
        self.register_buffer("s", torch.rand(N, 1 if form == "column" else K // GROUP) / 10)

    def weights(self, dtype: Any = torch.float32) -> Any:
        if self.form == "halves":
            numbers = torch.stack([self.w & 15, self.w >> 4], -1).view(N, K).to(dtype) - 8
        else:
            numbers = self.w.to(dtype)
        return (numbers.view(N, self.s.shape[1], -1) * self.s[:, :, None]).view(N, K)

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.linear(x, self.weights())


def sizes(kernel: Any) -> dict[str, int]:
    """The bytes of the constants that a kernel gets."""
    nest = nest_of(kernel)
    arrays = [each for each in nest.arrays.values() if each.intent is not None and each.buffer.constant]
    return {each.name: prod(each.shape) * byte_width(each.dtype) for each in arrays}


@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("form", ["column", "group", "halves"])
def test_kernels_get_narrow_numbers(form: str, rows: int) -> None:
    module, x = Quantised(form).eval(), torch.randn(rows, K)
    torch.compiler.reset()
    with torch.no_grad():
        found = torch.compile(module, backend="pdojo", options={"check": True})(x)
        wanted = x.double() @ module.weights(torch.float64).T
        (kernel,) = (each.kernel for each in pdojo.torch.explain(module, x).kernels)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))
    assert max(sizes(kernel).values()) == N * K


def test_a_weight_that_is_returned_too_is_known() -> None:
    class Both(Quantised):
        def forward(self, x: Any) -> Any:
            weights = self.weights()
            return torch.nn.functional.linear(x, weights), weights

    module, x = Both("column").eval(), torch.randn(3, K)
    torch.compiler.reset()
    with torch.no_grad():
        found, weights = torch.compile(module, backend="pdojo")(x)
        wanted, right = module(x)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))
    assert torch.equal(weights, right)


def test_small_weights_and_those_of_other_operators_are_known() -> None:
    class Scaled(Quantised):
        def forward(self, x: Any) -> Any:
            return x * self.weights()

    module, x = Scaled("column").eval(), torch.randn(N, K)
    with torch.no_grad():
        (kernel,) = (each.kernel for each in pdojo.torch.explain(module, x).kernels)
    assert [*sizes(kernel).values()] == [4 * N * K]
