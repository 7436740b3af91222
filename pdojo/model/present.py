"""Values of a model's sizes, and its tensors at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pdojo.build.sizes import Open
from pdojo.dialect.affine import Size
from pdojo.dialect.sizes import value_problem
from pdojo.errors import UsageError
from pdojo.model.graph import Operand, Tensor


@dataclass(frozen=True)
class Present:
    """The values of sizes in a call."""

    values: Mapping[Size, int]
    _numbers: dict[int, int] = field(default_factory=dict[int, int])
    _tensors: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])

    @staticmethod
    def of(name: str, sizes: Sequence[Size], values: Sequence[int]) -> Present:
        """The values of the sizes of a model, in order. Raises UsageError for one that is not in the range."""
        if len(values) != len(sizes):
            names = ", ".join(size.name for size in sizes) or "none"
            raise UsageError(f"model '{name}' has {len(sizes)} sizes ({names}), not {len(values)}")
        for size, value in zip(sizes, values, strict=True):
            if (problem := value_problem(size, value)) is not None:
                raise UsageError(f"model '{name}': {problem}")
        return Present(dict(zip(sizes, values, strict=True)))

    def number(self, extent: int) -> int:
        """The value of an extent."""
        if not isinstance(extent, Open):
            return extent
        if extent not in self._numbers:
            self._numbers[extent] = extent.at(self.values)
        return self._numbers[extent]

    def shape(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The values of extents."""
        return tuple([self.number(extent) for extent in extents])

    def tensor(self, tensor: Tensor) -> Tensor:
        """A tensor in the shape of the call, always the same one: itself if there are no sizes."""
        if not self.values:
            return tensor
        if tensor not in self._tensors:
            base = None if tensor.base is None else self.tensor(tensor.base)
            self._tensors[tensor] = replace(
                tensor, shape=self.shape(tensor.shape), base=base, strides=self.shape(tensor.strides)
            )
        return self._tensors[tensor]

    def operand(self, operand: Operand) -> Operand:
        """An operand in the shape of the call."""
        return self.tensor(operand) if isinstance(operand, Tensor) else operand
