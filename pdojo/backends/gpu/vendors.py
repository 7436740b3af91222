"""The driver libraries of CUDA and HIP as tables of each vendor's names for the same functions.

Signatures are those of `cuda.h` (CUDA 12 and 13) and of `hip/hip_runtime_api.h` (ROCm 6 and later). If a symbol of CUDA
has a version (`_v2`), the header's macros select it; the symbol without a version has an older signature.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_POINTER = ctypes.c_void_p
_OUT = ctypes.c_void_p
"""A pointer to a result."""
_ADDRESS = ctypes.c_uint64
"""An address on the device: `CUdeviceptr` is an integer, `hipDeviceptr_t` a pointer; calls pass both alike."""
_INT, _UNSIGNED, _SIZE = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_LAUNCH = (_POINTER, *([_UNSIGNED] * 7), _POINTER, _POINTER, _POINTER)
_COPY = (_ADDRESS, _SIZE, _POINTER)

_CALLS: Mapping[str, tuple[str, str, tuple[Any, ...]]] = {
    "init": ("cuInit", "hipInit", (_UNSIGNED,)),
    "version": ("cuDriverGetVersion", "hipRuntimeGetVersion", (_OUT,)),
    "count": ("cuDeviceGetCount", "hipGetDeviceCount", (_OUT,)),
    "device": ("cuDeviceGet", "hipDeviceGet", (_OUT, _INT)),
    "name": ("cuDeviceGetName", "hipDeviceGetName", (_OUT, _INT, _INT)),
    "attribute": ("cuDeviceGetAttribute", "hipDeviceGetAttribute", (_OUT, _INT, _INT)),
    "total_memory": ("cuDeviceTotalMem_v2", "hipDeviceTotalMem", (_OUT, _INT)),
    "error_name": ("cuGetErrorName", "hipDrvGetErrorName", (_INT, _OUT)),
    "error_text": ("cuGetErrorString", "hipDrvGetErrorString", (_INT, _OUT)),
    "module_load": ("cuModuleLoadData", "hipModuleLoadData", (_OUT, ctypes.c_char_p)),
    "module_unload": ("cuModuleUnload", "hipModuleUnload", (_POINTER,)),
    "function": ("cuModuleGetFunction", "hipModuleGetFunction", (_OUT, _POINTER, ctypes.c_char_p)),
    "launch": ("cuLaunchKernel", "hipModuleLaunchKernel", _LAUNCH),
    "allocate": ("cuMemAlloc_v2", "hipMalloc", (_OUT, _SIZE)),
    "free": ("cuMemFree_v2", "hipFree", (_ADDRESS,)),
    "memory": ("cuMemGetInfo_v2", "hipMemGetInfo", (_OUT, _OUT)),
    "upload": ("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", (_ADDRESS, _POINTER, _SIZE, _POINTER)),
    "download": ("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (_POINTER, *_COPY)),
    "copy": ("cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", (_ADDRESS, *_COPY)),
    "fill": ("cuMemsetD8Async", "hipMemsetD8Async", (_ADDRESS, ctypes.c_ubyte, _SIZE, _POINTER)),
    "stream_create": ("cuStreamCreate", "hipStreamCreateWithFlags", (_OUT, _UNSIGNED)),
    "stream_destroy": ("cuStreamDestroy_v2", "hipStreamDestroy", (_POINTER,)),
    "stream_synchronize": ("cuStreamSynchronize", "hipStreamSynchronize", (_POINTER,)),
    "capture_begin": ("cuStreamBeginCapture_v2", "hipStreamBeginCapture", (_POINTER, _INT)),
    "capture_end": ("cuStreamEndCapture", "hipStreamEndCapture", (_POINTER, _OUT)),
    "capture_mode": ("cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode", (_OUT,)),
    "graph_instantiate": (
        "cuGraphInstantiateWithFlags",
        "hipGraphInstantiateWithFlags",
        (_OUT, _POINTER, ctypes.c_ulonglong),
    ),
    "graph_launch": ("cuGraphLaunch", "hipGraphLaunch", (_POINTER, _POINTER)),
    "graph_destroy": ("cuGraphDestroy", "hipGraphDestroy", (_POINTER,)),
    "graph_exec_destroy": ("cuGraphExecDestroy", "hipGraphExecDestroy", (_POINTER,)),
    "event_create": ("cuEventCreate", "hipEventCreateWithFlags", (_OUT, _UNSIGNED)),
    "event_destroy": ("cuEventDestroy_v2", "hipEventDestroy", (_POINTER,)),
    "event_record": ("cuEventRecord", "hipEventRecord", (_POINTER, _POINTER)),
    "event_synchronize": ("cuEventSynchronize", "hipEventSynchronize", (_POINTER,)),
    "event_elapsed": ("cuEventElapsedTime", "hipEventElapsedTime", (_OUT, _POINTER, _POINTER)),
}
"""The calls that both vendors have: symbols of CUDA and HIP, and parameters; every call returns a status code."""
SIGNATURES: Mapping[str, tuple[Any, ...]] = {name: parameters for name, (_, _, parameters) in _CALLS.items()}
"""The parameters of these calls."""


@dataclass(frozen=True, eq=False)
class Vendor:
    """One vendor's driver library."""

    name: str
    """`CUDA` or `HIP`."""
    devices: str
    """The vendor's devices, in messages."""
    endings: tuple[str, str]
    """Endings of the names of files with device code, and with an image."""
    libraries: tuple[str, ...]
    """File names of the library, in the order of search."""
    variable: str
    """Environment variable with the library's path; it takes precedence over `libraries`."""
    remedy: str
    """Instructions to install the library."""
    calls: Mapping[str, str]
    """The vendor's symbols, keyed by the names in `SIGNATURES`."""
    attributes: Mapping[str, int]
    """Attribute numbers of a device, by the fields of `driver.DeviceInfo`."""
    context_get: str
    """The call that returns the current context (CUDA) or device (HIP) of a thread."""
    context_set: str
    context_type: Any
    """The type of that result: a pointer, or an integer."""
    extras: Mapping[str, tuple[str, tuple[Any, ...]]]
    """The parameters of calls that only this vendor has."""


CUDA_VENDOR = Vendor(
    name="CUDA",
    devices="NVIDIA's GPUs",
    endings=("cu", "cubin"),
    libraries=("libcuda.so.1", "nvcuda.dll"),
    variable="PDOJO_CUDA_DRIVER",
    remedy="install NVIDIA's driver",
    calls={name: symbol for name, (symbol, _, _) in _CALLS.items()},
    attributes={
        "block_threads": 1,  # CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        "warp_size": 10,  # CU_DEVICE_ATTRIBUTE_WARP_SIZE
        "multiprocessors": 16,  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        "l2_bytes": 38,  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        "shared_bytes": 97,  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        "major": 75,  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        "minor": 76,  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
    },
    context_get="cuCtxGetCurrent",
    context_set="cuCtxSetCurrent",
    context_type=ctypes.c_void_p,
    extras={
        "primary_context": ("cuDevicePrimaryCtxRetain", (_OUT, _INT)),
        "function_attribute": ("cuFuncSetAttribute", (_POINTER, _INT, _INT)),
    },
)
HIP_VENDOR = Vendor(
    name="HIP",
    devices="AMD's GPUs",
    endings=("hip", "hsaco"),
    libraries=("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "amdhip64_7.dll", "amdhip64_6.dll"),
    variable="PDOJO_HIP_DRIVER",
    remedy="install ROCm 6 or later (the package hip-runtime-amd has the library)",
    calls={name: symbol for name, (_, symbol, _) in _CALLS.items()},
    attributes={
        "block_threads": 56,  # hipDeviceAttributeMaxThreadsPerBlock
        "warp_size": 87,  # hipDeviceAttributeWarpSize
        "multiprocessors": 63,  # hipDeviceAttributeMultiprocessorCount
        "l2_bytes": 19,  # hipDeviceAttributeL2CacheSize
        "shared_bytes": 74,  # hipDeviceAttributeMaxSharedMemoryPerBlock
    },
    context_get="hipGetDevice",
    context_set="hipSetDevice",
    context_type=ctypes.c_int,
    # `…R0600` fills ROCm 6's structure; the unversioned symbol fills ROCm 5's.
    extras={"properties": ("hipGetDevicePropertiesR0600", (_OUT, _INT))},
)
PROPERTIES_BYTES, ARCHITECTURE_AT = 1472, 1160
"""The size of `hipDeviceProp_tR0600`, and the offset of its field `gcnArchName` (256 characters)."""

MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING, hipStreamNonBlocking: a stream that does not wait for the default one."""
CAPTURE_THREAD = 1
"""CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, hipStreamCaptureModeThreadLocal: other threads are not restricted."""
CAPTURE_RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED, hipStreamCaptureModeRelaxed: nothing is forbidden."""

OUT_OF_MEMORY, NO_DEVICE = 2, 100
"""Error numbers, equal for both vendors like the following ones."""
REFUSED_CODE = frozenset((200, 209, 218, 222))
"""Errors of a driver that cannot load code: of an unknown form, for another processor, from a newer compiler."""
FATAL = frozenset((214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719))
"""Errors after which every call of the process fails: memory errors (ECC), invalid addresses and instructions."""
REMEDIES: Mapping[int, str] = {
    2: "use smaller arrays, or end other programs on the device (nvidia-smi and rocm-smi list them)",
    100: "nvidia-smi and rocm-smi list the devices; CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES may hide them",
    101: "take a device that exists; nvidia-smi and rocm-smi list them",
    200: "compile for the architecture of the device, with a compiler that is no newer than the driver",
    209: "compile for the architecture of the device (--machine)",
    218: "update the driver: the compiler is newer",
    222: "update the driver: the compiler is newer",
    700: "a kernel accessed memory that is not its own; this process cannot use the device any more",
    701: "launch fewer threads in a block, or ask for fewer registers",
    702: "a kernel ran longer than the device's display allows; this process cannot use the device any more",
    716: "a kernel accessed a misaligned vector; this process cannot use the device any more",
    719: "a kernel failed; this process cannot use the device any more",
    803: "the driver and its library have different versions: restart the system",
    804: "the loaded driver library has another version than the driver: look at LD_LIBRARY_PATH",
}
"""Remedies, by error number."""
