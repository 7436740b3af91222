"""The dialect, and all analyses of a kernel that do not change it.

Any import from here registers the verifier of kernels and the shortcuts of analyses, which are loaded when they are
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdojo.dialect.flow.shortcut import register
from pdojo.dialect.shortcuts import SHORTCUTS
from pdojo.dialect.verifier import register_verifier

if TYPE_CHECKING:
    from pdojo.dialect.ops import KernelOp


def _verify(kernel: KernelOp) -> None:
    from pdojo.dialect.verification.verify import verify_kernel

    verify_kernel(kernel)


register_verifier(_verify)
register(SHORTCUTS)
