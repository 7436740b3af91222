"""GPUs of PyTorch as places for models: PyTorch's memory and current streams, and the machine of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pdojo.backends.gpu.driver import DriverError, NoDevice, driver_of
from pdojo.backends.gpu.vendors import CUDA_VENDOR, HIP_VENDOR
from pdojo.dialect.machines.registry import machines_of
from pdojo.errors import UsageError
from pdojo.model.device_models import Place


def gpu_place(device: torch.device) -> Place:
    """The place of models on a device of PyTorch. Raises UsageError for one that kernels cannot use."""
    number: Any = device.index
    current: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if device.type != "cuda" or number is None:
        raise UsageError("no kernels are made for such a device")
    if current is None:
        raise UsageError("this PyTorch is a build for CPUs")
    vendor = HIP_VENDOR if torch.version.hip else CUDA_VENDOR
    try:
        gpu = driver_of(vendor).gpu(number)
    except (NoDevice, DriverError) as error:
        raise UsageError(str(error)) from None
    machines = machines_of(vendor.name.lower())
    # `sm_90a` is `sm_90` with additional instructions that only this architecture has.
    found = [each for each in machines if each.processor.removesuffix("a") == gpu.info.architecture]
    if not found:
        known = ", ".join(f"{each.name} ({each.processor})" for each in machines)
        raise UsageError(
            f"no machine is described for the architecture {gpu.info.architecture} of {gpu.info.name}; "
            f"known are {known}"
        )

    def allocate(size: int) -> tuple[Any, int]:
        memory = torch.empty(size, dtype=torch.uint8, device=device)
        return memory, memory.data_ptr()

    return Place(found[0], gpu, allocate, lambda: current(number))
