"""Kernels on a GPU, here a stand-in: launches, images and their cache, arrays of the host and of the device."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import executable
from pdojo.backends.gpu.device_arrays import addresses_of
from pdojo.backends.gpu.driver import DeviceMemory, DriverError, GpuContext, Graph, Stream, driver_of
from pdojo.backends.gpu.executable import GpuCompiler, GpuKernel
from pdojo.backends.gpu.fibers import compile_fibers
from pdojo.backends.gpu.images import Image, ImageCache
from pdojo.backends.gpu.program import DeviceProgram
from pdojo.backends.gpu.resources import MissingTool, Resources
from pdojo.backends.gpu.spelling import FiberSpelling, Uses
from pdojo.backends.gpu.targets import device_text
from pdojo.backends.gpu.vendors import CUDA_VENDOR
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IndexOutOfRange, LoweringError, UsageError
from pdojo.kernels import workload
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace
from standin import gpu as standin_gpu
from standin.gpu import FiberCompiler, Standin

pytestmark = standin_gpu.NEEDS
KERNELS = Path(__file__).parents[4] / "pdojo" / "kernels"

HEAD = "kernel k(x) -> (y)\nx f32 [6, 64] heap\ny f32 [6, 64] heap\n"
ADD = f"{HEAD}\n6:g 64:b y[{{0}},{{1}}] = x[{{0}},{{1}}] + 1\n"
CASES = {
    "one launch": ADD,
    "a loop around a grid": f"{HEAD}\n6 4:g 16:b y[{{0}},{{1}}*16+{{2}}] = x[{{0}},{{1}}*16+{{2}}] + 1\n",
    "a guarded loop": (
        f"{HEAD}\n6 4:g 16:b y[{{0}},{{1}}*16+{{2}}] = x[{{0}},{{1}}*16+{{2}}]\n"
        f"2 4 where ({{0}}*4+{{1}} < 6)\n"
        f"| 4:g 16:b y[{{0}}*4+{{1}},{{2}}*16+{{3}}] = x[{{0}}*4+{{1}},{{2}}*16+{{3}}] + 1\n"
    ),
    "a triangle": (
        f"{HEAD}\n6:g 64:b y[{{0}},{{1}}] = 0\n"
        f"6 6 where ({{1}} <= {{0}}) 4:g 16:b y[{{0}},{{2}}*16+{{3}}] += x[{{1}},{{2}}*16+{{3}}]\n"
    ),
    "a guard that never holds": (
        f"{HEAD}\n6:g 64:b y[{{0}},{{1}}] = x[{{0}},{{1}}]\n6 where ({{0}} >= 6) 64:g y[{{0}},{{1}}] = 7\n"
    ),
    "a loop of one iteration": (
        f"{HEAD}\n1 3 2 4:g 16:b y[{{1}}*2+{{2}},{{3}}*16+{{4}}] = x[{{1}}*2+{{2}},{{3}}*16+{{4}}]\n"
    ),
    "launches in turns": (
        "kernel k(x) -> (y)\nx f32 [4, 8] heap\ny f32 [4, 8] heap\nt f32 [8] heap\n\n8:g t[{0}] = 0\n4\n"
        "| 8:g t[{1}] += x[{0},{1}]\n| 8:g y[{0},{1}] = t[{1}]\n"
    ),
    "a workspace, and a statement outside of grids": (
        "kernel k(x) -> (y)\nx f32 [6, 64] heap\ny f32 [6] heap\nt f32 [6] heap\ns f32 [] heap\n\n6:g\n| t[{0}] = 0\n"
        "| 64 t[{0}] += x[{0},{1}]\ns[] = 0\n6 s[] += t[{0}]\n6:g y[{0}] = t[{0}] / s[]\n"
    ),
    "much shared memory": (
        "kernel k(x) -> (y)\nx f32 [2, 15000] heap\ny f32 [2, 15000] heap\nt f32 [2:N, 15000] shared\n\n2:g\n"
        "| 100:b 150 t[{0},{1}*150+{2}] = x[{0},{1}*150+{2}]\n"
        "| 100:b 150 y[{0},{1}*150+{2}] = t[{0},14999-{1}*150-{2}]\n"
    ),
}


def kernel_of(text: str) -> KernelOp:
    (kernel,) = parse_notation(text, "<test>")
    return kernel


def inputs_of(kernel: KernelOp) -> dict[str, NDArray[Any]]:
    return random_inputs(parameters_of(nest_of(kernel)), 1)


def meaning(kernel: KernelOp, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(array) for name, array in interpret(nest_of(kernel), dict(inputs)).items()}


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    with standin_gpu.installed(tmp_path) as found:
        found.launches()
        yield found


ON_BOTH = ("one launch", "launches in turns", "much shared memory")
"""Cases for HIP, whose launches differ from those of CUDA by the names of the driver's calls only."""


@pytest.mark.parametrize(
    ("text", "compiler"),
    [
        *(pytest.param(text, standin_gpu.CUDA, id=f"CUDA {name}") for name, text in CASES.items()),
        *(pytest.param(CASES[name], standin_gpu.HIP, id=f"HIP {name}") for name in ON_BOTH),
    ],
)
def test_a_kernel_computes_what_it_means(text: str, compiler: GpuCompiler, standin: Standin) -> None:
    kernel = kernel_of(text)
    inputs = inputs_of(kernel)
    found = compiler(kernel)(**inputs)
    np.testing.assert_allclose(found, meaning(kernel, inputs)["y"], rtol=1e-5)
    assert standin.count("memory") == 0


_LOG = """
static char log_text[1 << 16];
static size_t log_length;
PD_EXPORT const char *log_of() { return log_text; }
template <typename... A> inline void log_print(const char *format, A... values) {
  log_length += snprintf(log_text + log_length, sizeof log_text - log_length, format, values...);
}
inline void log_value(const void *) {}
inline void log_value(long long value) { log_print(" %lld", value); }
template <typename... A> inline void log_launch(const char *name, int blocks, int threads, int shared, A... arguments) {
  log_print("%s<<<%d, %d, %d>>>", name, blocks, threads, shared);
  (log_value(arguments), ...);
  log_print("\\n");
}
#define logged(kernel, ...) (log_launch(#kernel, __VA_ARGS__), pd_launch(kernel, __VA_ARGS__))
"""


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_the_printed_host_function_makes_the_same_launches(text: str, standin: Standin) -> None:
    kernel = kernel_of(text)
    inputs = inputs_of(kernel)
    ours = standin_gpu.CUDA(kernel)(**inputs)
    launches = standin.launches()
    printed, theirs = run_host_function(kernel, inputs)
    assert launches == printed
    assert np.array_equal(ours, theirs)


def run_host_function(kernel: KernelOp, inputs: Mapping[str, NDArray[Any]]) -> tuple[list[str], NDArray[Any]]:
    """The launches of the printed function of the host, run here, and its result."""
    made = device_text(kernel, spelling=FiberSpelling(), machine=machine("nvidia-sm90"))
    head = FiberSpelling().device_head(Uses())
    assert made.text.startswith(head)
    text = head + _LOG + made.text.removeprefix(head).replace("pd_launch(", "logged(")
    library = ctypes.CDLL(str((compiled := compile_fibers(text, warp=32, options=standin_gpu.QUICKLY)).library))
    x, y = parameters_of(nest_of(kernel))
    result = np.full(y.shape, np.nan, np.float32)
    workspace = np.full(max(1, made.kernels[0].workspace.size_bytes), 0xFF, np.uint8)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (inputs[x.name], result, workspace)]
    library[made.kernels[0].nest.symbol](*pointers)
    library.log_of.restype = ctypes.c_char_p
    log = library.log_of().decode().splitlines()
    del compiled
    return log, result


def test_a_tuned_softmax(standin: Standin) -> None:
    game = Game(with_alignment(workload("softmax:48x512").instantiate(), 16), machine("nvidia-sm90"))
    game.apply_all(Trace.load(KERNELS / "traces" / "softmax-nvidia-sm90.trace").moves)
    x = np.random.default_rng(0).standard_normal((48, 512), np.float32)
    found = standin_gpu.CUDA(game.kernel)(x)
    wanted = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, wanted / wanted.sum(1, keepdims=True), rtol=1e-5)
    assert len(standin.launches()) == 1


def test_bound_arrays_are_copied_at_each_call(standin: Standin) -> None:
    x, y = np.zeros((6, 64), np.float32), np.empty((6, 64), np.float32)
    run = standin_gpu.CUDA(kernel_of(ADD)).bind(x, y)
    for value in (1, 5):
        x[...] = value
        run()
        assert (y == value + 1).all()


def test_elements_that_are_not_written_stay(standin: Standin) -> None:
    y = np.full((6, 64), 7, np.float32)
    standin_gpu.CUDA(kernel_of(f"{HEAD}\n5:g 64:b y[{{0}},{{1}}] = x[{{0}},{{1}}]\n"))(np.zeros((6, 64), np.float32), y)
    assert (y[:5] == 0).all()
    assert (y[5] == 7).all()


# Images


def compiling(
    folder: Path, version: str = "1", resources: Mapping[str, Resources] | None = None, most_bytes: int = 1 << 30
) -> tuple[GpuCompiler, FiberCompiler]:
    compiler = FiberCompiler(resources=resources)
    compiler.version = version
    return GpuCompiler(CUDA_VENDOR, compiler, "nvidia-sm90", ImageCache(folder, most_bytes)), compiler


def test_images_are_compiled_once(standin: Standin, tmp_path: Path) -> None:
    first, counted = compiling(tmp_path)
    program = first.assemble(kernel_of(ADD))
    assert first.assemble(kernel_of(ADD)) == program
    assert counted.compiled == 1
    again, counted = compiling(tmp_path)
    assert again.assemble(kernel_of(ADD)) == program
    assert counted.compiled == 0
    other, counted = compiling(tmp_path, "2")
    other.assemble(kernel_of(ADD))
    assert counted.compiled == 1


def test_damaged_images_are_compiled_again(standin: Standin, tmp_path: Path) -> None:
    program = compiling(tmp_path)[0].assemble(kernel_of(ADD))
    (file,) = tmp_path.glob("*.image")
    for damaged in (file.read_bytes()[:-1], b"", b"no digest"):
        file.write_bytes(damaged)
        again, counted = compiling(tmp_path)
        assert again.assemble(kernel_of(ADD)).entries == program.entries
        assert counted.compiled == 1


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    class Small(FiberCompiler):
        def compile(self, text: str, processor: str) -> Image:
            return Image(text.encode(), {})

    for number in range(5):
        cache = ImageCache(tmp_path, most_bytes=500)
        cache.image(str(number), "sm_90", Small())
    left = sorted(tmp_path.glob("*.image"), key=lambda file: file.stat().st_mtime_ns)
    assert 0 < sum(file.stat().st_size for file in left) <= 500
    assert json.loads(left[-1].read_bytes().partition(b"\n")[2]) == Image(b"4", {}).to_json()


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    compiler, counted = compiling(file / "images")
    compiler.assemble(kernel_of(ADD))
    compiler.assemble(kernel_of(ADD))
    assert counted.compiled == 2


SIZED = """\
kernel sized(x) -> (y, z)
size N in 1..70
size K in 1..5
x f32 [N, 8] heap
y f32 [N, 8] heap
z f32 [N, 8] heap

5:g 16:b where ({0}*16+{1} < N) 8 y[{0}*16+{1},{2}] = x[{0}*16+{1},{2}] + K
K N:g 8:b z[{1},{2}] = x[N-1-{1},{2}] * {0}
"""


def test_sizes_are_found_in_shapes_or_given(standin: Standin) -> None:
    kernel = kernel_of(SIZED)
    loaded = standin_gpu.CUDA(kernel)
    for rows, count in ((1, 1), (16, 2), (17, 5), (70, 3)):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        y, z = loaded(x, K=count)
        np.testing.assert_allclose(y, x + count, rtol=1e-6)
        np.testing.assert_allclose(z, x[::-1] * (count - 1), rtol=1e-6)
        launched = loaded.sequence({"N": rows, "K": count})
        assert [(each.number, each.blocks) for each in launched] == [(0, -(-rows // 16)), *[(1, rows)] * count]
    with pytest.raises(UsageError, match="kernel 'sized' needs its size K, which no shape gives: K="):
        loaded(x)
    with pytest.raises(UsageError, match="the size N is 1 to 70, not 71, by dimension 0 of array 'x'"):
        loaded(np.zeros((71, 8), np.float32), K=1)


def test_programs_travel_as_json(standin: Standin) -> None:
    kernel = kernel_of(CASES["a triangle"])
    program = standin_gpu.CUDA.assemble(kernel)
    again = DeviceProgram.from_json(json.loads(json.dumps(program.to_json())))
    assert again == program
    inputs = inputs_of(kernel)
    found = standin_gpu.CUDA.load(kernel, again)(**inputs)
    np.testing.assert_allclose(found, meaning(kernel, inputs)["y"], rtol=1e-5)


@pytest.mark.parametrize("compiler", [executable.CUDA, executable.HIP], ids=["CUDA", "HIP"])
def test_real_compilers_need_no_device(compiler: GpuCompiler, standin: Standin) -> None:
    try:
        programs = [compiler.assemble(kernel_of(text)) for text in CASES.values()]
    except MissingTool as error:
        pytest.skip(f"a compiler is missing: {error}")
    assert all(program.image.data.startswith(b"\x7fELF") for program in programs)
    assert all(resources.registers > 0 for program in programs for resources in program.resources)


# Refusals before anything runs


def test_blocks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    big = {"k_0": Resources(registers=32, shared=300_000)}
    with pytest.raises(LoweringError, match=r"'k_0': a block takes 300000 bytes of shared memory, and may take 232448"):
        compiling(tmp_path / "a", resources=big)[0].assemble(kernel_of(ADD))
    text = "kernel k(x) -> (y)\nx f32 [1024] heap\ny f32 [1024] heap\n\n1:g 1024:b y[{1}] = x[{1}]\n"
    many = {"k_0": Resources(registers=200)}
    with pytest.raises(LoweringError, match=r"no block of 1024 threads with 200 registers .*; registers are exhausted"):
        compiling(tmp_path / "b", resources=many)[0].assemble(kernel_of(text))


def test_spills_are_no_error(tmp_path: Path) -> None:
    spilled = {"k_0": Resources(registers=255, spill_stores=64, spill_loads=64)}
    (found,) = compiling(tmp_path, resources=spilled)[0].assemble(kernel_of(ADD)).resources
    assert found.spills


def test_endless_launches_are_refused(tmp_path: Path) -> None:
    text = "kernel k(x) -> (y)\nx f32 [70000, 2] heap\ny f32 [70000, 2] heap\n\n70000 2:g y[{0},{1}] = x[{0},{1}]\n"
    with pytest.raises(LoweringError, match=r"launches more than 65536 grids, the last one for .*; map loops around"):
        compiling(tmp_path)[0].assemble(kernel_of(text))


def test_other_architectures_are_refused(standin: Standin) -> None:
    kernel = kernel_of(ADD)
    program = standin_gpu.HIP.assemble(kernel)
    with pytest.raises(LoweringError, match="Stand-in, is of the architecture sm_90, and the code is for gfx942"):
        standin_gpu.CUDA.load(kernel, program)


def test_a_gpu_takes_one_thread_of_the_host(standin: Standin) -> None:
    with pytest.raises(UsageError, match="one thread launches a kernel on NVIDIA's GPUs, not 4"):
        standin_gpu.CUDA(kernel_of(ADD), threads=4)


# Arrays of the device


class Tensor:
    """What a PyTorch tensor on a device has."""

    def __init__(self, memory: DeviceMemory, shape: Sequence[int], dtype: str = "torch.float32") -> None:
        self.memory, self.shape, self.dtype = memory, tuple(shape), dtype
        self.contiguous, self.requires_grad = True, False

    def data_ptr(self) -> int:
        return self.memory.address

    def is_contiguous(self) -> bool:
        return self.contiguous


class Interface:
    """What has CUDA's array interface."""

    def __init__(self, memory: DeviceMemory, shape: Sequence[int], **changed: object) -> None:
        facts = {"shape": tuple(shape), "typestr": "<f4", "data": (memory.address, False), "version": 3}
        self.__cuda_array_interface__ = {**facts, **changed}


class Device:
    """Arrays on the stand-in, and a kernel."""

    def __init__(self, text: str = ADD, shape: Sequence[int] = (6, 64)) -> None:
        self.kernel: GpuKernel = standin_gpu.CUDA(kernel_of(text))
        self.gpu: GpuContext = driver_of(CUDA_VENDOR).gpu()
        self.stream: Stream = self.gpu.stream()
        self.x, self.y = (self.gpu.memory(4 * 6 * 64) for _ in range(2))
        self.shape = shape
        self.data = np.random.default_rng(0).standard_normal((6, 64), np.float32)
        self.x.upload(self.data, self.stream.handle)

    def result(self) -> NDArray[Any]:
        found = np.empty((6, 64), np.float32)
        self.y.download(found, self.stream.handle)
        return found


@pytest.mark.parametrize("kind", [Tensor, Interface])
def test_arrays_of_the_device_are_used_where_they_are(kind: Any, standin: Standin) -> None:
    device = Device()
    x, y = kind(device.x, (6, 64)), kind(device.y, (6, 64))
    assert device.kernel(x, y, stream=device.stream.handle) is y
    assert standin.launches() == [], "a call must not wait"
    assert (device.result() == device.data + 1).all()
    assert standin.count("memory") == 2


def test_sizes_of_arrays_on_the_device(standin: Standin) -> None:
    loaded = standin_gpu.CUDA(kernel_of(SIZED))
    stream = loaded.gpu.stream()
    for rows in (5, 64, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        memory = [loaded.gpu.memory(x.nbytes) for _ in range(3)]
        memory[0].upload(x, stream.handle)
        loaded(*(Tensor(each, x.shape) for each in memory), K=2, stream=stream.handle)
        y, z = np.empty_like(x), np.empty_like(x)
        memory[1].download(y, stream.handle)
        memory[2].download(z, stream.handle)
        np.testing.assert_allclose(y, x + 2, rtol=1e-6)
        np.testing.assert_allclose(z, x[::-1], rtol=1e-6)


GATHER = """\
kernel gather(x, idx) -> (y)
size N in 2..40
x f32 [N, 8] heap
idx i64 [3] heap in 0..N-1{}
y f32 [3, 8] heap

3:g 8:b y[{{0}},{{1}}] = x[idx[{{0}}],{{1}}]
"""


@pytest.mark.parametrize(("outside", "given"), [("", [3, 0, 5]), (" wrap", [-1, -6, 2]), (" clamp", [-9, 2, 99])])
def test_indices_on_the_host_and_on_the_device(standin: Standin, outside: str, given: list[int]) -> None:
    kernel = kernel_of(GATHER.format(outside))
    loaded, x, indices = standin_gpu.CUDA(kernel), np.random.default_rng(0).random((6, 8), np.float32), np.array(given)
    wanted = meaning(kernel, {"x": x, "idx": indices})["y"]
    stream, y = loaded.gpu.stream(), np.empty((3, 8), np.float32)
    run = loaded.bind(x, indices, y)
    run()
    assert (y == wanted).all()
    memory = [loaded.gpu.memory(each.nbytes) for each in (x, indices, y)]
    memory[0].upload(x, stream.handle)
    memory[1].upload(indices, stream.handle)
    arrays = [Tensor(memory[0], (6, 8)), Tensor(memory[1], (3,), "torch.int64"), Tensor(memory[2], (3, 8))]
    loaded(*arrays, stream=stream.handle)
    memory[2].download(y, stream.handle)
    assert (y == wanted).all()
    if outside != " clamp":
        indices[1] = 6
        memory[1].upload(indices, stream.handle)
        for call in (run, lambda: loaded(*arrays, stream=stream.handle), lambda: loaded(x, indices, y)):
            with pytest.raises(IndexOutOfRange, match=r"'idx' has the index 6 at \[1\]"):
                call()


def test_calls_keep_their_launches_and_a_workspace_for_each_stream(standin: Standin) -> None:
    device = Device(WORKSPACE)
    x, y = Tensor(device.x, (6, 64)), Tensor(device.y, (6, 64))
    other = device.gpu.stream()
    for _ in range(3):
        device.kernel(x, y, stream=device.stream.handle)
        device.kernel(x=x, y=y, stream=other.handle)
    assert standin.count("memory") == 4
    other.synchronize()
    assert (device.result()[0] == device.data[0]).all()


def test_streams_of_others(standin: Standin) -> None:
    device = Device()
    x, y = Tensor(device.x, (6, 64)), Tensor(device.y, (6, 64))

    class Torch:
        cuda_stream = device.stream.handle

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, device.stream.handle

    for stream in (Torch(), Protocol(), device.stream.handle):
        device.kernel(x, y, stream=stream)
    device.stream.synchronize()
    assert len(standin.launches()) == 3
    device.kernel(x, y)
    device.stream.synchronize()
    assert standin.launches() == []
    device.gpu.synchronize(0)
    assert len(standin.launches()) == 1
    with pytest.raises(UsageError, match="a stream is an integer, or an object with"):
        device.kernel(x, y, stream="fast")


def test_a_call_can_be_captured(standin: Standin) -> None:
    device = Device()
    x, y = Tensor(device.x, (6, 64)), Tensor(device.y, (6, 64))
    graph = device.stream.capture(lambda handle: device.kernel(x, y, stream=handle))
    graph.launch(device.stream.handle)
    assert (device.result() == device.data + 1).all()


WORKSPACE = CASES["launches in turns"].replace("[4, 8]", "[6, 64]").replace("[8]", "[64]").replace("8:", "64:")
GLOBAL = 0
"""CU_STREAM_CAPTURE_MODE_GLOBAL, as `torch.cuda.graph` captures."""


def test_a_first_call_with_a_workspace_can_be_captured(standin: Standin) -> None:
    device = Device(WORKSPACE)
    x, y = Tensor(device.x, (6, 64)), Tensor(device.y, (6, 64))
    stream, driver = device.stream, device.gpu.driver
    graph = ctypes.c_uint64()
    with device.gpu.current():
        driver("capture_begin", stream.handle, GLOBAL)
        device.kernel(x, y, stream=stream.handle)
        device.gpu.memory(16).close()
        driver("capture_end", stream.handle, ctypes.byref(graph))
        captured = Graph(device.gpu, graph.value)
    device.gpu.call("graph_destroy", graph.value)
    captured.launch(stream.handle)
    assert (device.result()[0] == device.data[0]).all()


def test_the_stand_in_refuses_memory_while_a_stream_is_captured(standin: Standin) -> None:
    device = Device()
    driver, place, graph = device.gpu.driver, ctypes.c_uint64(), ctypes.c_uint64()
    with device.gpu.current():
        driver("capture_begin", device.stream.handle, GLOBAL)
        with pytest.raises(DriverError, match="CAPTURE_UNSUPPORTED"):
            driver("allocate", ctypes.byref(place), 16)
        with pytest.raises(DriverError, match="CAPTURE_INVALIDATED"):
            driver("capture_end", device.stream.handle, ctypes.byref(graph))


def test_calls_on_known_arrays_are_not_checked_again(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    checks: list[object] = []

    def checked(*arguments: Any) -> list[int]:
        checks.append(arguments)
        return addresses_of(*arguments)

    monkeypatch.setattr(executable, "addresses_of", checked)
    for kind in (Tensor, Interface):
        before = len(checks)
        for _ in range(3):
            x, y = kind(device.x, (6, 64)), kind(device.y, (6, 64))
            assert device.kernel(x, y) is y
            assert device.kernel(y=y, x=x) is y
        assert len(checks) == before + 1


def test_what_a_check_asks_is_part_of_the_key(standin: Standin) -> None:
    """A call that fits is known; each one that differs from it in one fact only is refused all the same."""
    device = Device()
    x, y = Tensor(device.x, (6, 64)), Tensor(device.y, (6, 64))
    device.kernel(x, y)
    device.kernel(Interface(device.x, (6, 64)), Interface(device.y, (6, 64)))

    def changed(**facts: object) -> Tensor:
        other = Tensor(device.x, (6, 64))
        vars(other).update(facts)
        return other

    class Host:
        type = "cpu"

    wrong = {
        "dtype": changed(dtype="torch.int32"),
        "shape": changed(shape=(64, 6)),
        "C-contiguous": changed(contiguous=False),
        "requires grad": changed(requires_grad=True),
        "in the host's memory": changed(device=Host()),
        "not aligned to 4 bytes": changed(data_ptr=lambda: device.x.address + 1),
        "overlap": changed(data_ptr=lambda: device.y.address - 4),
    }
    for why, other in wrong.items():
        with pytest.raises(UsageError, match=why):
            device.kernel(other, y)
    memory = device.x
    interfaces = {
        "dtype": Interface(memory, (6, 64), typestr="<i4"),
        "shape": Interface(memory, (64, 6)),
        "C-contiguous": Interface(memory, (6, 64), strides=(4, 24)),
        "not aligned to 4 bytes": Interface(memory, (6, 64), data=(memory.address + 1, False)),
        "overlap": Interface(memory, (6, 64), data=(device.y.address - 4, False)),
    }
    for why, other in interfaces.items():
        with pytest.raises(UsageError, match=why):
            device.kernel(other, Interface(device.y, (6, 64)))
    with pytest.raises(UsageError, match="read-only"):
        device.kernel(Interface(device.x, (6, 64)), Interface(device.y, (6, 64), data=(device.y.address, True)))
    with pytest.raises(UsageError, match="needs y"):
        device.kernel(x)

    def nowhere() -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    with pytest.raises(UsageError, match="array 'x' is a Tensor; pass a NumPy array"):
        device.kernel(changed(data_ptr=nowhere, device=Host()))


@pytest.mark.parametrize("alignment", [16, 4096])
def test_arrays_of_the_host_need_no_alignment(alignment: int, standin: Standin) -> None:
    kernel = standin_gpu.CUDA(with_alignment(kernel_of(ADD), alignment))
    memory = np.zeros(2 * 4 * 6 * 64 + 2, np.uint8)
    x = memory[1 : 1 + 4 * 6 * 64].view(np.float32).reshape(6, 64)
    y = memory[1 + 4 * 6 * 64 : 1 + 2 * 4 * 6 * 64].view(np.float32).reshape(6, 64)
    x[...] = 3
    assert kernel(x, y) is y
    assert (y == 4).all()
    assert (kernel(x) == 4).all()
    kernel.bind(x, y)()


def test_wrong_arrays_of_the_device_are_named(standin: Standin) -> None:
    device = Device()
    x, y = Tensor(device.x, (6, 64)), Tensor(device.y, (6, 64))
    strided, graded, shifted = Tensor(device.x, (6, 64)), Tensor(device.x, (6, 64)), Tensor(device.x, (6, 64))
    strided.contiguous, graded.requires_grad = False, True
    shifted.data_ptr = lambda: device.x.address + 2
    host = np.zeros((6, 64), np.float32)
    read_only = Interface(device.y, (6, 64), data=(device.y.address, True))
    for arrays, why in [
        ((x,), "kernel 'k' needs y: on a device no array may be left out"),
        ((host, y), "array 'x' is a ndarray in the host's memory, and others are on a device"),
        ((Tensor(device.x, (6, 64), "torch.float64"), y), "dtype torch.float64, the kernel takes torch.float32"),
        ((Interface(device.x, (6, 64), typestr="<f8"), y), "dtype float64, the kernel takes float32"),
        ((Tensor(device.x, (64, 6)), y), "array 'x' has shape 64x6, the kernel takes 6x64"),
        ((strided, y), "array 'x' is not C-contiguous"),
        ((Interface(device.x, (6, 64), strides=(4, 24)), y), "array 'x' is not C-contiguous"),
        ((graded, y), "array 'x' requires grad"),
        ((shifted, y), "not aligned to 4 bytes"),
        ((x, read_only), "array 'y' is read-only, but the kernel writes it"),
        ((x, Tensor(device.x, (6, 64))), "arrays 'x' and 'y' overlap in memory"),
    ]:
        with pytest.raises(UsageError, match=why):
            device.kernel(*arrays)
    with pytest.raises(UsageError, match="a stream is for arrays on the device"):
        device.kernel(host, stream=1)
