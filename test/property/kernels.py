"""The generator of random kernels as hypothesis strategies, whose choices shrink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from hypothesis import strategies as st

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from qa.random_kernels import Features, drawn_text

__all__ = ["Features", "kernel_texts", "kernels"]

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]


def kernel_texts(features: Features | None = None) -> st.SearchStrategy[str]:
    """Texts of random kernels."""
    chosen = features or Features()

    @st.composite
    def text(draw: Draw[object]) -> str:
        return drawn_text(_Choices(draw), chosen)

    return text()


def kernels(features: Features | None = None) -> st.SearchStrategy[KernelOp]:
    """Random kernels."""
    return kernel_texts(features).map(lambda text: parse_notation(text)[0])


class _Choices:
    """Typed drawing."""

    def __init__(self, draw: Draw[object]) -> None:
        self._draw = draw

    def one(self, options: Sequence[T]) -> T:
        return cast("T", self._draw(st.sampled_from(options)))

    def integer(self, low: int, high: int) -> int:
        found = self._draw(st.integers(low, high))
        assert isinstance(found, int)
        return found

    def chance(self, out_of: int = 2) -> bool:
        """True once in `out_of` times; shrinks to False."""
        return self.integer(0, out_of - 1) == out_of - 1
