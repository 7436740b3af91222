"""Inputs that are parts of larger tensors: which are read as they are, and results beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.torch import FallbackWarning, backend, explain, keys, planning, program

F: Any = torch.nn.functional


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes of tensors that were copied before kernels."""
    found: list[Any] = []
    laid_out = program._as_laid_out

    def counted(tensor: Any, layout: Any) -> Any:
        made = laid_out(tensor, layout)
        found.extend([tensor.shape] if made is not tensor else [])
        return made

    monkeypatch.setattr(program, "_as_laid_out", counted)
    return found


Part = Callable[[Any], Any]
X, W = torch.randn(4, 16, 48), torch.randn(16, 24)
CACHE = torch.randn(2, 3, 64, 16)
PARTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "elements": (lambda a: a * 2 + 1, X[:, :, 8:24]),
    "sums": (lambda a: a.sum(-1), X[:, 3:9, 5:]),
    "sums of columns": (lambda a: a.sum((0, 1)), X[:, 3:9, 5:]),
    "product": (lambda a: a @ W, X[:, :, 16:32]),
    "second factor": (lambda a: W.T @ a, X[:, :, 16:32]),
    "norm": (lambda a: F.layer_norm(a, (16,)), X[:, :, 3:19]),
    "axes in another order": (lambda a: a + 1, X[:, :, 3:19].transpose(1, 2)),
    "in another shape": (lambda a: a.transpose(1, 2).reshape(4, -1) + 1, X[:, :, :32]),
    "heads": (lambda a: torch.softmax(a.view(4, 16, 2, 8).transpose(1, 2), -1), X[:, :, 1:17]),
    "keys and values": (lambda a: F.scaled_dot_product_attention(a[:, :, -1:], a, a * 2), CACHE[:, :, :33]),
    "copies": (lambda a: (a.clone(), a.contiguous(), a.reshape(-1), a + 1), X[:, :, :7]),
    "pieces": (lambda a: torch.cat([a, a + 1, a], 1), X[:, 1:3, 3:]),
    "windows": (lambda a: F.max_pool1d(a, 3), X[:, 1:8]),
    "gathered": (lambda a: a[torch.tensor([0, 2]), :, 1:], X[:, 1:8]),
    "scattered into": (lambda a: a.index_add(1, torch.tensor([0, 0]), a[:, :2]), X[:, 1:8]),
    "bf16": (lambda a: a * 2, X.bfloat16()[:, :, 3:19]),
    "f64": (lambda a: a.cumsum(-1), X.double()[1:, :, 3:19]),
}
COPIED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "no axis contiguous": (lambda a: a * 2, X[:, :, ::2]),
    "expanded": (lambda a: a * 2, X[:, :1].expand(4, 5, 48)),
    "overlapping": (lambda a: a * 2, X.as_strided((5, 4), (2, 1))),
    "integers": (lambda a: X.view(-1)[a], torch.arange(24).view(4, 6)[:, 2:]),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_parts_are_read_as_they_are(name: str, *, dynamic: bool, copied: list[Any]) -> None:
    function, part = PARTS[name]
    call = torch.compile(function, backend="pdojo", dynamic=dynamic, options={"tune": "none"})
    torch.testing.assert_close(call(part), function(part), rtol=1e-2 if name == "bf16" else 1e-4, atol=1e-5)
    assert not copied


@pytest.mark.parametrize("name", PARTS)
def test_each_kernel_is_right(name: str) -> None:
    function, part = PARTS[name]
    call = torch.compile(function, backend="pdojo", options={"tune": "pass", "check": True})
    torch.testing.assert_close(call(part), function(part), rtol=1e-2 if name == "bf16" else 1e-4, atol=1e-5)


@pytest.mark.parametrize("name", COPIED)
def test_other_inputs_are_copied(name: str, copied: list[Any]) -> None:
    function, part = COPIED[name]
    torch.testing.assert_close(torch.compile(function, backend="pdojo")(part), function(part))
    assert len(copied) == 1


def test_dense_inputs_have_the_kernels_that_they_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any) -> Any:
        return F.layer_norm(a, (48,)) @ a.mT

    texts = [kernel.notation for kernel in explain(function, X).kernels]
    for module in (planning, program):
        monkeypatch.setattr(module, "strided_order", lambda _: None)
    assert [kernel.notation for kernel in explain(function, X).kernels] == texts
    assert not any("strided" in text for text in texts)


def test_other_strides_make_no_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one shape share their kernels; strides that change are sizes from the second pattern on."""
    plans: list[Any] = []
    plan = backend.plan
    monkeypatch.setattr(backend, "plan", lambda *given: plans.append(given) or plan(*given))
    call = torch.compile(lambda a: F.gelu(a) * 2, backend="pdojo", options={"tune": "none"})
    for width in (48, 50, 60, 70, 49):
        part = torch.randn(4, 6, width)[:, 1:5, 3:19]
        torch.testing.assert_close(call(part), F.gelu(part) * 2)
    assert len(plans) == 2
    (dense, wide, wider) = (
        explain(lambda a: F.gelu(a) * 2, torch.randn(4, 5, width)[:, :, :16]).kernels[0].notation
        for width in (16, 20, 30)
    )
    assert wide == wider != dense


@pytest.mark.filterwarnings("error::pdojo.torch.FallbackWarning")
def test_the_growing_part_of_a_cache(copied: list[Any]) -> None:
    assert FallbackWarning
    cache, query = torch.randn(2, 3, 64, 16), torch.randn(2, 3, 1, 16)
    call = torch.compile(F.scaled_dot_product_attention, backend="pdojo", options={"tune": "none"})
    for length in (5, 6, 7, 40, 64):
        part = cache[:, :, :length]
        torch.testing.assert_close(call(query, part, part), F.scaled_dot_product_attention(query, part, part))
    assert not copied


def test_tensors_of_other_strides_than_the_graph_says_are_copied(copied: list[Any]) -> None:
    (key,) = ((node, 0) for node in _graph().nodes if node.op == "placeholder")
    layout = program.input_layout(key)
    assert keys.strided_order(keys.tensor_of(key)) == (0, 1)
    for tensor, count in ((torch.ones(4, 8)[:, :3], 0), (torch.ones(4, 9)[:, :3], 1), (torch.ones(4, 3), 2)):
        made = program._as_laid_out(tensor, layout)
        assert made.stride() == (8, 1)
        assert torch.equal(made, tensor)
        assert len(copied) == count


def _graph() -> Any:
    graph = torch.fx.Graph()
    graph.placeholder("x").meta["val"] = torch.empty(4, 8)[:, :3]
    return graph
