"""Writes at indices that are data in `torch.compile`: results beside PyTorch, errors, and what runs in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.errors import IndexOutOfRange
from pdojo.torch import FallbackWarning, explain

F: Any = torch.nn.functional
X = torch.arange(60.0).reshape(5, 4, 3)
V = torch.linspace(-1, 1, 60).reshape(5, 4, 3)
EQUAL = torch.tensor([2, 0, 2, 4, 2])
ONCE = torch.tensor([2, 0, 3, 4, 1])
ALONG = torch.tensor([[[0, 3, 1]], [[2, 3, 2]], [[0, 0, 0]]])


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error", FallbackWarning)
        yield


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="pdojo", options={"tune": "none", **options})


def put(x: Any, i: Any, v: Any) -> Any:
    x = x * 1
    x[:, i] = v
    return x


def add_in_place(x: Any, i: Any, v: Any) -> Any:
    return torch.zeros_like(x).index_add_(0, i, v, alpha=2)


WRITES: dict[str, tuple[Callable[[Any, Any, Any], Any], Any, Any]] = {
    "index_put": (lambda x, i, v: x.index_put((i,), v), ONCE, V),
    "index_put of a number": (lambda x, i, v: x.index_put((i,), v), EQUAL, torch.tensor(7.0)),
    "index_put that adds": (lambda x, i, v: x.index_put((i,), v, accumulate=True), EQUAL - 5, V),
    "index_put of two axes": (lambda x, i, v: x.index_put((i, i[:, None] % 4), v, accumulate=True), EQUAL, V[0, 0]),
    "assignment": (put, torch.tensor([-1, 0]), V[:, :2]),
    "index_add": (lambda x, i, v: x.index_add(1, i, v), torch.tensor([1, 1, 0]), V[:, :3]),
    "index_add of i32": (lambda x, i, v: x.index_add(0, i, v), EQUAL.int(), V),
    "index_add_": (add_in_place, EQUAL, V),
    "index_copy": (lambda x, i, v: x.index_copy(2, i, v), torch.tensor([2, 0]), V[:, :, :2]),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), ALONG[:2] * 0 + torch.arange(3), V),
    "scatter of a number": (lambda x, i, v: x.scatter(1, i, 3.0), ALONG, V),
    "scatter_add": (lambda x, i, v: x.scatter_add(1, i, v), ALONG, V),
    "put": (lambda x, i, v: x.put(i, v, accumulate=True), torch.tensor([[0, 59], [-60, -1]]), V[0, :2, :2]),
    "one of each row": (lambda x, i, v: v.scatter_add(2, (x + i).argmax(2, keepdim=True), x), torch.ones(3), V),
    "integers": (lambda x, i, v: x.long().index_add(0, i, v), EQUAL, V.mul(99).long()),
    "bf16": (lambda x, i, v: x.bfloat16().index_add(0, i, v), EQUAL, V.bfloat16()),
}
for _reduce in ("sum", "prod", "amax", "amin", "mean"):
    for _self in (True, False):
        WRITES[f"{_reduce} {'with' if _self else 'without'} self"] = (
            lambda x, i, v, reduce=_reduce, own=_self: x.scatter_reduce(1, i, v, reduce, include_self=own), ALONG, V
        )  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_results_are_pytorchs(name: str) -> None:
    function, indices, values = WRITES[name]
    assert not explain(function, X, indices, values, options={"tune": "none"}).fallbacks
    call = compiled(function, check=True)
    for _ in range(2):
        torch.testing.assert_close(call(X, indices, values), function(X, indices, values))


def test_indices_out_of_range() -> None:
    for function, indices in (
        (lambda x, i: x.index_put((i,), x[0]), torch.tensor([5])),
        (lambda x, i: x.index_add(0, i, x[:1]), torch.tensor([-1])),
        (lambda x, i: x.index_copy(0, i, x[:1]), torch.tensor([5])),
        (lambda x, i: x.scatter(0, i, 1.0), torch.full((1, 1, 1), 5)),
        (lambda x, i: x.scatter_reduce(0, i, x, "amax"), torch.full((1, 1, 1), -1)),
    ):
        with pytest.raises(IndexOutOfRange, match="has the index"):
            compiled(function)(X, indices)
        with pytest.raises((IndexError, RuntimeError)):
            function(X, indices)


def test_values_at_masks() -> None:
    for mask in (X > 7, X[:, :, 0] > 7, X[:, 0, 0] > 7):
        for join in (False, True):
            function = lambda x, i, join=join: x.index_put((i,), x[0, 0] if i.dim() < 3 else x[0, 0, 1], join) * 2  # noqa: E731
            assert not explain(function, X, mask, options={"tune": "none"}).fallbacks
            torch.testing.assert_close(compiled(function)(X, mask), function(X, mask))
    found = explain(lambda x, i: x.index_put((i,), x[:1, 0]) * 2, X, X[:, :, 0] > 57, options={"tune": "none"})
    assert [each.reason for each in found.fallbacks] == ["an index is a mask"]


READS: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "first": (lambda x, i: x[i.item()] + 1, True),
    "select": (lambda x, i: torch.select(x, -1, i) + x.select(0, i).sum(), True),
    "narrow": (lambda x, i: torch.narrow(x, 1, i, 2) * 2, True),
    "a view that is returned": (lambda x, i: (x.select(0, i), x * 2), False),
    "a view of the view": (lambda x, i: (x.select(0, i).T, x * 2), False),
    "axes in another order": (lambda x, i: x.mT.select(0, i) * 2, False),
    "an unknown number of elements": (lambda x, i: x[i.item() :] * 2, False),
}


@pytest.mark.filterwarnings("ignore::pdojo.torch.FallbackWarning")
@pytest.mark.parametrize("name", READS)
def test_numbers_of_tensors(name: str) -> None:
    function, is_gathered = READS[name]
    mine, theirs = X.clone(), X.clone()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        found = explain(function, mine.clone(), torch.tensor(2), options={"tune": "none"})
        assert any("index" in kernel.name for kernel in found.kernels) == is_gathered
        assert bool(found.fallbacks) != is_gathered
        call = compiled(function)
        for i in (2, 0, 1, -2):
            results = call(mine, torch.tensor(i)), function(theirs, torch.tensor(i))
            torch.testing.assert_close(*results)
            torch.testing.assert_close(mine, theirs)
            if isinstance(results[0], torch.Tensor):
                assert results[0].stride() == results[1].stride()
        assert len(found.graphs) == 1


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}], ids=str)
def test_gradients_of_embeddings_are_kernels(options: dict[str, Any]) -> None:
    weights = torch.randn(9, 5, requires_grad=True)
    ids = torch.tensor([[0, 2, 2], [8, 2, 0]])

    def loss(i: Any, w: Any) -> Any:
        return (F.embedding(i, w, **options) * torch.arange(15.0).reshape(3, 5)).square().sum()

    with torch.enable_grad():
        (mine,) = torch.autograd.grad(compiled(loss, check=True)(ids, weights), weights)
        (theirs,) = torch.autograd.grad(loss(ids, weights), weights)
    torch.testing.assert_close(mine, theirs)


def test_a_cache_is_written_at_a_position() -> None:
    def step(cache: Any, k: Any, position: Any, q: Any) -> Any:
        cache.index_copy_(1, position, k)
        scores = q @ cache.mT
        seen = torch.arange(cache.shape[1]) <= position
        return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ cache

    mine, theirs = torch.zeros(2, 8, 4), torch.zeros(2, 8, 4)
    assert not explain(step, mine.clone(), torch.ones(2, 1, 4), torch.tensor([3]), torch.ones(2, 1, 4)).fallbacks
    call = compiled(step, check=True)
    for place in (0, 1, 7, 3):
        given = torch.randn(2, 1, 4), torch.tensor([place]), torch.randn(2, 1, 4)
        torch.testing.assert_close(call(mine, *given), step(theirs, *given))
        torch.testing.assert_close(mine, theirs)
