"""The work of `pdojo-snitch`: assembles a file, places its arguments, and simulates or builds it."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from pdojo_tools.outputs import write_json, write_output

from pdojo.backends.snitch.configuration import configuration_of
from pdojo.dialect.machines.registry import machine
from pdojo.errors import SimulationError, UsageError
from pdojo.files import decode, read_bounded, read_text
from pdojo.snitch_sim.assembler import AssembledProgram, assemble, rewrite
from pdojo.snitch_sim.simulator import Configuration, Placement, Result, simulate
from pdojo.snitch_sim.simulator.report import cycles, line_figures, listing, summary

_ARRAY = re.compile(r"(f64|f32|f16|i32|u32|i16|i8)\[(\d{1,9}(?:,\d{1,9})*)\](?:=(random|zero|out|-?\d+(?:\.\d+)?))?")
_DTYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "i32": "i4", "u32": "u4", "i16": "i2", "i8": "i1"}


def run(given: argparse.Namespace) -> None:
    """Run the command line. Raises PdojoError."""
    program = _read(given.program)
    if given.rewrite is not None:
        _write(given.rewrite, rewrite(program.text, program.source))
        return
    configuration = configuration_of(machine(given.machine))
    placement = Placement(configuration, program)
    rng = np.random.default_rng(given.seed)
    values = [_argument(text, placement, rng, f"argument {k}") for k, text in enumerate(given.arg)]
    run = SnitchRun(program, configuration, placement, given.entry, values, given.limit)
    if given.elf is not None or given.snitch_sim is not None:
        _external(given, run)
        return
    result = run.simulate(trace=given.cycles or given.html is not None)
    _report(result, placement, given)
    if given.html is not None:
        from pdojo.snitch_sim.simulator.page import page

        _write(given.html, page(result))


@dataclass(frozen=True)
class SnitchRun:
    """A program and its call."""

    program: AssembledProgram
    configuration: Configuration
    placement: Placement
    entry: str
    arguments: list[int]
    limit: int

    def simulate(self, *, trace: bool) -> Result:
        """Simulate the call and check the guard zones."""
        result = simulate(
            self.program,
            self.configuration,
            entry=self.entry,
            arguments=self.arguments,
            memory=self.placement.memory,
            limit=self.limit,
            trace=trace,
        )
        self.placement.check()
        return result


def _read(path: str) -> AssembledProgram:
    try:
        text = decode(read_bounded(sys.stdin.buffer)) if path == "-" else read_text(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read '{path}': {reason}") from None
    return assemble(text, "<stdin>" if path == "-" else path)


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    write_output(text, path)
    sys.stderr.write(f"wrote {path}\n")


def _argument(text: str, placement: Placement, rng: np.random.Generator, name: str) -> int:
    """The value of an argument; an array is placed in memory, and its address is the value."""
    if re.fullmatch(r"-?[0-9]{1,20}|0x[0-9a-fA-F]{1,16}", text):
        return int(text, 16) if text.startswith("0x") else int(text)
    match = _ARRAY.fullmatch(text.replace(" ", ""))
    if match is None:
        raise UsageError(
            f"'{text}' is no argument: an integer, or an array such as f64[16,16], f32[8]=zero, f64[4]=out"
        )
    dtype = np.dtype(_DTYPES[match.group(1)])
    shape = tuple(int(extent) for extent in match.group(2).split(","))
    if prod(shape) * dtype.itemsize > len(placement.memory):
        raise UsageError(f"{name} does not fit: '{text}' is larger than the memory of {len(placement.memory)} bytes")
    filling = match.group(3) or "random"
    if filling == "out":
        return placement.output(shape, dtype, name).address
    if filling == "zero":
        array = np.zeros(shape, dtype)
    elif filling != "random":
        array = np.full(shape, float(filling)).astype(dtype)
    elif dtype.kind == "f":
        array = rng.standard_normal(shape).astype(dtype)
    else:
        array = rng.integers(-100 if dtype.kind == "i" else 0, 100, shape).astype(dtype)
    return placement.place(array, name).address


def _report(result: Result, placement: Placement, given: argparse.Namespace) -> None:
    """Print the simulation. Raises SimulationError if an output was not written completely."""
    write = (sys.stderr if given.json else sys.stdout).write
    if given.cycles:
        for line in cycles(result):
            write(f"{line}\n")
        write("\n")
    if given.lines:
        write(f"{listing(result)}\n")
    write(summary(result))
    if given.show:
        for placed in placement.arrays:
            write(f"{placed.name} at {placed.address:#x}:\n{placed.values}\n")
    outputs = {f"argument {k}" for k, text in enumerate(given.arg) if text.replace(" ", "").endswith("=out")}
    for placed in placement.arrays:
        if placed.name in outputs and placed.poisoned:
            raise SimulationError(
                f"{placed.poisoned} of {placed.values.size} elements of {placed.name} were not written"
            )
    if given.json:
        write_json(_facts(result))


def _facts(result: Result) -> dict[str, object]:
    """The simulation for programs."""
    counts = ("cycles", "core_cycles", "core_instructions", "fp_instructions", "fpu_operations", "flops")
    others = ("instructions", "utilisation", "bank_conflicts", "stream_elements", "fp_stalls", "core_stalls")
    lines = [
        {"line": number, "text": result.program.text.splitlines()[number - 1], "issued": issued, "stalls": stalls}
        for number, (issued, stalls) in sorted(line_figures(result).items())
    ]
    return {**{name: getattr(result, name) for name in (*counts, *others)}, "lines": lines}


def _external(given: argparse.Namespace, run: SnitchRun) -> None:
    """Build a program for other simulators, and run one."""
    from pdojo.snitch_sim.assembler.build import build
    from pdojo.snitch_sim.assembler.external import run_external

    used = run.placement.used
    before = bytes(run.placement.memory[:used])
    run.simulate(trace=False)
    after = bytes(run.placement.memory[:used])
    size = run.configuration.memory_bytes
    with tempfile.TemporaryDirectory(prefix="pdojo-snitch-") as folder:
        path = Path(given.elf) if given.elf is not None else Path(folder) / "program.elf"
        build(run.program, run.entry, run.arguments, before, after, path, memory_bytes=size)
        if given.elf is not None:
            sys.stderr.write(f"wrote {given.elf}\n")
        measured = None if given.snitch_sim is None else run_external(given.snitch_sim, path)
    if given.json:
        write_json({"elf": given.elf, "cycles": measured})
    elif measured is not None:
        sys.stdout.write(f"cycles: {measured}\n")
