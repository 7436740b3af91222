"""Random ONNX models: interpreted, compiled plain and compiled after the pass, against the reference evaluator."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="needs onnx")

from pdojo.model import memory
from qa.onnx_chains import chain_of, main, problem


@pytest.mark.parametrize("seed", range(8))
def test_interpreted(seed: int) -> None:
    assert problem(seed, None) is None


@pytest.mark.parametrize("seed", range(8, 16))
def test_compiled(seed: int) -> None:
    assert problem(seed, "none") is None


@pytest.mark.parametrize("seed", range(16, 20))
def test_compiled_after_the_pass(seed: int) -> None:
    assert problem(seed, "pass") is None


def test_operators_are_various() -> None:
    drawn = {node.op_type for seed in range(30) for node in chain_of(seed).nodes}
    assert len(drawn) >= 17


def _never(_one: object, _other: object) -> bool:
    return False


def test_a_wrong_memory_plan_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(memory._Life, "meets", _never)  # pyright: ignore[reportPrivateUsage]
    assert main(["--models", "12", "--tune", "none"]) == 1
    assert "is wrong" in capsys.readouterr().out
