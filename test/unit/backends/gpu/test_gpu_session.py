"""Measuring on a GPU, here a stand-in: the worker's session, outcomes, timing by graphs, and what spoils the device."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.driver import driver_of
from pdojo.backends.gpu.replay import MOST_NODES
from pdojo.backends.gpu.session import DeviceSet, GpuSession
from pdojo.backends.gpu.vendors import CUDA_VENDOR
from pdojo.backends.measure import (
    Assembled,
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
)
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.backends.measure.pool import Workers, results
from pdojo.backends.measure.request import Comparison, Contender, Reference
from pdojo.backends.measure.session import Cache
from pdojo.backends.measure.tools import NamedFunction, Tools
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError
from standin import gpu as standin_gpu
from standin.gpu import Standin

pytestmark = standin_gpu.NEEDS

QUICK = Options(samples=4, budget=0.01, sample_seconds=2e-5)
SM90, GFX942 = machine("nvidia-sm90"), machine("amd-gfx942")


def add_one(name: str = "right", more: str = "") -> MeasuredProgram:
    head = f"kernel {name}(x) -> (y)\nx f32 [6, 64] heap\ny f32 [6, 64] heap\n"
    return MeasuredProgram(f"{head}\n6:g 64:b y[{{0}},{{1}}] = x[{{0}},{{1}}] + 1\n{more}", SM90)


def too_wide() -> MeasuredProgram:
    return replace(add_one(), text=add_one().text.replace("64", "2048"))


SLOW = "".join("6:g 64:b y[{0},{1}] = x[{0},{1}] + 1\n" for _ in range(30))
ADDS_UP = "kernel adds_up(x, z) -> (z)\nx f32 [8] heap\nz f32 [8] heap\n\n8:g z[{0}] += x[{0}]\n"


def reference_of(name: str) -> NamedFunction:
    assert name == "add_one"

    def add(x: NDArray[np.float32]) -> Sequence[NDArray[np.float64]]:
        return (x.astype(np.float64) + 1,)

    return add


class Measured:
    """A comparison in this process, and the phases that it reported."""

    def __init__(self) -> None:
        self.phases: list[tuple[int, str]] = []
        self.cache = Cache()

    def __call__(
        self, *contenders: Contender, options: Options = QUICK, reference: Reference | None = None, compiler: Any = None
    ) -> list[Outcome]:
        self.phases = []
        chosen = standin_gpu.CUDA if compiler is None else compiler
        comparison = Comparison(contenders, options, reference)
        session = GpuSession(comparison, Tools(chosen, None, reference_of, None), self.cache, self._note)
        return session.run()

    def _note(self, index: int, phase: str) -> None:
        self.phases.append((index, phase))


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    with standin_gpu.installed(tmp_path) as found:
        found.launches()
        yield found


@pytest.fixture
def measured(standin: Standin) -> Measured:
    return Measured()


def test_a_program_is_checked_and_timed(measured: Measured) -> None:
    (outcome,) = measured(add_one())
    assert isinstance(outcome, Ok)
    assert len(outcome.samples) == 4
    assert all(0 < sample < 0.1 for sample in outcome.samples)
    assert (outcome.sets, outcome.foreign_load, outcome.steady) == (1, None, None)
    assert outcome.check is not None
    assert (outcome.check.reference, outcome.check.error) == ("interpreter", 0.0)
    assert outcome.environment["device"] == "Stand-in"
    assert outcome.environment["driver"] == "13.0"
    assert "fibers" in outcome.environment["compiler"]
    order = [phase for _, phase in measured.phases]
    assert list(dict.fromkeys(order)) == ["compile", "reference", "run", "allocate", "time"]
    assert order[-1] == "run", "the program runs again after the timed calls"


def test_on_the_other_vendor(measured: Measured) -> None:
    (outcome,) = measured(replace(add_one(), machine=GFX942), compiler=standin_gpu.HIP)
    assert isinstance(outcome, Ok)
    assert (outcome.environment["architecture"], outcome.environment["driver"]) == ("gfx942", "6.2.42134")


def test_programs_are_timed_in_turns(measured: Measured) -> None:
    quick, slow = measured(add_one("quick"), add_one("slow", SLOW), options=replace(QUICK, budget=10))
    assert isinstance(quick, Ok)
    assert isinstance(slow, Ok)
    assert quick.median < slow.median
    timed = [index for index, phase in measured.phases if phase == "time"]
    assert timed[-8:] == [0, 1, 1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("skip", r"y\[1, 0\] is nan, the reference has .* \(64 of 384 elements are wrong\)"),
        ("tire", r"y\[0, 0\] is nan, .* \(after the timed calls; right before\)"),
        ("overrun", "memory after array 'y' was written"),
        ("spoil", "input array 'x' was written"),
    ],
)
def test_wrong_results_are_noticed(name: str, message: str, measured: Measured) -> None:
    wrong, right = measured(add_one(name), add_one())
    assert isinstance(wrong, WrongResult)
    assert re.match(message, wrong.message)
    assert isinstance(right, Ok)


def test_references(measured: Measured) -> None:
    plain = "kernel plain(a) -> (b)\na f32 [6, 64] heap\nb f32 [6, 64] heap\n\n6 64 b[{0},{1}] = a[{0},{1}] + 1\n"
    for reference, name in [
        (KernelReference(plain), "interpreter"),
        (KernelReference(plain, compiled=True), "plain code"),
        (NamedReference("add_one"), "add_one"),
    ]:
        (outcome,) = measured(add_one(), reference=reference)
        assert isinstance(outcome, Ok)
        assert outcome.check is not None
        assert outcome.check.reference == name
    (outcome,) = measured(add_one(), reference=KernelReference(plain.replace("+ 1", "+ 2"), compiled=True))
    assert isinstance(outcome, WrongResult)


def test_programs_that_do_not_compile(measured: Measured) -> None:
    wrong, right = measured(too_wide(), too_wide())
    assert isinstance(right, CompileError)
    assert isinstance(wrong, CompileError)
    assert "2048 threads, more than 1024" in wrong.message


def test_a_device_without_memory(standin: Standin, measured: Measured) -> None:
    standin.set("memory", 10_000)
    (outcome,) = measured(add_one())
    assert isinstance(outcome, OutOfMemory)
    assert outcome.phase == "run"
    assert "ERROR_OUT_OF_MEMORY" in outcome.message
    standin.set("memory", 1 << 30)
    assert isinstance(measured(add_one())[0], Ok)


def test_cold_calls_rotate_over_sets_that_exceed_the_cache(standin: Standin, measured: Measured) -> None:
    described = replace(SM90, cache_bytes=(1000, 7000))
    (outcome,) = measured(replace(add_one(), machine=described), options=replace(QUICK, cold=True, check=False))
    assert isinstance(outcome, Ok)
    # Twice 7000 bytes, and 3072 bytes for a set.
    assert outcome.sets == 6
    assert outcome.repeat % 6 == 0
    assert standin.count("memory") == 0


def test_many_calls_are_several_replays(standin: Standin, measured: Measured) -> None:
    (outcome,) = measured(add_one("slow", SLOW), options=replace(QUICK, sample_seconds=0.2, check=False))
    assert isinstance(outcome, Ok)
    assert outcome.repeat > MOST_NODES // 31
    del standin


def test_arrays_that_are_read_and_written_are_restored(standin: Standin, measured: Measured) -> None:
    program = MeasuredProgram(ADDS_UP, SM90)
    (outcome,) = measured(program, options=replace(QUICK, sample_seconds=0, samples=3))
    assert isinstance(outcome, Ok)
    assert outcome.repeat == 1
    (nest,) = (nest_of(kernel) for kernel in parse_notation(ADDS_UP, "<test>"))
    parameters = parameters_of(nest)
    arrays = ArraySet(parameters, random_inputs(parameters, 0))
    gpu = driver_of(CUDA_VENDOR).gpu()
    device = DeviceSet(gpu, gpu.stream(), arrays)
    before = [array.copy() for array in arrays.arrays]
    for array in arrays.arrays:
        array[...] = 7
    device.upload()
    device.restore()
    device.download()
    assert (arrays.arrays[0] == 7).all(), "only what is read and written is restored"
    assert np.array_equal(arrays.arrays[1], before[1])
    assert arrays.damage() == "input array 'x' was written"
    assert all(address % 256 == 0 for address in device.addresses)
    assert standin.count("memory") == 1


def test_races_and_steady_samples(measured: Measured) -> None:
    raced = measured(add_one("one"), add_one("other"), options=replace(QUICK, even=True, check=False))
    assert [len(outcome.samples) for outcome in raced if isinstance(outcome, Ok)] == [4, 4]
    (steady,) = measured(add_one(), options=replace(QUICK, steady=True))
    assert isinstance(steady, Ok)
    assert steady.steady is not None
    assert steady.steady.first > 0
    assert (steady.loop_call or 0) > 0


def test_nothing_stays_on_the_device(standin: Standin, measured: Measured) -> None:
    gc.collect()
    gc.disable()
    try:
        measured(add_one(), add_one("slow", SLOW), options=replace(QUICK, samples=1))
        kinds = ("memory", "streams", "graphs", "events", "modules")
        assert {kind: standin.count(kind) for kind in kinds} == dict.fromkeys(kinds, 0)
    finally:
        gc.enable()


def test_what_a_session_refuses(measured: Measured) -> None:
    with pytest.raises(MeasurementError, match="other libraries are not measured on a GPU"):
        measured(add_one(), Peer("numpy", "add:6x64"))
    with pytest.raises(MeasurementError, match="a worker for a GPU is started with a compiler for it"):
        measured(add_one(), compiler=compile)


# In a worker


def gpu_worker(**changed: Any) -> Worker:
    settings: dict[str, Any] = {"limits": PhaseLimits(run=3), "memory_bytes": None, **changed}
    return Worker(compiler="standin.gpu:CUDA", session="pdojo.backends.gpu.session:GpuSession", **settings)


@pytest.fixture
def worker(standin: Standin) -> Iterator[Worker]:
    del standin
    with gpu_worker() as worker:
        yield worker


def outcomes(worker: Worker, names: Sequence[str], options: Options = QUICK) -> list[Outcome]:
    return worker.compare([add_one(name) for name in names], options)


def test_a_worker_measures(worker: Worker) -> None:
    seen: list[PhaseEvent] = []
    (outcome,) = worker.compare([add_one()], QUICK, None, seen.append)
    assert isinstance(outcome, Ok)
    assert {event.phase for event in seen} == {"compile", "reference", "run", "allocate", "time"}


@pytest.mark.parametrize(("name", "phase"), [("stray", "run"), ("stray_late", "time")])
def test_an_illegal_address_is_the_fault_of_one_program(name: str, phase: str, worker: Worker) -> None:
    first, strays, second = outcomes(worker, ["first", name, "second"])
    assert isinstance(strays, Crash)
    assert (strays.phase, strays.reason) == (phase, "ERROR_ILLEGAL_ADDRESS")
    assert "this process cannot use the device any more" in strays.detail
    assert isinstance(first, Ok)
    assert isinstance(second, Ok)


def test_programs_that_hang_or_end_the_process(worker: Worker) -> None:
    hangs, right, dies = outcomes(worker, ["hang", "right", "die"])
    assert hangs == Timeout("run", 3)
    assert isinstance(right, Ok)
    assert isinstance(dies, Crash)
    assert dies.reason in ("SIGILL", "SIGTRAP")
    assert isinstance(worker.measure(Request(add_one(), QUICK)), Ok)


def test_without_a_device_nothing_is_measured(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    del standin
    monkeypatch.setenv("PDOJO_STANDIN", "devices=0")
    with gpu_worker() as worker, pytest.raises(MeasurementError, match="NVIDIA's GPUs cannot be used here: cuInit"):
        outcomes(worker, ["right"])


def test_programs_are_compiled_elsewhere(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    del standin
    programs = [add_one("one"), add_one("two"), too_wide()]
    with monkeypatch.context() as patch:
        # Compiling needs no device.
        patch.setenv("PDOJO_CUDA_DRIVER", "/nowhere.so")
        pool = Workers(2, gpu_worker)
        try:
            one, two, wrong = results([pool.submit(lambda w, p=p: w.assemble(p, "search")) for p in programs])
        finally:
            pool.close()
    assert isinstance(one, Assembled)
    assert isinstance(two, Assembled)
    assert isinstance(wrong, CompileError)
    with gpu_worker() as worker:
        found = worker.compare([one, two], QUICK)
    assert [type(outcome) for outcome in found] == [Ok, Ok]
