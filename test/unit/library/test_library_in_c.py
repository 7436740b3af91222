"""C programs with generated libraries, on this processor and on others under qemu-user."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pdojo_tools import lib

import pdojo
from differential.cross import PLATFORMS
from loaded_library import build_unproved, require_compiler, small_spec
from pdojo.dialect.machines.registry import host
from pdojo.library.linking import compiler_for
from toolchain import c_compiler, program_fault, require_program

EXAMPLE = Path(__file__).parents[3] / "examples" / "library"


@pytest.mark.parametrize("target", ["neoverse-v2", "rv64gcv"])
def test_other_architectures(target: str, tmp_path: Path) -> None:
    """A C program with the library of another architecture, under qemu-user."""
    platform = PLATFORMS[target]
    root = f"/usr/{platform.compiler.removesuffix('-gcc')}"
    require_program((platform.compiler,), (*platform.runner, "-L", root))
    require_compiler(pdojo.machine(target).architecture)
    row = {"kernel": "softmax", "shapes": ["6x16"], "rows": True}
    build_unproved(small_spec(levels=[target], operators=[row]), tmp_path / "dist")
    (tmp_path / "main.c").write_text(SOFTMAX)
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    command = [
        platform.compiler,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "main.c",
        "-Idist/include",
        f"-L{folder}",
    ]
    subprocess.run([*command, "-lsmall", "-lm", f"-Wl,-rpath,{folder}", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run(
        [*platform.runner, "-L", root, "./main"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{target}\n"


CHOSEN = """
#include <small.h>
#include <stdio.h>

int main(void) {
  float x[32] __attribute__((aligned(64))), y[32];
  small_handle *handle;
  const int code = small_create(&handle, 1);
  if (code == SMALL_LEVEL) puts("none");
  if (code != SMALL_OK) return code != SMALL_LEVEL;
  for (int k = 0; k < 32; k++) x[k] = (float)(k - 16);
  if (small_relu_f32(handle, 4, 8, x, y) != SMALL_OK) return 2;
  for (int k = 0; k < 32; k++)
    if (y[k] != (x[k] > 0 ? x[k] : 0)) return 3;
  puts(small_level(handle));
  small_destroy(handle);
  return 0;
}
"""
VECTORS = "rv64,v=true,vext_spec=v1.0"
PROCESSORS: dict[str, tuple[list[str], dict[str, str]]] = {
    "x86_64": (["x86-64-amx", "x86-64-avx512", "x86-64-avx2"], {"Haswell": "x86-64-avx2", "Nehalem": "none"}),
    "aarch64": (
        ["neoverse-v2", "aarch64-neon"],
        {"cortex-a57": "aarch64-neon", "max,sve128=on,sve-max-vq=1": "neoverse-v2"},
    ),
    "riscv64": (["rv64gcv"], {f"{VECTORS},vlen=256": "rv64gcv", f"{VECTORS},vlen=128": "none", "rv64": "none"}),
}
"""Levels, and the one that is chosen on each processor model of qemu-user."""


@pytest.mark.parametrize("architecture", PROCESSORS)
def test_the_level_follows_the_processor(architecture: str, tmp_path: Path) -> None:
    levels, processors = PROCESSORS[architecture]
    require_compiler(architecture)
    root = Path(f"/usr/{architecture}-linux-gnu")
    emulator = [f"qemu-{architecture}", *(["-L", str(root)] if root.exists() else [])]
    require_program(compiler_for(architecture).command, emulator)
    row = {"kernel": "relu", "plain": ["4x8"]}
    build_unproved(small_spec(levels=levels, operators=[row]), tmp_path / "dist")
    (tmp_path / "main.c").write_text(CHOSEN)
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    command = [*compiler_for(architecture).command, "main.c", "-Idist/include", f"-L{folder}", "-lsmall"]
    subprocess.run([*command, f"-Wl,-rpath,{folder}", "-o", "main"], cwd=tmp_path, check=True)
    for model, level in processors.items():
        ran = subprocess.run(
            [*emulator, "-cpu", model, "./main"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (0, f"{level}\n"), (model, ran.stderr)


SOFTMAX = """
#include <math.h>
#include <small.h>
#include <stdio.h>

int main(void) {
  static float x[4000 * 16 + 1], y[4000 * 16 + 1];
  small_handle *handle;
  if (small_create(&handle, 3) != SMALL_OK) return 2;
  for (int k = 0; k < 4000 * 16 + 1; k++) x[k] = (float)(k * 37 % 101) / 25;
  for (int shift = 0; shift < 2; shift++)
    for (int rows = 1; rows <= 4000; rows += rows < 9 ? 1 : 1330) {
      if (small_softmax_f32(handle, rows, 16, x + shift, y + shift) != SMALL_OK) return 3;
      for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int c = 0; c < 16; c++) sum += exp(x[shift + r * 16 + c]);
        for (int c = 0; c < 16; c++)
          if (fabs(exp(x[shift + r * 16 + c]) / sum - y[shift + r * 16 + c]) > 1e-6) return 4;
      }
    }
  if (small_softmax_f32(handle, 6, 17, x, y) != SMALL_SIZES) return 5;
  puts(small_level(handle));
  small_destroy(handle);
  return 0;
}
"""


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    compiler = c_compiler()
    assert lib.main(["build", str(EXAMPLE / "spec.toml"), "-o", str(tmp_path / "dist")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"14 programs; about \d+ s, then the proof of all", lines[0])
    assert re.fullmatch(r"1 of 14: .*: \d+ moves? \(.*\), \d+ s; about \d+ s left", lines[1])
    assert lines[-1].startswith("library 'example' 1.0.0 in ")
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    options = [
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{tmp_path / 'dist' / 'include'}",
        f"-L{folder}",
        f"-Wl,-rpath,{folder}",
    ]
    main = [str(EXAMPLE / "main.c"), "-lexample", "-lm", "-o", str(tmp_path / "main")]
    subprocess.run([compiler, "-std=gnu11", *options, *main], check=True)
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("example 1.0.0, level ")


def test_the_generated_c_has_no_warnings(built: Path, tmp_path: Path) -> None:
    own = compiler_for(host().architecture)
    for source in ("runtime.c", "dispatch.c"):
        options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", str(built / "source" / source)]
        subprocess.run([*own.command, *options, "-o", str(tmp_path / "out.o")], check=True)
    header = ["-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(built / "include" / "small.h")]
    for compiler in ("g++", "clang++"):
        if program_fault((compiler,)) is None:
            subprocess.run([compiler, *header], check=True)
