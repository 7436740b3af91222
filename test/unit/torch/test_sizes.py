"""Graphs with symbols: one plan for ranges of sizes, right at their edges; nothing is planned at further shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn

from pdojo.dialect.affine import Size
from pdojo.model.model import Model
from pdojo.torch import explain
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.options import Options
from pdojo.torch.symbols import SizedSymbol, Symbols, joined, known_sizes

pytestmark = pytest.mark.usefixtures("no_caches")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that were made of regions."""
    names: list[str] = []
    of = Model.of

    def counted(graph: Any) -> Model:
        names.append(graph.name)
        return of(graph)

    monkeypatch.setattr(Model, "of", staticmethod(counted))
    return names


def recorded(function: Callable[..., Any], **keywords: Any) -> tuple[Callable[..., Any], list[CompiledGraph]]:
    """The compiled function, and the graphs that are made of it."""
    graphs: list[CompiledGraph] = []

    def make(*arguments: Any) -> CompiledGraph:
        graphs.append(CompiledGraph(*arguments))
        return graphs[-1]

    def backend(graph: Any, inputs: Any) -> Any:
        return compiled_graph(graph, inputs, Options(tune="none"), make)

    return torch.compile(function, backend=backend, **keywords), graphs


def agree_at(
    function: Callable[..., Any], inputs: Sequence[Sequence[Any]], made: list[str], **keywords: Any
) -> list[CompiledGraph]:
    """Compare results at several sizes; the first ones make all plans, and none calls a kernel of PyTorch."""
    ours, graphs = recorded(function, **keywords)
    plans: set[int] = set()
    with torch.no_grad():
        for given in inputs:
            torch.testing.assert_close(ours(*given), function(*given), rtol=1e-4, atol=1e-5)
            plans.add(len(made))
    assert len(plans) == 1
    assert len(graphs) == 1
    assert not graphs[0].closed
    for program in graphs[0].programs.values():
        assert program is not None
        assert not program.plan.fallbacks
    return graphs


def test_rows_of_a_perceptron(made: list[str]) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).eval()

    graphs = agree_at(model, [(rows_of(rows),) for rows in (6, 2, 64, 63, 3, 33, 6)], made)
    assert len(graphs[0].programs) == 6


def rows_of(rows: int) -> Any:
    """Rows whose number is a symbol."""
    x = torch.randn(rows, 8)
    torch._dynamo.mark_dynamic(x, 0)
    return x


class Layer(nn.Module):
    """A layer of an encoder: embeddings by place, attention, norms, and a mean of all places."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 16), nn.Embedding(64, 16)
        self.qkv, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1]))[None])
        heads = self.qkv(x).view(*ids.shape, 3, 2, 8)
        q, k, v = (each.transpose(1, 2) for each in heads.unbind(2))
        found = nn.functional.scaled_dot_product_attention(q, k, v)
        return (x + self.out(found.transpose(1, 2).reshape(x.shape))).mean(1)


def test_lengths_of_an_encoder(made: list[str]) -> None:
    agree_at(Layer().eval(), [(torch.randint(0, 11, (1, n)),) for n in (5, 2, 64, 63, 9, 31)], made, dynamic=True)


def test_sequences_of_an_encoder(made: list[str]) -> None:
    """Rows of linear layers have two axes that are symbols, or an inner one."""
    sizes = ((2, 5), (3, 7), (2, 2), (7, 33), (64, 9), (5, 64))
    agree_at(Layer().eval(), [(torch.randint(0, 11, shape),) for shape in sizes], made, dynamic=True)
    torch._dynamo.reset()
    made.clear()

    def inputs(length: int) -> list[Any]:
        ids = torch.randint(0, 11, (4, length))
        torch._dynamo.mark_dynamic(ids, 1)
        return [ids]

    agree_at(Layer().eval(), [inputs(length) for length in (5, 2, 64, 63, 17)], made)


def test_products_of_rows_that_are_no_layers() -> None:
    """Factors, joined rows as results, and rows of the product alone are what PyTorch makes of them."""
    weight, bias = torch.randn(8, 4), torch.randn(4)

    def function(x: Any) -> Any:
        rows, shape = x.view(-1, 8), (*x.shape[:2], 4)
        scaled = torch.addmm(bias, rows, weight, beta=2, alpha=3).view(shape)
        several = torch.mm(rows, weight)
        return scaled, torch.addmm(bias, rows, weight).view(shape), several.view(shape), several

    ours, _ = recorded(function, dynamic=True)
    for shape in ((2, 3), (3, 5), (9, 4)):
        x = torch.randn(*shape, 8)
        torch.testing.assert_close(ours(x), function(x))


def test_images(made: list[str]) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, stride=2)
    ).eval()
    shapes = ((2, 12, 14), (2, 10, 64), (3, 33, 10), (4, 64, 11), (14, 15, 16), (5, 10, 31))
    agree_at(model, [(torch.randn(n, 3, h, w),) for n, h, w in shapes], made, dynamic=True)


def test_attention_with_a_growing_cache(made: list[str]) -> None:
    def function(q: Any, new: Any, keys: Any, values: Any) -> Any:
        k, v = torch.cat([keys, new], 2), torch.cat([values, new], 2)
        return nn.functional.scaled_dot_product_attention(q, k, v), k, v

    def inputs(length: int) -> list[Any]:
        given = [torch.randn(1, 2, n, 8) for n in (1, 1, length, length)]
        for each in given[2:]:
            torch._dynamo.mark_dynamic(each, 2)
        return given

    agree_at(function, [inputs(n) for n in (5, 2, 3, 60, 31, 62)], made)


def test_sizes_as_numbers_and_results(made: list[str]) -> None:
    def function(x: Any) -> Any:
        rows = torch.softmax(x / x.shape[0], 1) + x.shape[0] * 2 + torch.ones_like(x)
        return rows.view(-1), x.new_zeros(x.shape[0]), x.shape[0] * 3 + 1

    agree_at(function, [(rows_of(n),) for n in (5, 2, 64, 7, 63)], made)


def test_sizes_beyond_a_range_make_one_more_plan(made: list[str]) -> None:
    ours, graphs = recorded(lambda x: torch.relu(x) + 1, dynamic=True)
    for rows, plans in ((2, 1), (64, 1), (65, 2), (1024, 2), (3, 2), (1025, 3)):
        x = torch.randn(rows)
        torch.testing.assert_close(ours(x), torch.relu(x) + 1)
        assert len(made) == plans
    assert len(graphs) == 1


def test_a_product_of_sizes_is_an_axis_of_no_kernel(made: list[str]) -> None:
    """Such a graph has programs for its combinations of shapes, and `explain` says why."""

    def function(x: Any) -> Any:
        return torch.relu(x.view(-1, 8) @ torch.ones(8, 4)).view(x.shape[0], x.shape[1], 4)

    ours, graphs = recorded(function, dynamic=True)
    for shape in ((2, 3, 8), (3, 5, 8), (5, 2, 8), (4, 4, 8), (2, 9, 8)):
        x = torch.randn(shape)
        torch.testing.assert_close(ours(x), function(x))
    assert len(graphs) == 1
    assert "keep axes of several sizes apart" in graphs[0].closed

    def shaped(x: Any) -> Any:
        torch._dynamo.mark_dynamic(x, (0, 1))
        return x

    assert "keep axes of several sizes apart" in str(explain(function, shaped(torch.randn(3, 5, 8))))


def test_several_threads_share_programs(made: list[str]) -> None:
    model = Layer().eval()
    ours, _ = recorded(model, dynamic=True)
    errors: list[BaseException] = []

    def call(lengths: Sequence[int]) -> None:
        try:
            for n in lengths:
                ids = torch.randint(0, 11, (1, n))
                with torch.no_grad():
                    torch.testing.assert_close(ours(ids), model(ids), rtol=1e-4, atol=1e-5)
        except BaseException as error:  # noqa: BLE001  # it is raised again
            errors.append(error)

    call([5])
    before = len(made)
    threads = [Thread(target=call, args=(range(2 + k, 40, 3),)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors, errors[0]
    assert len(made) == before


def test_symbols_of_neighbouring_values_are_one_size() -> None:
    apart = [SizedSymbol(Size(name, low, 64), 0) for name, low in (("a", 2), ("b", 2), ("c", 3), ("d", 2))]
    near = joined(apart, (7, 7, 8, 30))
    assert [(each.size.name, each.offset) for each in near] == [("a", 0), ("a", 0), ("a", 1), ("d", 0)]
    assert (near[0].size.low, near[0].size.high) == (2, 63)
    assert known_sizes(near, (63, 63, 64, 2)) == {near[0].size: 63, near[3].size: 2}
    assert known_sizes(near, (7, 8, 8, 30)) is None
    assert known_sizes(near, (64, 64, 65, 30)) is None


def test_gradients(made: list[str]) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    ours, _ = recorded(model, dynamic=True)
    found: list[int] = []
    for rows in (6, 2, 64, 9, 33):
        x = torch.randn(rows, 8)
        gradients: list[Any] = []
        for each in (ours, model):
            model.zero_grad()
            each(x).square().mean().backward()
            gradients.append([torch.clone(p.grad) for p in model.parameters() if p.grad is not None])
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-5)
        found.append(len(made))
    assert len(set(found)) == 1


def test_symbols_in_expressions_only_are_none() -> None:
    _, graphs = recorded(lambda x: x + 1, dynamic=True)
    assert not graphs
    module = torch.fx.symbolic_trace(lambda x: x + 1)
    for node in module.graph.nodes:
        node.meta["val"] = torch.empty(3, device="meta")
    symbols = Symbols.of(module)
    assert symbols is not None
    assert symbols.values([torch.ones(3)]) == ()
