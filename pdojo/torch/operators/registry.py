"""The table of rules: functions from the arguments of an operator of PyTorch to handles of its results.

A rule takes the call and the operator's arguments, with handles in the place of tensors. Its results are cast to the
element types that PyTorch gives them; a result of another shape than PyTorch's is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as PROMOTION
from torch._prims_common import elementwise_dtypes

from pdojo import build
from pdojo.build import Array
from pdojo.build.sizes import Open
from pdojo.errors import UsageError
from pdojo.torch.element_types import TENSORS, handle_type
from pdojo.torch.symbols import Example

Function: TypeAlias = Callable[..., "Array | Sequence[Array | None]"]


class UnsupportedCall(UsageError):
    """A call that no kernel can be made of; PyTorch runs it. The message names the operator and the reason."""


@dataclass(frozen=True)
class Call:
    """A call of an operator, as its rule sees it."""

    operator: str
    """`aten.add.Tensor`."""
    results: tuple[tuple[str, tuple[int, ...]], ...]
    """Element types of handles and shapes of the results, as PyTorch gives them; empty for what is no tensor."""
    read: tuple[int, ...] = (0,)
    """The numbers of results that others read; a rule may return None in the place of the others."""
    operand: Example | None = None
    """The first operand, without memory, for rules of views that depend on its strides."""
    winograd: bool = True
    """Whether convolutions may have fewer products, with other rounding."""

    @property
    def dtype(self) -> str:
        """The element type of the first result."""
        return self.results[0][0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.results[0][1]

    def refuse(self, reason: str) -> NoReturn:
        """Raise UnsupportedCall with the reason."""
        raise UnsupportedCall(f"{self.operator}: {reason}")


@dataclass(frozen=True)
class Rule:
    """The rule of an operator."""

    function: Function
    static: frozenset[int]
    """Positions of tensor arguments whose values must be known: they are tensors of PyTorch, not handles."""
    known: frozenset[int]
    """Positions of tensor arguments that are tensors of PyTorch if their values are known, and handles if not."""
    unread: frozenset[int]
    """Positions of tensor arguments whose elements are not read; the rule gets None in their place."""
    pointwise: bool
    """Whether each element of the result depends on the elements at its place only, so that axes may be permuted."""
    generates: bool
    """Whether the function makes a result of which no element depends on a tensor: it takes memory in no kernel."""


RULES: dict[str, Rule] = {}


def aten(
    *names: str,
    static: Sequence[int] = (),
    known: Sequence[int] = (),
    unread: Sequence[int] = (),
    pointwise: bool = False,
    generates: bool = False,
) -> Callable[[Function], Function]:
    """A decorator that makes a function the rule of operators: `add.Tensor` is `aten.add.Tensor`."""

    def register(function: Function) -> Function:
        for name in names:
            full = name if name.count(".") > 1 else f"aten.{name}"
            if full in RULES:
                raise ValueError(f"operator {full} has two rules")
            RULES[full] = Rule(function, frozenset(static), frozenset(known), frozenset(unread), pointwise, generates)
        return function

    return register


def pointwise(name: str, function: Callable[..., Array], promotion: PROMOTION = PROMOTION.DEFAULT) -> None:
    """Make a function of handles of one element type the rule of an elementwise operator.

    All tensor arguments and numbers are promoted to the type in which PyTorch computes.
    """

    def rule(call: Call, *arguments: Any, **keywords: Any) -> Array:
        return function(*promoted(call, arguments, promotion), **keywords)

    aten(name, pointwise=True)(rule)


def promoted(call: Call, arguments: Sequence[Any], promotion: PROMOTION = PROMOTION.DEFAULT) -> list[Any]:
    """The arguments, with handles cast to the type in which PyTorch computes them together.

    One handle at least is among the results: the first number is one if there is no other.
    """
    if any(isinstance(each, complex) for each in arguments):
        call.refuse("kernels have no complex numbers")
    like = [_like(each) for each in arguments if isinstance(each, Array | bool | int | float | Open)]
    computation, _ = elementwise_dtypes(*like, type_promotion_kind=promotion)
    dtype = handle_type(computation)
    return [build.cast(each, dtype) if isinstance(each, Array) else each for each in arguments]


def _like(value: Any) -> Any:
    """The stand-in of an operand in rules of promotion: a tensor for a handle, a number for an extent."""
    if isinstance(value, Array):
        return torch.empty((1,) * value.rank, dtype=TENSORS[value.dtype], device="meta")
    return 1 if isinstance(value, Open) else value
