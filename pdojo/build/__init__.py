"""Kernels from Python: functions of typed handles, as in NumPy, and a kernel of the notation as the result.

A handle has an element type and a shape; nothing is computed before the kernel runs. Functions check types and shapes
and raise `pdojo.UsageError`. Shapes broadcast as in NumPy. Operators and NumPy's functions convert arrays to a common
element type; a number takes the element type of the array beside it. Views (slices, transposes, reshapes, windows)
cost no memory.

>>> import pdojo
>>> from pdojo import build
>>> x, w = build.input("x", "f32", (4, 8)), build.input("w", "f32", (8,))
>>> kernel = build.kernel("rmsnorm", [x, w], [build.rms_norm(x, w)])
>>> pdojo.run(kernel).shape
(4, 8)
"""

from __future__ import annotations

from pdojo.build.activations import celu, elu, gelu, leaky_relu, relu, selu, sigmoid, silu, softplus
from pdojo.build.arguments import checked
from pdojo.build.array import Array, broadcast_to, cast, constant, input, iota, map, power
from pdojo.build.attention import attention, attention_with_statistics
from pdojo.build.contractions import contract, conv, conv_transpose, det, gemm, matmul
from pdojo.build.elementary import acos, acosh, asin, asinh, atan2, atanh, cosh, sign, sign_bit, sinh, tan
from pdojo.build.elementwise import bitcast, clip, exp, log, maximum, minimum, sqrt, tanh, where
from pdojo.build.indexing import put_along, put_at, take_along
from pdojo.build.kernel import kernel
from pdojo.build.lengths import distance, distances, norm, normalize
from pdojo.build.like_numpy.functions import NAMES
from pdojo.build.losses import binary_cross_entropy, cross_entropy, huber_loss, mse_loss
from pdojo.build.norms import (
    batch_norm,
    batch_norm_with_statistics,
    group_norm,
    group_norm_with_statistics,
    instance_norm,
    layer_norm,
    layer_norm_with_statistics,
    local_response_norm,
    mean_variance_norm,
    rms_norm,
    rms_norm_with_statistics,
)
from pdojo.build.pieces import assemble, concatenate, pad, split, stack, take
from pdojo.build.placing import put
from pdojo.build.pools import avg_pool, pool
from pdojo.build.reductions import (
    all,
    any,
    argmax,
    argmin,
    cumulative,
    cumulative_max,
    cumulative_min,
    log_sum,
    max,
    mean,
    min,
    prod,
    reduce,
    std,
    sum,
    sum_squares,
    var,
    var_mean,
)
from pdojo.build.scans import scan
from pdojo.build.scatters import put_from, take_from
from pdojo.build.shapes import expand_dims, flip, repeat, reshape, squeeze, tile, transpose, windows
from pdojo.build.sizes import size
from pdojo.build.softmax import causal_softmax, hardmax, log_softmax, logsumexp, safe_softmax, softmax
from pdojo.build.sorting import topk
from pdojo.build.tables import gather, scatter, table
from pdojo.build.winograd import conv_winograd

__all__ = [
    "Array",
    "acos",
    "acosh",
    "all",
    "any",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "assemble",
    "atan2",
    "atanh",
    "attention",
    "attention_with_statistics",
    "avg_pool",
    "batch_norm",
    "batch_norm_with_statistics",
    "binary_cross_entropy",
    "bitcast",
    "broadcast_to",
    "cast",
    "causal_softmax",
    "celu",
    "clip",
    "concatenate",
    "constant",
    "contract",
    "conv",
    "conv_transpose",
    "conv_winograd",
    "cosh",
    "cross_entropy",
    "cumulative",
    "cumulative_max",
    "cumulative_min",
    "det",
    "distance",
    "distances",
    "elu",
    "exp",
    "expand_dims",
    "flip",
    "gather",
    "gelu",
    "gemm",
    "group_norm",
    "group_norm_with_statistics",
    "hardmax",
    "huber_loss",
    "input",
    "instance_norm",
    "iota",
    "kernel",
    "layer_norm",
    "layer_norm_with_statistics",
    "leaky_relu",
    "local_response_norm",
    "log",
    "log_softmax",
    "log_sum",
    "logsumexp",
    "map",
    "matmul",
    "max",
    "maximum",
    "mean",
    "mean_variance_norm",
    "min",
    "minimum",
    "mse_loss",
    "norm",
    "normalize",
    "pad",
    "pool",
    "power",
    "prod",
    "put",
    "put_along",
    "put_at",
    "put_from",
    "reduce",
    "relu",
    "repeat",
    "reshape",
    "rms_norm",
    "rms_norm_with_statistics",
    "safe_softmax",
    "scan",
    "scatter",
    "selu",
    "sigmoid",
    "sign",
    "sign_bit",
    "silu",
    "sinh",
    "size",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "std",
    "sum",
    "sum_squares",
    "table",
    "take",
    "take_along",
    "take_from",
    "tan",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "var",
    "var_mean",
    "where",
    "windows",
]

numpy_names = NAMES
"""The functions of NumPy that take handles, and methods of its ufuncs: `sum`, `linalg.norm`, `add.reduce`."""

for _name in __all__:
    # The functions of this package call each other without these checks.
    if _name != "Array":
        globals()[_name] = checked(globals()[_name])
