"""Calling compiled kernels: what arrays fit, what the messages say, where results go."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from pdojo.backends.calling.arrays import aligned_empty
from pdojo.backends.llvm import openmp
from pdojo.backends.llvm.executable import Executable
from pdojo.backends.llvm.targets import llvm_text
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import LoweringError, PdojoError, UsageError

SCALE = """
kernel scale(x, c) -> (c, y, z)
x f32 [4, 8] heap
c f32 [8] heap
y f32 [4, 8] heap align 64
z bf16 [4] heap

4 8 y[{0},{1}] = x[{0},{1}] * 2
8 c[{0}] += 1
4 z[{0}] = arith.truncf(x[{0},0])
"""


def compiled(text: str = SCALE, **options: Any) -> Executable:
    (kernel,) = parse_notation(text)
    found = pdojo.compile(kernel, **options)
    assert isinstance(found, Executable)
    return found


def floats(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_outputs_are_allocated_and_returned() -> None:
    c = floats(8)
    y, z = compiled()(floats(4, 8), c)
    assert np.array_equal(y, 2 * floats(4, 8))
    assert y.ctypes.data % 64 == 0
    assert np.array_equal(c, floats(8) + 1)
    assert z.dtype == np.uint16
    assert np.array_equal((z.astype(np.uint32) << 16).view(np.float32), [0, 8, 16, 24])


def test_arrays_by_position_and_by_name() -> None:
    executable = compiled()
    y, z = aligned_empty((4, 8), np.dtype(np.float32)), np.zeros(4, np.uint16)
    results = executable(floats(4, 8), z=z, y=y, c=floats(8))
    assert results[0] is y
    assert results[1] is z


def test_bound_call() -> None:
    x, c = floats(4, 8), floats(8)
    call = compiled().bind(x, c)
    for _ in range(3):
        call()
    assert np.array_equal(c, floats(8) + 3)


class Exporter:
    """An array of another library, known by DLPack only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack_shares_memory() -> None:
    c = floats(8)
    compiled()(Exporter(floats(4, 8)), Exporter(c))
    assert np.array_equal(c, floats(8) + 1)


def imported_torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_tensors_go_in_and_come_out() -> None:
    torch = imported_torch()
    c = torch.arange(8, dtype=torch.float32)
    z = torch.zeros(4, dtype=torch.bfloat16)
    y, same = compiled()(torch.ones(4, 8), c, z=z)
    assert c.tolist() == [k + 1 for k in range(8)]
    assert same is z
    assert z.tolist() == [1.0] * 4
    assert torch.equal(y, torch.full((4, 8), 2.0))
    assert y.data_ptr() % 64 == 0
    _, allocated = compiled()(torch.ones(4, 8), c)
    assert torch.equal(allocated, z)


def test_a_detached_tensor_shares_memory() -> None:
    torch = imported_torch()
    x = torch.nn.Parameter(torch.full((4, 8), 3.0))
    y, _ = compiled()(x.detach(), torch.zeros(8))
    assert y[0, 0] == 6


def test_aligned_copies() -> None:
    torch = imported_torch()
    for array in (floats(33)[1:], torch.zeros(5)[1:], torch.ones(3, dtype=torch.bfloat16, requires_grad=False)):
        copy = pdojo.aligned(array)
        assert type(copy) is type(array)
        assert (copy == array).all()
        assert copy.dtype == array.dtype
        assert (copy.ctypes.data if isinstance(copy, np.ndarray) else copy.data_ptr()) % 64 == 0


TENSORS: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "mixed": (lambda t: {"c": floats(8)}, "array 'x' is a PyTorch tensor and 'c' is a ndarray; pass tensors only"),
    "gradient": (lambda t: {"x": t.ones(4, 8, requires_grad=True)}, "array 'x' requires grad, and no gradient flows"),
    "remedy": (lambda t: {"x": t.ones(4, 8, requires_grad=True)}, "pass x.detach(), which shares its memory"),
    "device": (lambda t: {"x": t.ones(4, 8, device="meta")}, "array 'x' is on device 'meta'; move it to the CPU"),
    "dtype": (
        lambda t: {"x": t.ones(4, 8, dtype=t.float64)},
        "has dtype torch.float64, the kernel takes torch.float",
    ),
    "bf16": (lambda t: {"z": t.ones(4)}, "array 'z' has dtype torch.float32, the kernel takes torch.bfloat16"),
    "no such dtype": (lambda t: {"x": t.ones(4, 8).to(t.float8_e5m2)}, "array 'x' cannot share its memory with NumPy"),
    "shape": (lambda t: {"x": t.ones(8, 4)}, "array 'x' has shape 8x4, the kernel takes 4x8"),
    "strides": (lambda t: {"x": t.ones(8, 4).T}, "array 'x' is not C-contiguous; pass x.contiguous()"),
    "sparse": (lambda t: {"x": t.eye(4, 8).to_sparse()}, "array 'x' cannot share its memory with NumPy"),
    "overlap": (lambda t: {"y": (m := t.zeros(32, 8))[:4], "x": m[2:6]}, "arrays 'y' and 'x' overlap in memory"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_wrong_tensors(name: str) -> None:
    torch = imported_torch()
    make, message = TENSORS[name]
    arrays: dict[str, Any] = {"x": torch.ones(4, 8), "c": torch.ones(8), **make(torch)}
    with pytest.raises(UsageError, match=re.escape(message)):
        compiled()(**arrays)


def read_only() -> NDArray[np.float32]:
    array = floats(8)
    array.flags.writeable = False
    return array


def off_by_four() -> NDArray[np.float32]:
    return aligned_empty((36,), np.dtype(np.float32))[1:33].reshape(4, 8)


WRONG = {
    "dtype": (lambda: {"x": floats(4, 8).astype(np.float64)}, "array 'x' has dtype float64, the kernel takes float32"),
    "shape": (lambda: {"x": floats(8, 4)}, "array 'x' has shape 8x4, the kernel takes 4x8"),
    "strides": (lambda: {"x": floats(8, 4).T}, "array 'x' is not C-contiguous"),
    "read-only": (lambda: {"c": read_only()}, "array 'c' is read-only, but the kernel writes it"),
    "alignment": (lambda: {"y": off_by_four()}, "array 'y' is not aligned to 64 bytes"),
    "kind": (lambda: {"x": [1.0, 2.0]}, "array 'x' is a list; pass a NumPy array"),
    "name": (lambda: {"w": floats(8)}, "kernel 'scale' has no array 'w'; it has x, c, y, z"),
    "bits": (lambda: {"z": floats(4)}, "array 'z' has dtype float32, the kernel takes uint16 (bit patterns of bf16)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arrays(name: str) -> None:
    make, message = WRONG[name]
    arrays: dict[str, Any] = {"x": floats(4, 8), "c": floats(8), **make()}
    with pytest.raises(UsageError, match=re.escape(message)):
        compiled()(**arrays)


def test_missing_extra_and_repeated_arrays() -> None:
    executable = compiled()
    with pytest.raises(UsageError, match="needs c; only 'out' arrays may be left out"):
        executable(floats(4, 8))
    with pytest.raises(UsageError, match=re.escape("takes 4 arrays (x, c, y, z), not 5")):
        executable(*[floats(8)] * 5)
    with pytest.raises(UsageError, match="array 'x' of kernel 'scale' is given twice"):
        executable(floats(4, 8), x=floats(4, 8))


def test_overlap() -> None:
    memory = aligned_empty((64,), np.dtype(np.float32))
    x, y = memory[:32].reshape(4, 8), memory[16:48].reshape(4, 8)
    with pytest.raises(UsageError, match="arrays 'x' and 'y' overlap in memory"):
        compiled()(x, floats(8), y=y)


def test_inputs_may_be_one_array() -> None:
    add = compiled(
        "kernel add(a, b) -> (y)\na f32 [8] heap\nb f32 [8] heap\ny f32 [8] heap\n\n8 y[{0}] = a[{0}] + b[{0}]\n"
    )
    x = floats(8)
    assert np.array_equal(add(x, x), 2 * x)


def test_texts() -> None:
    executable = compiled()
    assert 'define void @"scale"' in executable.llvm_ir
    assert "define void @scale" in executable.optimized_ir
    assert "scale:" in executable.asm


def test_threads_of_the_machine() -> None:
    text = "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8:p y[{0}] = x[{0}]\n"
    assert compiled(text, machine=pdojo.machine("toy")).threads == machine("toy").threads
    assert compiled(text, threads=5).threads == 5
    with pytest.raises(UsageError, match="at least 1 thread, not 0"):
        compiled(text, threads=0)


def test_machine_with_foreign_features() -> None:
    other = pdojo.Machine("other", (64,), 32, gather=True, threads=1, features=("no-such-feature",))
    with pytest.raises(LoweringError, match="'other' has no-such-feature, which this processor lacks"):
        compiled(machine=other)


def test_no_openmp_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> ctypes.CDLL:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setattr(openmp, "team", lambda: None)
    openmp.runtime.cache_clear()
    try:
        with pytest.raises(LoweringError, match="no OpenMP runtime found, which parallel scopes"):
            compiled("kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8:p y[{0}] = x[{0}]\n")
    finally:
        openmp.runtime.cache_clear()


def test_lazy_names() -> None:
    assert pdojo.PdojoError is PdojoError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pdojo.nothing  # pyright: ignore[reportAttributeAccessIssue]


FORKED = """
import os, sys
import numpy as np
from pdojo.backends.llvm import openmp
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.notation import parse_notation
from pdojo.errors import UsageError

if sys.argv[2] == "runtime":
    openmp.team = lambda: None
(kernel,) = parse_notation("kernel k(x) -> (y)\\nx f32 [64] heap\\ny f32 [64] heap\\n\\n64:p y[{0}] = x[{0}] + 1\\n")
double, single = compile(kernel, threads=2), compile(kernel, threads=1)
x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
bound = double.bind(x, y)
if sys.argv[1] == "after":
    bound()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
single(x, y)
assert (y == 2).all()
refused = 0
for call in (bound, lambda: double(x, y)):
    try:
        call()
    except UsageError as error:
        assert "forked" in str(error)
        refused += 1
    else:
        assert (y == 2).all()
os._exit(refused)
"""


@pytest.mark.parametrize("threads", ["runtime", "team"])
@pytest.mark.parametrize("order", ["after", "before"])
def test_parallel_kernels_in_forked_processes(order: str, threads: str) -> None:
    """Threads of a runtime do not survive a fork: calls would wait for ever. pdojo's own team is started again."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, order, threads]
    done = subprocess.run(command, timeout=60, check=False)
    assert done.returncode == (2 if (order, threads) == ("after", "runtime") else 0)


def test_workspaces_beyond_two_gigabytes() -> None:
    """Offsets that do not fit 32 bits are no part of an instruction: they were negative, or stopped the lowering."""
    for extent in (1 << 29, 3 << 28, 1 << 33):
        rows = "".join(f"{n} f32 [{extent}] heap\n" for n in "xyab")
        text = f"{extent} a[{{0}}] = x[{{0}}]\n{extent} b[{{0}}] = a[{{0}}]\n{extent} y[{{0}}] = b[{{0}}]\n"
        (kernel,) = parse_notation(f"kernel k(x) -> (y)\n{rows}\n{text}")
        assert f"i64 {4 * extent}" in llvm_text(kernel)


SIZED = """\
kernel k(x) -> (y)
size M in 1..1048576
size N in 1..1048576
x f32 [M, N] heap
t f32 [M, N] heap
y f32 [M, N] heap

M N t[{0},{1}] = x[{0},{1}] + 1
M N y[{0},{1}] = t[{0},{1}] * 2
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is reserved on Linux only")
def test_a_workspace_for_great_sizes_takes_the_memory_of_a_call() -> None:
    x = np.random.default_rng(0).random((3, 5), np.float32)
    np.testing.assert_allclose(pdojo.compile(SIZED)(x), (x + 1) * 2)
    fixed = SIZED.replace("size M in 1..1048576\nsize N in 1..1048576\n", "").replace("M", "4").replace("N", "1048576")
    text = fixed.replace("t f32 [4, 1048576]", "t f32 [4194304, 1048576]")
    with pytest.raises(UsageError, match="there is no memory for an array of 17592186044416 bytes"):
        pdojo.compile(text)(np.zeros((4, 1 << 20), np.float32))


def test_iterations_that_are_unrolled_to_nothing_count() -> None:
    (kernel,) = parse_notation("kernel k() -> (y)\ny f32 [3] heap\n\n265520:u where ({0} < 3) y[{0}] = 1\n")
    with pytest.raises(LoweringError, match="unroll to too many iterations"):
        llvm_text(kernel)


@pytest.mark.parametrize("name", ["", *openmp.WAITING])
def test_a_runtime_is_loaded_with_threads_that_sleep(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says so while the library is loaded, unless the user has said something else."""
    for each in openmp.WAITING:
        monkeypatch.delenv(each, raising=False)
    if name:
        monkeypatch.setenv(name, "7")
    before = dict(os.environ)
    seen: list[dict[str, str]] = []

    def load(_: str) -> None:
        seen.append(dict(os.environ))

    monkeypatch.setattr(openmp.ctypes, "CDLL", load)
    assert openmp._load("libany.so") is None  # pyright: ignore[reportPrivateUsage]
    assert seen == [before if name else {**before, "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}]
    assert dict(os.environ) == before
