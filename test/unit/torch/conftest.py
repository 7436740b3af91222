"""What tests of PyTorch share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def no_caches() -> Iterator[None]:
    """Nothing that Dynamo compiled before, nor after; and the same random numbers for every test."""
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
