"""Kernels on the simulator from the package, and the evaluator of cycles."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from pdojo.backends.measure import KernelReference, MeasuredProgram, Options, Simulated, SimulatedOnSnitch, Simulation
from pdojo.backends.measure.outcome import Deadlock, Outcome, Timeout, Trap, WrongResult, outcome_from_json
from pdojo.backends.measure.pool import Job, Workers
from pdojo.backends.registry import backend_of
from pdojo.backends.snitch.executable import SimulatedKernel, load
from pdojo.backends.snitch.session import simulate
from pdojo.budget import Budget
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, MemoryDamage, UsageError
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.engine.search import search
from pdojo.search.evaluators.cycles import PATIENCE, SPARE, Cycles
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.strategies import strategy
from pdojo.snitch_sim.assembler import assemble
from pdojo.transforms.game import Game

SNITCH = machine("snitch")
SCALE = """kernel scale(x) -> (y)
x f64 [64] heap
y f64 [64] heap

64 y[{0}] = x[{0}] * 2
"""
STREAMED = SCALE.replace("64 y[{0}]", "1:s 64:f y[{1}]").replace("x[{0}]", "x[{1}]")
WRONG = SCALE.replace("* 2", "* 3")
SLOW = """kernel scale(x) -> (y)
x f64 [64] heap
y f64 [64] heap

64
| 90 y[{0}] = x[{0}] + {1}
64 y[{0}] = x[{0}] * 2
"""
DIVIDES = SCALE.replace("* 2", "/ x[63-{0}]")


def kernel(text: str) -> KernelOp:
    (found,) = parse_notation(text)
    return found


def longer(size: int) -> str:
    return SCALE.replace("[64]", f"[{size}]").replace("64 y", f"{size} y")


def candidate(text: str) -> Candidate:
    return Candidate.of(Game(kernel(text), SNITCH).fork())


@pytest.fixture(scope="module")
def cycles() -> Iterator[Cycles]:
    evaluator = Cycles(SNITCH, kernel(SCALE), workers=1)
    yield evaluator
    evaluator.close()


def with_code(body: str) -> SimulatedKernel:
    """The kernel that doubles, with other code."""
    return replace(load(kernel(SCALE), SNITCH), program=assemble(f"scale:\n{body}\nret\n", "scale"))


X = {"x": np.arange(64.0) + 1}


def test_run() -> None:
    run = load(kernel(SCALE), SNITCH).run(X)
    assert (run.outputs["y"] == 2 * X["x"]).all()
    assert run.result.fpu_operations == 64


def test_what_is_not_written_is_no_number() -> None:
    assert np.isnan(with_code("nop").run(X).outputs["y"]).all()


@pytest.mark.parametrize(
    ("store", "place"),
    [
        ("sw zero, 512(a1)", "0 bytes behind array 'y'"),
        ("sw zero, 4(a0)", "in array 'x', which it only reads"),
        ("sb zero, -1(a0)", "before the arrays"),
        ("sw zero, 4(sp)", "in the caller's stack"),
        ("sw zero, -4(sp)", "in free memory"),
        ("li t0, -1\nsw t0, 768(a1)", "in free memory"),
    ],
)
def test_memory_of_others(store: str, place: str) -> None:
    with pytest.raises(MemoryDamage, match=f"not its own, the first {place}"):
        with_code(store).run(X)


def test_arrays_that_do_not_fit() -> None:
    run = load(kernel(SCALE), SNITCH).run
    with pytest.raises(UsageError, match="array 'x' is missing"):
        run({})
    with pytest.raises(UsageError, match=r"array 'x' is float32 \(64,\), and the kernel takes float64 \(64,\)"):
        run({"x": X["x"].astype(np.float32)})


def test_too_large() -> None:
    with pytest.raises(LoweringError, match="but the memory of snitch has 131072"):
        load(kernel(longer(9000)), SNITCH)
    with pytest.raises(LoweringError, match=r"with guard zones take 131\d+ bytes, and the memory of snitch has 131072"):
        load(kernel(longer(8120)), SNITCH).run({"x": np.zeros(8120)})
    with pytest.raises(UsageError, match="'toy' has no streams"):
        load(kernel(SCALE), machine("toy"))


def outcome(text: str, **options: int | bool) -> object:
    program = MeasuredProgram(text, SNITCH)
    return simulate(Simulation(program, KernelReference(SCALE), **options), lambda _: None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("first", "second"), [("-0.0", "0.0"), ("0.0", "-0.0"), ("-0.0", "index(0)")])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_a_maximum_of_zeros(dtype: str, first: str, second: str) -> None:
    """Simulator and interpreter agree on which zero it is, which the dialect leaves open."""
    for function in ("maxnum", "minnum"):
        text = f"kernel k() -> (y)\ny {dtype} [9] heap\n\n9 y[{{0}}] = {function}({first}, {second})\n"
        found = simulate(Simulation(MeasuredProgram(text, SNITCH), KernelReference(text), exact=True), lambda _: None)
        assert isinstance(found, Simulated)
        assert found.same_bits


def test_a_result_of_f64_from_functions_of_f32() -> None:
    """`tanh` of f32 differs from the interpreter's in its last bit, which is not the last bit of f64."""
    text = (
        "kernel k(x) -> (y)\nx f32 [40] heap\ny f64 [40] heap\nt f32 [40] heap\n\n"
        "40 t[{0}] = tanh(x[{0}])\n40 y[{0}] = cast(t[{0}])\n"
    )
    program = MeasuredProgram(text, machine("snitch-xdiv"))
    found = [simulate(Simulation(program, KernelReference(text), seed), lambda _: None) for seed in range(5)]
    checks = [each.check for each in found if isinstance(each, Simulated)]
    assert len(checks) == 5
    assert any(check is not None and check.relative > 2.0**-52 * 16 for check in checks)


def test_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = outcome(STREAMED, exact=True)
    assert isinstance(right, SimulatedOnSnitch)
    assert right.same_bits
    assert right.check is not None
    assert 0.3 < right.utilisation < 1
    assert right.fraction_of_peak == right.utilisation / 2
    assert outcome_from_json(right.to_json()) == right
    assert "cycles (FPU" in right.summary
    slow = outcome(SCALE, limit=200)
    assert slow == Timeout("simulate", cycles=200)
    assert isinstance(slow, Timeout)
    assert slow.summary == "took more than 200 cycles to simulate"
    wrong = outcome(WRONG)
    assert isinstance(wrong, WrongResult)
    assert "y[0] is" in wrong.message
    codes = {
        "csrrsi zero, 1984, 1\nfadd.d fa0, ft0, ft0": Deadlock,
        "lw t0, 2(a0)": Trap,
        "sb a0, 0(a0)": WrongResult,
    }
    for body, kind in codes.items():
        code = with_code(body)

        def load_it(*_: object, code: SimulatedKernel = code) -> SimulatedKernel:
            return code

        monkeypatch.setattr("pdojo.backends.snitch.session.load", load_it)
        found = outcome(SCALE)
        assert isinstance(found, kind), found
        assert found.message
        assert outcome_from_json(found.to_json()) == found


def pids_of(evaluator: Cycles) -> list[int]:
    assert isinstance(evaluator.simulators, Workers)
    return evaluator.simulators.pids


def test_costs(cycles: Cycles) -> None:
    texts = [SCALE, STREAMED, WRONG, SLOW, DIVIDES]
    first, again = (list(cycles.evaluate([candidate(text) for text in texts])) for _ in range(2))
    assert [e.cost for e in first] == [e.cost for e in again]
    assert [e.failure for e in first] == ["", "", "WrongResult", "Timeout", "CompileError"]
    assert first[1].cost < 100 < first[0].cost
    assert cycles.limit == PATIENCE * first[0].cost + SPARE
    assert "xdiv_sqrt" in first[4].detail["message"]


def test_the_plain_kernel_is_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that sets the limit is the plain kernel's evaluation, too."""
    evaluator = Cycles(SNITCH, kernel(SCALE), workers=1)
    asked: list[str] = []
    original = evaluator.simulators.simulate

    def simulate(wanted: Simulation) -> Job[Outcome]:
        asked.append(wanted.program.text)
        return original(wanted)

    monkeypatch.setattr(evaluator.simulators, "simulate", simulate)
    plain, streamed = candidate(SCALE), candidate(STREAMED)
    first = [one.cost for one in evaluator.evaluate([streamed, plain])]
    assert [one.cost for one in evaluator.evaluate([plain, streamed])] == first[::-1]
    assert asked.count(plain.program.text) == 1
    evaluator.close()


def test_one_job_at_a_time_starts_one_process() -> None:
    evaluator = Cycles(SNITCH, kernel(SCALE), workers=2, limit=10_000)
    for text in (SCALE, STREAMED):
        (found,) = evaluator.evaluate([candidate(text)])
        assert found.is_ok
    assert len(pids_of(evaluator)) == 1
    evaluator.close()


def test_checks_are_on_inputs_of_their_own(cycles: Cycles) -> None:
    streamed, wrong = (candidate(text) for text in (STREAMED, WRONG))
    checked = cycles.check(streamed)
    assert checked.cost == next(iter(cycles.evaluate([streamed]))).cost
    assert checked.detail["same_bits"]
    assert cycles.check(wrong).failure == "WrongResult"


def test_other_inputs() -> None:
    programs = [candidate(WRONG).program, candidate(STREAMED).program]
    with backend_of(SNITCH).runs() as runs:
        found = runs.compare(programs, Options(seed=1), KernelReference(SCALE))
    assert [type(each) for each in found] == [WrongResult, SimulatedOnSnitch]


def test_settings(cycles: Cycles) -> None:
    assert cycles.settings == Cycles(SNITCH, kernel(SCALE), seed=3, workers=2).settings
    # What a program may take, and what it has to compute, is the plain kernel's matter.
    assert cycles.settings != Cycles(SNITCH, kernel(WRONG)).settings
    other = Cycles(machine("snitch-2024"), kernel(SCALE)).settings
    assert other != cycles.settings
    assert "description" not in cycles.settings["machine"]
    with pytest.raises(UsageError, match="machine 'toy' has no simulator"):
        Cycles(machine("toy"), kernel(SCALE))


def test_a_process_that_dies() -> None:
    """Is a failure of one program; the next one has a new process."""
    long = SCALE.replace("64 y", "15000\n| 64 y").replace("{0}", "{1}")
    evaluator = Cycles(SNITCH, kernel(long), workers=1, limit=20_000_000)
    assert next(iter(evaluator.evaluate([candidate(SCALE)]))).is_ok

    def kill() -> None:
        time.sleep(0.7)
        (pid,) = pids_of(evaluator)
        os.kill(pid, signal.SIGSEGV)

    try:
        thread = Thread(target=kill)
        thread.start()
        died, then = evaluator.evaluate([candidate(long), candidate(STREAMED)])
        thread.join()
        assert died.failure == "Crash"
        assert "SIGSEGV" in str(died.detail)
        assert then.is_ok
    finally:
        evaluator.close()


def test_closing_ends_what_runs() -> None:
    long = SCALE.replace("64 y", "15000\n| 64 y").replace("{0}", "{1}")
    evaluator = Cycles(SNITCH, kernel(long), workers=1, limit=20_000_000)
    evaluations = evaluator.evaluate([candidate(SCALE), candidate(long)])
    assert next(evaluations).is_ok
    time.sleep(0.5)
    start = time.monotonic()
    evaluator.close()
    assert time.monotonic() - start < 5


def test_search(cycles: Cycles) -> None:
    """A search by cycles finds the same each time, and something that is faster."""
    costs: list[list[float]] = []
    for _ in range(2):
        game = Game(kernel(SCALE), SNITCH).fork()
        result = search(game, cycles, strategy("sample", 25), neighbourhood("edges"), Budget(25), 1)
        costs.append([row.cost for row in result.history])
    assert costs[0] == costs[1]
    assert min(costs[0]) < costs[0][0]
