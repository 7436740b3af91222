"""Normalisations to mean 0 and variance 1, and to norm 1."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.build.extents import broadcast_shape
from pdojo.build.norms import batch_norm_in_training
from pdojo.onnx.operators.arguments import axis_of, optional
from pdojo.onnx.operators.registry import Node, operator


@operator("BatchNormalization")
def batch_normalization(node: Node) -> Array | tuple[Array, ...]:
    """The normalisation of each channel, with given statistics, or with those of the batch in training."""
    x, scale, shift, mean, variance = (node.array(k) for k in range(5))
    eps, momentum = node.attribute("epsilon", 1e-5), node.attribute("momentum", 0.9)
    # Versions before 7 train unless `is_test` is set; those from 14 on train if `training_mode` is set.
    training = node.attribute("training_mode", 0) or (node.opset < 7 and not node.attribute("is_test", 0)
                                                      and len([name for name in node.outputs if name]) > 1)  # fmt: skip
    if not node.attribute("spatial", 1) and x.rank > 2:
        node.refuse("the attribute 'spatial' is 0: statistics of every activation")
    if not training:
        return build.batch_norm(x, scale, shift, statistics=(mean, variance), axis=min(1, x.rank - 1), eps=eps)
    found, *_, running, spread = batch_norm_in_training(
        x, scale, shift, mean, variance, momentum=1 - momentum, unbiased=False, eps=eps
    )
    return found, build.cast(running, mean.dtype), build.cast(spread, variance.dtype)


@operator("InstanceNormalization")
def instance_normalization(node: Node) -> Array:
    """The normalisation of each channel of each image."""
    return build.instance_norm(node.array(0), node.array(1), node.array(2), eps=node.attribute("epsilon", 1e-5))


@operator("GroupNormalization", since=18)
def group_normalization_by_group(node: Node) -> Array:
    """The normalisation of groups of channels, with a scale and a shift for each group."""
    x, groups = node.array(0), node.attribute("num_groups")
    scale, shift = (build.repeat(node.array(k), x.shape[1] // groups, 0) for k in (1, 2))
    return build.group_norm(x, groups, scale, shift, eps=node.attribute("epsilon", 1e-5))


@operator("GroupNormalization", since=21)
def group_normalization(node: Node) -> Array:
    """The normalisation of groups of channels, with a scale and a shift for each channel."""
    x, groups = node.array(0), node.attribute("num_groups")
    return build.group_norm(x, groups, node.array(1), node.array(2), eps=node.attribute("epsilon", 1e-5))


@operator("LayerNormalization")
def layer_normalization(node: Node) -> Array | tuple[Array, ...]:
    """The normalisation along the last axes, and its statistics if they are wanted."""
    x, scale, shift, eps = node.array(0), node.array(1), optional(node, 2), node.attribute("epsilon", 1e-5)
    axes = list(range(axis_of(node, node.attribute("axis", -1), x.rank), x.rank))
    for each in (scale, shift):
        if each is not None and broadcast_shape(each.shape, x.shape) != x.shape:
            node.contradicts(f"a scale or shift of shape {list(each.shape)} is not broadcast to {list(x.shape)}")
    found = build.layer_norm_with_statistics(x, scale, shift, axis=axes, eps=eps)
    return tuple(found[: len(node.outputs)])


@operator("RMSNormalization")
def rms_normalization(node: Node) -> Array:
    """The quotient by the root mean square along the last axes."""
    x = node.array(0)
    axes = range(axis_of(node, node.attribute("axis", -1), x.rank), x.rank)
    return build.rms_norm(x, node.array(1), axis=list(axes), eps=node.attribute("epsilon", 1e-5))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> Array:
    """The normalisation along given axes, with 1e-9 added to the deviation."""
    x = node.array(0)
    axes = [axis_of(node, axis, x.rank) for axis in node.attribute("axes", (0, 2, 3))]
    return build.mean_variance_norm(x, axis=axes)


@operator("LpNormalization")
def lp_normalization(node: Node) -> Array:
    """The quotient by the norm along an axis; 0 if the norm is 0."""
    x, order = node.array(0), node.attribute("p", 2)
    if order not in (1, 2):
        node.contradicts(f"attribute 'p' is {order}, not 1 or 2")
    return build.normalize(x, order, axis_of(node, node.attribute("axis", -1), x.rank))


@operator("LRN")
def local_response_normalization(node: Node) -> Array:
    """The quotient by a power of the squares of neighbouring channels."""
    x = node.array(0)
    if x.rank < 2:
        node.contradicts("it has no axis of channels")
    facts = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    given = {name: node.attribute(name, default) for name, default in facts.items()}
    return build.local_response_norm(x, node.attribute("size"), **given)
