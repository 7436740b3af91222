"""Changes of constants that PyTorch does not count are found: at once, or in turns, and then said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn

from pdojo.torch import LateChangeWarning
from pdojo.torch.statics import Statics, _checksum, _parts, _sample, can_be_constant

pytestmark = pytest.mark.usefixtures("no_caches")


def neuron(model: Any) -> None:
    model[0].weight.data[37] = 0


def feature(model: Any) -> None:
    model[0].weight.data[:, 5] = 0


def smallest(model: Any) -> None:
    sizes = model[0].weight.data.abs()
    model[0].weight.data[sizes < sizes.flatten().kthvalue(sizes.numel() // 100).values] = 0


def outliers(model: Any) -> None:
    size = model[0].weight.data.abs().flatten().kthvalue(model[0].weight.numel() * 99 // 100).values
    model[0].weight.data.clamp_(-size, size)


def largest_row(model: Any) -> None:
    weight = model[0].weight.data
    weight.copy_(torch.renorm(weight, 2, 0, float(weight.norm(dim=1).max()) * 0.9999))


def channel(model: Any) -> None:
    model[1].weight.data[300] = 2


def statistics(model: Any) -> None:
    model[1].running_mean.numpy()[17] = 1


def bias(model: Any) -> None:
    model[2].bias.data[3] += 1


CHANGES = (neuron, feature, smallest, outliers, largest_row, channel, statistics, bias)


@pytest.mark.parametrize("change", CHANGES)
def test_usual_changes_are_found_in_the_next_call(change: Callable[[Any], None]) -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.BatchNorm1d(512), nn.Linear(512, 8)).eval()
    ours = torch.compile(model, backend="pdojo", options={"tune": "none"})
    x = torch.randn(2, 256)
    with torch.no_grad():
        before = ours(x)
        change(model)
        assert not torch.equal(model(x), before)
        torch.testing.assert_close(ours(x), model(x))


@pytest.mark.parametrize(
    "shape", [(64, 1024), (1024, 64), (100, 100), (768, 768), (768, 3072), (4096, 1000), (2000, 16)]
)
def test_samples_meet_every_row_and_column(shape: tuple[int, int]) -> None:
    numbers = torch.arange(shape[0] * shape[1], dtype=torch.int32)
    found = _sample(numbers.view(shape))
    assert len(set((found // shape[1]).tolist())) == shape[0]
    assert len(set((found % shape[1]).tolist())) == shape[1]
    assert len(found) <= numbers.numel() // 14


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3000),
        torch.zeros(70, 300),
        torch.zeros(300, 70).t(),
        torch.zeros(4, 16, 16, 16).to(memory_format=torch.channels_last),
        torch.zeros(70, 400)[:, 50:350],
        torch.zeros(9, 400)[:, :9],
        torch.zeros(5000, dtype=torch.float64)[::2],
        torch.zeros(90, 90, dtype=torch.bfloat16),
    ],
    ids=lambda tensor: f"{tuple(tensor.shape)}",
)
def test_any_element_is_found_in_turns(tensor: Any) -> None:
    for number in torch.randint(0, tensor.numel(), (8,)).tolist():
        place = tuple(int(each) for each in torch.unravel_index(torch.tensor(number), tensor.shape))
        statics = Statics([tensor])
        assert statics.unchanged([tensor])
        assert statics.late_change(1e9) is None
        tensor.data[place] += 1
        late = statics.late_change(1e9)
        assert not statics.unchanged([tensor]) or late is not None
        assert late is None or f"shape {list(tensor.shape)}" in late


def test_blocks_take_a_hundredth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr("pdojo.torch.statics.perf_counter", lambda: float(next(clock)))  # a second for each block
    compared: list[int] = []
    monkeypatch.setattr("pdojo.torch.statics._checksum", lambda bits: compared.append(1) or _checksum(bits))
    tensor = torch.zeros(1 << 16)
    statics = Statics([tensor])
    count = len(compared)
    assert count == 16
    for _ in range(50 * count):
        assert statics.late_change(10.0) is None  # a tenth of a second for blocks
    assert 5 * count < len(compared) <= 6 * count + 1
    tensor.data[20000] = 1
    late = [statics.late_change(10.0) for _ in range(10 * count)]
    assert any(each is not None and "calls before this one" in each for each in late)


def test_samples_of_large_models_take_turns() -> None:
    """Sixteen matrices are compared by rows in every call, and the others soon."""
    tensors = [torch.zeros(1024, 1024) for _ in range(20)]
    statics = Statics(tensors)
    tensors[19].data[700] += 1
    late = [statics.late_change(1.0) for _ in range(20)]
    assert any(each is not None and "shape [1024, 1024]" in each for each in late)
    statics = Statics(tensors)
    tensors[3].data[700] += 1
    assert not statics.unchanged(tensors)


def test_a_late_change_is_said_and_right_from_then_on() -> None:
    model = nn.Linear(256, 512).eval()
    ours = torch.compile(model, backend="pdojo", options={"tune": "none"})
    x = torch.randn(2, 256)
    with torch.no_grad():
        ours(x)
        met = set(_sample(torch.arange(model.weight.numel(), dtype=torch.int32).view(512, 256)).tolist())
        hidden = next(number for number in range(70000, 80000) if number not in met)
        model.weight.data.view(-1)[hidden] = 3

        def call_until_right() -> None:
            for _ in range(10000):
                if torch.allclose(ours(x), model(x), atol=1e-5):
                    break

        with pytest.warns(LateChangeWarning, match=r"shape \[512, 256\] was changed through `\.data`"):
            call_until_right()
        torch.testing.assert_close(ours(x), model(x))


def test_numbers_of_sixteen_bytes_are_no_constants() -> None:
    assert can_be_constant(torch.zeros(2, dtype=torch.complex64))
    assert not can_be_constant(torch.zeros(2, dtype=torch.complex128))


def test_blocks_are_views() -> None:
    parts = _parts(torch.zeros(300, 70, dtype=torch.int32))
    assert sum(part.numel() for part in parts) == 21000
    assert parts[1].storage_offset() == 4096
