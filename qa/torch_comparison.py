"""The comparison of results with those of PyTorch."""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_ULPS = 4
"""Units in the last place by which a result may be off in any case."""


def compare(
    found: Sequence[Any],
    expected: Sequence[Any],
    exact: Sequence[Any] | None,
    shaken: Sequence[Sequence[Any]] = (),
    *,
    is_random: bool = False,
    is_pointwise: bool = False,
    strides: bool = True,
) -> str:
    """The fault of results; empty if they are as good as PyTorch's.

    Random results are compared in shape and type only. The elements of a pointwise function are judged by their own
    size, others by the largest of the result. `shaken` are exact results for operands that differ in the last place:
    a result may be off by twice as much.
    Gradients need not have the strides that PyTorch gives them without a compiler.
    """
    if len(found) != len(expected):
        return f"{len(found)} results instead of {len(expected)}"
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        true = exact[number] if exact is not None and len(exact) == len(expected) else None
        others = [each[number] for each in shaken if len(each) == len(expected)]
        complaint = _compare_one(ours, theirs, true, others, is_random, is_pointwise, strides)
        if complaint:
            return f"result {number}: {complaint}"
    return ""


def _compare_one(
    ours: Any, theirs: Any, true: Any, shaken: Sequence[Any], is_random: bool, is_pointwise: bool, strides: bool
) -> str:
    if not isinstance(theirs, torch.Tensor):
        same = type(ours) is type(theirs) and (ours == theirs or (ours != ours and theirs != theirs) or is_random)
        return "" if same else f"{ours!r} instead of {theirs!r}"
    if not isinstance(ours, torch.Tensor):
        return f"{ours!r} instead of a tensor"
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {list(ours.shape)} instead of {theirs.dtype} {list(theirs.shape)}"
    if theirs.layout != torch.strided or is_random or theirs.is_nested:
        return ""
    if strides and _strides(ours) != _strides(theirs):
        return f"strides {ours.stride()} instead of {theirs.stride()} for {list(ours.shape)}"
    plain = [each.resolve_conj().resolve_neg() for each in (ours, theirs)]
    return _compare_elements(plain[0], plain[1], true, shaken, is_pointwise=is_pointwise)


def _strides(tensor: torch.Tensor) -> list[int]:
    """The strides that matter: those of extents above 1."""
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1] if tensor.numel() else []


def _compare_elements(
    ours: torch.Tensor, theirs: torch.Tensor, true: Any, shaken: Sequence[Any], *, is_pointwise: bool
) -> str:
    if not theirs.numel():
        return ""
    if not (theirs.is_floating_point() or theirs.is_complex()):
        wrong = ours != theirs
        return _complaint(wrong, ours, theirs, theirs) if bool(wrong.any()) else ""
    if theirs.is_complex():
        ours, theirs = torch.view_as_real(ours), torch.view_as_real(theirs)
        true, *shaken = (
            torch.view_as_real(each.resolve_conj()) if isinstance(each, torch.Tensor) and each.is_complex() else None
            for each in (true, *shaken)
        )
    ulp = torch.finfo(theirs.dtype).eps
    tiny = torch.finfo(theirs.dtype).tiny * ulp
    mine, other = ours.double(), theirs.double()
    good = (mine == other) | (mine.isnan() & other.isnan())
    has_exact = isinstance(true, torch.Tensor) and true.shape == theirs.shape and true.is_floating_point()
    right: Any = true.double() if has_exact else other
    moved = torch.zeros((), dtype=torch.float64)
    others: Any = [each for each in shaken if has_exact and isinstance(each, torch.Tensor)]
    for each in others:
        if each.shape != right.shape:
            continue
        moved = torch.maximum(moved, torch.nan_to_num((each.double() - right).abs(), 0, 0).max())
    for target in (right, other):
        good |= _near(mine, target, other, _ULPS * ulp, tiny + 2 * moved, is_pointwise)
    return "" if bool(good.all()) else _complaint(~good, ours, theirs, right)


def _near(
    mine: torch.Tensor,
    right: torch.Tensor,
    other: torch.Tensor,
    relative: float,
    absolute: torch.Tensor,
    is_pointwise: bool,
) -> torch.Tensor:
    """Where `mine` is as near to `right` as `other` is, or within an error relative to the size, or an absolute one."""
    finite = right.isfinite() & other.isfinite()
    size = torch.where(finite, right.abs(), 0)
    error = torch.where(finite, (other - right).abs(), 0)
    if not is_pointwise:
        size, error = size.max(), error.max()
    allowed = torch.maximum(2 * error, relative * size + absolute)
    return finite & ((mine - right).abs() <= allowed)


def _complaint(wrong: torch.Tensor, ours: torch.Tensor, theirs: torch.Tensor, right: torch.Tensor) -> str:
    place = tuple(int(i) for i in wrong.nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements wrong, first at {list(place)}: {ours[place].item()!r}, "
        f"PyTorch {theirs[place].item()!r}, exact {right[place].item()!r}"
    )
