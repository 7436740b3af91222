"""The driver API as one interface for both vendors, with a stand-in for the driver's library."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pdojo.backends.gpu.driver import (
    DeviceMemory,
    Driver,
    DriverError,
    GpuContext,
    NoDevice,
    PreparedLaunch,
    Stream,
    driver_of,
)
from pdojo.backends.gpu.fibers import HEAD
from pdojo.backends.gpu.vendors import CUDA_VENDOR, HIP_VENDOR, SIGNATURES, Vendor
from standin import gpu as standin_gpu
from standin.gpu import FiberCompiler, Standin

pytestmark = standin_gpu.NEEDS

TEXT = """
extern "C" __global__ void __launch_bounds__(64)
scale_0(float *x, int k) {
  x[64 * blockIdx.x + threadIdx.x] *= k;
}
extern "C" __global__ void __launch_bounds__(1)
far_0(float *x) {
  x[1000] = 1;
}
extern "C" __global__ void __launch_bounds__(64)
big_0(float *x) {
  float (&own)[16000] = pd_shared<float, 16000>(0);
  own[15936 + threadIdx.x] = threadIdx.x;
  x[threadIdx.x] = own[15936 + threadIdx.x];
}
"""


@dataclass
class Here:
    vendor: Vendor
    gpu: GpuContext
    standin: Standin

    def launch(self, name: str, memory: DeviceMemory, *values: int, blocks: int = 1, shared: int = 0) -> PreparedLaunch:
        function = self.gpu.module(image(self.gpu.info.architecture)).function(name, shared)
        arguments = [ctypes.c_void_p(memory.address), *map(ctypes.c_int, values)]
        return PreparedLaunch(function, blocks, 1 if name == "far_0" else 64, arguments)

    def run(self, launch: PreparedLaunch, stream: Stream) -> None:
        with self.gpu.current():
            launch(stream.handle)


@cache
def image(processor: str) -> bytes:
    return FiberCompiler().compile(HEAD + TEXT, processor).data


def ones(gpu: GpuContext, stream: Stream, size: int = 128) -> DeviceMemory:
    memory = gpu.memory(4 * size)
    memory.upload(np.ones(size, np.float32), stream.handle)
    return memory


def floats(memory: DeviceMemory, stream: Stream) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    found = np.empty(memory.size // 4, np.float32)
    memory.download(found, stream.handle)
    return found


@pytest.fixture(params=[CUDA_VENDOR, HIP_VENDOR], ids=lambda vendor: vendor.name)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Here]:
    with standin_gpu.installed(tmp_path) as standin:
        standin.launches()
        yield Here(request.param, driver_of(request.param).gpu(), standin)


def test_both_vendors_name_every_call() -> None:
    for vendor in (CUDA_VENDOR, HIP_VENDOR):
        assert vendor.calls.keys() == SIGNATURES.keys()


def test_symbols_of_cuda_are_those_of_its_header() -> None:
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    for symbol in CUDA_VENDOR.calls.values():
        assert hasattr(driver, symbol.partition("_v")[0].replace("InstantiateWithFlags", "Instantiate"))
    numbers = {
        name.removeprefix("CU_DEVICE_ATTRIBUTE_"): int(k) for name, k in driver.CUdevice_attribute.__members__.items()
    }
    wanted = "MAX_THREADS_PER_BLOCK WARP_SIZE MULTIPROCESSOR_COUNT L2_CACHE_SIZE MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"
    wanted += " COMPUTE_CAPABILITY_MAJOR COMPUTE_CAPABILITY_MINOR"
    assert [numbers[name] for name in wanted.split()] == list(CUDA_VENDOR.attributes.values())


@pytest.mark.parametrize("vendor", [CUDA_VENDOR, HIP_VENDOR], ids=lambda vendor: vendor.name)
def test_a_missing_driver_is_said_with_its_remedy(vendor: Vendor) -> None:
    with pytest.raises(NoDevice, match=rf"there is no driver for {vendor.devices} here \(.*nowhere.*\): install"):
        Driver(vendor, "/nowhere.so")


def test_a_library_that_lacks_a_call_is_an_old_driver() -> None:
    with pytest.raises(NoDevice, match=r"the driver of NVIDIA's GPUs lacks 'cuInit': update the driver"):
        Driver(CUDA_VENDOR, ctypes.util.find_library("c"))


def test_no_device(here: Here) -> None:
    here.standin.set("devices", 0)
    with pytest.raises(
        NoDevice, match=f"{here.vendor.devices} cannot be used here: .*Init: ERROR_NO_DEVICE.*hide them"
    ):
        Driver(here.vendor, standin_gpu.library())


def test_a_device_is_described(here: Here) -> None:
    info = here.gpu.info
    assert (info.name, info.ordinal, info.block_threads, info.memory_bytes) == ("Stand-in", 0, 1024, 1 << 30)
    facts = (info.architecture, info.warp_size, info.multiprocessors, info.shared_bytes, info.l2_bytes)
    if here.vendor is CUDA_VENDOR:
        assert facts == ("sm_90", 32, 132, 232448, 50 << 20)
        assert here.gpu.driver.version == "13.0"
    else:
        assert facts == ("gfx942", 64, 304, 65536, 4 << 20)
        assert here.gpu.driver.version == "6.2.42134"
    with pytest.raises(DriverError, match=r"DeviceGet: ERROR_INVALID_DEVICE .*: take a device that exists"):
        here.gpu.driver.info(1)


def test_memory_is_filled_copied_and_freed(here: Here) -> None:
    gc.collect()
    before = here.standin.count("memory")
    free = here.gpu.free_bytes()
    stream = here.gpu.stream()
    one = ones(here.gpu, stream)
    other = here.gpu.memory(one.size)
    assert here.gpu.free_bytes() == free - 2 * one.size
    assert np.isnan(floats(other, stream)).all(), "memory of the stand-in is poisoned"
    one.copy_to(other, stream.handle)
    one.fill(0, stream.handle)
    assert (floats(other, stream) == 1).all()
    assert (floats(one, stream) == 0).all()
    one.close()
    del other
    assert here.standin.count("memory") == before


def test_too_much_memory_is_an_error_that_leaves_the_device_usable(here: Here) -> None:
    with pytest.raises(DriverError, match=r"ERROR_OUT_OF_MEMORY .*: use smaller arrays") as found:
        here.gpu.memory(1 << 31)
    assert found.value.is_memory
    assert not found.value.is_fatal
    here.gpu.memory(16)


def test_launches_run_in_the_order_of_a_stream(here: Here) -> None:
    stream = here.gpu.stream()
    memory = ones(here.gpu, stream)
    here.run(here.launch("scale_0", memory, 3, blocks=2), stream)
    here.run(here.launch("scale_0", memory, 2), stream)
    found = floats(memory, stream)
    assert (found[:64] == 6).all()
    assert (found[64:] == 3).all()
    assert here.standin.launches() == ["scale_0<<<2, 64, 0>>> 3", "scale_0<<<1, 64, 0>>> 2"]


def test_much_shared_memory_is_asked_for(here: Here) -> None:
    stream = here.gpu.stream()
    memory = here.gpu.memory(256)
    here.run(here.launch("big_0", memory, shared=64000), stream)
    assert (floats(memory, stream) == np.arange(64)).all()


def test_images_of_other_architectures_are_refused(here: Here) -> None:
    other = {"sm_90": "gfx942", "gfx942": "sm_90"}[here.gpu.info.architecture]
    with pytest.raises(DriverError, match=r"ModuleLoadData: ERROR_NO_BINARY_FOR_GPU .*architecture of the device"):
        here.gpu.module(image(other))
    with pytest.raises(DriverError, match="ERROR_NOT_FOUND"):
        here.gpu.module(image(here.gpu.info.architecture)).function("nothing_0")


def test_a_captured_graph_runs_when_it_is_launched(here: Here) -> None:
    gc.collect()
    graphs = here.standin.count("graphs")
    stream = here.gpu.stream()
    memory = ones(here.gpu, stream)
    double, triple = (here.launch("scale_0", memory, k) for k in (2, 3))

    def record(handle: int) -> None:
        double(handle)
        triple(handle)

    graph = stream.capture(record)
    assert (floats(memory, stream) == 1).all()
    graph.launch(stream.handle)
    graph.launch(stream.handle)
    assert (floats(memory, stream)[:64] == 36).all()
    assert len(here.standin.launches()) == 4
    assert here.standin.count("graphs") == graphs + 1
    del graph
    assert here.standin.count("graphs") == graphs


def test_a_capture_that_fails_leaves_the_stream_usable(here: Here) -> None:
    stream = here.gpu.stream()

    def wrong(handle: int) -> None:
        raise KeyError(handle)

    with pytest.raises(KeyError):
        stream.capture(wrong)
    with pytest.raises(DriverError, match="CAPTURE_UNSUPPORTED"):
        stream.capture(lambda _: stream.synchronize())
    assert (floats(ones(here.gpu, stream), stream) == 1).all()


def test_events_take_the_time(here: Here) -> None:
    stream = here.gpu.stream()
    memory = ones(here.gpu, stream)
    launch = here.launch("scale_0", memory, 1, blocks=2)
    start, end = here.gpu.event(), here.gpu.event()
    start.record(stream.handle)
    with here.gpu.current():
        for _ in range(100):
            launch(stream.handle)
    end.record(stream.handle)
    end.synchronize()
    assert 0 < end.seconds_since(start) < 1


def test_an_illegal_address_spoils_the_context(here: Here) -> None:
    stream = here.gpu.stream()
    memory = ones(here.gpu, stream)
    here.run(here.launch("far_0", memory), stream)
    with pytest.raises(DriverError, match=r"ERROR_ILLEGAL_ADDRESS .*: a kernel accessed memory that is not") as found:
        stream.synchronize()
    assert found.value.is_fatal
    with pytest.raises(DriverError, match="ILLEGAL_ADDRESS"):
        here.gpu.memory(16)
    # Frees memory without an error.
    memory.close()


def test_other_contexts_of_a_thread_stay(here: Here) -> None:
    library = ctypes.CDLL(standin_gpu.library())
    other, now = ctypes.c_void_p(4711), ctypes.c_void_p()
    if here.vendor is HIP_VENDOR:
        library.hipSetDevice(3)
        here.gpu.memory(16)
        found = ctypes.c_int()
        library.hipGetDevice(ctypes.byref(found))
        assert found.value == 3
        library.hipSetDevice(0)
        return
    library.cuCtxSetCurrent(other)
    here.gpu.memory(16)
    library.cuCtxGetCurrent(ctypes.byref(now))
    assert now.value == 4711
    library.cuCtxSetCurrent(None)
