"""What pdojo has no kernels for runs in PyTorch, with PyTorch's results; errors in pdojo break no model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._subclasses.fake_tensor import FakeTensorMode

from pdojo.errors import UsageError
from pdojo.model.model import Model
from pdojo.torch import FallbackWarning, explain, planning
from pdojo.torch.keys import check_tensor
from pdojo.torch.operators.registry import RULES

PLAIN = {"tune": "none"}


@pytest.fixture(autouse=True)
def _no_caches() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def agrees(function: Callable[..., Any], *inputs: Any, **keywords: Any) -> None:
    """Compare the compiled function with the function."""
    compiled = torch.compile(function, backend="pdojo", options=PLAIN, **keywords)
    torch.testing.assert_close(compiled(*inputs), function(*inputs))


def reasons(function: Callable[..., Any], *inputs: Any) -> str:
    """The reasons for all fallbacks of a function, in one text."""
    return "; ".join(part.reason for part in explain(function, *inputs, options=PLAIN).fallbacks)


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        (torch.complex64, "kernels have no elements of type complex64"),
        (torch.float8_e4m3fn, "kernels have no elements of type float8_e4m3fn"),
    ],
)
def test_types_without_kernels(dtype: Any, reason: str) -> None:
    x = torch.randn(3, 4)

    def function(x: Any) -> Any:
        y = torch.relu(x).to(dtype)
        return torch.neg(y) if dtype.is_complex else y.view(torch.uint8)

    agrees(function, x)
    assert "kernels have no elements" in reasons(lambda x: torch.neg(x) + x, x.to(torch.complex64))
    agrees(lambda x: x.float() + 1, x.to(dtype) if not dtype.is_complex else x)
    with pytest.raises(UsageError, match=re.escape(reason)):
        check_tensor(torch.zeros(1, dtype=dtype))


def test_tensors_of_other_devices_and_layouts() -> None:
    with FakeTensorMode():
        fake = torch.empty(3, device="cuda")
    with pytest.raises(UsageError, match="kernels take tensors on the CPU, not on cuda:0"):
        check_tensor(fake)
    with pytest.raises(UsageError, match="not on meta"):
        check_tensor(torch.empty(3, device="meta"))
    with pytest.raises(UsageError, match="kernels take strided tensors, not sparse_coo"):
        check_tensor(torch.eye(3).to_sparse())


def test_a_model_without_memory() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).to("meta")
    compiled = torch.compile(model, backend="pdojo", options=PLAIN)
    found = compiled(torch.empty(2, 4, device="meta"))
    with torch.no_grad():
        assert compiled(torch.empty(2, 4, device="meta")).shape == (2, 3)
    assert (found.shape, found.device.type) == ((2, 3), "meta")
    assert "not on meta" in reasons(model, torch.empty(2, 4, device="meta"))


def test_sparse_tensors() -> None:
    sparse, dense = torch.eye(3).to_sparse(), torch.randn(3, 2)
    agrees(lambda a, b: torch.relu(torch.sparse.mm(a, b)), sparse, dense)


def test_subclasses_of_tensors() -> None:
    class Tagged(torch.Tensor):
        pass

    x = torch.randn(4).as_subclass(Tagged)
    agrees(lambda x: torch.relu(x) * 2, x)


def test_data_dependent_control_flow() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x)
        return y * 2 if y.sum() > 1 else y - 1

    agrees(function, torch.ones(3))
    agrees(function, -torch.ones(3))


def test_shapes_that_depend_on_values() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        agrees(lambda x: torch.relu(x.nonzero() * 2 + 1), torch.tensor([0, 1, 0, 2]))
        agrees(lambda x: torch.relu(x.nonzero() * 2 + x.shape[0]), torch.tensor([0, 1, 0, 2, 3]), dynamic=True)
    agrees(lambda x: torch.relu(x[x > 0]) + 1, torch.tensor([0.5, -1.0, 2.0]))


def test_random_numbers_are_pytorchs() -> None:
    def function(x: Any) -> Any:
        return torch.relu(x) + torch.nn.functional.dropout(x, 0.5) * torch.rand_like(x)

    compiled = torch.compile(function, backend="pdojo", options=PLAIN)
    x = torch.ones(64)
    torch.manual_seed(1)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(1)
    again = compiled(x)
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def _branches(x: Any) -> Any:
    found = torch.cond((x @ x).sum() > 0, lambda y: y.sin() @ x, lambda y: y - x, (x + 1,))
    return torch.relu(found) @ x


def _loop(x: Any) -> Any:
    (found,) = while_loop(lambda y: y.sum() < 100, lambda y: (y.abs() + 1,), (x @ x,))
    return torch.softmax(found, -1)


def _scan(x: Any) -> Any:
    last, found = scan(lambda state, y: (state + y, state * y), x[0] * 2, x @ x)
    return torch.softmax(found, -1) + last


@pytest.mark.parametrize(
    ("function", "operator"),
    [(_branches, "cond"), (_loop, "while_loop"), (_scan, "scan")],
)
def test_higher_order_calls_run_in_pytorch(function: Callable[..., Any], operator: str) -> None:
    x = torch.arange(64.0).reshape(8, 8) / 64
    wanted = torch.compile(function, backend="aot_eager")(x)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="pdojo", options=PLAIN)(x), wanted)
    found = explain(function, x, options=PLAIN)
    reasons = {part.operator: part.reason for part in found.fallbacks}
    assert reasons[operator] == "PyTorch runs the graphs of higher-order operators"
    assert len(found.kernels) >= 2


def test_branches_of_symbolic_sizes_and_their_gradients() -> None:
    def function(x: Any) -> Any:
        return torch.relu(torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y.cos(), (x + 1,))) + x.shape[0]

    agrees(function, torch.ones(3, 4), dynamic=True)
    for sign in (1.0, -1.0):
        ours, theirs = (torch.full((3, 4), sign, requires_grad=True) for _ in range(2))
        torch.compile(function, backend="pdojo", options=PLAIN)(ours).sum().backward()
        (torch.relu((theirs + 1) * 2 if sign > 0 else torch.cos(theirs + 1)) + 3).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_tensors_without_elements() -> None:
    agrees(lambda x: torch.relu(x + 1).sum(0), torch.empty(0, 3))
    agrees(lambda x, y: torch.relu(torch.cat([x, y])), torch.empty(0, 3), torch.randn(2, 3))


def test_results_that_are_no_tensors() -> None:
    agrees(lambda x: (torch.relu(x), x.shape[0], None), torch.randn(3))
    agrees(lambda x: (torch.relu(x), x.shape[0] * 2), torch.randn(3), dynamic=True)


def test_a_rule_that_fails_is_reported_and_pytorch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(call: object, x: object) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setitem(RULES, "aten.relu.default", replace(RULES["aten.relu.default"], function=broken))
    x = torch.randn(3, 4)
    with pytest.warns(FallbackWarning, match=r"aten\.relu\.default.*please report this: ZeroDivisionError .*planted"):
        agrees(lambda x: torch.relu(x + 1) * 2, x)


def test_a_region_that_fails_runs_in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Model, *_: object, **__: object) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(Model, "compile", broken)
    linear = torch.nn.Linear(4, 6).eval()

    def function(x: Any, y: Any) -> Any:
        return torch.relu(linear(x)).reshape(-1, 3).t() + 1, torch.cumsum(y + 1, 0) * 2, x + 1

    inputs = torch.randn(3, 4), torch.randn(2)
    pattern = "PyTorch runs instead; please report this: ZeroDivisionError"
    with torch.no_grad(), pytest.warns(FallbackWarning, match=pattern):
        agrees(function, *inputs)
    with pytest.warns(FallbackWarning, match=pattern):
        agrees(function, *inputs)
    with pytest.warns(FallbackWarning):
        assert "pdojo failed" in reasons(function, *inputs)


def test_a_plan_that_fails_leaves_the_graph_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(planning._Planner, "_exported", broken)
    x = torch.randn(3, 4)
    with pytest.warns(FallbackWarning, match="please report this"):
        agrees(lambda x: torch.relu(x + 1), x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        with pytest.raises(FallbackWarning):
            torch.compile(lambda x: torch.relu(x - 1), backend="pdojo", options=PLAIN)(x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tunes": "none"}, "'tunes' is no option of the backend pdojo; did you mean 'tune'"),
        ({"tune": "best"}, "option tune is 'none', 'pass' or 'search', not 'best'"),
        ({"check": "yes"}, "option check is of type bool, not 'yes'"),
        ({"specialisations": 0}, "option specialisations is a number from 1, not 0"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="pdojo", options=options)
    with pytest.raises(Exception, match=re.escape(message)):
        compiled(torch.ones(2))


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        ("max-autotune", 'options={"tune": "search", "budget": "2m"}'),
        ("max-autotune-no-cudagraphs", 'options={"tune": "search", "budget": "2m"}'),
        ("reduce-overhead", 'leave it out, and choose by options={"tune": '),
    ],
)
def test_modes_are_refused(mode: str, advice: str) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="pdojo", mode=mode)
    with pytest.raises(Exception, match=f"the backend pdojo has no mode '{mode}', .*{re.escape(advice)}"):
        compiled(torch.ones(2))


def test_the_default_mode() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="pdojo", mode="default")
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_sparse_gradients_of_embeddings(kind: str) -> None:
    """PyTorch makes the sparse tensor; its values are of kernels."""
    model = torch.nn.Sequential(getattr(torch.nn, kind)(10, 4, sparse=True), torch.nn.Tanh())
    compiled = torch.compile(model, backend="pdojo", options=PLAIN)
    indices = torch.tensor([[1, 2, 1], [9, 0, 1]])
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for run in (compiled, model):
            model.zero_grad()
            (run(indices) ** 2).sum().backward()
            gradient = model[0].weight.grad
            assert gradient.is_sparse
            found.append(gradient.to_dense())
    torch.testing.assert_close(*found)


def test_parameters_that_are_not_plain_are_no_constants() -> None:
    model = torch.nn.Linear(3, 2).eval()
    model.register_buffer("scale", torch.eye(2).to_sparse())
    compiled = torch.compile(lambda x: torch.sparse.mm(model.scale, model(x)), backend="pdojo", options=PLAIN)
    x = torch.randn(2, 3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), torch.sparse.mm(model.scale, model(x)))
