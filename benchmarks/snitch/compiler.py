"""Plain C by an ordinary compiler as a reference, without streams and hardware loops, on our simulator."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pdojo.backends.c.targets import c_text
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.backends.measure import CompileError, KernelReference, MeasuredProgram, Outcome, Simulation
from pdojo.backends.snitch.configuration import configuration_of
from pdojo.backends.snitch.executable import SimulatedKernel
from pdojo.backends.snitch.session import judged
from pdojo.backends.snitch.targets import SnitchSource
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError
from pdojo.snitch_sim.assembler import assemble

MISSING = (
    "no compiler for plain C is installed: neither riscv64-unknown-elf-gcc (Debian's gcc-riscv64-unknown-elf) nor the "
    "wheel ziglang"
)
_SECONDS = 120
_STACK = 4 << 10
"""Bytes of the stack of compiled code."""
_COMMON = (
    "-O2",
    "-S",
    "-ffreestanding",
    "-fno-builtin",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-mabi=ilp32d",
    "-std=gnu11",
    "-w",
)
_EXTREMUM = re.compile(r"^static inline \w+ pd_(?:max|min)imum_f(?:32|64)\(.*?^}\n", re.MULTILINE | re.DOTALL)
"""The definition of a maximum or minimum that keeps NaN."""
_HEADERS = {
    "math.h": """\
#define INFINITY __builtin_inf()
#define NAN __builtin_nan("")
#define isnan(x) __builtin_isnan(x)
#define signbit(x) __builtin_signbit(x)
#define fabs(x) __builtin_fabs(x)
#define fabsf(x) __builtin_fabsf(x)
#define sqrt(x) __builtin_sqrt(x)
#define sqrtf(x) __builtin_sqrtf(x)
#define fmax(x, y) __builtin_fmax(x, y)
#define fmaxf(x, y) __builtin_fmaxf(x, y)
#define fmin(x, y) __builtin_fmin(x, y)
#define fminf(x, y) __builtin_fminf(x, y)
#define fma(x, y, z) __builtin_fma(x, y, z)
#define fmaf(x, y, z) __builtin_fmaf(x, y, z)
""",
    "string.h": "void *memcpy(void *, const void *, __SIZE_TYPE__);\n",
}
"""Headers that compilers without an operating system lack; functions such as `exp` are missing."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler for rv32imafd."""

    title: str
    command: tuple[str, ...]

    def assembly(self, text: str) -> str:
        """The assembly of a C file. Raises PdojoError if compiling fails."""
        with tempfile.TemporaryDirectory(prefix="pdojo-c-") as folder:
            for name, content in _HEADERS.items():
                (Path(folder) / name).write_text(content, encoding="utf-8")
            source, result = Path(folder) / "kernel.c", Path(folder) / "kernel.s"
            source.write_text(text, encoding="utf-8")
            command = [*self.command, *_COMMON, f"-I{folder}", str(source), "-o", str(result)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise PdojoError(f"{self.title} does not run: {error}") from None
            if done.returncode:
                raise PdojoError(f"{self.title}: {_first_error(done.stderr)}")
            return result.read_text(encoding="utf-8")


def find_compiler() -> Compiler | None:
    """The installed compiler; None if there is none (`MISSING`)."""
    gcc = shutil.which("riscv64-unknown-elf-gcc")
    if gcc is not None:
        # Loops must not become calls of memset and memcpy, which are not linked.
        flags = ("-march=rv32imafd", "-fno-tree-loop-distribute-patterns")
        return Compiler(f"gcc {_version([gcc])} -O2", (gcc, *flags))
    if find_spec("ziglang") is not None:
        target = ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+a+f+d", "-g0")
        clang = (sys.executable, "-m", "ziglang", "cc")
        return Compiler(f"clang {_version(clang)} -O2", (*clang, *target))
    return None


def _version(command: Sequence[str]) -> str:
    """The version that a compiler prints; '' if it prints none."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\b\d+\.\d+\.\d+\b", done.stdout)
    return "" if found is None else found.group()


def c_source(plain: KernelOp) -> str:
    """A plain kernel as C for a processor of 32 bits, with `fmax` if the kernel permits it."""
    text = c_text(plain)
    if Numerics.NUMBERS in plain.permitted:
        text = _EXTREMUM.sub("", text)
        text = re.sub(r"\bpd_(max|min)imum_f(32|64)\b", lambda m: f"f{m[1]}{'f' if m[2] == '32' else ''}", text)
    # Without these pragmas, compilers fuse products and sums.
    text = re.sub(r"^#pragma (STDC FP_CONTRACT|GCC optimize).*\n", "", text, flags=re.MULTILINE)
    # Loop counters of `-t c` have 64 bits; 32 suffice for the TCDM.
    return re.sub(r"\bint64_t (i\d+)\b", r"int32_t \1", text)


def compiled_outcome(compiler: Compiler, c: str, plain: KernelOp, machine: Machine, seed: int) -> Outcome:
    """The outcome of compiled C on our simulator, compared with the interpreter on the plain kernel."""
    nest = nest_of(plain)
    parameters = parameters_of(nest)
    try:
        text = compiler.assembly(c)
        program = assemble(text, nest.name)
        # The workspace is always an argument.
        workspace = max(8, plan_memory(nest).shared_bytes)
        source = SnitchSource(nest.name, text, tuple(p.name for p in parameters), (), workspace, _STACK)
        kernel = SimulatedKernel(source, program, parameters, configuration_of(machine))
        wanted = Simulation(MeasuredProgram.of(plain, machine), KernelReference(print_notation(plain)), seed)
        return judged(kernel, nest, wanted, lambda _: None)
    except PdojoError as error:
        return CompileError(str(error))


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line] or text.splitlines()
    return lines[0].partition("error: ")[2] or lines[0] if lines else "it failed"
