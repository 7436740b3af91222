"""The generator of random kernels as hypothesis strategies, whose choices shrink."""

from __future__ import annotations

from hypothesis import strategies as st

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.kernels.random_kernels import Choices, Features, drawn_text

__all__ = ["Features", "kernel_texts", "kernels"]


class _Shrinking(Choices):
    def chance(self, out_of: int = 2) -> bool:
        """True with probability 1 / `out_of`; shrinks to False."""
        return self.integer(0, out_of - 1) == out_of - 1


def kernel_texts(features: Features | None = None) -> st.SearchStrategy[str]:
    """Texts of random kernels."""
    return st.randoms(use_true_random=False).map(lambda random: drawn_text(_Shrinking(random), features or Features()))


def kernels(features: Features | None = None) -> st.SearchStrategy[KernelOp]:
    """Random kernels."""
    return kernel_texts(features).map(lambda text: parse_notation(text)[0])
