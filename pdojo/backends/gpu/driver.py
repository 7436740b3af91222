"""The driver of NVIDIA's and of AMD's GPUs as one interface: devices, memory, modules, streams, events, graphs.

The driver's library is called through ctypes (docs/decisions/2026-11-24-drivers-by-ctypes.md). Every call that fails
raises DriverError. What is made on a device is freed with the last reference to it; at the end of the process the
driver frees the rest. Calls work on any thread, and leave its current context as it was.
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
"""Alignment of memory of a device in bytes (CUDA C++ Programming Guide, "Device Memory Accesses"; HIP: the same)."""
_BIG_SHARED = 48 * 1024
"""Dynamic shared memory beyond so many bytes needs an attribute of the function (CUDA C++ Programming Guide)."""


class NoDevice(LoweringError):  # noqa: N818  # named after what the user lacks, as `resources.MissingTool`
    """This computer has no driver, or no device; the message says which."""


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
        """Whether the device has too little free memory."""
        return self.code == OUT_OF_MEMORY


@dataclass(frozen=True)
class DeviceInfo:
    """What the driver tells about a device."""

    ordinal: int
    """Its number, from 0."""
    name: str
    architecture: str
    """As compilers spell it: `sm_90`, `gfx942`."""
    memory_bytes: int
    multiprocessors: int
    warp_size: int
    block_threads: int
    """Most threads of a block."""
    shared_bytes: int
    """Most bytes of shared memory of a block."""
    l2_bytes: int


class Driver:
    """A loaded and initialised driver library."""

    def __init__(self, vendor: Vendor, path: str | None = None) -> None:
        """Load the library at `path`, or where the system has it. Raises NoDevice if there is none, or no device."""
        self.vendor = vendor
        self._gpus: dict[int, Gpu] = {}
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
        """Make a call. Raises DriverError."""
        status = self._calls[name](*arguments)
        if status:
            raise self.error(name, status)

    def raw(self, name: str) -> Callable[..., int]:
        """A call that returns its status."""
        return self._calls[name]

    def error(self, name: str, status: int) -> DriverError:
        """The error of a call's status."""
        texts: list[str] = []
        for what in ("error_name", "error_text"):
            text = ctypes.c_char_p()
            known = self._calls[what](status, ctypes.byref(text)) == 0 and text.value is not None
            texts.append(text.value.decode(errors="replace") if known and text.value else "unknown error")
        return DriverError(self._symbols[name], status, *texts)

    @property
    def version(self) -> str:
        """The version of CUDA that the driver supports, or of HIP."""
        number = self._number("version")
        if self.vendor is CUDA_VENDOR:
            return f"{number // 1000}.{number % 1000 // 10}"
        return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"

    def info(self, ordinal: int = 0) -> DeviceInfo:
        """What is known about a device. Raises DriverError if there is none of that number."""
        device = self._number("device", ordinal)
        text = ctypes.create_string_buffer(256)
        self("name", text, len(text), device)
        memory = ctypes.c_size_t()
        self("total_memory", ctypes.byref(memory), device)
        facts = {name: self._number("attribute", k, device) for name, k in self.vendor.attributes.items()}
        architecture = self._architecture(ordinal, facts.pop("major", 0), facts.pop("minor", 0))
        return DeviceInfo(ordinal, text.value.decode(errors="replace"), architecture, memory.value, **facts)

    def gpu(self, ordinal: int = 0) -> Gpu:
        """A device to work on, always the same object. Raises DriverError."""
        if ordinal not in self._gpus:
            self._gpus[ordinal] = Gpu(self, self.info(ordinal))
        return self._gpus[ordinal]

    def _architecture(self, ordinal: int, major: int, minor: int) -> str:
        if "properties" not in self._calls:
            return f"sm_{major}{minor}"
        properties = ctypes.create_string_buffer(2 * PROPERTIES_BYTES)
        self("properties", properties, ordinal)
        name = properties.raw[ARCHITECTURE_AT : ARCHITECTURE_AT + 256].partition(b"\0")[0]
        return name.partition(b":")[0].decode(errors="replace")

    def _number(self, name: str, *arguments: int) -> int:
        """The number that a call gives."""
        found = ctypes.c_int()
        self(name, ctypes.byref(found), *arguments)
        return found.value


class Gpu:
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
        """Make the context that of this thread; returns the one before for `leave`, None if it is the same.

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
        """Restore the context of this thread that `enter` returned."""
        if before is not None:
            self.driver.raw("set")(before)

    @contextmanager
    def current(self) -> Generator[None]:
        """Make the context that of this thread, within."""
        before = self.enter()
        try:
            yield
        finally:
            self.leave(before)

    @contextmanager
    def _relaxed(self) -> Generator[None]:
        """Let this thread make and free things within, which would end the capture of a stream (as PyTorch does)."""
        exchange, mode = self.driver.raw("capture_mode"), ctypes.c_int(CAPTURE_RELAXED)
        failed = exchange(ctypes.byref(mode))
        try:
            yield
        finally:
            if not failed:
                exchange(ctypes.byref(mode))

    def call(self, name: str, *arguments: object) -> None:
        """Make a call in the context. Raises DriverError."""
        with self.current():
            self.driver(name, *arguments)

    def made(self, name: str, *arguments: object) -> int:
        """The handle or address that a call makes. Raises DriverError."""
        handle = ctypes.c_uint64()
        with self.current(), self._relaxed():
            self.driver(name, ctypes.byref(handle), *arguments)
        return handle.value

    def release(self, name: str, handle: int) -> None:
        """Free something; what fails after a fatal error is not reported again."""
        with self.current(), self._relaxed():
            self.driver.raw(name)(handle)

    # What a device has

    def free_bytes(self) -> int:
        """Bytes of memory that nobody uses."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("memory", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def memory(self, size: int) -> Memory:
        """Memory on the device, aligned to 256 bytes."""
        return Memory(self, size)

    def module(self, image: bytes) -> Module:
        """Code for the device."""
        return Module(self, image)

    def stream(self) -> Stream:
        """A stream that does not wait for the default one."""
        return Stream(self)

    def event(self) -> Event:
        """An event, which takes the time."""
        return Event(self)

    def synchronize(self, stream: int) -> None:
        """Wait for a stream. Raises DriverError for what failed in it."""
        self.call("stream_synchronize", stream)


class Owned:
    """Something on a device, freed with the last reference to it."""

    def __init__(self, gpu: Gpu, handle: int, release: str) -> None:
        self.gpu = gpu
        self.handle = handle
        """The driver's name for it, an integer."""
        self._release = weakref.finalize(self, gpu.release, release, handle)
        # The driver may have gone by then.
        self._release.atexit = False

    def close(self) -> None:
        """Free it now."""
        self._release()


class Memory(Owned):
    """Memory on a device."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        super().__init__(gpu, gpu.made("allocate", max(1, size)), "free")
        self.size = size

    @property
    def address(self) -> int:
        """Where it begins."""
        return self.handle

    def upload(self, array: NDArray[Any], stream: int, offset: int = 0) -> None:
        """Copy a contiguous array to `offset` bytes from the beginning, and wait."""
        assert array.flags.c_contiguous
        assert offset + array.nbytes <= self.size
        self.gpu.call("upload", self.handle + offset, array.ctypes.data, array.nbytes, stream)
        self.gpu.synchronize(stream)

    def download(self, array: NDArray[Any], stream: int, offset: int = 0) -> None:
        """Fill a contiguous array from `offset` bytes behind the beginning, and wait."""
        assert array.flags.c_contiguous
        assert offset + array.nbytes <= self.size
        self.gpu.call("download", array.ctypes.data, self.handle + offset, array.nbytes, stream)
        self.gpu.synchronize(stream)

    def copy_to(self, other: Memory, stream: int, size: int | None = None) -> None:
        """Copy to other memory of the device, in the order of a stream."""
        self.gpu.call("copy", other.handle, self.handle, self.size if size is None else size, stream)

    def fill(self, byte: int, stream: int) -> None:
        """Fill it with a byte, in the order of a stream."""
        self.gpu.call("fill", self.handle, byte, self.size, stream)


class Module(Owned):
    """Loaded code."""

    def __init__(self, gpu: Gpu, image: bytes) -> None:
        super().__init__(gpu, gpu.made("module_load", image), "module_unload")

    def function(self, name: str, shared_bytes: int = 0) -> Function:
        """A kernel, which will be launched with `shared_bytes` of dynamic shared memory."""
        handle = self.gpu.made("function", self.handle, name.encode())
        if shared_bytes > _BIG_SHARED and "function_attribute" in self.gpu.driver.vendor.extras:
            self.gpu.call("function_attribute", handle, MAX_DYNAMIC_SHARED, shared_bytes)
        return Function(self, handle, name, shared_bytes)


@dataclass(frozen=True, eq=False)
class Function:
    """A kernel in a module, which it keeps loaded."""

    module: Module
    handle: int
    name: str
    shared_bytes: int
    """Bytes of dynamic shared memory of each launch."""


class PreparedLaunch:
    """A launch with its arguments: pointers and integers as ctypes values, which a call need not convert."""

    def __init__(self, function: Function, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        self.function = function
        places = (ctypes.c_void_p * max(1, len(arguments)))(*map(ctypes.addressof, arguments))
        self._kept = arguments, places
        self._places = ctypes.c_void_p(ctypes.addressof(places)), ctypes.c_void_p()
        one, sizes = ctypes.c_uint(1), [ctypes.c_uint(n) for n in (blocks, threads, function.shared_bytes)]
        self._fixed = (ctypes.c_void_p(function.handle), sizes[0], one, one, sizes[1], one, one, sizes[2])
        self._call = function.module.gpu.driver.raw("launch")

    def __call__(self, stream: int | ctypes.c_void_p) -> None:
        """Launch in a stream, in the current context. Raises DriverError."""
        status = self._call(*self._fixed, stream, *self._places)
        if status:
            raise self.function.module.gpu.driver.error("launch", status)


class Stream(Owned):
    """A stream; its `handle` is what launches take."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu, gpu.made("stream_create", NON_BLOCKING), "stream_destroy")

    def synchronize(self) -> None:
        """Wait for everything in it. Raises DriverError for what failed."""
        self.gpu.synchronize(self.handle)

    def capture(self, record: Callable[[int], None]) -> Graph:
        """The launches that `record` makes in this stream, as a graph; they do not run."""
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

    def __init__(self, gpu: Gpu, graph: int) -> None:
        super().__init__(gpu, gpu.made("graph_instantiate", graph, 0), "graph_exec_destroy")

    def launch(self, stream: int) -> None:
        """Run it in a stream."""
        self.gpu.call("graph_launch", self.handle, stream)


class Event(Owned):
    """A moment in a stream."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu, gpu.made("event_create", 0), "event_destroy")

    def record(self, stream: int) -> None:
        """Make it the moment when everything in the stream so far has run."""
        self.gpu.call("event_record", self.handle, stream)

    def synchronize(self) -> None:
        """Wait for it. Raises DriverError for what failed before it."""
        self.gpu.call("event_synchronize", self.handle)

    def seconds_since(self, start: Event) -> float:
        """Seconds between two moments, in steps of about a microsecond or less."""
        milliseconds = ctypes.c_float()
        self.gpu.call("event_elapsed", ctypes.byref(milliseconds), start.handle, self.handle)
        return float(np.float64(milliseconds.value) * 1e-3)


def driver_of(vendor: Vendor) -> Driver:
    """The driver on this computer, loaded once. Raises NoDevice if there is none, or no device."""
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
