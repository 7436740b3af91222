"""The driver of NVIDIA's and of AMD's GPUs as one interface: devices, memory, modules, streams, events, graphs.

The driver's library is called through ctypes (docs/decisions/2026-11-24-drivers-by-ctypes.md). A failing call raises
DriverError. Objects on a device are freed with the last reference to them; at the end of the process the driver frees
the rest. Calls work in any thread, and do not change its current context.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.gpu.vendors import (
    ARCHITECTURE_AT,
    CAPTURE_RELAXED,
    CAPTURE_THREAD,
    CUDA_VENDOR,
    FATAL,
    HIP_VENDOR,
    MAX_DYNAMIC_SHARED,
    NO_DEVICE,
    NON_BLOCKING,
    OUT_OF_MEMORY,
    PROPERTIES_BYTES,
    REMEDIES,
    SIGNATURES,
    Vendor,
)
from pdojo.errors import LoweringError, PdojoError

MEMORY_ALIGNMENT = 256
"""Alignment in bytes of device memory (CUDA C++ Programming Guide, "Device Memory Accesses"; HIP: the same)."""
_BIG_SHARED = 48 * 1024
"""Bytes of dynamic shared memory beyond which a function needs an attribute (CUDA C++ Programming Guide)."""


class NoDevice(LoweringError):
    """This computer has no driver, or no device; the message says which is missing."""


class OldDriver(NoDevice):
    """The driver refuses code, and is older than the compiler."""


class DriverError(PdojoError):
    """A call of the driver failed; the message names the call, the error, and a remedy."""

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        remedy = REMEDIES.get(code)
        super().__init__(f"{call}: {name} ({text})" + (f": {remedy}" if remedy else ""))
        self.code = code
        self.name = name
        """The driver's name of the error."""

    @property
    def is_fatal(self) -> bool:
        """Whether this process can no longer use the device."""
        return self.code in FATAL

    @property
    def is_memory(self) -> bool:
        """Whether the error is a lack of device memory."""
        return self.code == OUT_OF_MEMORY


@dataclass(frozen=True)
class DeviceInfo:
    """A device's properties, reported by the driver."""

    ordinal: int
    """The device's number, from 0."""
    name: str
    architecture: str
    """The architecture's name for compilers: `sm_90`, `gfx942`."""
    memory_bytes: int
    multiprocessors: int
    warp_size: int
    block_threads: int
    """Largest number of threads in a block."""
    shared_bytes: int
    """Largest shared memory of a block in bytes."""
    l2_bytes: int


class Driver:
    """A loaded and initialised driver library."""

    def __init__(self, vendor: Vendor, path: str | None = None) -> None:
        """Load the library at `path` or the system's. Raises NoDevice without a library or a device."""
        self.vendor = vendor
        self._gpus: dict[int, GpuContext] = {}
        library = _load(vendor, path)
        listed = {name: (symbol, SIGNATURES[name]) for name, symbol in vendor.calls.items()}
        place = ctypes.c_void_p if vendor.context_type is ctypes.c_void_p else ctypes.c_int
        listed |= {**vendor.extras, "get": (vendor.context_get, (ctypes.c_void_p,))}
        listed["set"] = (vendor.context_set, (place,))
        self._symbols = {name: symbol for name, (symbol, _) in listed.items()}
        self._calls = {name: _symbol(library, vendor, *found) for name, found in listed.items()}
        try:
            self("init", 0)
            self.count = self._number("count")
        except DriverError as error:
            raise NoDevice(f"{vendor.devices} cannot be used here: {error}") from None
        if self.count == 0:
            raise NoDevice(f"the driver finds none of {vendor.devices}: {REMEDIES[NO_DEVICE]}")

    def __call__(self, name: str, *arguments: object) -> None:
        """Call a function of the library. Raises DriverError."""
        status = self._calls[name](*arguments)
        if status:
            raise self.error(name, status)

    def raw(self, name: str) -> Callable[..., int]:
        """Call a function of the library and return its status."""
        return self._calls[name]

    def error(self, name: str, status: int) -> DriverError:
        """The DriverError for the status of a call."""
        texts: list[str] = []
        for what in ("error_name", "error_text"):
            text = ctypes.c_char_p()
            known = self._calls[what](status, ctypes.byref(text)) == 0 and text.value is not None
            texts.append(text.value.decode(errors="replace") if known and text.value else "unknown error")
        return DriverError(self._symbols[name], status, *texts)

    @property
    def version(self) -> str:
        """The version of CUDA that the driver supports, or HIP's version."""
        number = self._number("version")
        if self.vendor is CUDA_VENDOR:
            return f"{number // 1000}.{number % 1000 // 10}"
        return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"

    def info(self, ordinal: int = 0) -> DeviceInfo:
        """The properties of a device. Raises DriverError if the device does not exist."""
        device = self._number("device", ordinal)
        text = ctypes.create_string_buffer(256)
        self("name", text, len(text), device)
        memory = ctypes.c_size_t()
        self("total_memory", ctypes.byref(memory), device)
        facts = {name: self._number("attribute", k, device) for name, k in self.vendor.attributes.items()}
        architecture = self._architecture(ordinal, facts.pop("major", 0), facts.pop("minor", 0))
        return DeviceInfo(ordinal, text.value.decode(errors="replace"), architecture, memory.value, **facts)

    def gpu(self, ordinal: int = 0) -> GpuContext:
        """A device to work on; the same object for the same number. Raises DriverError."""
        if ordinal not in self._gpus:
            self._gpus[ordinal] = GpuContext(self, self.info(ordinal))
        return self._gpus[ordinal]

    def _architecture(self, ordinal: int, major: int, minor: int) -> str:
        if "properties" not in self._calls:
            return f"sm_{major}{minor}"
        properties = ctypes.create_string_buffer(2 * PROPERTIES_BYTES)
        self("properties", properties, ordinal)
        name = properties.raw[ARCHITECTURE_AT : ARCHITECTURE_AT + 256].partition(b"\0")[0]
        return name.partition(b":")[0].decode(errors="replace")

    def _number(self, name: str, *arguments: int) -> int:
        """The number that a call returns through a pointer."""
        found = ctypes.c_int()
        self(name, ctypes.byref(found), *arguments)
        return found.value


class GpuContext:
    """A device and this process's context on it."""

    def __init__(self, driver: Driver, info: DeviceInfo) -> None:
        self.driver = driver
        self.info = info
        self._own: Any = info.ordinal
        if "primary_context" in driver.vendor.extras:
            context = ctypes.c_void_p()
            device = ctypes.c_int()
            driver("device", ctypes.byref(device), info.ordinal)
            driver("primary_context", ctypes.byref(context), device)
            self._own = context.value
        self._current = driver.vendor.context_type
        self._get = driver.raw("get")

    def enter(self) -> Any:
        """Make the context current in this thread; returns the previous one for `leave`, None if it was current
        already.

        Raises DriverError.
        """
        before = self._current()
        status = self._get(ctypes.byref(before))
        if status:
            raise self.driver.error("get", status)
        if before.value == self._own:
            return None
        self.driver("set", self._own)
        return before

    def leave(self, before: Any) -> None:
        """Restore the previous context of this thread, returned by `enter`."""
        if before is not None:
            self.driver.raw("set")(before)

    @contextmanager
    def current(self) -> Generator[None]:
        """A context manager in which the device's context is current in this thread."""
        before = self.enter()
        try:
            yield
        finally:
            self.leave(before)

    @contextmanager
    def _relaxed(self) -> Generator[None]:
        """A context in which creating and freeing objects does not end a stream's capture (as in PyTorch)."""
        exchange, mode = self.driver.raw("capture_mode"), ctypes.c_int(CAPTURE_RELAXED)
        failed = exchange(ctypes.byref(mode))
        try:
            yield
        finally:
            if not failed:
                exchange(ctypes.byref(mode))

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver in the context. Raises DriverError."""
        with self.current():
            self.driver(name, *arguments)

    def made(self, name: str, *arguments: object) -> int:
        """The handle or address that a call creates. Raises DriverError."""
        handle = ctypes.c_uint64()
        with self.current(), self._relaxed():
            self.driver(name, ctypes.byref(handle), *arguments)
        return handle.value

    def release(self, name: str, handle: int) -> None:
        """Free an object; failures after a fatal error are not reported again."""
        with self.current(), self._relaxed():
            self.driver.raw(name)(handle)

    # Objects of a device

    def free_bytes(self) -> int:
        """Free bytes of device memory."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("memory", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def memory(self, size: int) -> DeviceMemory:
        """New device memory, aligned to 256 bytes."""
        return DeviceMemory(self, size)

    def module(self, image: bytes) -> Module:
        """Code loaded on the device."""
        return Module(self, image)

    def stream(self) -> Stream:
        """A new stream that does not synchronise with the default stream."""
        return Stream(self)

    def event(self) -> DeviceEvent:
        """A new event with timing."""
        return DeviceEvent(self)

    def read(self, address: int, array: NDArray[Any], stream: int) -> None:
        """Copy memory of the device into a contiguous array, and wait."""
        self.call("download", array.ctypes.data, address, array.nbytes, stream)
        self.synchronize(stream)

    def synchronize(self, stream: int) -> None:
        """Wait for a stream. Raises DriverError for failures in the stream."""
        self.call("stream_synchronize", stream)


class Owned:
    """An object on a device, freed with the last reference to it."""

    def __init__(self, gpu: GpuContext, handle: int, release: str) -> None:
        self.gpu = gpu
        self.handle = handle
        """The driver's handle, an integer."""
        self._release = weakref.finalize(self, gpu.release, release, handle)
        # At interpreter exit the driver may be gone already.
        self._release.atexit = False

    def close(self) -> None:
        """Free the object now."""
        self._release()


class DeviceMemory(Owned):
    """Memory on a device."""

    def __init__(self, gpu: GpuContext, size: int) -> None:
        super().__init__(gpu, gpu.made("allocate", max(1, size)), "free")
        self.size = size

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return self.handle

    def upload(self, array: NDArray[Any], stream: int, offset: int = 0) -> None:
        """Copy a contiguous array to `offset` bytes from the start, and wait."""
        assert array.flags.c_contiguous
        assert offset + array.nbytes <= self.size
        self.gpu.call("upload", self.handle + offset, array.ctypes.data, array.nbytes, stream)
        self.gpu.synchronize(stream)

    def download(self, array: NDArray[Any], stream: int, offset: int = 0) -> None:
        """Copy memory from `offset` bytes after the start into a contiguous array, and wait."""
        assert array.flags.c_contiguous
        assert offset + array.nbytes <= self.size
        self.gpu.read(self.handle + offset, array, stream)

    def copy_to(self, other: DeviceMemory, stream: int, size: int | None = None) -> None:
        """Copy to other device memory, asynchronously in a stream."""
        self.gpu.call("copy", other.handle, self.handle, self.size if size is None else size, stream)

    def fill(self, byte: int, stream: int) -> None:
        """Fill the memory with a byte, asynchronously in a stream."""
        self.gpu.call("fill", self.handle, byte, self.size, stream)


class Module(Owned):
    """Loaded code."""

    def __init__(self, gpu: GpuContext, image: bytes) -> None:
        super().__init__(gpu, gpu.made("module_load", image), "module_unload")

    def function(self, name: str, shared_bytes: int = 0) -> DeviceKernel:
        """A kernel of the module, to be launched with `shared_bytes` bytes of dynamic shared memory."""
        handle = self.gpu.made("function", self.handle, name.encode())
        if shared_bytes > _BIG_SHARED and "function_attribute" in self.gpu.driver.vendor.extras:
            self.gpu.call("function_attribute", handle, MAX_DYNAMIC_SHARED, shared_bytes)
        return DeviceKernel(self, handle, name, shared_bytes)


@dataclass(frozen=True, eq=False)
class DeviceKernel:
    """A kernel; it keeps its module loaded."""

    module: Module
    handle: int
    name: str
    shared_bytes: int
    """Bytes of dynamic shared memory of each launch."""


class PreparedLaunch:
    """A launch with its arguments: pointers and integers, converted to ctypes values once."""

    def __init__(self, function: DeviceKernel, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        self.function = function
        places = (ctypes.c_void_p * max(1, len(arguments)))(*map(ctypes.addressof, arguments))
        self._kept = arguments, places
        self._places = ctypes.c_void_p(ctypes.addressof(places)), ctypes.c_void_p()
        one, sizes = ctypes.c_uint(1), [ctypes.c_uint(n) for n in (blocks, threads, function.shared_bytes)]
        self._fixed = (ctypes.c_void_p(function.handle), sizes[0], one, one, sizes[1], one, one, sizes[2])
        self._call = function.module.gpu.driver.raw("launch")

    def __call__(self, stream: int | ctypes.c_void_p) -> None:
        """Launch asynchronously in a stream, in the current context. Raises DriverError."""
        status = self._call(*self._fixed, stream, *self._places)
        if status:
            raise self.function.module.gpu.driver.error("launch", status)


class Stream(Owned):
    """A stream; launches take its `handle`."""

    def __init__(self, gpu: GpuContext) -> None:
        super().__init__(gpu, gpu.made("stream_create", NON_BLOCKING), "stream_destroy")

    def synchronize(self) -> None:
        """Wait for all work in the stream. Raises DriverError for failures in it."""
        self.gpu.synchronize(self.handle)

    def capture(self, record: Callable[[int], None]) -> Graph:
        """A graph of the launches that `record` makes in this stream; nothing runs."""
        with self.gpu.current():
            self.gpu.driver("capture_begin", self.handle, CAPTURE_THREAD)
            graph = ctypes.c_uint64()
            try:
                record(self.handle)
            except BaseException:
                self.gpu.driver.raw("capture_end")(self.handle, ctypes.byref(graph))
                if graph.value:
                    self.gpu.release("graph_destroy", graph.value)
                raise
            self.gpu.driver("capture_end", self.handle, ctypes.byref(graph))
            try:
                return Graph(self.gpu, graph.value)
            finally:
                self.gpu.release("graph_destroy", graph.value)


class Graph(Owned):
    """A captured sequence of launches, ready to run."""

    def __init__(self, gpu: GpuContext, graph: int) -> None:
        super().__init__(gpu, gpu.made("graph_instantiate", graph, 0), "graph_exec_destroy")

    def launch(self, stream: int) -> None:
        """Launch the graph in a stream."""
        self.gpu.call("graph_launch", self.handle, stream)


class DeviceEvent(Owned):
    """A moment in a stream."""

    def __init__(self, gpu: GpuContext) -> None:
        super().__init__(gpu, gpu.made("event_create", 0), "event_destroy")

    def record(self, stream: int) -> None:
        """Record the moment at which all earlier work of the stream is done."""
        self.gpu.call("event_record", self.handle, stream)

    def synchronize(self) -> None:
        """Wait for the moment. Raises DriverError for failures before it."""
        self.gpu.call("event_synchronize", self.handle)

    def seconds_since(self, start: DeviceEvent) -> float:
        """Seconds from `start` to this moment, with a resolution of about a microsecond or better."""
        milliseconds = ctypes.c_float()
        self.gpu.call("event_elapsed", ctypes.byref(milliseconds), start.handle, self.handle)
        return float(np.float64(milliseconds.value) * 1e-3)


def driver_of(vendor: Vendor) -> Driver:
    """This computer's driver, loaded once. Raises NoDevice if there is none, or no device."""
    return _driver(vendor.name, os.environ.get(vendor.variable) or None)


@cache
def _driver(name: str, path: str | None) -> Driver:
    return Driver(CUDA_VENDOR if name == CUDA_VENDOR.name else HIP_VENDOR, path)


def _load(vendor: Vendor, path: str | None) -> ctypes.CDLL:
    reasons: list[str] = []
    for name in (path,) if path is not None else vendor.libraries:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise NoDevice(f"there is no driver for {vendor.devices} here ({reasons[0]}): {vendor.remedy}")


def _symbol(library: ctypes.CDLL, vendor: Vendor, symbol: str, parameters: tuple[Any, ...]) -> Callable[..., int]:
    try:
        function = library[symbol]
    except AttributeError:
        raise NoDevice(f"the driver of {vendor.devices} lacks '{symbol}': update the driver") from None
    function.argtypes = list(parameters)
    function.restype = ctypes.c_int
    return function
