"""Costs by running: compiled in other processes, timed, confirmed on fresh inputs; failures are data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import (
    Assembled,
    CompileError,
    KernelReference,
    MeasuredProgram,
    Ok,
    Options,
    WrongResult,
)
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.contract.racing import TimingRequest
from pdojo.search.evaluators.runtime import RuntimeEvaluator
from pdojo.transforms.game import Game

TEXT = """
kernel double(x) -> (y)
x f32 [64, 100] heap
y f32 [64, 100] heap

64 100 y[{0},{1}] = x[{0},{1}] + x[{0},{1}]
"""
OTHER = TEXT.replace("+ x", "* x")


def game(text: str = TEXT) -> Game:
    return Game(parse_notation(text)[0], host())


def broken() -> Candidate:
    return Candidate(MeasuredProgram(TEXT.replace("+ x", "? x"), host()), "broken")


@pytest.fixture(scope="module")
def runtime() -> Iterator[RuntimeEvaluator]:
    evaluator = RuntimeEvaluator(host(), game().plain, compilers=2)
    yield evaluator
    evaluator.close()


def test_a_program_runs_in_another_process_than_compiled_it() -> None:
    with CpuWorker() as compiler, CpuWorker() as timer:
        assembled = compiler.assemble(MeasuredProgram(TEXT), "search")
        assert isinstance(assembled, Assembled)
        outcome = timer.compare([assembled], Options(samples=3, budget=0.01), KernelReference(TEXT))[0]
        assert isinstance(outcome, Ok)
        assert outcome.check is not None
        wrong = compiler.assemble(MeasuredProgram(OTHER), "search")
        assert isinstance(wrong, Assembled)
        assert isinstance(timer.compare([wrong], Options(samples=3), KernelReference(TEXT))[0], WrongResult)


def test_threads_of_a_loaded_program() -> None:
    parallel = TEXT.replace("64 100 y", "64:p 100 y")
    with CpuWorker() as compiler, CpuWorker() as timer:
        assembled = compiler.assemble(MeasuredProgram(parallel))
        assert isinstance(assembled, Assembled)
        outcome = timer.compare([assembled], Options(threads=2, samples=3, budget=0.01), KernelReference(TEXT))[0]
        assert isinstance(outcome, Ok)


def tiled(size: int) -> Candidate:
    found = game()
    found.apply(f"tile_scope@y:1{{size={size}}}")
    return Candidate.of(found)


def test_all_are_timed_in_the_same_turns(runtime: RuntimeEvaluator) -> None:
    said: list[str] = []
    found = runtime.heat(TimingRequest([tiled(10), broken(), tiled(20)], Candidate.of(game()), 6), said.append)
    assert said == ["compiling 3", "timing 3 in turns, 6 rounds"]
    assert [each.evaluation.failure for each in found] == ["", CompileError.__name__, ""]
    for each in (found[0], found[2]):
        assert len(each.ratios) == 6
        assert each.ratio is not None
        assert 0.01 < each.ratio < 100
        assert 0 < each.evaluation.cost < 1
        assert each.evaluation.detail["kind"] == "Ok"
        assert each.evaluation.detail["check"] is None
        assert each.evaluation.seconds["compile"] > 0
    # The load is known of a heat, however short.
    assert found[0].evaluation.detail["foreign_load"] is not None
    (alone,) = runtime.heat(TimingRequest([tiled(10)], None, 3))
    assert alone.other is None
    assert len(alone.evaluation.detail["samples"]) == 3


def test_wrong_programs_show_on_inputs_that_they_are_checked_on(runtime: RuntimeEvaluator) -> None:
    """Right results are those of the plain kernel, compiled."""
    right, wrong = Candidate.of(game()), Candidate.of(game(OTHER))
    assert [each.evaluation.failure for each in runtime.heat(TimingRequest([right, wrong], None, 3))] == ["", ""]
    for inputs in (0, 1, 1):
        (found,) = runtime.heat(TimingRequest([right], tiled(5), 3, inputs))
        assert found.evaluation.detail["check"]["reference"] == "plain code"
        (found,) = runtime.heat(TimingRequest([wrong], right, 3, inputs))
        assert found.evaluation.failure == WrongResult.__name__
        assert found.other is not None
        assert found.other.is_ok
        assert not found.ratios
    (found,) = runtime.heat(TimingRequest([right], wrong, 3, 2))
    assert found.evaluation.is_ok
    assert found.other is not None
    assert found.other.failure == WrongResult.__name__


def test_compiling_is_stopped_where_it_takes_much_longer_than_for_the_best(
    runtime: RuntimeEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pdojo.search.evaluators.runtime.LEAST_COMPILING", 1e-3)
    monkeypatch.setattr("pdojo.search.evaluators.runtime.PATIENCE", 1e-3)
    monkeypatch.setattr("pdojo.search.evaluators.runtime.LEAST_LIMIT", 10.0)
    runtime.heat(TimingRequest([tiled(25)], Candidate.of(game()), 3, 0))
    (found,) = runtime.heat(TimingRequest([tiled(50)], Candidate.of(game()), 3))
    assert (found.evaluation.failure, found.evaluation.detail["phase"]) == ("Timeout", "compile")
    # What is checked, and what is the measure, was compiled before, or by another process: it has the time it takes.
    (found,) = runtime.heat(TimingRequest([tiled(50)], tiled(4), 3, 0))
    assert found.ratios


def test_results_of_compiled_plain_code_and_the_interpreter_agree() -> None:
    with CpuWorker() as timer:
        for seed in (1, 2, 1):
            for compiled, name in ((True, "plain code"), (False, "interpreter")):
                options = Options(samples=3, budget=0.01, seed=seed)
                (outcome,) = timer.compare([MeasuredProgram(TEXT)], options, KernelReference(TEXT, compiled=compiled))
                assert isinstance(outcome, Ok)
                assert outcome.check is not None
                assert (outcome.check.reference, outcome.check.error) == (name, 0.0)


def test_settings_are_data(runtime: RuntimeEvaluator) -> None:
    import json

    settings = runtime.settings
    assert json.loads(json.dumps(settings))["evaluator"] == "runtime"
    assert settings["environment"]
