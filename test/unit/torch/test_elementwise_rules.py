"""Rules of elementwise operators, casts, views and pieces against PyTorch, at the numbers where they may differ."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")

from unit.torch.harness import check, planned

A: Any = torch.ops.aten
ODD = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 7.0, 1e-40, 1e30, -1e30, torch.inf, -torch.inf, torch.nan])
LEFT, RIGHT = (torch.tensor(each) for each in zip(*product(ODD.tolist(), repeat=2), strict=True))
WHOLE = torch.tensor([0, 1, -1, 7, -7, 2**31 - 1, -(2**31)], dtype=torch.int32)
BITS = torch.tensor([True, False])


def test_signs_and_truth_values_of_odd_numbers() -> None:
    check(A.logical_xor.default, LEFT, RIGHT)
    for name in ("neg", "sgn", "logical_not"):
        check(getattr(A, name).default, ODD)


@pytest.mark.parametrize("mode", ["floor", "trunc", None])
def test_rounded_quotients(mode: str | None) -> None:
    check(A.div.Tensor_mode, torch.tensor([1.0, 0.3, -0.3]), torch.tensor([0.1, 0.1, 0.1]), rounding_mode=mode)
    check(A.div.Tensor_mode, WHOLE, 3, rounding_mode=mode)
    check(A.div.Tensor_mode, WHOLE, -3, rounding_mode=mode)


@pytest.mark.parametrize("divisor", [3, -3, 1])
def test_integer_remainders(divisor: int) -> None:
    check(A.remainder.Scalar, WHOLE, divisor)
    check(A.fmod.Scalar, WHOLE, divisor)
    check(A.remainder.Scalar, WHOLE.to(torch.uint8), abs(divisor))


def test_integers_divided_by_unknown_ones_stay_in_pytorch() -> None:
    for operator in (A.remainder.Tensor, A.fmod.Tensor):
        known, _ = planned(operator, WHOLE, WHOLE)
        assert "error if a divisor is 0" in known.fallbacks[0].reason


@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "sigmoid", "reciprocal", "ceil", "sign", "abs", "isnan"])
def test_functions_of_integers(name: str) -> None:
    check(getattr(A, name).default, torch.tensor([0, 1, 3, 2]))


def test_comparisons_round_numbers_to_the_type_of_the_tensor() -> None:
    x = torch.tensor([0.1, 0.2], dtype=torch.bfloat16)
    check(A.eq.Scalar, x, 0.1)
    check(A.ge.Scalar, torch.tensor([0.1, 0.2]), 0.1)
    check(A.gt.Scalar, torch.tensor([0, 1, 2]), 0.5)


def test_element_types_are_promoted() -> None:
    x = torch.arange(6).reshape(2, 3)
    check(A.add.Tensor, x, torch.ones(3))
    check(A.add.Tensor, x, 0.5)
    check(A.mul.Tensor, x.to(torch.int8), torch.tensor(3))
    check(A.where.self, x > 2, x, torch.tensor(0.5))
    check(A.add.Tensor, BITS, BITS)
    check(A.mul.Tensor, BITS, x[:, :2])
    check(A.add.Tensor, torch.ones(3, dtype=torch.bfloat16), x.float(), alpha=2)


def test_inverse_bits() -> None:
    check(A.bitwise_not.default, WHOLE)
    check(A.bitwise_not.default, BITS)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5, 7])
def test_powers(exponent: float) -> None:
    numbers = ODD[ODD.abs() < 10]
    check(A.pow.Tensor_Scalar, numbers, exponent)
    check(A.pow.Scalar, 2.0, numbers)
    if isinstance(exponent, int) and exponent >= 0:
        check(A.pow.Tensor_Scalar, torch.tensor([0, 1, -3]), exponent)


@pytest.mark.parametrize("bounds", [(-1, 1), (None, 0.5), (2, 1), (float("nan"), 1)], ids=str)
def test_bounds(bounds: tuple[Any, Any]) -> None:
    check(A.clamp.default, ODD, *bounds)
    if None not in bounds and bounds[0] == bounds[0]:
        check(A.clamp.Tensor, ODD, torch.tensor(bounds[0]), torch.tensor(bounds[1]))
        check(A.hardtanh.default, ODD, *sorted(bounds))


def test_slopes_of_channels() -> None:
    x = ODD[ODD.abs() < 10]
    check(A._prelu_kernel.default, x.reshape(-1, 3)[:2], torch.tensor([0.1, 0.2, 0.3]))


@pytest.mark.parametrize("target", [torch.int8, torch.uint8, torch.int16, torch.int64, torch.bool, torch.bfloat16])
def test_casts(target: Any) -> None:
    check(A._to_copy.default, torch.tensor([0.0, -0.0, 0.9, -1.0, -0.9, 100.5, 255.0, 300.0]), dtype=target)
    check(A._to_copy.default, WHOLE, dtype=target)
    check(A._to_copy.default, BITS, dtype=target)
    check(A._to_copy.default, torch.tensor([torch.nan, torch.inf]), dtype=torch.bool)


X = torch.arange(60.0).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (A.flip.default, ([0, -1],)),
        (A.flip.default, ([],)),
        (A.repeat.default, ([2, 1, 3, 1],)),
        (A.tril.default, (-1,)),
        (A.triu.default, (1,)),
        (A.constant_pad_nd.default, ([1, -2, 0, 3], 7.5)),
        (A.narrow_copy.default, (1, 1, 2)),
        (A.diagonal_copy.default, (-1, 2, 0)),
        (A.unfold_copy.default, (1, 2, 2)),
        (A.slice_scatter.default, (torch.ones(3, 2, 5), 1, 1, 3)),
        (A.slice_scatter.default, (torch.ones(3, 2, 5), 1, 0, 4, 2)),
        (A.slice_scatter.default, (X + 1, 0)),
        (A.diagonal_scatter.default, (torch.ones(5, 3), 1, 0, 1)),
        (A.copy.default, (torch.arange(5),)),
        (A.fill.Tensor, (torch.tensor(3),)),
        (A.full_like.default, (2,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("permuted", [False, True])
def test_views_and_pieces(operator: Any, arguments: tuple[Any, ...], permuted: bool) -> None:
    check(operator, X.permute(2, 0, 1).contiguous().permute(1, 2, 0) if permuted else X, *arguments)


def test_pieces_are_promoted() -> None:
    check(A.cat.default, [X, torch.ones(3, 1, 5, dtype=torch.int64)], 1)


def test_arrays_without_elements_are_known() -> None:
    for operator, arguments in ((A.sum.default, ()), (A.exp.default, ()), (A.amax.default, ([1],))):
        check(operator, torch.empty(2, 0, 3) if operator is not A.amax.default else torch.empty(0, 2), *arguments)


def test_products_with_powers_of_two() -> None:
    check(A.ldexp.Tensor, ODD, torch.arange(14) * 20 - 140)
