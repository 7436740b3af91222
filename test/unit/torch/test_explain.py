"""What became of a model: kernels, calls of PyTorch, graph breaks; and every kernel compared with PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import pdojo
from pdojo import build
from pdojo.errors import MeasurementError, UsageError
from pdojo.model.compiled import CompiledModel
from pdojo.torch import WrongKernel, explain
from pdojo.torch.checking import difference
from pdojo.torch.operators.registry import RULES

PLAIN = {"tune": "none"}


@pytest.fixture(autouse=True)
def _no_caches() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def mlp() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()


def test_kernels_have_operators_shapes_times_and_notation(mlp: Any) -> None:
    with torch.no_grad():
        found = explain(mlp, torch.ones(2, 8), options=PLAIN)
    first, second = found.kernels
    assert first.operators == ("aten.addmm.default", "aten.relu.default")
    assert (first.inputs, first.outputs) == (("f32[2, 8]",), ("f32[2, 16]",))
    assert second.operators == ("aten.addmm.default",)
    assert 0 < sum(part.seconds for part in found.kernels) < 1
    assert found.seconds > 0
    assert first.notation.startswith("kernel addmm_relu(x, ")
    assert "aten.relu.default" in str(found)
    assert not found.fallbacks
    assert not found.breaks


def test_fallbacks_and_graph_breaks_have_reasons() -> None:
    def function(x: Any) -> Any:
        y = torch.polygamma(1, x) + 1
        if y.sum() > 0:
            y = y * 2
        return torch.relu(y)

    found = explain(function, torch.ones(3), options=PLAIN)
    reasons = {part.operator: part.reason for part in found.fallbacks}
    assert reasons["aten.polygamma.default"] == "no kernel is known for this operator"
    assert len(found.graphs) == 2
    assert len(found.breaks) == 1
    assert __file__ in found.breaks[0]
    assert "graph break: " in str(found)


def test_the_last_line_has_shares_and_pytorchs_time() -> None:
    with torch.no_grad():
        found = explain(lambda x: torch.relu(torch.polygamma(1, x) + 1), torch.rand(64, 64), options=PLAIN)
    assert 0 < found.eager < 1
    assert str(found).rstrip().splitlines()[-1].strip() == found.summary
    assert re.fullmatch(
        r"kernels: 2 of 3 operators, \d+% of the time; [\d.e-]+ ms, PyTorch one by one [\d.e-]+ ms", found.summary
    )
    assert 0 < float(found.summary.partition(", ")[2].partition("%")[0]) <= 100


def test_a_function_without_graphs_has_no_summary() -> None:
    assert "kernels:" not in str(explain(lambda: 3))


def test_explaining_again_is_no_recompilation(mlp: Any) -> None:
    x = torch.ones(2, 8)
    with torch.no_grad(), torch._dynamo.config.patch(recompile_limit=1):
        assert {repr(explain(mlp, x, options=PLAIN)) for _ in range(torch._dynamo.config.recompile_limit + 1)} == {
            "<Explanation of 1 graph: 2 kernels, 0 PyTorch calls, 0 graph breaks>"
        }


def test_explaining_draws_no_random_numbers() -> None:
    torch.manual_seed(3)
    found = explain(lambda x: torch.nn.functional.dropout(x), torch.ones(4), options=PLAIN)
    after = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(2))
    assert any(part.reason == "it draws random numbers" for part in found.fallbacks)


def test_unknown_options_are_named(mlp: Any) -> None:
    with pytest.raises(UsageError, match="did you mean 'tune'"):
        explain(mlp, torch.ones(2, 8), options={"tun": "none"})
    with pytest.raises(UsageError, match="did you mean 'check'"):
        pdojo.torch.compile(mlp, [torch.ones(2, 8)], chek=True)


def test_compiling_for_examples_runs_them(mlp: Any) -> None:
    x = torch.randn(2, 8)
    with torch.no_grad():
        compiled = pdojo.torch.compile(mlp, [x], tune="none")
        with torch.compiler.set_stance("fail_on_recompile"):
            assert torch.allclose(compiled(x), mlp(x), atol=1e-5)


def test_a_wrong_rule_is_found(mlp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 8)
    with torch.no_grad():
        right = torch.compile(mlp, backend="pdojo", options={**PLAIN, "check": True})
        assert torch.allclose(right(x), mlp(x), atol=1e-5)
    rule = replace(RULES["aten.relu.default"], function=lambda call, x: build.relu(x) + 1e-4)
    monkeypatch.setitem(RULES, "aten.relu.default", rule)
    torch._dynamo.reset()
    wrong = torch.compile(mlp, backend="pdojo", options={**PLAIN, "check": True})
    with torch.no_grad(), pytest.raises(WrongKernel) as caught:
        wrong(x)
    message = str(caught.value)
    assert "kernel 'addmm_relu' of region0 (aten.addmm.default, aten.relu.default) differs from PyTorch" in message
    assert "times the difference that is allowed\nkernel addmm_relu(x, " in message


def test_a_kernel_that_writes_outside_of_its_outputs_is_found(mlp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(self: CompiledModel) -> None:
        raise MeasurementError("kernel 'k' of region0: memory after array 'y' was written")

    monkeypatch.setattr(CompiledModel, "check_memory", found)
    wrong = torch.compile(mlp, backend="pdojo", options={**PLAIN, "check": True})
    with torch.no_grad(), pytest.raises(MeasurementError, match="memory after array 'y' was written"):
        wrong(torch.randn(2, 8))


def test_kernels_that_read_views_and_permuted_tensors_are_checked() -> None:
    def function(x: Any, y: Any) -> Any:
        z = (x.permute(0, 2, 1) + 1) * y
        return torch.softmax(z, 1).reshape(2, -1) @ y.reshape(2, -1).t()

    x, y = torch.randn(2, 5, 3), torch.randn(2, 5, 3).permute(0, 2, 1)
    checked = torch.compile(function, backend="pdojo", options={**PLAIN, "check": True})
    assert torch.allclose(checked(x, y), function(x, y), atol=1e-5)


@pytest.mark.parametrize(
    ("found", "native", "exact", "terms", "is_right"),
    [
        (1.0, 1.0, 1.0, 1, True),
        (1 + 2**-20, 1.0, 1.0, 1, True),
        (1 + 2**-18, 1.0, 1.0, 1, False),
        (1 + 2**-18, 1.0, 1.0, 1 << 10, True),
        (1 + 2**-18, 1 + 2**-18, 1.0, 1, True),
        (float("nan"), float("nan"), float("nan"), 1, True),
        (float("nan"), 1.0, 1.0, 1, False),
        (float("inf"), float("inf"), 1e39, 1, True),
        (3e38, float("inf"), float("inf"), 1, False),
        (float("-inf"), float("inf"), float("inf"), 1, False),
        (0.0, 1e-44, 1e-44, 1, True),
    ],
)
def test_differences(found: float, native: float, exact: float, terms: int, is_right: bool) -> None:
    given = torch.tensor([0.5, found]), torch.tensor([0.5, native]), torch.tensor([0.5, exact], dtype=torch.float64)
    worst = difference(*given, terms)
    assert (worst.error <= 1) is is_right
    if not is_right:
        assert worst.place == (1,)


def test_integers_are_exact() -> None:
    right = torch.tensor([1, 2])
    assert difference(right, right, right.double(), 1).error == 0
    assert difference(torch.tensor([1, 3]), right, right.double(), 1).place == (1,)
