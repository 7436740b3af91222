"""The backends of GPUs: code as text, what this computer lacks, kernels called and timed, tools without a device."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pdojo_tools import run, tune
from pdojo_tools.playing.generated import code_lines, forms_for

from pdojo.backends.backend import Backend, Compiles
from pdojo.backends.gpu.backend import CUDA, HIP, SESSION, GpuBackend
from pdojo.backends.gpu.executable import GpuKernel
from pdojo.backends.gpu.nvrtc import disassembler
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.measure import (
    Assembled,
    Crash,
    KernelReference,
    MeasuredProgram,
    Ok,
    Options,
    PhaseLimits,
    Timeout,
    Worker,
    WrongResult,
)
from pdojo.backends.measure.pool import results
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError, MeasurementError, UsageError
from pdojo.search.evaluators.named import check_runs_here
from standin import gpu as standin_gpu
from standin.gpu import Standin

SM90, GFX942 = machine("nvidia-sm90"), machine("amd-gfx942")
MACHINES = {"CUDA": SM90, "HIP": GFX942}
HEAD = "kernel k(x) -> (y)\nx f32 [64, 256] heap\ny f32 [64, 256] heap\n"
ADD = f"{HEAD}\n64:g 256:b y[{{0}},{{1}}] = x[{{0}},{{1}}] + 1\n"
IN_TURNS = (
    f"{HEAD}t f32 [256] heap\n\n256:g t[{{0}}] = 0\n64 where ({{0}} < 60)\n| 256:g t[{{1}}] += x[{{0}},{{1}}]\n"
    f"| 256:g y[{{0}},{{1}}] = t[{{1}}]\n4 256:g y[{{0}}+60,{{1}}] = 0\n"
)
QUICK = Options(samples=5, budget=0.05)


def kernel_of(text: str) -> KernelOp:
    (kernel,) = parse_notation(text, "<test>")
    return kernel


def check_backend(backend: GpuBackend, name: str) -> None:
    """Whatever a backend does with a device."""
    described = MACHINES[name]
    backend.check_runs_here(described)
    x = np.random.default_rng(0).standard_normal((64, 256), np.float32)
    for text in (ADD, IN_TURNS):
        kernel = kernel_of(text)
        found = backend.call(kernel, described, {"x": x})["y"].astype(np.float32)
        np.testing.assert_allclose(found, np.asarray(interpret(nest_of(kernel), {"x": x})["y"]), rtol=1e-5)
        loaded = backend.compile(kernel, described, None, "full")
        assert isinstance(loaded, GpuKernel)
        assert np.array_equal(loaded(x), found)
    programs = [MeasuredProgram(text, described) for text in (ADD, ADD.replace("64:g", "64 1:g").replace("{1}", "{2}"))]
    reference = KernelReference(ADD.replace(":g", "").replace(":b", ""), compiled=True)
    with backend.runs() as runs:
        for options in (QUICK, Options(samples=5, budget=0.05, steady=True)):
            once, often = runs.compare(programs, options, reference)
            assert isinstance(once, Ok)
            assert isinstance(often, Ok)
            assert 0 < once.median < often.median, "64 launches take longer than one"
            assert once.environment == {**backend.environment()}
        (cold,) = runs.compare(programs[:1], Options(samples=3, budget=0.05, cold=True, check=False))
        assert isinstance(cold, Ok)
        assert cold.sets > 1


# With the stand-in


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    with standin_gpu.installed(tmp_path) as found:
        yield found


@standin_gpu.NEEDS
@pytest.mark.parametrize("name", ["CUDA", "HIP"])
def test_kernels_run_and_are_timed(name: str, standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few sets for measurements that are cold.
    monkeypatch.setitem(MACHINES, name, small_cache(name))
    check_backend(GpuBackend(f"standin.gpu:{name}"), name)
    assert standin.count("memory") == 0


def small_cache(name: str):

    return replace(MACHINES[name], cache_bytes=(1 << 10, 1 << 18))


@standin_gpu.NEEDS
def test_programs_are_compiled_in_parallel(standin: Standin) -> None:
    del standin
    backend = GpuBackend("standin.gpu:CUDA")
    pool = backend.compilers(2)
    try:
        found = results([pool.submit(lambda w: w.assemble(MeasuredProgram(ADD, SM90), "search")) for _ in range(2)])
    finally:
        pool.close()
    programs = [program for program in found if isinstance(program, Assembled)]
    with backend.runs() as runs:
        assert all(isinstance(outcome, Ok) for outcome in runs.compare(programs, QUICK))


@standin_gpu.NEEDS
def test_other_devices(standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del standin
    # A library that is not loaded yet, with settings of its own.
    library = tmp_path / "other.so"
    shutil.copy(standin_gpu.library(), library)
    monkeypatch.setenv("PDOJO_CUDA_DRIVER", str(library))
    monkeypatch.setenv("PDOJO_STANDIN", "major=8")
    with pytest.raises(LoweringError, match=r"is of the architecture sm_80, and the code is for sm_90; .* -t fibers"):
        CUDA.check_runs_here(SM90)


# Without a device


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PDOJO_CUDA_DRIVER", "PDOJO_HIP_DRIVER"):
        monkeypatch.setenv(variable, "/nowhere.so")


def test_machines_name_these_backends() -> None:
    for described, backend in ((SM90, CUDA), (GFX942, HIP)):
        assert backend_of(described) is backend
        assert isinstance(backend, Backend)
        assert isinstance(backend, Compiles)
        assert (backend.unit, backend.is_simulated) == ("s", False)


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(("name", "devices"), [("CUDA", "NVIDIA's"), ("HIP", "AMD's")])
def test_what_a_computer_without_a_driver_says(name: str, devices: str) -> None:
    backend, described = {"CUDA": CUDA, "HIP": HIP}[name], MACHINES[name]
    why = f"there is no driver for {devices} GPUs here .*: install .*; `pdojo-opt -t fibers` prints code"
    kernel = kernel_of(ADD)
    for action in (
        lambda: backend.check_runs_here(described),
        lambda: backend.call(kernel, described, {}),
        lambda: backend.compile(kernel, described, None, "full"),
    ):
        with pytest.raises(LoweringError, match=why):
            action()
    with backend.runs() as runs, pytest.raises(MeasurementError, match=why):
        runs.compare([MeasuredProgram(ADD, described)], QUICK)
    facts = backend.environment()
    assert facts["device"] is None
    assert len(facts["lowering"]) == 16


def test_several_threads_are_refused() -> None:
    with (
        CUDA.runs() as runs,
        pytest.raises(UsageError, match=r"one thread of the host launches .*; leave out --threads"),
    ):
        runs.compare([MeasuredProgram(ADD, SM90)], Options(threads=2))


def test_kernels_without_device_code() -> None:
    CUDA.check_lowers(nest_of(kernel_of(IN_TURNS)), SM90)
    with pytest.raises(LoweringError, match="2048 threads, more than 1024"):
        CUDA.check_lowers(nest_of(kernel_of(ADD.replace("256", "2048"))), SM90)
    with pytest.raises(LoweringError, match="launches more than 65536 grids"):
        CUDA.check_lowers(nest_of(kernel_of(ADD.replace("64", "66000").replace(":g 256:b", " 256:g"))), SM90)


def test_code_as_text() -> None:
    kernel = kernel_of(ADD)
    assert "__global__" in CUDA.listings["cuda"](kernel, SM90)
    assert "hip_runtime.h" in HIP.listings["hip"](kernel, GFX942)
    assert [form for form in CUDA.listings if form != "sass"] == ["cuda"]
    assert [form for form in HIP.listings if form != "amdgcn"] == ["hip"]
    assert forms_for(SM90)[-1] == "mlir"
    assert any("k_0" in line for line in code_lines(kernel, SM90, "cuda"))


def test_machine_code_as_text() -> None:
    kernel = kernel_of(ADD)
    if disassembler() is None or "amdgcn" not in HIP.listings:
        pytest.skip("nvdisasm or a clang for AMD's GPUs is not installed")
    try:
        assert "FADD" in CUDA.listings["sass"](kernel, SM90)
    except MissingTool as error:
        pytest.skip(str(error))
    assert "v_add_f32" in HIP.listings["amdgcn"](kernel, GFX942)


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("name", ["nvidia-sm90", "amd-gfx942"])
def test_tools_say_it_once(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = str(tmp_path / "arrays.npz")
    for arguments in (["--no-time"], ["--no-check"], ["--no-check", "--no-time", "--output", saved]):
        assert run.main(["add:64x64", "--machine", name, *arguments]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: there is no driver for ")
        assert said.count("\n") == 1
    assert tune.main(["add:64x64", "--machine", name, "--search", "sample", "--budget", "2"]) == 2
    assert "error: there is no driver for " in capsys.readouterr().err
    with pytest.raises(UsageError, match="there is no driver for"):
        check_runs_here("runtime", machine(name))


# With a device


@pytest.mark.parametrize(
    ("backend", "name"),
    [pytest.param(CUDA, "CUDA", marks=pytest.mark.cuda), pytest.param(HIP, "HIP", marks=pytest.mark.hip)],
)
def test_a_real_device(backend: GpuBackend, name: str) -> None:
    try:
        backend.check_runs_here(MACHINES[name])
    except LoweringError as error:
        pytest.skip(f"needs a device: {error}")
    check_backend(backend, name)


@pytest.mark.cuda
def test_broken_kernels_on_a_real_device_leave_the_others() -> None:
    try:
        CUDA.check_runs_here(SM90)
    except LoweringError as error:
        pytest.skip(f"needs a device: {error}")
    names = ("first", "stray", "hang", "overrun", "second")
    programs = [MeasuredProgram(ADD.replace("kernel k", f"kernel {name}"), SM90) for name in names]
    with Worker(
        compiler="standin.gpu:BROKEN_CUDA", session=SESSION, memory_bytes=None, limits=PhaseLimits(run=5)
    ) as worker:
        first, strays, hangs, overruns, second = worker.compare(programs, QUICK)
    assert isinstance(first, Ok)
    assert isinstance(strays, Crash)
    assert strays.reason == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert hangs == Timeout("run", 5)
    assert overruns == WrongResult("memory after array 'y' was written")
    assert isinstance(second, Ok)
