"""PyTorch, eager: into the preallocated output where the operator takes `out=`, else into memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from numpy.typing import NDArray

from pdojo.errors import UsageError

torch: Any = import_module("torch")
"""An optional package, which type checkers may not find."""

Tensor: TypeAlias = Any


def _layernorm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[1:], g, b, 1e-5)


def _rmsnorm(x: Tensor, w: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[1:], w, 1e-5)


_INTO_OUT: dict[str, tuple[Callable[..., Tensor], Mapping[str, Any]]] = {
    "add": (torch.add, {}),
    "matmul": (torch.mm, {}),
    "reducemean": (torch.mean, {"dim": 1}),
    "relu": (torch.clamp, {"min": 0}),
    "softmax": (torch.softmax, {"dim": -1}),
}
_FRESH: dict[str, Callable[..., Tensor]] = {"layernorm": _layernorm, "rmsnorm": _rmsnorm}


class TorchPeer:
    """One operator on given arrays."""

    def __init__(self, operator: str, arrays: Sequence[NDArray[Any]], threads: int) -> None:
        if operator not in _INTO_OUT and operator not in _FRESH:
            known = ", ".join(sorted((*_INTO_OUT, *_FRESH)))
            raise UsageError(f"PyTorch is not compared on '{operator}'; known: {known}")
        torch.set_num_threads(threads)
        self._tensors: list[Tensor] = [torch.from_numpy(array) for array in arrays]
        self._into = _INTO_OUT.get(operator)
        self._fresh = _FRESH.get(operator)
        self._result: Tensor = None

    def __call__(self) -> None:
        """Compute."""
        with torch.inference_mode():
            if self._into is not None:
                function, parameters = self._into
                function(*self._tensors[:-1], **parameters, out=self._tensors[-1])
            elif self._fresh is not None:
                self._result = self._fresh(*self._tensors[:-1])

    def finish(self) -> None:
        """Copy a fresh result into the output array."""
        if self._result is not None:
            self._tensors[-1].copy_(self._result)
