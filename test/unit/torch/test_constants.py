"""Which parameters and buffers are constants of programs, and which kernels read where they are."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn
from torch.nn import functional

from pdojo.torch.backend import CompiledGraph

pytestmark = pytest.mark.usefixtures("no_caches")


class Tied(nn.Module):
    """An embedding whose weights a product reads, too."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(40, 16)

    def forward(self, tokens: Any) -> Any:
        return functional.linear(self.tokens(tokens), self.tokens.weight)


class Squared(nn.Module):
    """A factor of which something is computed once."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.randn(16))

    def forward(self, x: Any) -> Any:
        return x * (1 + self.factor.square())


class Sliced(nn.Module):
    """Embeddings of tokens and of places, of which some rows are read."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(40, 16), nn.Embedding(64, 16)

    def forward(self, tokens: Any) -> Any:
        return self.tokens(tokens) + self.places.weight[: tokens.shape[0]]


def tokens() -> Any:
    return torch.tensor([3, 0, 39, 7, 7])


CASES = {
    "an embedding": (lambda: nn.Embedding(40, 16), tokens, 0),
    "some rows": (Sliced, tokens, 0),
    "a norm": (lambda: nn.LayerNorm(16), lambda: torch.randn(5, 16), 0),
    "a norm of groups": (lambda: nn.GroupNorm(2, 8), lambda: torch.randn(3, 8, 5), 0),
    "slopes": (lambda: nn.PReLU(8), lambda: torch.randn(5, 8), 0),
    "a linear layer": (lambda: nn.Linear(16, 16), lambda: torch.randn(5, 16), 2),
    "statistics": (lambda: nn.BatchNorm1d(16).eval(), lambda: torch.randn(5, 16), 4),
    "a product's weights": (Tied, tokens, 1),
    "computed once": (Squared, lambda: torch.randn(5, 16), 1),
}
"""Modules, arguments, and the number of their constants."""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_parameters_that_are_constants(case: str, dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    make, arguments, constants = CASES[case]
    seen: list[int] = []
    begin = CompiledGraph.__init__

    def begun(self: Any, module: Any, options: Any, static: Any) -> None:
        seen.append(len(static))
        begin(self, module, options, static)

    monkeypatch.setattr(CompiledGraph, "__init__", begun)
    model, x = make(), arguments()
    ours = torch.compile(model, backend="pdojo", dynamic=dynamic, options={"tune": "none"})
    with torch.no_grad():
        torch.testing.assert_close(ours(x), model(x))
        assert seen == [constants]
        # Changes that PyTorch does not count are seen in the next call, in all elements.
        for parameter in model.parameters():
            parameter.data.reshape(-1)[:] = torch.randn(parameter.numel())
            torch.testing.assert_close(ours(x), model(x))
