"""Convolutions of models: fewer products, bf16 by pairs, and what they are compared with."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import pdojo
from pdojo.dialect.notation import print_notation


def layer(channels: int = 24, outputs: int = 32, **keywords: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(channels, outputs, 3, **keywords), torch.nn.ReLU()).eval()


def text_of(module: Any, x: Any, **options: Any) -> str:
    with torch.no_grad():
        explained = pdojo.torch.explain(module, x, options={"tune": "none", **options})
    return "\n".join(print_notation(each.kernel) for each in explained.kernels)


def has_tiles(text: str) -> bool:
    """Whether products are of 4 x 4 values of tiles."""
    return " 4 4 " in text


@pytest.mark.parametrize("size", [14, 9])
def test_wide_layers_have_fewer_products(size: int) -> None:
    module, x = layer(padding=1), torch.randn(2, 24, size, size)
    assert has_tiles(text_of(module, x))
    assert not has_tiles(text_of(module, x, winograd=False))
    with torch.no_grad():
        wanted = module.double()(x.double()).float()
        module.float()
        for options in ({}, {"winograd": False}):
            torch.compiler.reset()
            found = torch.compile(module, backend="pdojo", options=options)(x)
            torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", [0, 1, (2, 1)])
def test_gradients_of_wide_layers(padding: Any) -> None:
    module, x = layer(padding=padding), torch.randn(2, 24, 9, 14, requires_grad=True)
    exact, same = layer(padding=padding).double(), x.detach().double().requires_grad_()
    found, wanted = torch.compile(module, backend="pdojo")(x), exact(same)
    gradient = torch.randn(found.shape)
    found.backward(gradient)
    wanted.backward(gradient.double())
    rows = zip((x, *module.parameters()), (same, *exact.parameters()), strict=True)
    for one, other in rows:
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-5, atol=2e-5)


def test_narrow_layers_and_strides_keep_theirs() -> None:
    assert not has_tiles(text_of(layer(8, 8), torch.randn(1, 8, 12, 12)))
    assert not has_tiles(text_of(layer(stride=2), torch.randn(1, 24, 12, 12)))


@pytest.mark.parametrize("channels", [3, 16])
def test_bf16_rounds_once(channels: int) -> None:
    module, x = layer(channels, 16, padding=1).bfloat16(), torch.randn(1, channels, 9, 10).bfloat16()
    with torch.no_grad():
        found = torch.compile(module, backend="pdojo")(x)
        wanted = torch.relu(module.double()[0](x.double()))
        assert found.dtype is torch.bfloat16
        torch.testing.assert_close(found.double(), wanted, rtol=2**-8, atol=2**-9)


def test_products_of_bf16_may_take_denormals_for_zero() -> None:
    text = text_of(torch.nn.Linear(16, 16).bfloat16().eval(), torch.randn(4, 16).bfloat16())
    assert "numerics contract flush reassociate" in text
    assert "flush" not in text_of(torch.nn.Linear(16, 16).eval(), torch.randn(4, 16))


class Residual(torch.nn.Module):
    """Convolutions of bf16 with what is between them in networks: a residual, a pool, a convolution by channels."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 16, 3, 2, 1)
        self.second = torch.nn.Conv2d(16, 16, 3, padding=1)
        self.by_channels = torch.nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.last = torch.nn.Conv2d(16, 10, 1)

    def forward(self, x: Any) -> Any:
        x = torch.nn.functional.max_pool2d(torch.relu(self.first(x)), 3, 2, 1)
        x = torch.relu(x + self.second(x))
        return self.last(self.by_channels(x)).mean((2, 3))


@pytest.mark.parametrize("dynamic", [False, True])
def test_images_between_convolutions_have_channels_last(dynamic: bool) -> None:
    module = Residual().bfloat16().eval()
    compiled = torch.compile(module, backend="pdojo", dynamic=dynamic, options={"check": True})
    torch.compiler.reset()
    with torch.no_grad():
        for batch in (2, 3):
            x = torch.randn(batch, 3, 30, 34).bfloat16()
            wanted, native = module.float()(x.float()), module.bfloat16()(x).float()
            error = (compiled(x).float() - wanted).abs().max()
            assert error <= 2 * (native - wanted).abs().max() + 2**-8
