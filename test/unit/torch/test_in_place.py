"""Updates of large inputs in place: which ones write into the input, and the results and the inputs beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.torch import explain
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.in_place import LEAST_BYTES
from pdojo.torch.options import Options

LENGTH = LEAST_BYTES // (4 * 8 * 4)


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def recorded(function: Any) -> tuple[Callable[..., Any], list[tuple[Any, Any]]]:
    """The compiled function, and the arguments and results of each call of its graph."""
    calls: list[tuple[Any, Any]] = []

    class Recorded(CompiledGraph):
        def __call__(self, arguments: list[Any]) -> list[Any]:
            given = [*arguments]
            found = super().__call__(arguments)
            calls.append((given, found))
            return found

    def backend(graph: Any, inputs: Any) -> Any:
        return compiled_graph(graph, inputs, Options(tune="none"), Recorded)

    return torch.compile(function, backend=backend), calls


def given(length: int = LENGTH) -> Sequence[Any]:
    return torch.randn(4, 8, length), torch.randn(4, 1, length), torch.tensor([3]), torch.randn(4, 2, length)


def attend(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.index_copy_(1, position, k)
    return torch.softmax(q @ cache.mT, -1) @ cache


def put(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache[:, position] = k * 2
    return q @ cache.mT


def scatter(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.scatter_(1, position.expand(k.shape), k)
    cache.view(-1)
    return q @ cache[:, 1:].mT


def fill(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.scatter_(1, position.expand(k.shape), 0.5)
    return q + cache[:, :2] + k


def two(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.index_copy_(1, position, k)
    q.index_copy_(1, position - 2, k + 1)
    return (q @ cache.mT).relu()


def whole(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.index_copy_(1, position, k)
    return cache, q + k


IN_PLACE = (attend, put, scatter, fill, two, whole)


@pytest.mark.parametrize("function", IN_PLACE)
def test_updates_write_into_the_input(function: Any) -> None:
    theirs = given()
    mine = [each.clone() for each in theirs]
    call, calls = recorded(function)
    for place in (3, 2, 2):
        for each in (mine, theirs):
            each[2].fill_(place)
        torch.testing.assert_close(call(*mine), function(*theirs), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(mine, theirs)
        arguments, results = calls[-1]
        assert any(results[0] is each for each in arguments)
    place = torch.tensor([8])
    for one, other in ((call, mine), (function, theirs)):
        with pytest.raises((IndexError, RuntimeError)):
            one(*other[:2], place, other[3])
    torch.testing.assert_close(mine, theirs)


def reads_before(cache: Any, k: Any, position: Any, q: Any) -> Any:
    old = q @ cache.mT
    cache.index_copy_(1, position, k)
    return old + q @ cache.mT


def reads_old_behind(cache: Any, k: Any, position: Any, q: Any) -> Any:
    old = cache.clone()
    cache.index_copy_(1, position, k)
    return cache @ q.mT - old @ q.mT


def writes_itself(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.index_copy_(1, position, cache[:, :1] + k)
    return q @ cache.mT


def adds(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.index_put_((torch.arange(4)[:, None], position[None]), k, accumulate=True)
    return q @ cache.mT


def twice(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache.index_copy_(1, position, k)
    cache.index_copy_(1, position - 1, k)
    return q @ cache.mT


def of_a_view(cache: Any, k: Any, position: Any, q: Any) -> Any:
    cache[1:].index_copy_(1, position, k[1:])
    return q @ cache.mT


def makes_a_new_one(cache: Any, k: Any, position: Any, q: Any) -> Any:
    return cache.index_copy(1, position, k), q + k


def keeps_another(cache: Any, k: Any, position: Any, q: Any) -> Any:
    found = cache.index_copy(1, position, k)
    cache.copy_(found)
    return found, q + k


@pytest.mark.parametrize(
    "function", [reads_before, reads_old_behind, writes_itself, adds, twice, of_a_view, makes_a_new_one, keeps_another]
)
def test_other_updates_make_new_tensors(function: Any) -> None:
    theirs = given()
    mine = [each.clone() for each in theirs]
    call, calls = recorded(function)
    for _ in range(2):
        torch.testing.assert_close(call(*mine), function(*theirs), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(mine, theirs)
        arguments, results = calls[-1]
        assert not any(result is each for each in arguments for result in results)


def test_views_of_one_tensor() -> None:
    """Arguments that share memory."""
    for function in (attend, put, whole):
        torch._dynamo.reset()
        call, _ = recorded(function)
        mine = torch.randn(4, 12, LENGTH)
        theirs = mine.clone()
        for _ in range(2):
            results = [
                f(each[:, :8], each[:, 8:9], torch.tensor([3]), each[:, 2:4])
                for f, each in ((call, mine), (function, theirs))
            ]
            torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(mine, theirs)
    torch._dynamo.reset()
    call, _ = recorded(attend)
    apart, same = given(), given()
    call(*apart)
    mine, theirs = same[0].clone(), same[0].clone()
    results = [f(each, each[:, :1], same[2], each[:, 1:3]) for f, each in ((call, mine), (attend, theirs))]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(mine, theirs)


def test_small_inputs_and_gradients_have_kernels() -> None:
    found = explain(attend, *given(LENGTH // 2), options={"tune": "none"})
    assert not found.fallbacks
    torch._dynamo.reset()
    (fallback,) = explain(attend, *given(), options={"tune": "none"}).fallbacks
    assert fallback.operator == "aten.index_copy_.default"
    assert fallback.reason == "it changes an operand in place"
    torch._dynamo.reset()
    with torch.enable_grad():
        cache, k, position, q = given()
        k.requires_grad_()
        wanted = cache.clone()
        call, calls = recorded(attend)
        torch.testing.assert_close(call(cache, k, position, q), attend(wanted, k, position, q), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(cache, wanted)
        assert not any(calls[0][1][0] is each for each in calls[0][0])


class Layer(torch.nn.Module):
    """A layer with a cache of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(LENGTH, 3))
        self.register_buffer("cache", torch.zeros(4, 8, LENGTH))

    def forward(self, k: Any, position: Any) -> Any:
        self.cache.index_copy_(1, position, k)
        return self.cache @ self.weights


def test_buffers_that_change_are_no_constants() -> None:
    mine, theirs = Layer(), Layer()
    theirs.load_state_dict(mine.state_dict())
    graphs: list[CompiledGraph] = []

    def backend(graph: Any, inputs: Any) -> Any:
        return compiled_graph(
            graph, inputs, Options(tune="none"), lambda *a: graphs.append(CompiledGraph(*a)) or graphs[-1]
        )

    call = torch.compile(mine, backend=backend)
    for place in (1, 5, 0, 5, 7):
        k, position = torch.randn(4, 1, LENGTH), torch.tensor([place])
        torch.testing.assert_close(call(k, position), theirs(k, position), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(mine.cache, theirs.cache)
    (graph,) = graphs
    assert len(graph._static) == 1
