"""Cases of models and random programs on CUDA tensors (`standin.torch_cuda`)."""

from __future__ import annotations

import copy
import random
from typing import Any

import torch

from standin.torch_cuda import Device
from unit.torch.cuda.kernels import CUDA, assert_close, check
from unit.torch.test_random_programs import layouts, program

SEEDS = 4


def gradients(network: torch.nn.Module, call: Any, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """The gradients of a module's parameters."""
    network.zero_grad()
    call(*inputs).square().mean().backward()
    return [p.grad.clone() for p in network.parameters() if p.grad is not None]


def case_random_programs(_: Device) -> None:
    for seed in range(SEEDS):
        torch._dynamo.reset()
        torch.manual_seed(seed)
        function = program(seed)
        right = layouts(random.Random(seed))
        left = [torch.empty_strided(x.shape, x.stride(), device=CUDA).copy_(x) for x in right]
        compiled: Any = torch.compile(function, backend="pdojo", options={"check": True})
        for _repeat in range(2):
            found, wanted = (*compiled(*left), *left), (*function(*right), *right)
            for ours, theirs in zip(found, wanted, strict=True):
                torch.testing.assert_close(ours.cpu(), theirs, msg=lambda text, seed=seed: f"{seed}: {text}")
                assert ours.stride() == theirs.stride(), seed


def case_an_encoder(_: Device) -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    x = torch.randn(2, 12, 32)
    wanted = gradients(layer, layer, x)
    check(copy.deepcopy(layer).eval(), x)
    layer = layer.to(CUDA)
    assert_close(gradients(layer, torch.compile(layer, backend="pdojo"), x.to(CUDA)), wanted, 1e-3)


def case_images_with_channels_last(_: Device) -> None:
    network: Any = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.AdaptiveAvgPool2d(1),
    )
    network = network.to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last)
    other = copy.deepcopy(network)
    wanted = gradients(network, network, x)
    other = other.to(CUDA)
    found = gradients(other, torch.compile(other, backend="pdojo"), x.to(CUDA))
    # PyTorch's gradients of weights have other strides on other devices.
    assert_close([each.contiguous() for each in found], [each.contiguous() for each in wanted], 1e-3)
    assert_close([*other.buffers()][:2], [*network.buffers()][:2], 1e-4)


def case_products_of_bf16(_: Device) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.GELU(), torch.nn.Linear(48, 16)).bfloat16()
    check(network, torch.randn(8, 32).bfloat16(), rtol=5e-2)
