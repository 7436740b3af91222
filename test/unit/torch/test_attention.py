"""`scaled_dot_product_attention` and `flex_attention` in every form run in kernels, with the results of PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._pytree import tree_leaves

import pdojo

B, H, N, M, D = 2, 4, 5, 7, 8
PLAIN = {"tune": "none"}
attend: Any = flex_attention


@pytest.fixture(autouse=True)
def _no_caches() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def qkv(dtype: Any = torch.float32) -> tuple[Any, Any, Any]:
    shapes = (B, H, N, D), (B, H, M, D), (B, H, M, D)
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)  # pyright: ignore[reportReturnType]


def grouped(heads: int) -> tuple[Any, Any, Any]:
    q, k, v = qkv()
    return q, k[:, :heads], v[:, :heads]


def rows_masked() -> Any:
    mask = torch.rand(N, M) > 0.3
    mask[2] = False
    return mask


def behind_rows() -> tuple[Any, Any, Any]:
    return tuple(each.transpose(1, 2).contiguous().transpose(1, 2) for each in qkv())  # pyright: ignore[reportReturnType]


MASKS = [(B, H, N, M), (B, 1, N, M), (1, H, N, M), (N, M), (1, M), (N, 1), (B, 1, 1, M), (H, N, M)]
FORMS: dict[str, Any] = {
    "plain": lambda: (qkv(), {}),
    "causal, more keys than queries": lambda: (qkv(), {"is_causal": True}),
    "causal, more queries than keys": lambda: ((qkv()[1], qkv()[0], qkv()[0]), {"is_causal": True}),
    "negative scale": lambda: (qkv(), {"scale": -0.5}),
    "scale 0": lambda: (qkv(), {"scale": 0.0}),
    "grouped": lambda: (grouped(2), {"enable_gqa": True}),
    "one head of keys": lambda: (grouped(1), {"enable_gqa": True, "is_causal": True}),
    "grouped with mask": lambda: (grouped(2), {"enable_gqa": True, "attn_mask": rows_masked()}),
    "expanded heads": lambda: ((qkv()[0], *[each[:, :1].expand(B, H, M, D) for each in qkv()[1:]]), {}),
    "broadcast heads": lambda: (grouped(1), {}),
    "values of another length": lambda: ((*qkv()[:2], torch.randn(B, H, M, 6)), {"attn_mask": rows_masked()}),
    "three axes": lambda: (tuple(each[0] for each in qkv()), {"attn_mask": rows_masked()}),
    "two axes": lambda: (tuple(each[0, 0] for each in qkv()), {"is_causal": True}),
    "five axes": lambda: (tuple(each[None] for each in qkv()), {}),
    "rows without keys": lambda: (qkv(), {"attn_mask": rows_masked()}),
    "rows of -inf": lambda: (qkv(), {"attn_mask": torch.zeros(N, M).masked_fill(~rows_masked(), -math.inf)}),
    "strided mask": lambda: (qkv(), {"attn_mask": torch.randn(M, N).t()}),
    "expanded mask": lambda: (qkv(), {"attn_mask": (torch.rand(B, 1, 1, M) > 0.3).expand(B, 1, N, M)}),
    "mask of f32 for f16": lambda: (qkv(torch.float16), {"attn_mask": torch.randn(N, M)}),
    "heads behind rows": lambda: (behind_rows(), {}),
}
for dtype in (torch.float64, torch.float16, torch.bfloat16):
    FORMS[f"{dtype} with mask"] = lambda dtype=dtype: (qkv(dtype), {"attn_mask": rows_masked()})
    FORMS[f"{dtype} causal"] = lambda dtype=dtype: (qkv(dtype), {"is_causal": True})
for shape in MASKS:
    FORMS[f"bool mask {shape}"] = lambda shape=shape: (qkv(), {"attn_mask": torch.rand(shape) > 0.4})
    FORMS[f"mask {shape}"] = lambda shape=shape: (qkv(), {"attn_mask": torch.randn(shape)})


def compiled(given: Any, facts: Any) -> Any:
    def call(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, **facts)

    arguments: list[Any] = [*given, facts.pop("attn_mask", None)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pdojo.torch.FallbackWarning)
        found = torch.compile(call, backend="pdojo", options=PLAIN)(*arguments)
    return found, call(*arguments)


def near(found: Any, wanted: Any) -> None:
    wide = {} if wanted.dtype in (torch.float32, torch.float64) else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(found, wanted, **wide)


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    given, facts = FORMS[name]()
    with torch.no_grad():
        near(*compiled(given, facts))


@pytest.mark.parametrize("name", ["bool mask (2, 4, 5, 7)", "rows without keys", "one head of keys", "three axes"])
def test_gradients(name: str) -> None:
    given, facts = FORMS[name]()
    given = [each.clone().requires_grad_() for each in given]
    found, wanted = compiled(given, facts)
    near(found, wanted)
    gradient = torch.randn_like(wanted)
    pairs = zip(torch.autograd.grad(found, given, gradient), torch.autograd.grad(wanted, given, gradient), strict=True)
    for have, want in pairs:
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)


def test_no_form_is_left_to_pytorch() -> None:
    functions = []
    for make in FORMS.values():
        given, facts = make()
        functions.append((given, facts))

    def call() -> Any:
        return [scaled_dot_product_attention(*given, **facts) for given, facts in functions]

    with torch.no_grad():
        found = pdojo.torch.explain(call, options=PLAIN)
    assert not found.fallbacks, {(part.operator, part.reason) for part in found.fallbacks}


def test_dropout_is_left_to_pytorch() -> None:
    def call(q: Any, k: Any, v: Any) -> Any:
        return scaled_dot_product_attention(q, k, v, dropout_p=0.5)

    with torch.no_grad():
        found = pdojo.torch.explain(call, *qkv(), options=PLAIN)
    assert [part.reason for part in found.fallbacks] == ["it draws random numbers"]


SLOPES, TABLE, LENGTHS = torch.rand(H), torch.randn(H, 2 * M), torch.tensor([7, 3])
SCORES: dict[str, tuple[Any, int]] = {
    "distance": (lambda s, b, h, i, j: s + (j - i) * 0.1, 1),
    "slopes of heads": (lambda s, b, h, i, j: s + SLOPES[h] * (j - i), 2),
    "table of distances": (lambda s, b, h, i, j: s + TABLE[h, i - j + M], 2),
    "soft cap": (lambda s, b, h, i, j: 5 * torch.tanh(s / 5), 3),
    "causal": (lambda s, b, h, i, j: torch.where(i >= j, s, -math.inf), 3),
    "the score twice": (lambda s, b, h, i, j: s + s * s, 3),
}
"""Functions of scores, and the kernels of the attention: sums with the score are a mask of one."""
ALLOWED: dict[str, Any] = {
    "causal": lambda b, h, i, j: i >= j,
    "window": lambda b, h, i, j: (i - j).abs() <= 2,
    "prefix": lambda b, h, i, j: (j < 2) | (i >= j),
    "lengths": lambda b, h, i, j: j < LENGTHS[b],
    "rows without keys": lambda b, h, i, j: (i > 2) & (i >= j),
}


def tensors_of(result: Any) -> list[Any]:
    return [each for each in tree_leaves(result) if each is not None]


def flexible(given: Any, **facts: Any) -> Any:
    """The explanation, after a comparison with PyTorch."""

    def call(q: Any, k: Any, v: Any) -> Any:
        return attend(q, k, v, **facts)

    with torch.no_grad():
        wanted = torch.compile(call, backend="aot_eager")(*given)  # PyTorch warns when it runs uncompiled.
        torch._dynamo.reset()
        found = torch.compile(call, backend="pdojo", options=PLAIN)(*given)
        for have, want in zip(*map(tensors_of, (found, wanted)), strict=True):
            near(have, want)
            assert have.stride() == want.stride()
        explained = pdojo.torch.explain(call, *given, options=PLAIN)
    assert not explained.fallbacks
    return explained


def block_mask(name: str) -> Any:
    return create_block_mask(ALLOWED[name], B, H, N, M, device="cpu")


@pytest.mark.parametrize("name", SCORES)
def test_functions_of_scores(name: str) -> None:
    function, kernels = SCORES[name]
    assert len(flexible(qkv(), score_mod=function).kernels) == kernels


@pytest.mark.parametrize("name", ALLOWED)
def test_functions_that_allow_keys(name: str) -> None:
    flexible(qkv(), block_mask=block_mask(name))


def test_scores_and_allowed_keys_together() -> None:
    flexible(qkv(), score_mod=SCORES["soft cap"][0], block_mask=block_mask("window"), scale=0.3)
    flexible(grouped(2), score_mod=SCORES["slopes of heads"][0], block_mask=block_mask("causal"), enable_gqa=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_functions_of_scores_of_other_types(dtype: Any) -> None:
    flexible(qkv(dtype), score_mod=SCORES["distance"][0])


def test_the_order_of_axes_of_flexible_attention() -> None:
    flexible(behind_rows(), score_mod=SCORES["distance"][0])


def test_the_statistics_of_flexible_attention() -> None:
    flexible(qkv(), score_mod=SCORES["distance"][0], return_aux=AuxRequest(lse=True))


def test_flexible_attention_of_symbolic_lengths() -> None:
    compiled = torch.compile(
        lambda q, k, v: flex_attention(q, k, v, score_mod=SCORES["distance"][0]),
        backend="pdojo",
        options=PLAIN,
        dynamic=True,
    )
    for length in (6, 9, 20):
        q, k, v = (torch.randn(B, H, length, D) for _ in range(3))
        places = torch.arange(length)
        with torch.no_grad():
            wanted = scaled_dot_product_attention(q, k, v, attn_mask=(places - places[:, None]) * 0.1)
            near(compiled(q, k, v), wanted)
