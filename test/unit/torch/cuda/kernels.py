"""Cases of kernels on CUDA tensors (`standin.torch_cuda`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pdojo.torch import explain
from standin.torch_cuda import Device

CUDA = torch.device("cuda:0")


def on(device: torch.device | str, value: Any) -> Any:
    """Tensors on a device."""
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda each: each.to(device), value)


def check(
    function: Callable[..., Any], *inputs: Any, options: dict[str, Any] | None = None, rtol: float = 1e-4
) -> list[Any]:
    """Compare a compiled function or module on CUDA tensors with PyTorch on the CPU."""
    with torch.no_grad():
        wanted = function(*inputs)
        compiled: Any = torch.compile(on_module(function), backend="pdojo", options=options)
        found = [compiled(*on(CUDA, inputs)) for _ in range(2)]
    for each in found:
        assert_close(each, wanted, rtol)
    return found


def on_module(function: Any) -> Any:
    """A module on the device; a function as it is."""
    return function.to(CUDA) if isinstance(function, torch.nn.Module) else function


def assert_close(found: Any, wanted: Any, rtol: float = 1e-4) -> None:
    """Compare tensors on the device with those of the CPU: values, types, shapes and strides."""
    ours, theirs = (torch.utils._pytree.tree_leaves(each) for each in (found, wanted))
    for mine, right in zip(ours, theirs, strict=True):
        assert mine.device == CUDA
        strides = zip(mine.shape, mine.stride(), right.stride(), strict=True)
        assert all(a == b for extent, a, b in strides if extent > 1), (mine.stride(), right.stride())
        torch.testing.assert_close(mine.cpu(), right, rtol=rtol, atol=rtol)


def kernels(device: Device) -> list[str]:
    """The device functions that ran since the last call, by their names."""
    return [line.partition("<")[0] for line in device.driver.launches()]


class Block(torch.nn.Module):
    """A reduction and elementwise functions with parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.scale = torch.nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Softmax of a scaled norm."""
        return torch.softmax(self.norm(x) * self.scale, -1)


def case_a_norm_is_one_launch(device: Device) -> None:
    check(Block(96), torch.randn(40, 96))
    assert len(kernels(device)) == 2, "one for each call"


def case_several_kernels(device: Device) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.GELU(), torch.nn.Linear(64, 32), Block(32))
    check(network, torch.randn(24, 48))
    assert len(kernels(device)) > 4


def case_changes_of_parameters_are_seen(_: Device) -> None:
    block = Block(32).to(CUDA)
    x = torch.randn(8, 32)
    compiled: Any = torch.compile(block, backend="pdojo")
    with torch.no_grad():
        compiled(x.to(CUDA))
        block.scale.data.mul_(2)
        block.norm.weight.data[3] = 5
        found = compiled(x.to(CUDA)).cpu()
        torch.testing.assert_close(found, block.to("cpu")(x), rtol=1e-4, atol=1e-5)


def case_views(_: Device) -> None:
    x = torch.randn(6, 8, 12)
    check(lambda a: torch.relu(a.transpose(0, 1)[2:5].reshape(3, -1) + 1), x)
    check(lambda a: (a * 2).transpose(1, 2), x)
    check(lambda a: (a + 1, a[1:3, ::2] * 3, a.sum(1)), x)


def case_inputs_of_any_strides(_: Device) -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.softmax(a + b, -1)

    compiled: Any = torch.compile(function, backend="pdojo", dynamic=False)
    x, y = torch.randn(16, 64), torch.randn(64)
    given = torch.randn(17, 70).to(CUDA)
    for a in (x.to(CUDA), given[1:, 3:67], x.t().contiguous().t().to(CUDA), y.to(CUDA).expand(16, 64)):
        wanted = function(a.cpu(), y)
        torch.testing.assert_close(compiled(a, y.to(CUDA)).cpu(), wanted, rtol=1e-4, atol=1e-5)


def case_element_types(_: Device) -> None:
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        check(lambda a: torch.relu(a) * 2 + a.abs(), torch.randn(9, 40).to(dtype), rtol=2e-2)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        check(lambda a: (a * 3 + 1, a > 2), torch.arange(100).to(dtype))
    check(lambda a, b: (a & b, a | ~b, torch.where(a, 1.0, 2.0)), torch.rand(50) > 0.5, torch.rand(50) > 0.5)


def case_numbers_and_literals(_: Device) -> None:
    half = torch.tensor(0.5)
    row = torch.linspace(0, 1, 32)

    def function(a: torch.Tensor, n: int) -> torch.Tensor:
        steps = torch.arange(32, device=a.device) * torch.full((32,), 2.0, device=a.device)
        return a * half + n + steps

    check(function, torch.randn(5, 32), 3)
    check(lambda a: a + row.to(a.device), torch.randn(5, 32))


def case_convolutions_and_products(_: Device) -> None:
    network = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
    ).eval()
    check(network, torch.randn(2, 4, 12, 12))
    check(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v), *torch.randn(3, 2, 2, 16, 8))


def case_gradients(_: Device) -> None:
    def losses(network: torch.nn.Module, x: torch.Tensor, call: Any) -> list[torch.Tensor]:
        network.zero_grad()
        loss = call(x).square().sum()
        loss.backward()
        return [loss.detach(), *[p.grad.clone() for p in network.parameters() if p.grad is not None]]

    network = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), Block(32))
    x = torch.randn(10, 24)
    wanted = losses(network, x, network)
    network = network.to(CUDA)
    found = losses(network, x.to(CUDA), torch.compile(network, backend="pdojo"))
    assert_close(found, wanted, 1e-3)


def case_changes_in_place(_: Device) -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a.mul_(2).add_(b)
        return a.sum(-1)

    x, y = torch.randn(12, 20), torch.randn(12, 20)
    mine = x.to(CUDA)
    compiled: Any = torch.compile(function, backend="pdojo")
    found = compiled(mine, y.to(CUDA))
    torch.testing.assert_close(found.cpu(), function(x, y), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mine.cpu(), x)


def case_calls_that_pytorch_runs(_: Device) -> None:
    table = torch.nn.Embedding(50, 16)

    def function(ids: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.relu(table(ids) * 2 + torch.cumsum(a, 0))

    ids, a = torch.randint(50, (9,)), torch.randn(9, 16)
    wanted = function(ids, a)
    table.to(CUDA)
    with torch.no_grad():
        found = explain(function, ids.to(CUDA), a.to(CUDA))
        compiled: Any = torch.compile(function, backend="pdojo")
        torch.testing.assert_close(compiled(ids.to(CUDA), a.to(CUDA)).cpu(), wanted.detach())
    reasons = {each.operator: each.reason for each in found.fallbacks}
    assert "would wait for its indices" in reasons["aten.embedding.default"]
    assert found.kernels, found


def case_devices_are_not_mixed(_: Device) -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> Sequence[torch.Tensor]:
        return torch.relu(a).exp() * 2 + 1, a.to("cpu") * 2, a * b.sum()

    a, b = torch.randn(8, 8), torch.randn(4)
    found = explain(function, a.to(CUDA), b)
    reasons = [each.reason for each in found.fallbacks]
    assert any("kernels take tensors on cuda:0, not on cpu: the kernels of a graph" in each for each in reasons), (
        reasons
    )
    assert found.kernels
    compiled: Any = torch.compile(function, backend="pdojo")
    for mine, right in zip(compiled(a.to(CUDA), b), function(a, b), strict=True):
        torch.testing.assert_close(mine.cpu(), right)
