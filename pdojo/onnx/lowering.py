"""Lowerings of nodes as functions of operands, with errors that name the node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from pdojo import build
from pdojo.build.sizes import OpenExtent
from pdojo.errors import UsageError
from pdojo.model.graph import Known, Lower, Lowered, Value
from pdojo.onnx.kinds import is_foreign, kind_of
from pdojo.onnx.operators.registry import NeedsArrays, NeedsParts, NeedsValue, Node, UnsupportedNode

MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of lowerings for attributes and shapes that no valid node has."""
CONTRADICTORY = "there is no kernel for its attributes with operands of these types, shapes and values"


class NeedsOperation(Exception):
    """`NeedsArrays` of a node."""

    def __init__(self, node: Node, needed: NeedsArrays) -> None:
        super().__init__(node, needed)
        self.make, self.then = lower_by(replace(node, outputs=()), needed.make), lower_by(node, needed.then)
        self.kept, self.is_copy = needed.kept, needed.is_copy


def lower_by(node: Node, lowering: Callable[[Node], Value | Sequence[Value]]) -> Lower:
    """The lowering of a node as a function of its operands."""

    def lower(inputs: tuple[Value | None, ...], prefix: str) -> Lowered:
        given = Node(
            node.op_type, node.domain, node.name, node.opset, inputs, node.outputs, node.attributes, prefix=prefix
        )
        try:
            made: Any = lowering(given)
        except (NeedsParts, NeedsValue, OpenExtent, UnsupportedNode):
            raise
        except NeedsArrays as needed:
            raise NeedsOperation(node, needed) from None
        except UsageError as error:
            given.contradicts(str(error))
        except MALFORMED as error:
            raise UnsupportedNode(f"node '{node.name}' ({node.op_type}): {CONTRADICTORY}") from error
        is_one = isinstance(made, build.Array | np.ndarray | np.generic)
        results = cast("tuple[Value, ...]", (made,) if is_one else tuple(made))
        if len(results) < max((n for n, name in enumerate(node.outputs, 1) if name), default=0):
            given.refuse(f"only the first {len(results)} of its results are computed")
        for each in results:
            if is_foreign(each):
                given.refuse(f"kernels have no elements of type {kind_of(np.asarray(each).dtype)}")
        constants = [(handle, cast("Known", given.inputs[n])) for n, handle in given.constants.items()]
        return Lowered(results, tuple(constants))

    return lower
