"""Results of classifiers of `ai.onnx.ml`: labels that are strings, and maps from labels to scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from onnx import NodeProto, helper

from pdojo.onnx.protos import named, title_of

ML = "ai.onnx.ml"
"""The domain of models of scikit-learn and others."""
LABELS_SINCE = 2
"""The version of the domain with the operator that makes strings of numbers."""
STRINGS = "its labels are strings, which no kernel makes of their numbers"
_UNUSED = " (unused)"
_CLASSIFIERS = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


def is_ensemble(proto: NodeProto) -> bool:
    """Whether a node is an ensemble of trees."""
    return proto.domain == ML and proto.op_type.startswith("TreeEnsemble")


def label_node(proto: NodeProto) -> NodeProto | None:
    """The node that makes strings of the numbers of labels that a classifier's kernels compute; None for integers.

    None too if nothing needs the labels.
    """
    strings = next((each.strings for each in proto.attribute if each.name == "classlabels_strings"), ())
    if proto.op_type not in _CLASSIFIERS or not strings or proto.output[0].endswith(_UNUSED):
        return None
    return helper.make_node(
        "LabelEncoder",
        [f"{proto.output[0]} (number)"],
        [proto.output[0]],
        title_of(proto),
        domain=ML,
        keys_int64s=range(len(strings)),
        values_strings=strings,
    )


def with_unused(node: NodeProto, wanted: Collection[str]) -> NodeProto:
    """The node with other names for results that nothing needs: definitions want a name for each."""
    if all(name in wanted for name in node.output):
        return node
    found = NodeProto()
    found.CopyFrom(node)
    found.output[:] = [name if name in wanted else name + _UNUSED for name in node.output]
    return found


def maps_left_out(nodes: Sequence[NodeProto]) -> list[str]:
    """A line for each node that makes a map: its result is the tensor of scores."""
    return [
        f"left out: {named(node)}; '{node.output[0]}' is the tensor '{node.input[0]}', not a list of maps from labels"
        for node in nodes
        if (node.domain, node.op_type) == (ML, "ZipMap")
    ]
