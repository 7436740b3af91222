"""Rules of operators against PyTorch, in the precision of the call and in f64; the reference interpreter runs them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.build.tabled_windows import holding
from pdojo.torch.decompositions import decompositions
from pdojo.torch.keys import key_of
from pdojo.torch.operators.registry import RULES, Call
from unit.torch.harness import check, planned

A: Any = torch.ops.aten


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def numbers(*shape: int, dtype: Any = torch.float32) -> Any:
    """Random numbers; small integers for types of integers."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    return torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 6, shape).to(dtype)


def below(most: int, *shape: int) -> Any:
    """Random indices."""
    return torch.randint(0, most, shape)


def test_the_rules_take_the_arguments_of_their_operators() -> None:
    for name, rule in RULES.items():
        namespace, base, overload = name.split(".")
        schema = getattr(getattr(getattr(torch.ops, namespace), base), overload)._schema
        positional = [a for a in schema.arguments if not a.kwarg_only]
        keywords = {a.name: None for a in schema.arguments if a.kwarg_only}
        inspect.signature(rule.function).bind(None, *positional, **keywords)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("dim", [[-1], [0, 2], [], None], ids=str)
def test_sums(dtype: Any, dim: Sequence[int] | None) -> None:
    check(A.sum.dim_IntList, numbers(3, 1, 5, dtype=dtype), dim, True)


@pytest.mark.parametrize("operator", [A.max.dim, A.min.dim])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8, torch.bool], ids=str)
def test_extremes_and_their_indices(operator: Any, dtype: Any) -> None:
    check(operator, numbers(3, 5, dtype=dtype), 0, True)
    check(operator, numbers(5, dtype=dtype)[0], -1)
    check(operator, numbers(3, 5, dtype=dtype), -1, read=[1])


@pytest.mark.parametrize("correction", [None, 0, 0.5])
def test_variances(correction: float | None) -> None:
    check(A.var.correction, numbers(3, 5), [-1], correction=correction, keepdim=True)
    check(A.var_mean.correction, numbers(3, 5, dtype=torch.bfloat16), None, correction=correction)


def test_a_number_is_an_array_with_an_axis() -> None:
    x = numbers(1)[0]
    for operator in (A.cumsum.default, A.cumprod.default):
        check(operator, x, 0)
    check(A._softmax.default, x, -1, False)
    check(A.sum.dim_IntList, x, [0], True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32], ids=str)
def test_products(dtype: Any) -> None:
    a, b = numbers(3, 5, dtype=dtype), numbers(5, 4, dtype=dtype)
    check(A.mm.default, a, b)
    check(A.mm.default, b.t(), a.t())
    check(A.addmm.default, numbers(4, dtype=dtype), a, b, beta=2, alpha=3)
    check(A.baddbmm.default, numbers(2, 1, 4, dtype=dtype), a.expand(2, 3, 5), b.expand(2, 5, 4), beta=0)
    check(A.addmv.default, numbers(3, dtype=dtype), a, b[:, 0])


def test_the_least_square_is_that_of_the_type() -> None:
    check(A._fused_rms_norm.default, numbers(2, 4, 3, 5), [5], numbers(5), None)


def test_products_with_factors_and_without_a_bias() -> None:
    a, b, nothing = numbers(3, 5), numbers(5, 4), torch.full((3, 4), torch.nan)
    check(A.addmm.default, nothing, a, b, beta=0, alpha=3)
    check(A.addbmm.default, nothing, a.expand(2, 3, 5), b.expand(2, 5, 4), beta=0, alpha=0.5)
    check(A.baddbmm.default, nothing.expand(2, 3, 4), a.expand(2, 3, 5), b.expand(2, 5, 4), beta=0, alpha=2)
    check(A.addmv.default, nothing[:, 0], a, b[:, 0], beta=0, alpha=2)
    check(A.addmv.default, a[:, 0], a, b[:, 0], beta=0.5, alpha=2)


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_and_their_gradients(form: Any, transposed: bool) -> None:
    x = numbers(2, 4, 7, 6).to(memory_format=form)
    w = numbers(4, 3, 3, 2) if transposed else numbers(6, 2, 3, 2)
    last = ([2, 1], [1, 0], [1, 2], transposed, [1, 1] if transposed else [0, 0], 2)
    check(A.convolution.default, x, w, numbers(6), *last)
    y = A.convolution.default(x, w, None, *last)
    check(A.convolution_backward.default, torch.randn_like(y), x, w, [6], *last, [True, True, True])


def test_known_indices_of_an_axis() -> None:
    x = numbers(5, 4)
    check(A.index_select.default, x, -1, below(4, 7), static=[1])
    check(A.embedding.default, x, below(5, 2, 3), static=[1])
    for mode in (0, 1, 2):
        check(
            A._embedding_bag_forward_only.default,
            x,
            below(5, 6),
            torch.arange(0, 6, 3),
            False,
            mode,
            static=[1, 2],
            read=[0],
        )
    check(A.scatter.src, x, 1, torch.tensor([[2, 0], [1, 3]]), numbers(3, 3), static=[1])
    check(A.scatter.value, x, 0, below(5, 7, 4), 7, static=[1])


def test_one_computed_index_of_each_row() -> None:
    x, index, values = numbers(4, 5), below(5, 4, 1), numbers(4, 5)
    x[0, 1], x[1, 2], x[2, 3], x[3] = torch.nan, torch.inf, -torch.inf, -torch.inf
    check(A.scatter.src, x, 1, index, values)
    check(A.scatter.value, x, -1, index, 3.0)
    check(A.scatter_add.default, x, 1, index, values)
    check(A.scatter_add.default, x.t(), 0, index.t(), values.t())


def test_several_computed_indices_of_each_row() -> None:
    check(A.index_put.default, numbers(5, 4), [torch.tensor([4, 0, 2])], numbers(3, 4))
    check(A.scatter_add.default, numbers(5, 4), 1, below(4, 3, 2), numbers(3, 2))


def test_attention_with_large_scores() -> None:
    # Scores are exact, and each key is there twice; logarithms of about 500 are rounded to multiples of 2^-15.
    q, k, v = (numbers(1, 2, 5, 8) * 16).round(), (numbers(1, 2, 3, 8) * 16).round(), numbers(1, 2, 6, 8)
    check(A._scaled_dot_product_flash_attention_for_cpu.default, q, k.repeat(1, 1, 2, 1), v, scale=0.5)


def test_gradients_without_elements_that_nobody_asks_for() -> None:
    x, mean = torch.zeros(0, 1), torch.zeros(0, 1)
    mask = [True, False, False]
    check(A.native_layer_norm_backward.default, x, x, [1], mean, mean, None, None, mask, static=[1, 2, 3], read=[0])


def test_attention_with_dropout_is_pytorchs() -> None:
    x = numbers(1, 2, 3, 4)
    plan, _ = planned(A._scaled_dot_product_flash_attention_for_cpu.default, x, x, x, 0.5)
    assert [each.reason for each in plan.fallbacks] == ["it draws random numbers"]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("use_gelu", [False, True])
def test_the_layer_of_an_encoder(norm_first: bool, use_gelu: bool) -> None:
    operator = A._transformer_encoder_layer_fwd.default
    sizes = [(24, 8), (24,), (8, 8), (8,)], [(8,), (8,), (8,), (8,), (16, 8), (16,), (8, 16), (8,)]
    before, after = ([numbers(*size) for size in row] for row in sizes)
    arguments = numbers(2, 5, 8), 8, 2, *before, use_gelu, norm_first, 1e-5, *after
    torch.testing.assert_close(decompositions()[operator](*arguments), operator(*arguments))
    assert decompositions()[operator](*arguments, numbers(5, 5) > 0, 0) is NotImplemented


def test_compiled_kernels() -> None:
    check(A._softmax.default, numbers(3, 70), 1, False, compiled=True)
    check(A.max_pool2d_with_indices.default, numbers(2, 3, 9, 8), [3], [2], [1], compiled=True)
    check(A.index.Tensor, numbers(5, 4, 3), [None, below(4, 2), below(3, 2)], static=[1, 2], compiled=True)


def test_results_that_nobody_reads_have_no_rule() -> None:
    call = Call("aten.max.dim", (("f32", (3,)), ("i64", (3,))), (0,))
    assert call.dtype == "f32"
    plan, _ = planned(A.max.dim, numbers(3, 5), 1, read=[0])
    graph = plan.regions[0].graph([key_of(plan.outputs[0])])
    assert [len(operation.made) for operation in graph.operations] == [1]


def test_windows_over_a_long_axis_are_not_compared_with_every_element() -> None:
    extent = 1 << 18
    found = holding([range(start, start + 3) for start in range(0, extent, 2)], extent)
    assert [found[k] for k in (0, 1, 2, 3, extent - 2)] == [[0], [0], [0, 1], [1], [extent // 2 - 2, extent // 2 - 1]]


@pytest.mark.parametrize(
    ("size", "stride", "padding"), [(1280, 1280, 0), ([9, 3], [4, 2], [1, 0]), ([3, 8], [2, 9], 1)]
)
@pytest.mark.parametrize("counts_padding", [False, True])
def test_mean_of_windows_that_are_longer_than_the_image(
    size: Any, stride: Any, padding: Any, *, counts_padding: bool
) -> None:
    """As the last layer of EfficientNet has them, with `ceil_mode`."""
    check(A.avg_pool2d.default, numbers(2, 5, 7, 7), size, stride, padding, True, counts_padding)
