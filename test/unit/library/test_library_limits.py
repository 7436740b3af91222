"""Libraries at the limits of a process: no memory, no threads, forks, and the files for build systems."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from loaded_library import Loaded, build_unproved, placed, poisoned, require_compiler, small_spec
from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError
from pdojo.library import linking
from pdojo.library.manifest import triple_of
from pdojo.library.packaging import package_files
from toolchain import c_compiler, require_program, require_tool

ALONE = """
import ctypes, os, resource, sys
from pathlib import Path
import numpy as np
from loaded_library import Loaded, placed, poisoned
library = Loaded.of(Path(sys.argv[1]))
"""
MEMORY = """
x, y = placed(np.ones((1024, 1024), np.float32)), poisoned((1024, 1024))
handle = library.create(1)
pages = int(Path('/proc/self/statm').read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (2 << 20), resource.RLIM_INFINITY))
print(library.call('softmax_f32', handle, (1024, 1024), [x, y]))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(library.call('softmax_f32', handle, (1024, 1024), [x, y]), bool(np.allclose(y, 1 / 1024)))
"""
THREADS = """
handle = ctypes.c_void_p(1)
pages = int(Path('/proc/self/statm').read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (64 << 20), resource.RLIM_INFINITY))
print(library.function('create')(ctypes.byref(handle), 100), handle.value)
print(*(library.function('create')(ctypes.byref(handle), count) for count in (4096, 4097, -1)))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
handle = library.create(20)
x, y = placed(np.ones((4000, 16), np.float32)), poisoned((4000, 16))
print(library.call('softmax_f32', handle, (4000, 16), [x, y]), bool(np.allclose(y, 1 / 16)))
"""
FORKED = """
handle = library.create(3)
x, y = placed(np.ones((4000, 16), np.float32)), poisoned((4000, 16))
print(library.call('softmax_f32', handle, (4000, 16), [x, y]), flush=True)
child = os.fork()
if child == 0:
    y[...] = np.nan
    code = library.call('softmax_f32', handle, (4000, 16), [x, y])
    library.function('destroy')(handle)
    fresh = library.create(3)
    again = library.call('softmax_f32', fresh, (4000, 16), [x, y])
    library.function('destroy')(fresh)
    os._exit(code + again + (0 if np.allclose(y, 1 / 16) else 50))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
library.function('destroy')(handle)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a kernel that needs 8 MB of workspace."""
    require_compiler()
    folder = tmp_path_factory.mktemp("large") / "dist"
    row = {"kernel": "softmax", "plain": ["1024x1024"]}
    build_unproved(small_spec(operators=[row], levels=["host"]), folder)
    return folder


def printed(script: str, folder: Path) -> list[str]:
    """The words that a script prints in a process of its own."""
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE + script, folder],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_no_memory(large: Path) -> None:
    assert printed(MEMORY, large) == ["6", "0", "True"]


def test_no_threads(built: Path) -> None:
    """A thread that cannot start is a code; the threads that did start end, and later handles work."""
    assert printed(THREADS, built) == ["7", "None", "7", "9", "9", "0", "True"]


def test_fork(built: Path) -> None:
    """In a forked process a handle of the parent computes on one thread; new handles have all threads."""
    assert printed(FORKED, built) == ["0", "0"]


def nothing(_: str) -> None:
    """Found nowhere."""


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking.shutil, "which", nothing)
    monkeypatch.setattr(linking, "find_spec", nothing)
    with pytest.raises(UsageError, match=r"no C compiler for riscv64.*gcc-riscv64-linux-gnu .*pip install ziglang"):
        linking.compiler_for("riscv64")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_zig(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another compiler, that of the package ziglang links."""
    pytest.importorskip("ziglang")
    monkeypatch.setattr(linking.shutil, "which", nothing)
    level = {"x86_64": "x86-64-avx2", "aarch64": "neoverse-v2"}[architecture]
    row = {"kernel": "softmax", "plain": ["4x8"]}
    found = build_unproved(small_spec(operators=[row], levels=[level]), tmp_path / "dist")
    assert found.tools[f"compiler for {architecture}"]
    if architecture == host().architecture and "avx2" in host().features:
        library = Loaded.of(tmp_path / "dist")
        x, y = placed(np.ones((4, 8), np.float32)), poisoned((4, 8))
        assert library.call("softmax_f32", library.create(), (4, 8), [x, y]) == 0
        assert np.allclose(y, 1 / 8)


MAIN = """
#include <small.h>
int main(void) {
  small_handle *handle;
  return small_create(&handle, 1);
}
"""


def test_cmake(built: Path, tmp_path: Path) -> None:
    for tool in ("cmake", "make"):
        require_tool(tool, "--version")
    require_program(("cc",))
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(small 2.0 REQUIRED)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user PRIVATE small::small)\n"
    )
    for command in (["cmake", f"-DCMAKE_PREFIX_PATH={built}", "-B", "out"], ["cmake", "--build", "out"], ["out/user"]):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    newer = (tmp_path / "CMakeLists.txt").read_text().replace("small 2.0", "small 3.0")
    (tmp_path / "CMakeLists.txt").write_text(newer)
    refused = subprocess.run(
        ["cmake", f"-DCMAKE_PREFIX_PATH={built}", "-B", "other"], cwd=tmp_path, capture_output=True, check=False
    )
    assert refused.returncode != 0


def test_pkg_config(small: Loaded, tmp_path: Path) -> None:
    require_tool("pkg-config", "--version")
    compiler = c_compiler()
    found = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "small"],
        env={**os.environ, "PKG_CONFIG_PATH": str(Path(small.library._name).parent / "pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run([compiler, "main.c", *found.stdout.split(), "-o", "main"], cwd=tmp_path, check=True)
    library = Path(small.library._name).parent
    ran = subprocess.run([tmp_path / "main"], env={**os.environ, "LD_LIBRARY_PATH": str(library)}, check=False)
    assert ran.returncode == 0


def test_programs_need_the_first_number_of_the_version(built: Path, small: Loaded, tmp_path: Path) -> None:
    """They load the file of this name, whatever `libsmall.so` becomes later."""
    compiler = c_compiler()
    folder = Path(small.library._name).parent
    (tmp_path / "main.c").write_text(MAIN)
    command = [compiler, "main.c", f"-I{built}/include", f"-L{folder}", "-lsmall", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "libsmall.so.2").write_bytes((folder / "libsmall.so.2").read_bytes())
    ran = subprocess.run([tmp_path / "main"], env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, check=False)
    assert ran.returncode == 0


def test_each_architecture_has_a_file_for_pkg_config() -> None:
    triples = [triple_of(each) for each in ("aarch64", "x86_64")]
    texts = package_files(small_spec(), triples)
    names = [name for name in texts if name.endswith(".pc")]
    assert names == [f"lib/{triple}/pkgconfig/small.pc" for triple in triples]
    assert all("libdir=${pcfiledir}/..\n" in texts[name] for name in names)
