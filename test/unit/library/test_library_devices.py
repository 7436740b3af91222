"""Programs of libraries for devices: files, the proof, and the loader in C with a stand-in for a GPU's driver."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaded_library import build_unproved, require_compiler
from pdojo.backends.backend import DeviceCode
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.executable import GpuCompiler, GpuKernel
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.library import devices
from pdojo.library.devices import DeviceFiles, choose_for_devices, device_files, devices_of
from pdojo.library.entries import PlannedEntry, entries_of
from pdojo.library.findings import Finding
from pdojo.library.loader import LoadedEntry, loader_texts
from pdojo.library.manifest import MANIFEST, digests
from pdojo.library.records import Array
from pdojo.library.schema import read_manifest
from pdojo.library.spec import spec_of
from pdojo.library.verify import verify
from pdojo.snitch_sim.assembler.assemble import assemble
from standin import gpu as standin_gpu
from standin.gpu import Standin
from toolchain import c_compiler

SPEC: dict[str, Any] = {
    "name": "small",
    "levels": ["host"],
    "devices": ["snitch"],
    "tuning": {"measure": False},
    "operators": [{"kernel": "relu", "shapes": ["4x8"]}, {"kernel": "softmax", "plain": ["2x8"]}],
}


def _files(device: str) -> DeviceFiles:
    """The files of the small library for a device; skips the test if a compiler is missing."""
    spec = spec_of({**SPEC, "devices": [device]}, "spec", Path())
    try:
        return device_files(spec, choose_for_devices(devices_of(spec), entries_of(spec)))
    except MissingTool as error:
        pytest.skip(str(error))


def test_assembly_of_snitch_cores_is_proved(tmp_path: Path) -> None:
    require_compiler()
    build_unproved(spec_of(SPEC, "spec", tmp_path), tmp_path / "dist")
    (device,) = read_manifest(tmp_path / "dist").devices
    assert (device.entry, device.file) == ("relu_f32_4x8", "snitch/snitch/relu_f32_4x8.S")
    assert "relu" in assemble((tmp_path / "dist" / device.file).read_text()).labels
    assert verify(tmp_path / "dist") == []
    assembly = tmp_path / "dist" / device.file
    assembly.write_text(assembly.read_text().replace("fmax.s", "fmin.s"))
    data = json.loads((tmp_path / "dist" / MANIFEST).read_text())
    data["files"] = digests(tmp_path / "dist")
    (tmp_path / "dist" / MANIFEST).write_text(json.dumps(data, indent=2) + "\n")
    assert Finding("the rebuilt file has other bytes", file=device.file) in verify(tmp_path / "dist")


def test_an_entry_without_code_is_left_out_with_the_reason() -> None:
    found = _files("snitch")
    assert [program.entry for program in found.programs] == ["relu_f32_4x8"]
    (reason,) = found.left_out
    assert reason.startswith("softmax_f32_2x8 has no program for snitch: ")
    assert not any("softmax" in name for name in found.files)


@pytest.mark.parametrize(
    ("device", "endings", "magic"),
    [("nvidia-sm90", ("cu", "cubin"), b"\x7fELF"), ("amd-gfx942", ("hip", "hsaco"), b"\x7fELF")],
)
def test_images_are_compiled_without_a_device(
    device: str, endings: tuple[str, str], magic: bytes, tmp_path: Path
) -> None:
    found = _files(device)
    assert found.left_out == ()
    for entry in ("relu_f32_4x8", "softmax_f32_2x8"):
        source, image = (found.files[f"device/{device}/{entry}.{ending}"] for ending in endings)
        assert "__global__" in str(source)
        assert isinstance(image, bytes)
        assert image.startswith(magic)
        assert f"traces/{entry}-{device}.trace" in found.files
    again = _files(device)
    assert found.files == again.files
    assert list(found.tools) == [f"compiler for {device}"]
    _compiled(found.files, f"device/{device}", f"small_{device.replace('-', '_')}", tmp_path)


class _AcmeBackend:
    """A backend of another package, whose programs need no loader."""

    device_folder = "acme"

    def compiler_version(self) -> str:
        return "1.0"

    def device_code(self, kernel: KernelOp, machine: Machine) -> DeviceCode:
        return DeviceCode({"txt": f"listing of {kernel.sym_name.data}", "bin": machine.name.encode()}, 64)


def test_a_backend_of_another_package_may_make_programs(monkeypatch: pytest.MonkeyPatch) -> None:

    def acme(_: Machine) -> _AcmeBackend:
        return _AcmeBackend()

    monkeypatch.setattr(devices, "backend_of", acme)
    found = _files("snitch")
    assert found.files["acme/snitch/relu_f32_4x8.txt"] == "listing of relu"
    assert found.files["acme/snitch/relu_f32_4x8.bin"] == b"snitch"
    assert next((p.file, p.variant.workspace) for p in found.programs) == ("acme/snitch/relu_f32_4x8.bin", (64, 0))
    assert found.tools == {"compiler for snitch": "1.0"}
    assert not any(name.endswith("device_loader.h") for name in found.files)


@pytest.mark.parametrize(
    ("device", "message"),
    [("x86-64-avx2", "is no GPU and no Snitch core"), ("nvidia-sm9", "did you mean 'nvidia-sm90'")],
)
def test_other_machines_are_refused(device: str, message: str) -> None:
    with pytest.raises(UsageError, match=f": key 'devices': .*{message}"):
        devices_of(spec_of({**SPEC, "devices": [device]}, "spec", Path()))


# The loader

KERNELS = {
    "turns": "x f32 [4, 8] heap\ny f32 [4, 8] heap\nt f32 [8] heap\n\n8:g t[{0}] = 0\n4\n"
    "| 8:g t[{1}] += x[{0},{1}]\n| 8:g y[{0},{1}] = t[{1}]\n",
    "kept": "x f32 [6, 64] heap\ny f32 [6] heap\nt f32 [6] heap\ns f32 [] heap\n\n6:g\n| t[{0}] = 0\n"
    "| 64 t[{0}] += x[{0},{1}]\ns[] = 0\n6 s[] += t[{0}]\n6:g y[{0}] = t[{0}] / s[]\n",
    "large": "x f32 [2, 15000] heap\ny f32 [2, 15000] heap\nt f32 [2:N, 15000] shared\n\n2:g\n"
    "| 100:b 150 t[{0},{1}*150+{2}] = x[{0},{1}*150+{2}]\n"
    "| 100:b 150 y[{0},{1}*150+{2}] = t[{0},14999-{1}*150-{2}]\n",
}
"""Kernels with a loop around launches, with a workspace, and with much shared memory."""


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    with standin_gpu.installed(tmp_path) as found:
        yield found


@dataclass
class _Loader:
    """A compiled loader with its programs."""

    library: ctypes.CDLL
    kernels: dict[str, GpuKernel]
    folder: Path


def _compiled(files: Any, folder: str, stem: str, target: Path) -> Path:
    """A shared library of the loader among the files."""
    compiler = c_compiler()
    for name in (f"{stem}.c", f"{stem}.h", "device_loader.h"):
        (target / name).write_text(files[f"{folder}/{name}"])
    output = target / "loader.so"
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = [compiler, *warnings, "-O1", "-shared", "-fPIC", str(target / f"{stem}.c"), "-o", str(output), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


def _kernel(name: str) -> KernelOp:
    (kernel,) = parse_notation(f"kernel {name}(x) -> (y)\n{KERNELS[name]}")
    return kernel


def _loader(compiler: GpuCompiler, target: Path) -> _Loader:
    kernels = {name: compiler(_kernel(name)) for name in KERNELS}
    loaded: list[LoadedEntry] = []
    for name, kernel in kernels.items():
        arrays = tuple(Array(p.name, p.dtype, p.shape, p.intent.value) for p in kernel.parameters)
        sizes = {"N": len(name)}
        loaded.append(
            LoadedEntry(PlannedEntry(name, name, sizes, _kernel(name), arrays), f"{name}.img", kernel.program)
        )
        (target / f"{name}.img").write_bytes(kernel.program.image.data)
    texts = loader_texts("demo", "demo_gpu", compiler.vendor, loaded, "MIT")
    source = texts["demo_gpu.c"]
    line = source.splitlines()[1]
    texts["demo_gpu.c"] = source.replace(line, f'#define PD_LIBRARY "{standin_gpu.library()}"')
    header = Path(loader_texts.__code__.co_filename).with_name("device_loader.h").read_text()
    files = {f"d/{name}": text for name, text in {**texts, "device_loader.h": header}.items()}
    library = ctypes.CDLL(str(_compiled(files, "d", "demo_gpu", target)))
    library.demo_gpu_message.restype = ctypes.c_char_p
    for name in KERNELS:
        getattr(library, f"demo_gpu_{name}_workspace").restype = ctypes.c_size_t
    return _Loader(library, kernels, target)


def _call(loader: _Loader, handle: ctypes.c_void_p, name: str, size: int, addresses: Sequence[int]) -> int:
    kernel = loader.kernels[name]
    size_of = getattr(loader.library, f"demo_gpu_{name}_workspace")
    workspace = kernel.gpu.memory(size_of(ctypes.c_int64(size)))
    arguments = [ctypes.c_uint64(each) for each in (workspace.address, *addresses)]
    with kernel.gpu.current():
        code: int = getattr(loader.library, f"demo_gpu_{name}")(
            handle, ctypes.c_void_p(None), arguments[0], ctypes.c_int64(size), *arguments[1:]
        )
        kernel.gpu.synchronize(0)
    return code


@standin_gpu.NEEDS
@pytest.mark.parametrize("compiler", [standin_gpu.CUDA, standin_gpu.HIP], ids=["cuda", "hip"])
def test_the_loader_launches_programs(compiler: GpuCompiler, standin: Standin, tmp_path: Path) -> None:
    loader = _loader(compiler, tmp_path)
    handle = ctypes.c_void_p()
    assert loader.library.demo_gpu_open(ctypes.byref(handle), str(tmp_path).encode()) == 0
    for name, kernel in loader.kernels.items():
        x, y = parameters_of(nest_of(_kernel(name)))
        inputs = random_inputs((x, y), 3)
        result = np.full(y.shape, np.nan, np.float32)
        memory = [kernel.gpu.memory(array.nbytes) for array in (inputs["x"], result)]
        for place, array in zip(memory, (inputs["x"], result), strict=True):
            place.upload(array, 0)
        for _ in range(2):
            assert _call(loader, handle, name, len(name), [place.address for place in memory]) == 0
        memory[1].download(result, 0)
        np.testing.assert_allclose(result, interpret(_kernel(name), inputs)["y"], rtol=1e-5)
    assert _call(loader, handle, "kept", 77, [0, 0]) == -1
    assert loader.library.demo_gpu_message(-1) == b"there is no program for these sizes"
    before = standin.count("modules")
    with loader.kernels["kept"].gpu.current():
        loader.library.demo_gpu_close(handle)
    assert before - standin.count("modules") == len(KERNELS)


@standin_gpu.NEEDS
def test_what_the_loader_lacks_is_a_code(standin: Standin, tmp_path: Path) -> None:
    loader = _loader(standin_gpu.CUDA, tmp_path)
    handle = ctypes.c_void_p()
    assert loader.library.demo_gpu_open(ctypes.byref(handle), b"/nowhere") == 0
    assert _call(loader, handle, "kept", 4, [0, 0]) == -3
    loader.library.demo_gpu_close(handle)
    standin.set("cuModuleLoadData", 209)
    assert loader.library.demo_gpu_open(ctypes.byref(handle), str(tmp_path).encode()) == 0
    assert _call(loader, handle, "kept", 4, [0, 0]) == 209
    loader.library.demo_gpu_close(handle)
    assert loader.library.demo_gpu_open(None, b"") == -5


def test_the_description_of_a_device_is_kept(tmp_path: Path) -> None:
    found = _files("snitch")
    text = found.files["machines/snitch.toml"]
    assert isinstance(text, str)
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "snitch.toml").write_text(text)
    from pdojo.library.levels import read_level

    assert read_level(tmp_path, "snitch").features == machine("snitch").features
