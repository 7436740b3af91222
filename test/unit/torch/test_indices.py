"""Indices that are data in `torch.compile`: which kernels there are, results beside PyTorch, and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.errors import IndexOutOfRange
from pdojo.torch import FallbackWarning, backend, explain
from pdojo.torch.planning import plan

F: Any = torch.nn.functional


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error", FallbackWarning)
        yield


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="pdojo", options={"tune": "none", **options})


def kernels(function: Any, *arguments: Any) -> list[str]:
    """The kernels of a function; PyTorch runs nothing of it."""
    found = explain(function, *arguments, options={"tune": "none"})
    assert not found.fallbacks
    return [kernel.name for kernel in found.kernels]


class Embeddings(torch.nn.Module):
    """The first block of BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(50, 24, padding_idx=0)
        self.places = torch.nn.Embedding(16, 24)
        self.kinds = torch.nn.Embedding(2, 24)
        self.norm = torch.nn.LayerNorm(24)

    def forward(self, words: Any, kinds: Any, places: Any) -> Any:
        return self.norm(self.words(words) + self.kinds(kinds) + self.places(places))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_the_embeddings_of_bert_are_one_kernel(dtype: Any) -> None:
    model = Embeddings().eval()
    words, kinds = torch.randint(0, 50, (3, 7), dtype=dtype), torch.randint(0, 2, (3, 7), dtype=dtype)
    places = torch.arange(7, dtype=dtype)[None]
    assert kernels(model, words, kinds, places) == ["embedding_add_native_layer_norm"]
    call = compiled(model, check=True, tune="pass")
    torch.testing.assert_close(call(words, kinds, places), model(words, kinds, places))
    for wrong, index in ((50, 50), (-1, -1)):
        bad = words.clone()
        bad[2, 1] = wrong
        with pytest.raises(IndexError, match=rf"has the index {index} at \[2, 1\]; its indices run from 0 to 49$"):
            call(bad, kinds, places)
        with pytest.raises(IndexError):
            model(bad, kinds, places)
    torch.testing.assert_close(call(words, kinds, places), model(words, kinds, places))


X = torch.arange(60.0).reshape(5, 4, 3)
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], Any, list[str]]] = {
    "negative": (lambda x, i: x[i] * 2, torch.tensor([[0, -1, 4], [2, 2, -5]]), ["index_mul"]),
    "int32": (lambda x, i: x[:, i], torch.tensor([-1, 2], dtype=torch.int32), ["index"]),
    "several": (lambda x, i: x[i, :, i[None]], torch.tensor([-1, 2, 0]), ["index"]),
    "known beside": (lambda x, i: x[torch.arange(5), i], torch.tensor([-1, 2, 0, 1, 3]), ["index"]),
    "transposed": (lambda x, i: x[i.T].sum(-1), torch.tensor([[0, -1, 4], [2, 2, -5]]), ["index_sum"]),
    "part": (lambda x, i: x[i[:, ::2]], torch.tensor([[0, 99, 4], [2, -99, -5]]), ["index"]),
    "computed": (lambda x, i: x[i + 1], torch.tensor([[0, -1], [2, -6]]), ["add", "index"]),
    "part of computed": (lambda x, i: x[(i + 1)[:, 1:]], torch.tensor([[9, -1], [9, -6]]), ["add", "part", "index"]),
    "computed, transposed": (lambda x, i: x[(i % 4).T], torch.tensor([[0, -1, 9], [2, 2, -5]]), ["remainder", "index"]),
    "part of argmax": (lambda x, i: (x + i)[x.argmax(0)[1:]], torch.ones(3), ["add", "argmax", "part", "index"]),
    "part read twice": (
        lambda x, i: (lambda j, k: x[k] * j + x[k].abs())(i.sum(), (i % 3)[:, 1:]),
        torch.tensor([[0, -1, 9], [2, 2, -5]]),
        ["sum", "remainder", "part", "index_abs_mul_add"],
    ),
    "part as a place": (
        lambda x, i: x.index_add(0, (i % 5)[:, 1], x[:2]),
        torch.tensor([[0, -1, 9], [2, 2, -5]]),
        ["remainder", "part", "index_add"],
    ),
    "a scalar": (lambda x, i: torch.index_select(x, 1, i), torch.tensor(3), ["index_select"]),
    "select": (lambda x, i: torch.index_select(x, -1, i), torch.tensor([1, 0, 2, 2]), ["index_select"]),
    "gather": (lambda x, i: x.gather(1, i), torch.randint(0, 4, (5, 6, 2)), ["gather"]),
    "along": (lambda x, i: torch.take_along_dim(x, i, 0), torch.randint(-5, 5, (2, 4, 3)), ["remainder", "gather"]),
    "take": (lambda x, i: torch.take(x, i), torch.tensor([[0, 59], [-60, -1]]), ["take"]),
    "argmax": (lambda x, i: x.gather(-1, (x + i).argmax(-1, keepdim=True)), torch.ones(3), ["add_argmax", "gather"]),
    "of one row": (lambda x, i: F.embedding(i, x[0]), torch.tensor(2), ["embedding"]),
    "reshaped": (lambda x, i: x[i.view(-1)], torch.tensor([[1, -1], [0, 3]]), ["index"]),
    "batch": (lambda x, i: x @ x.mT[i], torch.tensor([1, -1, 0, 3, 2]), ["index", "bmm"]),
    "none": (lambda x, i: x[i], torch.empty((0, 3), dtype=torch.int64), []),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_and_results(name: str) -> None:
    function, indices, wanted = FUNCTIONS[name]
    assert kernels(function, X, indices) == wanted
    for _ in range(2):
        torch.testing.assert_close(compiled(function, check=True)(X, indices), function(X, indices))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "part" in name or "computed" in name])
@pytest.mark.parametrize("dynamic", [False, True])
def test_computed_indices_and_their_parts_are_in_one_region(
    name: str, *, dynamic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Any] = []
    monkeypatch.setattr(backend, "plan", lambda *given: plans.append(plan(*given)) or plans[-1])
    function, indices, _ = FUNCTIONS[name]
    call = torch.compile(function, backend="pdojo", dynamic=dynamic, options={"tune": "none"})
    torch.testing.assert_close(call(X, indices), function(X, indices))
    assert len(plans[-1].regions) == 1
    assert not plans[-1].fallbacks


def test_indices_out_of_range() -> None:
    for function, indices in (
        (lambda x, i: x[i], torch.tensor([5])),
        (lambda x, i: x[i], torch.tensor([-6])),
        (lambda x, i: torch.index_select(x, 0, i), torch.tensor([-1])),
        (lambda x, i: x.gather(0, i), torch.full((1, 1, 1), 5)),
        (lambda x, i: torch.take(x, i), torch.tensor([60])),
        (lambda x, i: x[i + 4] * 2, torch.tensor([0, 1])),
        (lambda x, i: x[(i + 4)[:, 1:]], torch.tensor([[9, 0, 1]])),
    ):
        with pytest.raises(
            IndexOutOfRange, match=r"^kernel '.*': '.*' has the index -?\d+ at \[[\d, ]+\]; its indices"
        ):
            compiled(function)(X, indices)
        with pytest.raises((IndexError, RuntimeError)):
            function(X, indices)


BAGS: dict[str, dict[str, Any]] = {
    "sum": {"mode": "sum"},
    "mean": {"mode": "mean"},
    "max": {"mode": "max"},
    "sum without a row": {"mode": "sum", "padding_idx": 1},
    "mean without a row": {"mode": "mean", "padding_idx": -6},
}
"""Options of `embedding_bag`."""


@pytest.mark.parametrize("name", BAGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_bags_of_one_length_are_kernels(name: str, dtype: Any) -> None:
    rows = torch.randn(7, 6, dtype=dtype)

    def bags(i: Any) -> Any:
        return F.embedding_bag(i, rows, **BAGS[name]) * 2

    assert len(kernels(bags, torch.randint(0, 7, (4, 5)))) == 1
    call = compiled(bags, check=True)
    for _ in range(3):
        indices = torch.randint(0, 7, (4, 5))
        indices[2] = 1  # A bag of the row that may be left out.
        torch.testing.assert_close(call(indices), bags(indices))
    with pytest.raises(IndexOutOfRange, match=r"index 7 at \[19\]; its indices run from 0 to 6$"):
        call(torch.tensor([0] * 19 + [7]).view(4, 5))


@pytest.mark.parametrize("name", BAGS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_bags_of_many_sizes(name: str, *, dynamic: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is a size of one plan; if their length is one too, each combination of sizes is planned."""
    plans: list[Any] = []
    monkeypatch.setattr(backend, "plan", lambda *given: plans.append(plan(*given)) or plans[-1])
    rows = torch.randn(7, 6)
    call = torch.compile(
        lambda i: F.embedding_bag(i, rows, **BAGS[name]), backend="pdojo", dynamic=dynamic, options={"tune": "none"}
    )
    for shape in ((3, 5), (8, 5), (2, 5), (64, 5)) if dynamic is None else ((3, 5), (8, 4), (2, 9)):
        indices = torch.randint(0, 7, shape)
        torch._dynamo.mark_dynamic(indices, 0)
        torch.testing.assert_close(call(indices), F.embedding_bag(indices, rows, **BAGS[name]))
        assert not plans[-1].fallbacks
    assert dynamic or len(plans) == 1


def test_bags_with_weights_and_an_offset_of_the_end() -> None:
    rows, indices, weights = torch.randn(7, 6), torch.randint(0, 7, (4, 5)), torch.randn(4, 5)

    def weighed(i: Any, w: Any) -> Any:
        return F.embedding_bag(i, rows, mode="sum", per_sample_weights=w, padding_idx=2)

    def ending(i: Any) -> Any:
        return F.embedding_bag(i.view(-1), rows, torch.arange(0, 21, 5), mode="max", include_last_offset=True)

    assert len(kernels(weighed, indices, weights)) == len(kernels(ending, indices)) == 1
    torch.testing.assert_close(compiled(weighed)(indices, weights), weighed(indices, weights))
    torch.testing.assert_close(compiled(ending)(indices), ending(indices))


@pytest.mark.parametrize("column", range(5))
def test_the_greatest_element_of_a_bag_is_nan_if_the_first_one_is(column: int) -> None:
    rows, indices = torch.randn(7, 6), torch.tensor([[0, 1, 2, 3, 4], [6, 6, 6, 6, 6]])
    rows[column, 1], rows[6, 2], rows[6, 3], rows[3, 4] = torch.nan, torch.nan, -torch.inf, torch.inf
    wanted = F.embedding_bag(indices, rows, mode="max")
    assert wanted[0, 1].isnan() == (column == 0)
    torch.testing.assert_close(
        compiled(lambda i: F.embedding_bag(i, rows, mode="max"))(indices), wanted, equal_nan=True
    )


def test_bags_of_other_lengths_and_their_gradients_are_pytorchs() -> None:
    rows, indices = torch.nn.Parameter(torch.randn(7, 6)), torch.randint(0, 7, (20,))
    for given, offsets, options, reason in (
        (indices, torch.tensor([0, 3, 3, 12]), {}, "data"),
        (indices.view(4, 5), None, {"mode": "max", "padding_idx": 1}, "depends on indices"),
    ):
        found = explain(lambda i, o, k=options: F.embedding_bag(i, rows, o, **k), given, offsets)
        assert len(found.fallbacks) == 1
        assert reason in found.fallbacks[0].reason
        torch.testing.assert_close(
            compiled(lambda i, o, k=options: F.embedding_bag(i, rows, o, **k))(given, offsets),
            F.embedding_bag(given, rows, offsets, **options),
        )
    with torch.enable_grad():
        call = compiled(lambda i: F.embedding_bag(i, rows))
        gradients = [torch.autograd.grad(f(indices.view(4, 5)).square().sum(), rows)[0] for f in (call, _bag_of(rows))]
    torch.testing.assert_close(*gradients)


def _bag_of(rows: Any) -> Any:
    return lambda i: F.embedding_bag(i, rows)


def test_masks_are_pytorchs() -> None:
    found = explain(lambda x, i: x[i] * 2, X, X[:, 0, 0] > 7, options={"tune": "none"})
    assert "index" not in [kernel.name for kernel in found.kernels]


def test_gradients_of_embeddings() -> None:
    model = Embeddings()
    arguments = torch.randint(0, 50, (2, 4)), torch.randint(0, 2, (2, 4)), torch.arange(4)
    gradients: list[Any] = []
    with torch.enable_grad():
        for call in (compiled(model), model):
            model.zero_grad()
            call(*arguments).square().sum().backward()
            gradients.append([each.grad.clone() for each in model.parameters()])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
