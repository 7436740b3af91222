"""Modules as whole models, through `torch.export`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from pdojo.errors import UsageError
from pdojo.torch.exporting import exported_model


class Block(nn.Module):
    """Heads of attention after a norm, and a norm of batches in inference."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.norm = nn.BatchNorm1d(16)
        self.table = nn.Embedding(9, 16)

    def forward(self, words: Any, mask: Any) -> Any:
        x = self.layer(self.table(words) + mask[..., None])
        return {"last": self.norm(x[:, -1]), "all": x.transpose(1, 2)}


def pieces(x: Any, y: Any) -> Any:
    """An input, a view of it, a constant, a sum, and a view of the sum."""
    z = x + y
    return x, x.reshape(-1), torch.arange(3), z, z.reshape(4, 3), z.T


def doubled(x: Any) -> Any:
    return nn.functional.interpolate(x, scale_factor=2, mode="bilinear")


CASES: dict[str, Callable[[], tuple[Any, list[Any]]]] = {
    "block": lambda: (Block().eval(), [torch.randint(0, 9, (2, 5)), torch.randn(2, 5)]),
    "pieces": lambda: (pieces, [torch.randn(3, 4), torch.randn(3, 4)]),
    "resized": lambda: (
        lambda x: nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        [torch.randn(1, 2, 4, 5)],
    ),
    "unread": lambda: (lambda x, y: x * 2, [torch.randn(3), torch.randn(4)]),
    "parts": lambda: (lambda x: (x[1], x.chunk(2, -1)[1], (x * 2)[:2], (x * 2).T[3]), [torch.randn(3, 4)]),
    "strided": lambda: (lambda x: x.exp(), [torch.randn(4, 3).T]),
}


@pytest.mark.parametrize("name", CASES)
def test_models_have_the_results_of_modules(name: str) -> None:
    torch.manual_seed(0)
    function, inputs = CASES[name]()
    model = exported_model(name, function, inputs)
    assert len(model.inputs) == len(inputs)
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(function(*inputs))
    found = model.compile(tune="none", threads=1)(*[each.contiguous().numpy() for each in inputs])
    assert len(model.outputs) == len(expected)
    for ours, right in zip(found if isinstance(found, tuple) else [found], expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(ours), right.contiguous(), rtol=1e-5, atol=1e-5)


def test_inputs_have_the_names_of_parameters() -> None:
    assert [tensor.name for tensor in exported_model("p", pieces, CASES["pieces"]()[1]).inputs] == ["x", "y"]
    assert [tensor.name for tensor in exported_model("b", *CASES["block"]()).inputs] == ["words", "mask"]


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        (lambda x: x.topk(2)[0], [torch.zeros(5)], "'f' has calls without a kernel: aten.topk"),
        (nn.BatchNorm1d(3), [torch.zeros(4, 3)], "changes its buffers .*; export it in evaluation mode"),
        (lambda x: x.add_(1) * 2, [torch.zeros(3)], r"'f' changes its inputs \(x\)"),
        (lambda x, n: x * n, [torch.zeros(3), 2], "input 'n' of 'f' is no tensor"),
        (lambda x: x.item() + x, [torch.zeros(())], "'f'"),
        (lambda x: x if x.sum() > 0 else -x, [torch.zeros(3)], "PyTorch cannot export 'f'"),
    ],
)
def test_refused_modules(function: Any, inputs: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        exported_model("f", function, inputs)
