"""The verifier of kernels. Operations call it; loading `pdojo.dialect` registers it, as it needs views of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Verifier = Callable[[Any], None]
"""A function that raises VerifyException for a `KernelOp` that is not well-formed."""

_registered: list[Verifier] = []


def register_verifier(verify: Verifier) -> None:
    """Register the only verifier of kernels."""
    assert not _registered
    _registered.append(verify)


def verify(kernel: object) -> None:
    """Verify a kernel by the registered verifier."""
    _registered[0](kernel)
