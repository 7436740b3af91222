"""Decompositions of composite operators. Operators that `pdojo.build` has as a whole stay whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from pdojo.torch.operators.registry import RULES


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions to core ATen, but for operators that have a rule."""
    from pdojo.torch import operators

    assert operators
    table: Any = core_aten_decompositions()
    return {operator: function for operator, function in dict(table).items() if str(operator) not in RULES}


def is_random(target: object) -> bool:
    """Whether an operator draws random numbers."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags
