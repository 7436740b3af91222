"""Decompositions of composite operators. Operators that `pdojo.build` has as a whole stay whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch.fx import Node

from pdojo.torch.operators.registry import RULES


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions to core ATen, but for operators that have a rule."""
    from pdojo.torch import operators

    assert operators
    table: Any = core_aten_decompositions()
    return {operator: function for operator, function in dict(table).items() if str(operator) not in RULES}


def is_random(node: Node) -> bool:
    """Whether a call draws random numbers. Attention without dropout draws none."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    for position, argument in enumerate(target._schema.arguments):
        if argument.name == "dropout_p":
            rest = node.kwargs.get("dropout_p", argument.default_value)
            probability: Any = node.args[position] if position < len(node.args) else rest
            return bool(probability != 0)
    return True
