"""The functions of PyTorch of the benchmark: what the seed gives, and right numbers at small sizes."""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.held import text_of

torch = pytest.importorskip("torch", reason="the functions are PyTorch's")

from benchmarks import torch_sizes  # noqa: E402
from benchmarks.contests import CONSTANT, ratios_of  # noqa: E402
from benchmarks.records import OURS, Record  # noqa: E402
from benchmarks.torch_cases import EAGER, Case, error_of, measure  # noqa: E402
from benchmarks.torch_fusions import FILE, SEED, Fusion, draw, fusions  # noqa: E402
from pdojo.backends.measure import Ok  # noqa: E402

SMALL = [str(fusion) for fusion in fusions()[::12]]


def test_the_functions_are_those_of_the_seed() -> None:
    """Their lines are read as what was drawn, which the bounds let pass."""
    assert FILE.read_text(encoding="utf-8") == text_of("benchmarks.torch_fusions", SEED, draw(SEED))
    assert [Fusion.of(str(fusion)) for fusion in fusions()] == fusions()
    assert len(fusions()) == 60


@pytest.mark.parametrize("line", SMALL)
def test_small_functions_are_right(line: str) -> None:
    fusion = Fusion.of(line)
    small = fusion.with_sizes({name: min(size, 6) for name, size in fusion.sizes.items()})
    found = measure(Case(small, tuple(small.arguments())), (EAGER,), rounds=0)
    record = Record.from_json({"label": line, "threads": 1, "cold": False, **found})
    assert [(row.library, type(row.outcome)) for row in record.rows] == [(OURS, Ok), ("torch", Ok)], found


def test_a_wrong_result_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return x + 1

    def wrong(name: tuple[str, str], function: object, *_: object, **__: object) -> object:
        return function if name == EAGER else lambda x: x + 1.0001

    monkeypatch.setattr("benchmarks.torch_cases.compiled", wrong)
    found = measure(Case(function, (torch.ones(3),)), (EAGER,), rounds=1)
    record = Record.from_json({"label": "x", "threads": 1, "cold": False, **found})
    assert record.failures == ["wrong result: the largest error is 0.0001, that of eager PyTorch 0"]
    assert record.fastest_peer is not None


def test_a_function_at_many_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One program of ours for all sizes, one for each, and PyTorch's: all right, with ratios at each size."""
    sizes = [(2, 3), (5, 4), (7, 9), (16, 2), (17, 33)]
    function = torch_sizes.Sized(lambda x: torch.softmax(x, -1), lambda *s: (torch.randn(s),), sizes)
    monkeypatch.setattr(torch_sizes, "FUNCTIONS", {"softmax": lambda: function})
    monkeypatch.setattr(torch_sizes, "IMPLEMENTATIONS", torch_sizes.IMPLEMENTATIONS[:3])
    monkeypatch.setattr(torch_sizes, "ROUNDS", 1)
    monkeypatch.setattr("benchmarks.torch_cases.SECONDS", 0.0)
    found = torch_sizes.measure({"case": "softmax", "threads": 1})
    record = Record.from_json({"label": "softmax", "threads": 1, "cold": False, **found})
    assert [(row.library, type(row.outcome)) for row in record.rows] == [("torch", Ok), (OURS, Ok), (CONSTANT, Ok)]
    assert [*ratios_of([record])] == ["the fastest other library", CONSTANT, "PyTorch"]
    assert sum("16x2 " in note for note in found["notes"]) == 2


def test_a_result_with_other_infinities_is_wrong() -> None:
    x = torch.tensor([1.0, float("inf"), float("nan")], dtype=torch.float64)
    assert error_of([x], [x]) == 0
    assert error_of([x.nan_to_num()], [x]) == float("inf")
    assert error_of([torch.cat((x[:1], -x[1:]))], [x]) == float("inf")
