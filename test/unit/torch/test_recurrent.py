"""Recurrent layers: kernels if Dynamo may capture them, and a reason if it may not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn
from torch.nn.utils.rnn import pack_sequence

from pdojo.torch import FallbackWarning, explain
from pdojo.torch.backend import backend
from pdojo.torch.skipping import warn_of_skipped_functions

PLAIN = {"tune": "none"}
REASON = "Attempted to wrap RNN, GRU, or LSTM"
REMEDY = "Set torch._dynamo.config.allow_rnn=True"


pytestmark = pytest.mark.usefixtures("no_caches")


@pytest.fixture
def _allowed() -> Iterator[None]:
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return torch.softmax(self.head(self.layer(x)[0][:, -1]), -1)


def flat(found: Any) -> list[Any]:
    return [found] if isinstance(found, torch.Tensor) else [leaf for each in found for leaf in flat(each)]


def agrees(function: Any, *inputs: Any, tolerance: float | None = None) -> None:
    """Compare results and their strides."""
    ours = torch.compile(function, backend="pdojo", options=PLAIN)
    for mine, theirs in zip(flat(ours(*inputs)), flat(function(*inputs)), strict=True):
        torch.testing.assert_close(mine, theirs, atol=tolerance, rtol=tolerance)
        assert mine.stride() == theirs.stride()


@pytest.mark.usefixtures("_allowed")
@pytest.mark.parametrize(
    "layer",
    [
        nn.LSTM(4, 6, batch_first=True),
        nn.LSTM(4, 6, num_layers=2),
        nn.LSTM(4, 6, bidirectional=True),
        nn.LSTM(4, 6, bias=False),
        nn.GRU(4, 6, bidirectional=True, batch_first=True),
        nn.GRU(4, 6, bias=False),
        nn.RNN(4, 6, bidirectional=True),
        nn.RNN(4, 6, nonlinearity="relu", num_layers=2, bias=False),
    ],
    ids=str,
)
def test_layers_are_kernels(layer: Any) -> None:
    x = torch.randn(3, 2, 4)
    layer.eval()
    with torch.no_grad():
        agrees(layer, x)
        first = [torch.randn_like(each) for each in flat(layer(x)[1])]
        agrees(layer, x, tuple(first) if len(first) > 1 else first[0])
        found = explain(layer, x, options=PLAIN)
    assert not found.fallbacks
    assert found.kernels


@pytest.mark.usefixtures("_allowed")
def test_narrow_types_and_one_sequence() -> None:
    layer = nn.GRU(4, 6).eval()
    with torch.no_grad():
        agrees(layer, torch.randn(3, 4))
        agrees(layer.to(torch.bfloat16), torch.randn(3, 2, 4).to(torch.bfloat16), tolerance=0.02)


@pytest.mark.usefixtures("_allowed")
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_projections_run_in_pytorch() -> None:
    layer = nn.LSTM(4, 6, proj_size=3).eval()
    with torch.no_grad():
        agrees(layer, torch.randn(3, 2, 4))
        (part,) = explain(layer, torch.randn(3, 2, 4), options=PLAIN).fallbacks
    assert (part.operator, part.reason) == ("pdojo.lstm.default", "kernels of recurrent layers have no projections")


@pytest.mark.usefixtures("_allowed")
def test_dropout_between_layers_is_pytorchs() -> None:
    layer = nn.GRU(4, 6, num_layers=2, dropout=0.5)
    x = torch.randn(2, 2, 4)
    with torch.no_grad():
        torch.manual_seed(1)
        ours = torch.compile(layer, backend="pdojo", options=PLAIN)(x)
        torch.manual_seed(1)
        torch.testing.assert_close(ours, torch.compile(layer, backend="aot_eager")(x))


@pytest.mark.usefixtures("_allowed")
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_gradients_are_computed_step_by_step(kind: Any) -> None:
    layer = kind(4, 6)
    x = torch.randn(2, 2, 4)

    def gradients(call: Any) -> list[Any]:
        layer.zero_grad()
        (call(x)[0] ** 2).sum().backward()
        return [each.grad.clone() for each in layer.parameters()]

    torch.testing.assert_close(gradients(torch.compile(layer, backend="pdojo", options=PLAIN)), gradients(layer))


@pytest.mark.usefixtures("_allowed")
@pytest.mark.filterwarnings("ignore::pdojo.torch.FallbackWarning")
def test_packed_sequences() -> None:
    layer = nn.GRU(4, 6).eval()

    def function(x: Any, y: Any) -> Any:
        return torch.relu(layer(pack_sequence([x, y]))[1])

    with torch.no_grad():
        agrees(function, torch.randn(3, 4), torch.randn(2, 4))


def test_functions_that_dynamo_skips_are_explained() -> None:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explain(Tagger().eval(), torch.randn(2, 3, 4), options=PLAIN)
        again = explain(Tagger().eval(), torch.randn(2, 3, 4), options=PLAIN)
    (skipped,) = found.skipped
    assert skipped.startswith(f"{REASON} ({__file__}:")
    assert REMEDY in skipped
    assert repr(found).endswith("0 graph breaks, 1 skipped function>")
    assert f"PyTorch runs: {REASON}" in str(found)
    assert (*again.skipped, *again.breaks) == found.skipped


def test_functions_that_break_without_a_graph_are_explained() -> None:
    model = Tagger().eval()
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        found = explain(lambda x: model(torch.relu(x)) * 2, x, options=PLAIN)
    (reason,) = (*found.breaks, *found.skipped)
    assert REMEDY in reason
    assert len(found.graphs) == 2


def test_a_warning_names_functions_that_dynamo_skips_once() -> None:
    model = Tagger().eval()
    x = torch.randn(2, 3, 4)
    warn_of_skipped_functions(backend)
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            torch.compile(model, backend="pdojo", options=PLAIN)(x)
    (warning,) = [each for each in said if each.category is FallbackWarning]
    assert REASON in str(warning.message)
    assert REMEDY in str(warning.message)
    assert warning.filename == __file__


def test_functions_of_other_backends_are_not_ours() -> None:
    warn_of_skipped_functions(backend)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(Tagger().eval(), backend="aot_eager")(torch.randn(2, 3, 4))
