"""Samples of PyTorch's operator database, through the backend, by the reference interpreter.

They are a spread of the operators that no operator of the table computes (`test/unit/operators`): PyTorch decomposes
most of them.
"""

from __future__ import annotations

import ctypes
import warnings
from functools import cache
from itertools import islice
from typing import Any

import pytest

from qa.operators.page import functions_of
from qa.operators.tables import CALLS

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs expecttest")

_GROUPS, _OPERATORS = 42, 6
"""Tests, and operators with one sample each in a test: 252 samples."""


@cache
def _uncovered() -> list[Any]:
    """The operators of the database that have another name than all calls of operators of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from qa.torch_samples import operators
    computed = {name.split(".")[1].removeprefix("_") for name in functions_of(CALLS)}
    return [op for op in operators("f32") if op.name.rpartition(".")[2].removeprefix("_") not in computed]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", range(_GROUPS))
def test_samples_are_as_pytorchs(group: int) -> None:
    known = _uncovered()
    from qa.torch_samples import Settings, run_sample, title

    every = len(known) // (_GROUPS * _OPERATORS)
    chosen = known[::every][group * _OPERATORS : (group + 1) * _OPERATORS]
    assert len(chosen) == _OPERATORS
    found: dict[str, str] = {}
    for number, op in enumerate(chosen):
        torch.manual_seed(0)
        given = list(islice(op.sample_inputs("cpu", torch.float32), (group + number) % 4 + 1))
        outcome = run_sample(op, given[-1], Settings())
        if outcome.status in ("wrong", "crash"):
            found[title(op)] = outcome.message
    assert not found


def test_a_wrong_result_is_found() -> None:
    from qa.torch_comparison import compare

    x = torch.tensor([1.0, 1000.0])
    assert not compare([x], [x], [x.double()])
    assert "1 of 2 elements" in compare([x + torch.tensor([0, 1e-2])], [x], [x.double()])
    assert "1 of 2 elements" in compare([x + torch.tensor([1e-5, 0])], [x], [x.double()], is_pointwise=True)
    assert not compare([x + torch.tensor([1e-5, 0])], [x], [x.double()])
    assert "strides" in compare([torch.zeros(2, 3).T], [torch.zeros(3, 2)], None)
    assert "int64" in compare([x], [x.long()], None)
    assert "nan" in compare([x * torch.nan], [x], None)
    z, exact = torch.complex(x, x), torch.complex(x, x).to(torch.complex128)
    assert not compare([z], [z], [exact], [[exact * (1 + 1e-7)]])
    assert "1 of 4 elements" in compare([z + torch.tensor([0.01j, 0])], [z], [exact], [[exact]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("error", [0, 1e-3])
def test_errors_of_pytorchs_own_decompositions_are_pytorchs(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from qa import torch_samples as samples

    # The graph for every backend multiplies f32 coordinates by 0.8 and rounds; PyTorch's own kernel does not round.
    (op,) = [op for op in samples.operators("f32") if samples.title(op) == "nn.functional.interpolate.bicubic"]
    sample = samples.samples_of(op, samples.Settings())[9]

    def run_at(self: samples.Interpreted, inputs: list[int], outputs: list[int]) -> None:
        exact(self, inputs, outputs)
        (ctypes.c_float * 150).from_address(outputs[0])[7] += error

    exact = samples.Interpreted.run_at
    monkeypatch.setattr(samples.Interpreted, "run_at", run_at)
    assert samples.run_sample(op, sample, samples.Settings()).status == ("wrong" if error else "whole")


@pytest.mark.filterwarnings("ignore")
def test_functions_of_integers_are_judged_by_f64() -> None:
    from torch.testing._internal.opinfo.core import SampleInput

    from qa import torch_samples as samples

    # PyTorch's own result for -8 is wrong by 1e-6.
    (op,) = [op for op in samples.operators("i64") if samples.title(op) == "special.i1"]
    sample = SampleInput(torch.tensor([-8, 3]))
    assert samples.run_sample(op, sample, samples.Settings("i64")).status == "whole"
