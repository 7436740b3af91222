"""Models in the form of `quantize_pt2e`: no call of quantisation is left to PyTorch, and results are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torch.ao.quantization.fx._decomposed", reason="needs PyTorch's operators of quantisation")

import pdojo
from pdojo.torch.exporting import exported_model

Q: Any = torch.ops.quantized_decomposed
PLAIN = {"tune": "none"}
BYTE, SIGNED = (0, 255, torch.uint8), (-128, 127, torch.int8)


@pytest.fixture(autouse=True)
def _no_caches() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def by_tensor(x: Any) -> Any:
    return Q.quantize_per_tensor(x, 0.037, 119, *BYTE)


def by_channel(x: Any) -> Any:
    return Q.quantize_per_channel(x, SCALES, ZEROS, 1, *SIGNED)


SCALES, ZEROS = torch.rand(6) / 50 + 0.01, torch.randint(-9, 9, (6,))
TOKENS, MIDDLES = torch.rand(5, 1, dtype=torch.float64) / 50 + 0.01, torch.randint(-9, 9, (5, 1))
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "per tensor": by_tensor,
    "back per tensor": lambda x: Q.dequantize_per_tensor(by_tensor(x), 0.037, 119, *BYTE),
    "scales that are tensors": lambda x: Q.quantize_per_tensor.tensor(x, SCALES[:1] * 2, ZEROS[:1], *SIGNED),
    "back by tensors": lambda x: Q.dequantize_per_tensor.tensor(by_tensor(x), SCALES[:1], ZEROS[:1], *BYTE),
    "per channel": by_channel,
    "back per channel": lambda x: Q.dequantize_per_channel(by_channel(x), SCALES, ZEROS, 1, *SIGNED),
    "back without zero points": lambda x: Q.dequantize_per_channel(by_channel(x), SCALES, None, 1, *SIGNED),
    "per token": lambda x: Q.quantize_per_token(x, TOKENS, MIDDLES, *SIGNED),
    "back per token": lambda x: Q.dequantize_per_token(by_channel(x), TOKENS, MIDDLES, *SIGNED, torch.float32),
}


def compared(function: Callable[..., Any], *given: Any, tune: str = "none") -> Any:
    """The explanation, after a comparison with PyTorch."""
    options = {"tune": tune}
    with torch.no_grad():
        found, wanted = torch.compile(function, backend="pdojo", options=options)(*given), function(*given)
        assert found.dtype == wanted.dtype
        if wanted.is_floating_point():
            torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
        else:
            assert torch.equal(found, wanted)
        explained = pdojo.torch.explain(function, *given, options=PLAIN)
    assert not explained.fallbacks
    return explained


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name: str) -> None:
    # Beyond the range of the integers, and ties.
    x = torch.cat([torch.randn(3, 6) * 4, (torch.arange(12.0).reshape(2, 6) - 5.5) * 0.037])
    assert len(compared(FUNCTIONS[name], x).kernels) <= 2


def test_half_precision_is_quantised_in_f32() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        compared(by_tensor, (torch.randn(40, 6) * 4).to(dtype))


class Quantised(torch.nn.Module):
    """A linear layer as the quantiser writes it: weights of bytes, and scales of outputs."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(outputs) / 100 + 0.001)
        self.register_buffer("zeros", torch.zeros(outputs, dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.randn(outputs))

    def forward(self, x: Any) -> Any:
        x = Q.dequantize_per_tensor(Q.quantize_per_tensor(x, 0.03, 120, *BYTE), 0.03, 120, *BYTE)
        weight = Q.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, *SIGNED)
        y = torch.relu(torch.nn.functional.linear(x, weight, self.bias))
        return Q.dequantize_per_tensor(Q.quantize_per_tensor(y, 0.2, 0, *BYTE), 0.2, 0, *BYTE)


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_layers(tune: str) -> None:
    layer = Quantised(64, 32)
    with torch.no_grad():
        found = torch.compile(layer, backend="pdojo", options={"tune": tune})
        x = torch.randn(5, 64)
        ours, theirs = found(x), layer(x)
        # A sum that lies between two integers may be rounded to either.
        wrong = (ours - theirs).abs() > 1e-5
        assert wrong.float().mean() < 0.01
        assert (ours - theirs).abs().max() < 0.21
        assert not pdojo.torch.explain(layer, x, options=PLAIN).fallbacks


@pytest.mark.parametrize("linear", [torch.nn.functional.linear, torch.ops.aten.linear.default])
@pytest.mark.parametrize(
    ("left", "right", "by_channel", "shape"),
    [
        (BYTE, SIGNED, True, (5,)),
        (SIGNED, SIGNED, True, (2, 3)),
        (BYTE, BYTE, False, (5,)),
        (SIGNED, SIGNED, False, ()),
    ],
)
def test_products_of_bytes(linear: Any, left: Any, right: Any, by_channel: bool, shape: tuple[int, ...]) -> None:
    x = torch.randint(left[0], left[1] + 1, (*shape, 33), dtype=left[2])
    weight = torch.randint(right[0], right[1] + 1, (9, 33), dtype=right[2])
    scales, zeros, bias = torch.rand(9) / 100 + 0.001, torch.randint(-5, 5, (9,)), torch.randn(9)
    zero = 100 if right[0] == 0 else 0

    def layer(x: Any) -> Any:
        x = Q.dequantize_per_tensor(x, 0.02, 3, *left)
        if by_channel:
            return linear(x, Q.dequantize_per_channel(weight, scales, zeros, 0, *right), bias)
        return linear(x, Q.dequantize_per_tensor(weight, 0.011, zero, *right))

    explained = compared(layer, x)
    assert any("aten._int_mm.default" in kernel.operators for kernel in explained.kernels)


@pytest.mark.parametrize(
    ("conv", "left", "right", "shape", "weights", "places"),
    [
        (torch.conv2d, BYTE, SIGNED, (2, 6, 9, 8), (8, 6, 3, 3), {"padding": 1}),
        (torch.nn.functional.conv2d, SIGNED, SIGNED, (6, 9, 8), (8, 3, 3, 2), {"groups": 2, "dilation": (1, 2)}),
        (torch.ops.aten.conv1d.default, BYTE, BYTE, (1, 6, 19), (8, 6, 3), {"stride": [2]}),
        (torch.conv3d, SIGNED, BYTE, (2, 4, 6, 5, 5), (4, 1, 3, 3, 3), {"groups": 4, "padding": (1, 0, 2)}),
    ],
)
@pytest.mark.parametrize("zeros", [None, 0, 7])
def test_convolutions_of_bytes(
    conv: Any, left: Any, right: Any, shape: tuple[int, ...], weights: tuple[int, ...], places: Any, zeros: int | None
) -> None:
    """Weights with one scale, and with one for each output, with and without zero points."""
    x, weight = (
        torch.randint(low, top + 1, size, dtype=t) for (low, top, t), size in ((left, shape), (right, weights))
    )
    count = weights[0]
    scales, bias = torch.rand(count) / 100 + 0.001, torch.randn(count)
    points = torch.randint(-5, 5, (count,)) if zeros else torch.zeros(count, dtype=torch.int64)

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.scales, self.points = map(torch.nn.Buffer, (weight, scales, points))

        def forward(self, x: Any) -> Any:
            x = Q.dequantize_per_tensor(x, 0.02, 3, *left)
            if zeros is None:
                return conv(x, Q.dequantize_per_tensor(self.weight, 0.011, 5, *right), bias, **places)
            return conv(x, Q.dequantize_per_channel(self.weight, self.scales, self.points, 0, *right), bias, **places)

    explained = compared(Layer(), x)
    assert sum("pdojo.byte_conv.default" in kernel.operators for kernel in explained.kernels) == 1
    model = exported_model("layer", Layer(), [x])
    assert "byte_conv" in "".join(call.kernel.sym_name.data for call in model.calls)
    (found,) = model.interpret(x.numpy())
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(found), Layer()(x), rtol=1e-5, atol=1e-5)


def test_convolutions_with_borders_by_name_are_not_multiplied_as_bytes() -> None:
    weight = torch.randint(-128, 128, (4, 2, 3, 3), dtype=torch.int8)

    def layer(x: Any) -> Any:
        x = Q.dequantize_per_tensor(x, 0.02, 3, *BYTE)
        return torch.conv2d(x, Q.dequantize_per_tensor(weight, 0.01, 0, *SIGNED), padding="same")

    explained = compared(layer, torch.randint(0, 256, (1, 2, 5, 5), dtype=torch.uint8))
    assert not any("pdojo.byte_conv.default" in kernel.operators for kernel in explained.kernels)


def test_weights_of_floats_are_not_multiplied_as_bytes() -> None:
    weight = torch.randn(9, 33)

    def layer(x: Any) -> Any:
        return torch.nn.functional.linear(Q.dequantize_per_tensor(x, 0.02, 3, *BYTE), weight)

    explained = compared(layer, torch.randint(0, 256, (5, 33), dtype=torch.uint8))
    assert not any("aten._int_mm.default" in kernel.operators for kernel in explained.kernels)
