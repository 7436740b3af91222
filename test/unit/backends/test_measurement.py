"""Measuring: outcomes, failures of candidates, comparisons, fingerprints."""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import (
    CompileError,
    Crash,
    KernelReference,
    MeasuredProgram,
    NamedReference,
    Ok,
    Options,
    Outcome,
    OutOfMemory,
    Peer,
    PhaseEvent,
    PhaseLimits,
    Request,
    Timeout,
    Worker,
    WrongResult,
    fingerprint,
)
from pdojo.backends.measure.arrays import ArraySet, data_bytes, random_inputs
from pdojo.backends.measure.check import Error, Rounding, accumulated_terms, compare, tolerance_factor
from pdojo.backends.measure.load import LoadMeter
from pdojo.backends.measure.outcome import Check, outcome_from_json
from pdojo.backends.measure.request import Comparison
from pdojo.backends.measure.timing import Timed, take_samples
from pdojo.backends.measure.worker import most_memory
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError, UsageError

QUICK = Options(samples=3, budget=0.01)


def _runs(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def doubling(name: str = "double", size: int = 64) -> MeasuredProgram:
    return MeasuredProgram(
        f"kernel {name}(x) -> (y)\nx f32 [{size}] heap\ny f32 [{size}] heap\n\n{size} y[{{0}}] = x[{{0}}] + x[{{0}}]\n"
    )


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with CpuWorker(
        limits=PhaseLimits(compile=2, run=2),
        compiler="broken_compilers:compile_broken",
        peers="broken_compilers:peer",
        references="broken_compilers:double",
    ) as worker:
        yield worker


def measured(worker: Worker, name: str) -> Outcome:
    return worker.measure(Request(doubling(name), QUICK))


def test_ok(worker: Worker) -> None:
    outcome = measured(worker, "double")
    assert isinstance(outcome, Ok)
    assert len(outcome.samples) >= 3
    assert 0 < outcome.minimum <= outcome.median
    assert outcome.spread >= 0
    # The kernel takes well under a microsecond: a sample has many calls.
    assert outcome.repeat * outcome.median > 1e-4
    assert outcome.check == Check("interpreter", 0.0)
    assert {"processor", "system", "llvm", "numpy"} <= outcome.environment.keys()


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("segfaults", Crash, "crashed (SIGSEGV) in phase run"),
        ("leaves", Crash, "crashed (exit status 7) in phase run"),
        ("hangs", Timeout, "took more than 2 s to run"),
        ("compiles_forever", Timeout, "took more than 2 s to compile"),
        ("refused", CompileError, "does not compile: this kernel is refused"),
        ("fails", CompileError, "does not compile: AssertionError: a bug of the compiler"),
        ("allocates", OutOfMemory, "out of memory in phase run"),
        ("hoards", OutOfMemory, "out of memory in phase run"),
        ("spoils", WrongResult, "wrong result: y[7] is"),
        ("leaves_out", WrongResult, "wrong result: y[3] is nan"),
        ("writes_behind", WrongResult, "wrong result: memory after array 'y' was written"),
        ("writes_input", WrongResult, "wrong result: input array 'x' was written"),
        (
            "reads_before",
            Crash,
            "accessed memory outside of its arrays, or wrote an input (SIGSEGV between guard pages)",
        ),
        (
            "reads_behind",
            Crash,
            "accessed memory outside of its arrays, or wrote an input (SIGSEGV between guard pages)",
        ),
        ("tires", WrongResult, "wrong result: y[0] is"),
        ("strays_once", WrongResult, "wrong result: memory after array 'y' was written by one of the timed calls"),
        ("answers", Crash, "crashed (it wrote into the worker's answers) in phase run"),
        ("babbles", Crash, "crashed (it wrote into the worker's answers) in phase run"),
    ],
)
def test_failures_are_data_and_the_worker_goes_on(worker: Worker, fault: str, kind: type[Outcome], text: str) -> None:
    outcome = measured(worker, fault)
    assert isinstance(outcome, kind)
    assert outcome.summary.startswith(text)
    assert isinstance(measured(worker, "double"), Ok)


def test_a_limit_is_one_of_a_sample_not_of_all(worker: Worker) -> None:
    """Two calls of 0.7 s are within 2 s, as many times as it takes."""
    outcome = worker.measure(Request(doubling("dawdles"), replace(QUICK, check=False)))
    assert isinstance(outcome, Ok)
    assert len(outcome.samples) >= 3


def test_a_reference_that_cannot_be_had_is_no_failure_of_the_program() -> None:
    with CpuWorker(limits=PhaseLimits(reference=0.1), references="broken_compilers:take_an_hour") as hasty:
        with pytest.raises(MeasurementError, match=r"the reference result takes more than 0\.1 s"):
            hasty.measure(Request(doubling(), QUICK, NamedReference("double")))
        assert isinstance(hasty.measure(Request(doubling(), replace(QUICK, check=False))), Ok)
    with CpuWorker(references="broken_compilers:refuse_to_live") as worker:
        for _ in range(2):
            with pytest.raises(MeasurementError, match="ended while it computed the reference result"):
                worker.measure(Request(doubling(), QUICK, NamedReference("double")))


def test_a_bug_of_the_compiler_keeps_its_traceback(worker: Worker) -> None:
    outcome = measured(worker, "fails")
    assert isinstance(outcome, CompileError)
    assert "raise AssertionError" in outcome.detail


def test_a_killed_worker_is_started_again(worker: Worker) -> None:
    measured(worker, "double")
    assert worker.pid is not None
    before = worker.pid
    os.kill(before, 9)
    assert isinstance(measured(worker, "double"), Ok)
    assert worker.pid != before


def test_memory_limit_of_the_system() -> None:
    size = 1 << 20
    with CpuWorker(memory_bytes=700 << 20) as small:
        assert isinstance(small.measure(Request(doubling(size=16), QUICK)), Ok)
        outcome = small.measure(Request(doubling(size=256 * size), QUICK))
    assert isinstance(outcome, OutOfMemory)
    assert outcome.limit == 700 << 20


def test_a_worker_takes_no_more_than_its_parent_may() -> None:
    """`ulimit -v` sets a limit that no process may raise."""
    limit = 4 << 30
    command = [sys.executable, "-m", "pdojo_tools.run", "relu:4x8", "--no-time"]
    run = subprocess.run(
        ["sh", "-c", f'ulimit -v {limit >> 10} && exec "$@"', "sh", *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        assert [CpuWorker(memory_bytes=each).memory_bytes for each in ("most", None, 1 << 30)] == [
            min(limit, most_memory()), limit, 1 << 30,
        ]  # fmt: skip
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_compare_measures_the_others_together(worker: Worker) -> None:
    events: list[PhaseEvent] = []
    contenders = [doubling("double"), doubling("segfaults"), doubling("spoils"), doubling("hangs"), doubling("another")]
    outcomes = worker.compare(contenders, QUICK, listener=events.append)
    assert [type(o) for o in outcomes] == [Ok, Crash, WrongResult, Timeout, Ok]
    last = [e for e in events if e.phase == "time"]
    assert {e.index for e in last} == {0, 4}


def test_peers_and_named_references(worker: Worker) -> None:
    contenders = [doubling(), Peer("right", "double"), Peer("wrong", "double")]
    right, peer, wrong = worker.compare(contenders, QUICK, NamedReference("double"))
    assert isinstance(right, Ok)
    assert isinstance(peer, Ok)
    assert peer.check is not None
    assert peer.check.reference == "double"
    assert isinstance(wrong, WrongResult)


def test_the_reference_may_be_another_kernel(worker: Worker) -> None:
    tripled = doubling("triple").text.replace("x[{0}] + x[{0}]", "3 * x[{0}]")
    outcome = worker.measure(Request(doubling(), QUICK, KernelReference(tripled)))
    assert isinstance(outcome, WrongResult)
    renamed = doubling().text.replace("x", "a").replace("y", "b")
    assert isinstance(worker.measure(Request(doubling(), QUICK, KernelReference(renamed))), Ok)


def test_requests_that_make_no_sense(worker: Worker) -> None:
    with pytest.raises(MeasurementError, match="a comparison needs at least one program"):
        worker.compare([Peer("right", "double")], QUICK)
    with pytest.raises(MeasurementError, match="the same interface"):
        worker.compare([doubling(), doubling(size=32)], QUICK)
    with pytest.raises(MeasurementError, match="different interface arrays"):
        worker.measure(Request(doubling(), QUICK, KernelReference(doubling(size=32).text)))
    with pytest.raises(MeasurementError, match="error: expected"):
        worker.measure(Request(MeasuredProgram("kernel"), QUICK))
    with pytest.raises(UsageError, match="'threads' of at least 1"):
        Options(threads=0)


def test_a_worker_that_cannot_start() -> None:
    with (
        CpuWorker(compiler="no_such_module:compile") as worker,
        pytest.raises(MeasurementError, match="no_such_module"),
    ):
        worker.measure(Request(doubling(), QUICK))


def test_cold_measurements_rotate_over_sets(worker: Worker) -> None:
    tiny = replace(host(), cache_bytes=(1024, 4096))
    outcome = worker.measure(Request(replace(doubling(), machine=tiny), replace(QUICK, cold=True)))
    assert isinstance(outcome, Ok)
    assert outcome.sets * 2 * 64 * 4 > 2 * 4096


def test_arrays_that_are_read_and_written_start_afresh(worker: Worker) -> None:
    text = "kernel grow(x) -> (x)\nx f32 [8] heap\n\n8 x[{0}] = x[{0}] + 1\n"
    assert isinstance(worker.measure(Request(MeasuredProgram(text), QUICK)), Ok)


def test_the_worker_dies_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    text = doubling("hangs").text
    script.write_text(
        "import threading, time\n"
        "from pdojo.backends.llvm.worker import CpuWorker\n"
        "from pdojo.backends.measure import MeasuredProgram, Request\n"
        "worker = CpuWorker(compiler='broken_compilers:compile_broken')\n"
        f"request = Request(MeasuredProgram({text!r}))\n"
        "threading.Thread(target=worker.measure, args=[request], daemon=True).start()\n"
        "while worker.pid is None: time.sleep(0.01)\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(3600)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=env) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(1)
        parent.kill()
    deadline = time.monotonic() + 30
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the environments of processes")
@pytest.mark.parametrize("fault", ["flees", "flees_and_crashes"])
def test_what_a_program_leaves_behind_ends_with_the_worker(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a session of its own and without a parent; also where the worker ends by itself."""
    fled = tmp_path / "fled"
    monkeypatch.setenv("FLED", str(fled))
    with CpuWorker(compiler="broken_compilers:compile_broken") as worker:
        once = replace(QUICK, samples=1, budget=0)
        outcome = worker.measure(Request(doubling(fault), once))
        assert isinstance(outcome, Ok if fault == "flees" else Crash)
        child = int(fled.read_text())
        assert _runs(child) is (fault == "flees")
    assert not _runs(child)


def test_results_are_checked_after_the_timed_calls_of_all(worker: Worker) -> None:
    outcomes = worker.compare([doubling("double"), doubling("tires")], QUICK)
    assert isinstance(outcomes[0], Ok)
    assert isinstance(outcomes[1], WrongResult)
    assert outcomes[1].message.endswith("(after the timed calls; right before)")


# Data


@pytest.mark.parametrize(
    "outcome",
    [
        Ok((1e-3, 2e-3), 4, 1, 0.25, 0.5, Check("interpreter", 0.1, 1e-7, 1e-8), {"llvm": "22"}),
        Ok((1e-3,), 4, 1, None, 0.5, None),
        CompileError("no", "trace"),
        Timeout("run", 2.0),
        Crash("run", "SIGSEGV", "text"),
        WrongResult("y[0]"),
        OutOfMemory("run", None),
    ],
)
def test_outcomes_travel_as_json(outcome: Outcome) -> None:
    assert outcome_from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_other_objects_are_no_outcomes() -> None:
    with pytest.raises(ValueError, match="no kind of outcome"):
        outcome_from_json({"kind": "int"})
    with pytest.raises(ValueError, match="not an outcome"):
        outcome_from_json({"kind": "Timeout", "code": "x"})


def test_comparisons_travel_between_processes() -> None:
    toy = MeasuredProgram(doubling().text, machine("toy"))
    options = replace(QUICK, ranges=(("x", 0.0, 1.0),), largest_error=0.1)
    for reference in (None, KernelReference("text"), NamedReference("name", "more")):
        comparison = Comparison((toy, Peer("torch", "add", "eager")), options, reference)
        assert pickle.loads(pickle.dumps(comparison)) == comparison


def test_fingerprints_ignore_ids() -> None:
    kernel = parse_notation(doubling().text)[0]
    other = kernel.clone()
    for op in other.walk():
        if "id" in op.properties:
            del op.properties["id"]
    toy = machine("toy")
    first = fingerprint(kernel, toy, QUICK)
    assert first == fingerprint(other, toy, QUICK) == Request(MeasuredProgram.of(kernel, toy), QUICK).fingerprint
    assert first != fingerprint(parse_notation(doubling(size=32).text)[0], toy, QUICK)
    assert first != fingerprint(kernel, machine("x86-64-avx2"), QUICK)
    assert first != fingerprint(kernel, toy, replace(QUICK, threads=2))


# Arrays and checks


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1"])
def test_inputs_of_every_type_repeat(dtype: str) -> None:
    parameters = (Parameter("x", dtype, (4, 8), Intent.IN, 8), Parameter("y", dtype, (4, 8), Intent.OUT, 8))
    first, again, other = (random_inputs(parameters, seed) for seed in (1, 1, 2))
    assert list(first) == ["x"]
    np.testing.assert_array_equal(first["x"], again["x"])
    assert (first["x"] != other["x"]).any()
    arrays = ArraySet(parameters, first)
    np.testing.assert_array_equal(arrays.arrays[0], first["x"])
    assert arrays.damage() is None
    assert data_bytes(parameters) == first["x"].nbytes * 2


@pytest.mark.parametrize("dtype", ["f64", "i64", "i8", "i1"])
def test_a_result_without_axes_is_poisoned(dtype: str) -> None:
    (result,) = ArraySet((Parameter("y", dtype, (), Intent.OUT, 8),), {}).arrays
    assert np.isnan(result) if dtype == "f64" else result != 0


def _compare(dtype: str, got: object, want: object, terms: int = 0, largest: float | None = None) -> str | None:
    results: list[Any] = [np.asarray(a) for a in (got, want)]
    parameter = Parameter("y", dtype, results[0].shape, Intent.OUT, 4)
    return compare(parameter, results[0], results[1], Rounding(terms), largest)[1]


def test_errors_are_absolute_and_relative_to_magnitudes() -> None:
    parameter = Parameter("y", "f64", (4,), Intent.OUT, 8)
    reference = np.array([1.0, 2.0, 4.0, 5.0])
    # The mean magnitude is 3.
    error, wrong = compare(parameter, reference + np.array([0.0, 0.5, -0.7, 0.0]), reference, Rounding())
    assert wrong is not None
    assert error.absolute == pytest.approx(0.7)
    assert error.relative == pytest.approx(0.1)
    assert error.fraction == pytest.approx(0.1 / tolerance_factor("f64", 0))
    assert compare(parameter, reference, reference, Rounding()) == (Error(), None)
    unlike, _ = compare(parameter, np.array([np.nan, 2.0, 4.0, 5.0]), reference, Rounding())
    assert unlike.absolute == unlike.relative == np.inf


def test_ranges_of_inputs() -> None:
    parameters = (Parameter("x", "f32", (64,), Intent.IN, 4), Parameter("t", "i64", (64,), Intent.IN, 8))
    inputs = random_inputs(parameters, 0, [("t", 0, 3), ("x", 2.0, 3.0)])
    assert inputs["x"].dtype == np.float32
    assert inputs["x"].min() >= 2
    assert inputs["x"].max() <= 3
    assert set(inputs["t"].tolist()) == {0, 1, 2}
    with pytest.raises(UsageError, match="'z', which is no input"):
        random_inputs(parameters, 0, [("z", 0, 1)])


def test_tolerance() -> None:
    one = np.ones(4, np.float32)
    eps = np.float32(2.0**-23)
    assert _compare("f32", one * (1 + 30 * eps), one) is None
    assert _compare("f32", one * (1 + 40 * eps), one) is not None
    assert _compare("f32", one * (1 + 400 * eps), one, terms=200) is None
    assert _compare("f32", one * (1 + 400 * eps), one, terms=200, largest=1e-6) is not None
    special = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    assert _compare("f32", special, special) is None
    assert _compare("f32", special, np.array([np.nan, np.inf, np.inf, 0], np.float32)) is not None
    assert _compare("f32", special, np.array([0, np.inf, -np.inf, 0], np.float32)) is not None
    message = _compare("i32", np.array([[1, 2], [3, 4]], np.int32), np.array([[1, 2], [3, 5]], np.int32))
    assert message == "y[1, 1] is 4, the reference has 5 (1 of 4 elements are wrong)"


def test_accumulated_terms_follow_the_sums() -> None:
    text = (
        "kernel k(x) -> (y)\nx f32 [8, 32] heap\ny f32 [8] heap\nm f32 [8] heap\n\n"
        "8\n| m[{0}] = -inf\n| 32 m[{0}] max= x[{0},{1}]\n8\n| y[{0}] = m[{0}]\n| 32 y[{0}] += x[{0},{1}]\n"
    )
    nest = nest_of(parse_notation(text)[0])
    assert accumulated_terms(nest) == 32
    assert [p.name for p in parameters_of(nest)] == ["x", "y"]


def test_results_are_as_precise_as_what_they_are_computed_from() -> None:
    text = (
        "kernel k(x, w) -> (y, z)\nx f32 [8] heap\nw f16 [8] heap\ny f64 [8] heap\nz f64 [8] heap\nt f32 [8] heap\n"
        "m i1 [8] heap\n\n"
        "8\n| z[{0}] = cast(w[{0}])\n| t[{0}] = tanh(x[{0}])\n| m[{0}] = arith.cmpf.olt(t[{0}], x[{0}])\n"
        "8 y[{0}] = select(m[{0}], z[{0}], 0)\n"
    )
    rounding = Rounding.of(nest_of(parse_notation(text)[0]))
    # A cast from an input rounds nothing; that `y` depends on numbers of f32 is seen through the boolean.
    assert rounding.types == {"t": "f32", "m": "f32", "y": "f32", "z": "f64"}
    y, z = (Parameter(name, "f64", (8,), Intent.OUT, 8) for name in "yz")
    one = np.ones(8)
    assert compare(y, one + 2.0**-23, one, rounding)[1] is None
    assert compare(z, one + 2.0**-23, one, rounding)[1] is not None
    narrower = nest_of(parse_notation(text.replace("x f32", "x f16").replace("t f32", "t f16"))[0])
    assert (rounding | Rounding.of(narrower)).types["y"] == "f16"


def test_factors_in_tf32_widen_the_tolerance() -> None:
    """Of sums of products of f32 and of what is computed from them, if the kernel permits it."""
    text = """kernel k(a, b) -> (c, d, e, n)
numerics reassociate contract tf32
a f32 [4, 8] heap
b f32 [8] heap
c f32 [4] heap
d f32 [4] heap
e f32 [4] heap
n f32 [4] heap
4
| c[{0}] = 0
| 8 c[{0}] += a[{0},{1}] * b[{1}]
4 d[{0}] = exp(c[{0}])
4 e[{0}] = d[{0}] + 1
4
| n[{0}] = 0
| 8 n[{0}] += a[{0},{1}]
"""
    rounding = Rounding.of(nest_of(parse_notation(text)[0]))
    assert rounding.short == {"c", "d", "e"}
    plain = Rounding.of(nest_of(parse_notation(text.replace(" tf32", ""))[0]))
    assert plain.short == frozenset()
    assert (plain | rounding).short == {"c", "d", "e"}
    random = np.random.default_rng()
    a, b = random.standard_normal((256, 512)), random.standard_normal(512)
    parameter = Parameter("c", "f32", (256,), Intent.OUT, 4)
    exact = (a @ b).astype(np.float32)
    short = (np.float32(a).view(np.uint32) & 0xFFFFE000).view(np.float32).astype(float) @ b
    assert compare(parameter, short.astype(np.float32), exact, Rounding(short=frozenset("c")))[1] is None
    assert compare(parameter, short.astype(np.float32), exact, Rounding())[1] is not None
    assert compare(parameter, short.astype(np.float32) + 8, exact, Rounding(short=frozenset("c")))[1] is not None


# Timing


def test_load_is_not_guessed_from_short_times() -> None:
    assert LoadMeter.start().foreign() is None


def test_own_work_is_not_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.perf_counter()
    # Others keep half a processor busy.
    busy = lambda: time.process_time() + (time.perf_counter() - start) / 2  # noqa: E731
    monkeypatch.setattr("pdojo.backends.measure.load._busy_seconds", busy)
    meter = LoadMeter.start()
    while time.perf_counter() < meter.wall + 0.1:
        pass
    assert meter.foreign() == pytest.approx(0.5, abs=0.05)


def test_all_samples_of_even_turns_are_pairs() -> None:
    order: list[int] = []
    slow, fast = (Timed([lambda s=s: time.sleep(s)], lambda: None) for s in (0.01, 0.001))
    options = Options(samples=6, budget=0.06, even=True)
    load = take_samples([slow, fast], options, order.append)
    assert len(slow.samples) == len(fast.samples) == 5
    assert slow.turns == fast.turns == [0, 1, 2, 3, 4]
    assert order[-10:] == [0, 1, 1, 0, 0, 1, 1, 0, 0, 1]
    # Long enough for the load to be known.
    assert load is not None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a processor that the worker is not bound to")
def test_load_is_that_of_all_processors_of_the_process() -> None:
    """Also where the thread that measures is bound to another one than is busy."""
    burn = f"import os\nos.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\nwhile True: pass"
    options = Options(samples=3, budget=0.3, check=False)
    with CpuWorker(compiler="broken_compilers:compile_broken") as worker:
        assert isinstance(worker.measure(Request(doubling(), options)), Ok)
        with subprocess.Popen([sys.executable, "-c", burn]) as burner:
            try:
                outcome = worker.measure(Request(doubling("binds"), options))
            finally:
                burner.kill()
    assert isinstance(outcome, Ok)
    assert outcome.foreign_load is not None
    assert outcome.foreign_load > 0.3


def test_samples_are_taken_in_turns() -> None:
    order: list[int] = []
    slow, fast = (Timed([lambda s=s: time.sleep(s)], lambda: None) for s in (0.01, 0.001))
    take_samples([slow, fast], Options(samples=6, budget=0.06), order.append)
    # Calibration first, each sample of which is announced too: a limit is one of a sample.
    assert order[:3] == [0, 0, 1]
    # Then three samples of the slow candidate among those of the fast one.
    assert len(slow.samples) == order.count(0) - 2 == 3
    assert set(slow.turns) < set(fast.turns)
    assert len(fast.samples) >= 6
    assert min(slow.samples) >= 0.01


def test_the_code_of_the_reference_is_not_run_again() -> None:
    """The call that computed the reference is the sample of a plain kernel that is too long for the turns."""
    plain = doubling()
    options = Options(steady=True, total=1e-6, brief=True)
    with CpuWorker() as worker:
        (found,) = worker.compare([plain], options, KernelReference(plain.text, compiled=True))
    assert isinstance(found, Ok)
    assert (len(found.samples), found.turns, found.steady) == (1, (), None)
    assert found.check == Check("plain code", 0.0)
