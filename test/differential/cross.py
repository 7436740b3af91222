"""Kernels in C programs of their own: object files and C text, for this processor or for another one under qemu-user.

A program puts guard zones around every array, poisons what is not an input, calls the kernel as the header says, and
writes everything back; whatever changed that must not is an error here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from differential.compiled import GUARD, Arrays
from pdojo.backends.c.header import header_text
from pdojo.backends.c.names import Identifiers
from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.llvm.targets import object_bytes
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from toolchain import C_COMPILERS, require_program

_PATTERN = 0xA5


@dataclass(frozen=True)
class Platform:
    """Where programs run: the C compiler, and what starts a program."""

    compiler: str
    runner: tuple[str, ...] = ()

    def require(self) -> None:
        """Skip the test, with the reason, if a static program cannot be compiled and run."""
        require_program((self.compiler, "-static"), self.runner)


class QemuTooOldError(Exception):
    """The emulator has a known fault that this program meets."""


OPTIMIZED = {"kernel.o": "-O0", "kernel.c": "-O1"}
"""The compiler's optimisation, by what comes with a driver: only C code of a kernel is worth it."""
TEAM = 3
"""Threads of a kernel where their number is not what is tested."""
NATIVE = Platform((C_COMPILERS or ["gcc"])[0])
PLATFORMS = {
    "aarch64-neon": Platform("aarch64-linux-gnu-gcc", ("qemu-aarch64", "-cpu", "cortex-a57")),
    # The only processor model with SVE2 in qemu 7; the length of the vectors is that of the machine.
    "neoverse-v2": Platform("aarch64-linux-gnu-gcc", ("qemu-aarch64", "-cpu", "max,sve128=on,sve-max-vq=1")),
    "rv64gcv": Platform("riscv64-linux-gnu-gcc", ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,vext_spec=v1.0")),
}
"""By machine description."""

_STAND_IN = """
/* In place of an OpenMP runtime: the threads of a team one after the other, the last one first. */
static int number, team = 1;
static long taken, limit;
int omp_get_thread_num(void) { return number; }
int omp_get_num_threads(void) { return team; }
void GOMP_parallel(void (*run)(void *), void *data, unsigned threads, unsigned flags) {
  (void)flags;
  team = (int)threads;
  taken = 0;
  for (number = team - 1; number > 0; number--) run(data);
  run(data);
  team = 1;
}
/* All pieces go to the thread that asks first. */
static char next(long *first, long *after) {
  *first = taken++;
  *after = taken;
  return *first < limit;
}
char GOMP_loop_dynamic_start(long start, long end, long step, long chunk, long *first, long *after) {
  (void)start, (void)step, (void)chunk;
  limit = end;
  return next(first, after);
}
char GOMP_loop_dynamic_next(long *first, long *after) { return next(first, after); }
void GOMP_loop_end_nowait(void) {}
"""
_DRIVER = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel.h"

static unsigned char *space(size_t bytes, size_t alignment) {
  unsigned char *memory = aligned_alloc(alignment, (bytes + 2 * %(guard)d + alignment - 1) / alignment * alignment);
  if (!memory) exit(3);
  memset(memory, %(pattern)d, bytes + 2 * %(guard)d);
  return memory;
}

static int intact(const unsigned char *memory, size_t bytes) {
  for (size_t k = 0; k < %(guard)d; k++)
    if (memory[k] != %(pattern)d || memory[%(guard)d + bytes + k] != %(pattern)d) return 0;
  return 1;
}

int main(int count, char **words) {
  int threads = count == 2 ? atoi(words[1]) : 0;
  size_t scratch = %(name)s_WORKSPACE(threads);
  unsigned char *workspace = space(scratch, 64);
%(body)s
}
"""


def run_object(kernel: KernelOp, target: str, inputs: Arrays, folder: Path) -> Arrays:
    """The arrays that the object code of a kernel for a machine writes."""
    return built_object(kernel, target, folder)(inputs, TEAM)


def built_object(
    kernel: KernelOp, target: str, folder: Path, *, stand_in: bool = False
) -> Callable[[Arrays, int], Arrays]:
    """The object code of a kernel for a machine as a function from inputs and threads to the arrays that it writes."""
    nest = nest_of(kernel)
    (folder / "kernel.o").write_bytes(object_bytes(kernel, machine(target)))
    (folder / "kernel.h").write_text(header_text([nest]))
    return built_program(nest, PLATFORMS.get(target, NATIVE), folder, "kernel.o", stand_in=stand_in)


def built_program(
    nest: Nest, platform: Platform, folder: Path, source: str, *, stand_in: bool = False
) -> Callable[[Arrays, int], Arrays]:
    """A driver linked with what `folder` has of a kernel, with `stand_in` to no OpenMP runtime but ours."""
    parameters = parameters_of(nest)
    parallel = has_openmp(platform) and not stand_in
    driver = _driver(Identifiers().fresh(nest.name), parameters)
    (folder / "driver.c").write_text(driver if parallel else driver + _STAND_IN)
    command = [platform.compiler, "-std=gnu11", OPTIMIZED[source], "-Wall", "-Wextra", "-Werror", "-static"]
    linked = ["-o", "program", "driver.c", source, *(["-fopenmp"] if parallel else []), "-lm"]
    built = subprocess.run([*command, *linked], cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return lambda inputs, threads: _run([*platform.runner, "./program", str(threads)], folder, parameters, inputs)


def _run(command: list[str], folder: Path, parameters: tuple[Parameter, ...], inputs: Arrays) -> Arrays:
    given = b"".join(np.ascontiguousarray(inputs[p.name]).tobytes() for p in parameters if p.name in inputs)
    ran = subprocess.run(command, cwd=folder, input=given, capture_output=True, check=False, timeout=300)
    if b"decode_save_opc: Assertion" in ran.stderr:
        raise QemuTooOldError("qemu before 8 cannot translate some vector instructions of RISC-V (its issue 1441)")
    assert ran.returncode == 0, f"exit code {ran.returncode}: {ran.stderr.decode()}"
    return _results(parameters, inputs, ran.stdout)


def _driver(name: str, parameters: tuple[Parameter, ...]) -> str:
    lines: list[str] = []
    pointers = [f"(void *)(m{k} + {GUARD})" for k in range(len(parameters))]
    for k, parameter in enumerate(parameters):
        lines.append(f"  unsigned char *m{k} = space({_size(parameter)}, {max(64, parameter.alignment)});")
    for k, parameter in enumerate(parameters):
        if parameter.intent.value != "out":
            size = _size(parameter)
            lines.append(f"  if (fread(m{k} + {GUARD}, 1, {size}, stdin) != {size}) return 4;")
    call = ", ".join([*pointers, f"scratch ? (void *)(workspace + {GUARD}) : NULL", "threads"])
    lines += [f"  {name}({call});", "  if (!intact(workspace, scratch)) return 5;"]
    for k, parameter in enumerate(parameters):
        lines += [
            f"  if (!intact(m{k}, {_size(parameter)})) return {10 + k};",
            f"  fwrite(m{k} + {GUARD}, 1, {_size(parameter)}, stdout);",
        ]
    lines.append("  return 0;")
    values = {"guard": GUARD, "pattern": _PATTERN, "name": name, "body": "\n".join(lines)}
    return _DRIVER % values


def _size(parameter: Parameter) -> int:
    return int(np.prod(parameter.shape, dtype=np.int64)) * INTERFACE[parameter.dtype].itemsize


def _results(parameters: tuple[Parameter, ...], inputs: Arrays, output: bytes) -> Arrays:
    results: Arrays = {}
    for parameter in parameters:
        size = _size(parameter)
        array = np.frombuffer(output[:size], INTERFACE[parameter.dtype]).reshape(parameter.shape)
        output = output[size:]
        if parameter.written:
            results[parameter.name] = array
        else:
            assert array.tobytes() == np.ascontiguousarray(inputs[parameter.name]).tobytes(), parameter.name
    assert not output
    return results


@cache
def has_openmp(platform: Platform) -> bool:
    """Whether the platform's compiler links OpenMP programs statically."""
    test = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    command = [platform.compiler, "-xc", "-", "-static", "-fopenmp", "-o", "/dev/null"]
    return subprocess.run(command, input=test, text=True, capture_output=True, check=False).returncode == 0
