"""Cases of devices that kernels cannot use, of several devices, and of devices that fail (`standin.torch_cuda`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from pdojo.backends.gpu.driver import DriverError
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.vendors import CUDA_VENDOR
from pdojo.dialect.machines.registry import introduce, machine
from pdojo.errors import LoweringError
from pdojo.torch import FallbackWarning, explain
from standin.gpu import FiberCompiler
from standin.torch_cuda import Device
from unit.torch.cuda.kernels import CUDA, Block, kernels

SECOND = torch.device("cuda:1")


def function(a: torch.Tensor) -> torch.Tensor:
    """A region of one kernel."""
    return torch.softmax(a * 2, -1) + a


def warned(call: Callable[[], Any]) -> list[str]:
    """The texts of a call's warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found if issubclass(each.category, FallbackWarning)]


def refused(device: torch.device) -> str:
    """The reason for which PyTorch runs the function on a device; its results are right."""
    x = torch.randn(4, 8)
    found = explain(function, x.to(device))
    assert not found.kernels
    torch.testing.assert_close(torch.compile(function, backend="pdojo")(x.to(device)).cpu(), function(x))
    (reason,) = {each.reason for each in found.fallbacks}
    return reason


def case_two_kinds_of_gpus(device: Device) -> None:
    device.driver.set("devices", 2)
    device.driver.set("major1", 8)
    assert "no machine is described for the architecture sm_80 of Stand-in; known are nvidia-sm90 (sm_90)" in refused(
        SECOND
    )
    introduce(replace(machine("nvidia-sm90"), name="own-sm80", processor="sm_80"))
    torch._dynamo.reset()
    x = torch.randn(6, 40)
    block = Block(40)
    wanted = block(x).detach()
    compiled: Any = torch.compile(block, backend="pdojo")
    kernels(device)
    with torch.no_grad():
        for where in (SECOND, CUDA, SECOND):
            block.to(where)
            found = compiled(x.to(where))
            assert found.device == where
            torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-5)
            assert len(kernels(device)) == 1
    found = explain(lambda a, b: (function(a) + 1, torch.relu(b)), x.to(SECOND), x.to(CUDA))
    assert "kernels take tensors on cuda:1, not on cuda:0: the kernels of a graph" in found.fallbacks[0].reason


def case_an_architecture_without_a_machine(device: Device) -> None:
    device.driver.set("devices", 3)
    device.driver.set("major1", 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CUDA_VENDOR.variable, f"{os.path.dirname(os.environ[CUDA_VENDOR.variable])}/./standin.so")
        assert "no machine is described for the architecture sm_70 of Stand-in" in refused(SECOND)


def case_no_driver(_: Device) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CUDA_VENDOR.variable, "/no/driver.so")
        assert "there is no driver for NVIDIA's GPUs here" in refused(CUDA)


def case_a_driver_older_than_the_compiler(device: Device) -> None:
    x = torch.randn(4, 16)
    device.driver.set("version", 12020)
    device.driver.set("cuModuleLoadData", 222)
    compiled: Any = torch.compile(lambda a: (function(a), torch.cumsum(a, 0).relu()), backend="pdojo")
    (message,) = set(warned(lambda: compiled(x.to(CUDA))))
    assert "the driver of Stand-in is for CUDA 12.2, and kernels are compiled for 13.0: update the driver" in message
    torch.testing.assert_close(compiled(x.to(CUDA))[0].cpu(), function(x))


def case_no_compiler(_: Device) -> None:
    def fail(self: FiberCompiler, text: str, processor: str) -> None:
        raise MissingTool("NVRTC, the compiler of CUDA C++, is not installed: pip install nvidia-cuda-nvrtc")

    x = torch.randn(4, 17)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FiberCompiler, "compile", fail)
        compiled: Any = torch.compile(function, backend="pdojo")
        (message,) = warned(lambda: compiled(x.to(CUDA)))
    assert "instead of kernels: NVRTC, the compiler of CUDA C++, is not installed" in message
    torch.testing.assert_close(compiled(x.to(CUDA)).cpu(), function(x))


def case_a_kernel_that_device_code_cannot_express(_: Device) -> None:
    def fail(self: FiberCompiler, text: str, processor: str) -> None:
        raise LoweringError("a block takes too much shared memory")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FiberCompiler, "compile", fail)
        assert "no kernel could be compiled: a block takes too much shared memory" in refused(CUDA)


def case_out_of_memory(device: Device) -> None:
    compiled: Any = torch.compile(function, backend="pdojo")
    x = torch.randn(64, 1024).to(CUDA)
    compiled(x)
    device.empty_cache()
    device.driver.set("memory", 1 << 18)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        compiled(x)
    device.driver.heal()
    torch.testing.assert_close(compiled(x).cpu(), function(x.cpu()), rtol=1e-4, atol=1e-5)


def case_no_memory_for_code(device: Device) -> None:
    x = torch.randn(4, 18).to(CUDA)
    device.driver.set("cuModuleLoadData", 2)
    compiled: Any = torch.compile(function, backend="pdojo")
    (message,) = warned(lambda: compiled(x))
    assert "cuModuleLoadData: ERROR_OUT_OF_MEMORY" in message
    assert "end other programs on the device" in message
    torch.testing.assert_close(compiled(x).cpu(), function(x.cpu()))


def case_a_device_that_is_lost(device: Device) -> None:
    compiled: Any = torch.compile(function, backend="pdojo")
    x = torch.randn(4, 8).to(CUDA)
    compiled(x)
    device.driver.set("cuLaunchKernel", 719)
    for _ in range(2):
        with pytest.raises(DriverError, match="a kernel failed; this process cannot use the device any more"):
            compiled(x)
    device.driver.heal()
    device.driver.set("cuModuleLoadData", 700)
    other: Any = torch.compile(lambda a: function(a) * 3, backend="pdojo")
    with pytest.raises(DriverError, match="this process cannot use the device any more"):
        other(x)
