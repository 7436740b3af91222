"""Samples that peers compute wrongly or refuse, with the reasons; all others must be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pdojo.build.operator import FLOATS, Input, Operator, Sample
from qa.operators.peers import AbsentError, operands_of


@dataclass(frozen=True)
class Case:
    """A sample of an operator with elements of one type."""

    record: Operator
    sample: Sample
    dtype: str

    def operands(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with operands for arrays."""
        return operands_of(self.sample, self.dtype)

    def inputs(self) -> list[Input]:
        """The inputs of the sample."""
        found: list[Input] = []
        self.sample.filled(found.append)
        return found


FAULTS: Mapping[tuple[str, str], str] = {
    ("ONNX Runtime", "mean_variance_norm"): "equal elements give NaN",
    ("ONNX Runtime", "one_hot"): "it rounds indices that are no integers",
    ("onnx.reference", "log_softmax"): "its formula overflows",
    ("onnx.reference", "logsumexp"): "its formula overflows",
    ("PyTorch", "var_mean"): "its mean of infinities is NaN",
    **{("ONNX Runtime", name): "it ignores NaN" for name in ("argmax", "argmin", "hardmax", "max", "min")},
    **{
        (engine, name): "it ignores NaN"
        for engine in ("ONNX Runtime", "onnx.reference")
        for name in ("pool", "max_pool_with_places")
    },
}
"""What peers compute wrongly in samples of given, special elements, by engine and operator."""
UNLIKE: Mapping[tuple[str, str], str] = {
    ("onnx.reference", "normalize"): "it adds elements, not their sizes",
    ("onnx.reference", "mean_variance_norm"): "it adds f32 to all elements",
}
"""What peers compute wrongly in all samples."""


def _has_odd(case: Case) -> bool:
    """Whether the sample is that of the odd arguments of a function of elements."""
    return case.sample is case.record.samples[-1]


DEVIATIONS: Mapping[tuple[str, str], Callable[[Case], bool]] = {
    # NaN has a sign, large numbers overflow on the way, quotients of subnormal divisors are no integers.
    **{("PyTorch", name): _has_odd for name in ("copysign", "gelu", "fmod")},
    # Without a bound, infinities become the greatest number; the sign of NaN of f16 is 0.
    **{("ONNX Runtime", name): _has_odd for name in ("clip", "sign")},
    # PyTorch's NaN of bf16 has another sign.
    ("pdojo.torch", "copysign"): _has_odd,
    # Products and sums are rounded apart, so that the deviation of a row of one element is not 0.
    ("PyTorch", "layer_norm_with_statistics"): lambda case: case.inputs()[0].shape[-1] == 1,
    # Another inverse of a one-sided transform.
    ("ONNX Runtime", "fourier"): lambda case: {"inverse", "onesided"} <= set(case.sample.keywords),
    # Integers are not rounded but cut off.
    # Regions of named axes are read otherwise.
    ("ONNX Runtime", "resize"): lambda case: case.dtype not in FLOATS or "regions" in case.sample.keywords,
    # The mean of no elements is 0.
    ("ONNX Runtime", "mean"): lambda case: not all(all(each.shape) for each in case.inputs()),
    # Integers are multiplied as floats.
    ("ONNX Runtime", "prod"): lambda case: case.dtype not in FLOATS,
    # It ignores all of these.
    ("onnx.reference", "recurrent_layer"): lambda case: bool(
        {"backwards", "clip", "coupled", "lengths", "peephole"} & set(case.sample.keywords)
    ),
    # Products of extents and scales in the place of the extents of results.
    ("onnx.reference", "resize"): lambda case: 1 in case.sample.arguments[2],
    # Windows longer than the image divide by all of their elements, also by those beyond the padding.
    ("onnx.reference", "avg_pool"): lambda case: (
        any(k > n for k, n in zip(case.sample.arguments[1], case.inputs()[0].shape[2:], strict=True))
        and case.sample.keywords.get("count_padding", True)
    ),
    # Factors of neighbours outside of the image.
    ("onnx.reference", "grid_sample"): lambda case: case.sample.arguments[2:] == ("cubic", "border"),
}
"""Samples in which a peer deviates from the text of ONNX, or from the other peers."""


def check_faults(engine: str, case: Case) -> None:
    """Raise AbsentError if an engine is known to be wrong."""
    key = engine, case.record.name
    if DEVIATIONS.get(key, lambda _: False)(case):
        raise AbsentError(f"{engine} deviates from the other peers")
    if key in UNLIKE or (key in FAULTS and any(each.given for each in case.inputs())):
        raise AbsentError(f"{engine}: {UNLIKE.get(key) or FAULTS[key]}")


_NO_KERNEL: Mapping[str, str] = {
    "PyTorch": r"not implemented for '(Half|BFloat16|UInt)",
    "ONNX Runtime": r"find an implementation|does not support double|kernel_end_version|type mismatch",
    "onnx.reference": r"^$",
}
"""What errors say if the peer has no kernel for an element type; all have one for f32."""
REFUSED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("ONNX Runtime", "attention"): ("inconsistent q_sequence_length", "masks have a row for each query"),
    ("ONNX Runtime", "contract"): ("Ellipsis", "ellipses have one number of dimensions"),
    **{("ONNX Runtime", name): ("IsScalarOr1ElementVector", "the first operand has one zero point")
       for name in ("integer_matmul", "quantised_matmul")},
    ("ONNX Runtime", "local_response_norm"): ("was false", "images have two dimensions, and windows an odd size"),
    ("ONNX Runtime", "momentum"): ("not a registered function", "it has no operators of training"),
    ("ONNX Runtime", "one_hot"): ("OneHot", "it has few combinations of types"),
    ("ONNX Runtime", "space_to_depth"): ("Unrecognized attribute: mode", "it has an older version"),
    ("ONNX Runtime", "swiglu"): ("(implementation|kernel) for Swish", "it lacks a step of the function"),
    **{("ONNX Runtime", name): ("when reduction is", "f16 is not joined") for name in ("put_along", "put_at")},
    **{("ONNX Runtime", name): (r"\(22\)", "it has an older version")
       for name in ("lp_pool", "max_roi_pool", "roi_align")},
    ("onnx.reference", "conv_transpose"): ("cannot reshape", "its groups have as many inputs as outputs"),
    ("onnx.reference", "deform_conv"): ("NaN to integer", "places are finite"),
    ("onnx.reference", "det"): ("Issues with types", "NumPy has no determinants of f16"),
    **{("onnx.reference", name): ("could not be broadcast", "the first operand has one zero point")
       for name in ("integer_matmul", "quantised_matmul")},
    ("onnx.reference", "grid_sample"): ("infinity to integer", "places are finite"),
    **{("onnx.reference", name): ("No registered implementation", "it has no such operator")
       for name in ("lp_pool", "max_roi_pool")},
    ("onnx.reference", "pad"): ("can't contain negative values", "it does not cut"),
    ("onnx.reference", "resize"): ("tf_half_pixel_for_nn", "it lacks a mode"),
    ("ONNX Runtime", "write_sequences"): ("exceeds max_sequence_length", "it goes around a cache once"),
    ("onnx.reference", "write_sequences"): ("not compatible", "it goes around a cache once"),
    ("onnx.reference", "take_along"): ("dimensions of index and self", "indices have the extents of the array"),
}  # fmt: skip
"""Words of the errors with which a peer refuses samples of an operator, and the reason."""


def absence(engine: str, case: Case, error: Exception) -> Exception:
    """AbsentError for an error with which a peer is known to refuse a sample, and the error itself for others."""
    words, reason = REFUSED.get((engine, case.record.name), ("^$", ""))
    if re.search(words, str(error)):
        return AbsentError(f"{engine}: {reason}")
    if case.dtype != "f32" and re.search(_NO_KERNEL[engine], str(error)):
        return AbsentError(f"{engine} has no kernel for {case.dtype}")
    return error
