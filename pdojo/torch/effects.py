"""Calls whose place among others matters: they draw random numbers, write to their operands, print, or communicate."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node


def is_higher_order(node: Node) -> bool:
    """Whether a call runs graphs or operators that are its arguments, such as `torch.cond`."""
    return isinstance(node.target, torch._ops.HigherOrderOperator)


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


def is_write(node: Node) -> bool:
    """Whether a call changes its operands in place."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def effect_of(node: Node) -> str:
    """The effect for which a call keeps its place among all calls with effects; empty if it has none.

    PyTorch does not say what effects the graphs of a higher-order call have, so that such a call counts as one.
    """
    if is_random(node):
        return "it draws random numbers"
    if is_higher_order(node):
        return "PyTorch runs the graphs of higher-order operators"
    if is_write(node):
        return "it changes an operand in place"
    return "it has effects" if node.is_impure(impure_random=False) else ""
