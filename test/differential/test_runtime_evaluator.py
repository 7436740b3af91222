"""Costs by running: compiled in other processes, timed, confirmed on fresh inputs; failures are data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pdojo.backends.measure import Assembled, CompileError, KernelReference, Ok, Options, Program, Worker, WrongResult
from pdojo.dialect.machine import host
from pdojo.dialect.notation import parse_notation
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import Anchor, Candidate, Evaluation
from pdojo.search.evaluators.runtime import Runtime

TEXT = """
kernel double(x) -> (y)
x f32 [64, 100] heap
y f32 [64, 100] heap

64 100 y[{0},{1}] = x[{0},{1}] + x[{0},{1}]
"""
OTHER = TEXT.replace("+ x", "* x")


def dojo(text: str = TEXT) -> Dojo:
    return Dojo(parse_notation(text)[0], host())


def broken() -> Candidate:
    return Candidate(Program(TEXT.replace("+ x", "? x"), host()), "broken")


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    evaluator = Runtime(host(), dojo().plain, compilers=2)
    yield evaluator
    evaluator.close()


def test_a_program_runs_in_another_process_than_compiled_it() -> None:
    with Worker() as compiler, Worker() as timer:
        assembled = compiler.assemble(Program(TEXT), "search")
        assert isinstance(assembled, Assembled)
        outcome = timer.compare([assembled], Options(samples=3, budget=0.01), KernelReference(TEXT))[0]
        assert isinstance(outcome, Ok)
        assert outcome.check is not None
        wrong = compiler.assemble(Program(OTHER), "search")
        assert isinstance(wrong, Assembled)
        assert isinstance(timer.compare([wrong], Options(samples=3), KernelReference(TEXT))[0], WrongResult)


def test_threads_of_a_loaded_program() -> None:
    parallel = TEXT.replace("64 100 y", "64:p 100 y")
    with Worker() as compiler, Worker() as timer:
        assembled = compiler.assemble(Program(parallel))
        assert isinstance(assembled, Assembled)
        outcome = timer.compare([assembled], Options(threads=2, samples=3, budget=0.01), KernelReference(TEXT))[0]
        assert isinstance(outcome, Ok)


def test_costs_of_a_batch_and_of_what_does_not_compile(runtime: Runtime) -> None:
    fast = dojo()
    fast.step("tile_scope@y:1{size=10}")
    found = list(runtime.evaluate([Candidate.of(dojo()), broken(), Candidate.of(fast)]))
    assert [e.is_ok for e in found] == [True, False, True]
    assert found[1].failure == CompileError.__name__
    assert all(0 < e.cost < 1 and e.detail["kind"] == "Ok" and e.seconds["compile"] > 0 for e in found if e.is_ok)


def test_each_cost_comes_before_the_next_program_is_timed(runtime: Runtime) -> None:
    """So a process that ends in any way loses the measurement in flight only. Leaders are timed again after that."""
    others = [dojo() for _ in range(3)]
    for size, other in zip((2, 5, 10), others, strict=True):
        other.step(f"tile_scope@y:1{{size={size}}}")
    said: list[str] = []
    found: dict[str, Evaluation] = {}
    batch = [Candidate.of(each) for each in others]
    for candidate, evaluation in zip(batch, runtime.evaluate(batch, said.append), strict=True):
        found[candidate.fingerprint] = evaluation
        assert said[-1] == f"timing {len(found)} of 3"
    found = {fingerprint: replace(evaluation, cost=1.0) for fingerprint, evaluation in found.items()}
    better = runtime.refine(found, 1.0, said.append)
    assert said[-1] == "timing 3 leaders again"
    assert list(better) == list(found)
    for fingerprint, evaluation in better.items():
        assert evaluation.is_ok
        assert len(evaluation.detail["samples"]) > len(found[fingerprint].detail["samples"])
        assert evaluation.seconds["run"] > found[fingerprint].seconds["run"]
    # What would not be the best by its own cost is timed again, however little another one seems to cost.
    first, *others = found
    flattered = {first: replace(found[first], cost=0.1), **{other: found[other] for other in others}}
    assert list(runtime.refine(flattered, 1.0)) == list(found)
    # Who leads alone needs no second look, and who is far from the best none at all.
    alone = batch[0].fingerprint
    assert not runtime.refine({alone: found[alone]}, 1.0)
    assert not runtime.refine(found, 1e-12)


def test_costs_are_told_by_the_measure_of_the_anchor(runtime: Runtime) -> None:
    """Also where one leads alone: the anchor is timed beside it."""
    first, other = dojo(), dojo()
    other.step("tile_scope@y:1{size=20}")
    anchor = Anchor(Candidate.of(first), 1.0)
    runtime.anchor = anchor
    try:
        (found,) = runtime.evaluate([Candidate.of(other)])
        (better,) = runtime.refine({other.fingerprint: replace(found, cost=1.0)}, 1.0).values()
        for each in (found, better):
            assert each.detail["anchor"]["program"] == first.fingerprint
            assert 0 < each.detail["anchor"]["now"] < 0.1
        assert found.cost == min(found.samples) / found.detail["anchor"]["now"]
        # In turns, other samples than the shortest decide.
        now = better.detail["anchor"]["now"]
        assert len(better.samples) > len(found.samples)
        assert better.cost <= max(better.samples) / now
        assert better.detail["anchor"]["now"] != found.detail["anchor"]["now"]
        # An anchor that does not compile is none.
        runtime.anchor = Anchor(broken(), 1.0)
        (raw,) = runtime.evaluate([Candidate.of(other)])
        assert raw.cost == min(raw.samples)
        assert not runtime.refine({other.fingerprint: raw}, 1.0)
    finally:
        runtime.anchor = None


def test_compiling_is_stopped_where_it_takes_much_longer_than_for_the_best(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other, third = dojo(), dojo(), dojo()
    other.step("tile_scope@y:1{size=25}")
    third.step("tile_scope@y:1{size=50}")
    monkeypatch.setattr("pdojo.search.evaluators.runtime.LEAST_COMPILING", 1e-3)
    try:
        # Nothing is known of the best yet.
        runtime.anchor = Anchor(Candidate.of(first), 1.0)
        (found,) = runtime.evaluate([Candidate.of(other)])
        assert found.is_ok
        monkeypatch.setattr("pdojo.search.evaluators.runtime.PATIENCE", 1e-3)
        (found,) = runtime.evaluate([Candidate.of(third)])
        assert (found.failure, found.detail["phase"]) == ("Timeout", "compile")
        # What was compiled before, or by another process, has the time that it takes, also as the measure.
        challenger, best = runtime.confirm(Candidate.of(third), Candidate.of(other))
        assert challenger.is_ok
        assert best.is_ok
        monkeypatch.setattr("pdojo.search.evaluators.runtime.PATIENCE", 30.0)
        monkeypatch.setattr("pdojo.search.evaluators.runtime.LEAST_COMPILING", 15.0)
        fourth = dojo()
        fourth.step("tile_scope@y:1{size=4}")
        runtime.anchor = Anchor(Candidate.of(third), 1.0)
        (found,) = runtime.evaluate([Candidate.of(fourth)])
        assert found.detail["anchor"]["program"] == third.fingerprint
    finally:
        runtime.anchor = None


def test_a_wrong_program_is_never_confirmed(runtime: Runtime) -> None:
    right, wrong = Candidate.of(dojo()), Candidate.of(dojo(OTHER))
    assert [e.is_ok for e in runtime.confirm(right, None)] == [True]
    first, second = runtime.confirm(wrong, right)
    assert (first.failure, second.is_ok) == (WrongResult.__name__, True)


def test_settings_are_data(runtime: Runtime) -> None:
    import json

    settings = runtime.settings
    assert json.loads(json.dumps(settings))["evaluator"] == "runtime"
    assert settings["environment"]
