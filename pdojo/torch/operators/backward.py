"""Gradients of softmax and norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.norms import layer_norm_gradient
from pdojo.build.softmax import log_softmax_gradient, softmax_gradient
from pdojo.torch.operators.normalisations import last_axes
from pdojo.torch.operators.reductions import one_axis
from pdojo.torch.operators.registry import Call, aten


def _from_result(name: str, function: Callable[[Array, Array, int], Array]) -> None:
    """The rule of a gradient that is computed from the result."""

    def rule(call: Call, gradient: Array, y: Array, dim: int, input_dtype: object) -> Array:
        whole, axis = one_axis(y, dim)
        return build.reshape(function(whole, build.reshape(gradient, whole.shape), axis), call.shape)

    aten(name)(rule)


_from_result("_softmax_backward_data.default", softmax_gradient)
_from_result("_log_softmax_backward_data.default", log_softmax_gradient)


@aten("native_layer_norm_backward.default")
def layer_norm_backward(
    call: Call,
    gradient: Array,
    x: Array,
    normalized_shape: Sequence[int],
    average: Array,
    inverse: Array,
    scale: Array | None,
    shift: Array | None,
    output_mask: Sequence[bool],
) -> list[Array | None]:
    """The gradients of the operand, the scale and the shift of a layer norm."""
    found = layer_norm_gradient(x, gradient, average, inverse, scale, axis=last_axes(x, normalized_shape))
    return [each if wanted else None for each, wanted in zip(found, output_mask, strict=True)]
