"""Calls with effects keep their order: random numbers of a seed, changes in place, effects of custom operators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import torch.nn.functional as F  # noqa: N812  # PyTorch's own name
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from pdojo.model.model import Model
from pdojo.torch.planning import plan
from pdojo.torch.program import Program, plain_region

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _no_caches() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def seeded(function: Callable[..., Any], *inputs: Any, backend: str) -> list[Any]:
    """The result of a function with seed 0, its gradients if it has some, and the next random number."""
    torch._dynamo.reset()
    given = [copy.deepcopy(each) for each in inputs]
    torch.manual_seed(0)
    options: Any = {"options": {"tune": "none"}} if backend == "pdojo" else {}
    found = torch.compile(function, backend=backend, **options)(*given)
    if found.requires_grad:
        found.sum().backward()
    return [found, *[each.grad for each in given if isinstance(each, torch.Tensor)], torch.rand(1)]


def drawn_before(x: Any) -> Any:
    """The second call depends on nothing, so that it could run before the kernel that the first one needs."""
    kept = F.dropout(torch.relu(x @ x), 0.5)
    return kept * x.new_empty(x.shape[0], 1).bernoulli_(0.7)


def distributions(x: Any) -> Any:
    kept = F.dropout(x @ x) * torch.rand(4) + torch.bernoulli(x.sigmoid()) * torch.randint(0, 9, (4,))
    kept = kept + torch.normal(x, x.abs()) * torch.empty(4).uniform_(2, 3) * torch.poisson(x.abs())
    return kept * torch.empty(4).exponential_() + F.rrelu(kept, training=True) * F.gumbel_softmax(x)


def attention(x: Any) -> Any:
    kept = F.dropout(x @ x)
    return F.scaled_dot_product_attention(kept[None, None], x[None, None], x[None, None], dropout_p=0.5) * torch.rand(4)


def recomputed(x: Any) -> Any:
    def block(x: Any) -> Any:
        return F.dropout(torch.relu(x @ x)) * torch.rand(4)

    return torch.utils.checkpoint.checkpoint(block, F.dropout(x), use_reentrant=False) @ x


@pytest.mark.parametrize(
    ("function", "training"),
    [
        (drawn_before, False),
        (drawn_before, True),
        (distributions, False),
        (attention, False),
        (attention, True),
        (recomputed, True),
    ],
)
def test_numbers_of_a_seed_are_pytorchs(function: Callable[..., Any], training: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(4, 4).requires_grad_(training)
    ours, theirs = (seeded(function, x, backend=backend) for backend in ("pdojo", "aot_eager"))
    torch.testing.assert_close(ours, theirs)


def test_paths_that_are_dropped_are_pytorchs() -> None:
    class Block(torch.nn.Module):
        def __init__(self, share: float) -> None:
            super().__init__()
            self.norm, self.linear, self.share = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), share

        def forward(self, x: Any) -> Any:
            mask = x.new_empty(x.shape[0], 1, 1).bernoulli_(1 - self.share).div_(1 - self.share)
            return x + F.dropout(self.linear(self.norm(x)), 0.1) * mask

    torch.manual_seed(1)
    model, x = torch.nn.Sequential(*[Block(share) for share in (0.1, 0.3, 0.5)]), torch.randn(6, 4, 8)
    ours, theirs = (seeded(lambda x, model: model(x), x, model, backend=each) for each in ("pdojo", "aot_eager"))
    torch.testing.assert_close(ours, theirs)


def test_a_call_that_writes_keeps_its_place() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    before = graph.call_function(aten.add.Tensor, (x, 1))
    slow = graph.call_function(aten.mul.Tensor, (graph.call_function(aten.polygamma.default, (1, before)), x))
    view = graph.call_function(aten.view.default, (x, [4]))
    graph.call_function(aten.mul_.Tensor, (view, 2))
    after = graph.call_function(aten.polygamma.default, (1, x))
    graph.output((before, slow, graph.call_function(aten.add.Tensor, (x, 1)), after))
    module = GraphModule({}, graph)
    given = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    FakeTensorProp(module, FakeTensorMode()).propagate(given)
    wanted = module(given.clone())
    program = Program(plan(module, {}), lambda model: Model.compile(model, tune="none", threads=1), plain_region)
    torch.testing.assert_close(tuple(program([given])), wanted)
    assert len(program.regions) == 3


def test_effects_of_custom_operators_keep_their_order() -> None:
    said: list[str] = []

    def tell(x: Any, word: str) -> Any:
        said.append(word)
        return x.clone()

    library = torch.library.Library("pdojo_test", "FRAGMENT")
    library.define("tell(Tensor x, str word) -> Tensor")
    library.impl("tell", tell, "CPU")
    torch.library.register_fake("pdojo_test::tell", lambda x, word: torch.empty_like(x), lib=library)
    told = torch.ops.pdojo_test.tell.default
    torch.fx.node.has_side_effect(told)
    try:
        torch.compile(
            lambda x, y: told(torch.relu(x @ x), "first") + told(y, "second"), backend="pdojo", options={"tune": "none"}
        )(torch.randn(4, 4), torch.randn(4, 4))
    finally:
        torch.fx.node._side_effectful_functions.discard(told)
    assert said[-2:] == ["first", "second"]
