"""Sums of millions of numbers through `torch.compile`, against f64 and PyTorch's own errors."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")

TERMS = 1 << 22


def sums(x: Any) -> tuple[Any, ...]:
    """Reductions of `TERMS` elements: all, along the first, middle and last axis."""
    rows = x.view(4, -1).flip(0).repeat(1, 4)
    return (
        x.mean(),
        x.var(),
        x.norm(),
        torch.nn.functional.mse_loss(x, x * 2),
        x.view(-1, 4).repeat(4, 1).mean(0),
        x.view(1, -1, 2).repeat(1, 2, 1).sum(1),
        rows.std(1),
        torch.logsumexp(rows, 1),
        rows.softmax(1).amax(1),
        torch.nn.functional.layer_norm(rows, (rows.shape[1],)).amax(1),
        torch.dot(x, x),
    )


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_errors_of_four_million_terms(tune: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.rand(TERMS) + 0.5
    found = torch.compile(sums, backend="pdojo", options={"tune": tune})(x)
    for number, (ours, theirs, exact) in enumerate(zip(found, sums(x), sums(x.double()), strict=True)):
        errors = [((each - exact) / exact).abs().max() for each in (ours, theirs)]
        assert errors[0] <= max(4 * errors[1], 32 * torch.finfo(torch.float32).eps), (number, *errors)
