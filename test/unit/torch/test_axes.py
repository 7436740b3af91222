"""Axes from both ends, kept or dropped, for all rules that take some; windows that end beyond the border."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.torch.operators.registry import RULES
from unit.torch.harness import check

SIZE = 4
"""The extent of all axes, so that a wrong axis gives a wrong value and no error of shapes."""
AXES = ("dim", "dims", "dim0")


def overload(name: str) -> Any:
    namespace, base, last = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), last)


def names_with(*arguments: str) -> list[str]:
    """The operators with one of some arguments."""
    schemas = {name: overload(name)._schema for name in RULES}
    return sorted(name for name, found in schemas.items() if any(each.name in arguments for each in found.arguments))


def array() -> Any:
    return torch.randn(SIZE, SIZE, SIZE)


def others() -> dict[str, Any]:
    """Arguments by name that the operators take beside axes."""
    return {
        **{
            "half_to_float": False,
            "input_dtype": torch.float32,
            "ord": 2,
            "reduce": "sum",
            "shifts": [1],
            "value": 2.0,
        },
        **{"tensors": [array(), array()], "grad_output": array(), "output": torch.softmax(array(), 1), "dim1": 0},
        **{"split_size": 3, "source": array(), "split_sizes": [1, 3], "start": 1, "end": 3, "length": 2},
    }


def arguments_of(name: str, dim: int, keepdim: bool) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of an operator with an axis."""
    given = {**others(), "keepdim": keepdim, "src": _source(name, dim)}
    given["self"] = torch.randn([1 if "squeeze" in name and d == dim % 3 else SIZE for d in range(3)])
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for each in overload(name)._schema.arguments:
        kind = str(each.type)
        if each.name in AXES:
            rest = [d for d in range(3) if d != dim % 3] if "permute" in name else []
            value: Any = [dim, *rest] if "List" in kind else dim
        elif each.name == "index":
            value = _index(name) if kind == "Tensor" else 1
        elif each.name in ("keepdim", "start", "end") or not each.has_default_value():
            value = given[each.name]
        else:
            value = each.default_value
        if each.kwarg_only:
            keywords[each.name] = value
        else:
            positional.append(value)
    return positional, keywords


def _index(name: str) -> Any:
    if "index_select" in name:
        return torch.tensor([3, 1, 0])
    if "index_add" in name or "index_copy" in name:
        return torch.tensor([3, 1, 0, 2])
    # Distinct along each axis: `scatter` has no order for places that are given twice.
    first, second, third = (torch.arange(SIZE).view([SIZE if d == k else 1 for d in range(3)]) for k in range(3))
    return (first + 3 * second + third) % SIZE


def _source(name: str, dim: int) -> Any:
    rest = [SIZE] * 3
    if "select_scatter" in name:
        return torch.randn(SIZE, SIZE)
    if "slice_scatter" in name:
        rest[dim] = 2
    return torch.randn(rest)


@pytest.mark.parametrize("name", names_with(*AXES))
def test_axes_from_both_ends(name: str) -> None:
    torch.manual_seed(0)
    kept = (False, True) if "keepdim" in [each.name for each in overload(name)._schema.arguments] else (False,)
    for dim in (0, 1, -1, -2, -3):
        for keepdim in kept:
            positional, keywords = arguments_of(name, dim, keepdim)
            made = overload(name)(*positional, **keywords)
            read = range(len(made)) if isinstance(made, list) else None
            tensors = [each.name for each in overload(name)._schema.arguments if str(each.type) == "Tensor"]
            static = [tensors.index("index")] if "index" in tensors else []
            check(overload(name), *positional, read=read, static=static, **keywords)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("extent", "padding"), [(5, 1), (6, 0), (6, 1)])
def test_windows_beyond_the_border(rank: int, extent: int, padding: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, *[extent] * rank)
    window = ([3] * rank, [2] * rank, [padding] * rank)
    for include in (False, True):
        for ceil in (False, True):
            check(overload(f"aten.avg_pool{rank}d.default"), x, *window, ceil, include)
            if rank > 1:
                mean = overload(f"aten.avg_pool{rank}d.default")
                for divisor in (None, 5):
                    check(mean, x, *window, ceil, include, divisor)
                    grown = torch.randn_like(mean(x, *window, ceil, include, divisor))
                    check(overload(f"aten.avg_pool{rank}d_backward.default"), grown, x, *window, ceil, include, divisor)
    for ceil in (False, True) if rank > 1 else ():
        best = overload(f"aten.max_pool{rank}d_with_indices.default")
        check(best, x, *window, [1] * rank, ceil)
        found, indices = best(x, *window, [1] * rank, ceil)
        backward = overload(f"aten.max_pool{rank}d_with_indices_backward.default")
        check(backward, torch.randn_like(found), x, *window, [1] * rank, ceil, indices)
