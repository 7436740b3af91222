"""`torch.compile(backend="pdojo")` on CUDA tensors, without a GPU (`standin.torch_cuda`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from standin import gpu as standin_gpu
from standin.torch_cuda import outcomes

pytestmark = standin_gpu.NEEDS

FOLDER = Path(__file__).parent / "cuda"
MODULES = ("kernels", "calls", "failures", "models")
CASES = [
    (m, n) for m in MODULES for n in re.findall(r"^def (case_\w+)", (FOLDER / f"{m}.py").read_text(), re.MULTILINE)
]


@cache
def found(module: str) -> dict[str, str]:
    return outcomes(f"unit.torch.cuda.{module}")


@pytest.mark.parametrize(("module", "name"), CASES)
def test_case(module: str, name: str) -> None:
    failure = found(module).get(name, found(module)[""])
    assert not failure, failure
