"""The best programs as assembly with their cycles, for a simulator of the hardware."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pdojo_tools.outputs import write_output

from benchmarks.origin import JSON
from benchmarks.records import OURS, Record
from benchmarks.snitch.drawn.draw import drawn_kernels
from benchmarks.snitch.figures import best
from benchmarks.snitch.kernels import MICRO_KERNELS
from pdojo.backends.calling.arrays import Parameter
from pdojo.backends.snitch.executable import SimulatedKernel, load
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.errors import UsageError
from pdojo.snitch_sim.simulator import Placement, simulate


def write_assembly(records: Sequence[Record], machine: Machine, folder: Path) -> list[Path]:
    """Write a file for each record with a result, and `cycles.json` with all cycles. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder '{folder}': {error.strerror}") from None
    written: list[Path] = []
    index: dict[str, JSON] = {}
    for record in records:
        winner = best(record)
        if winner is None:
            continue
        strategy, outcome = winner
        kernel = next(each for each in (*MICRO_KERNELS, *drawn_kernels()) if each.text == record.data["kernel"])
        row = next(r for r in record.data["rows"] if (r["library"], r["variant"]) == (OURS, strategy))
        (program,) = parse_notation(row["program"])
        loaded = load(program, kernel.machine(machine))
        arguments = _arguments(loaded)
        name = f"{record.label.translate(str.maketrans(': ,=', '----'))}.s"
        facts: JSON = {
            "kernel": record.label,
            "strategy": strategy,
            "machine": f"{machine.name}, with a divider" if record.data["divider_added"] else machine.name,
            "cycles": outcome.cycles,
            "cycles_of_pdojo_snitch": _cycles(loaded),
            "arguments": arguments,
        }
        index[name] = facts
        header = [f"{key}: {value}" for key, value in facts.items() if key != "arguments"]
        header += ["arguments, in a0 and so on:", *(f"  --arg '{each}'" for each in arguments)]
        text = "".join(f"# {line}\n" for line in header) + loaded.source.text
        write_output(text, str(folder / name))
        written.append(folder / name)
    write_output(json.dumps(index, indent=1) + "\n", str(folder / "cycles.json"))
    return written


def _arguments(kernel: SimulatedKernel) -> list[str]:
    """The arguments in the form of `pdojo-snitch`."""
    found = [f"{p.dtype}[{','.join(map(str, p.shape))}]{_filling(p)}" for p in kernel.parameters]
    size = kernel.source.workspace_bytes
    return [*found, *([f"i8[{size}]=zero"] if size else [])]


def _filling(parameter: Parameter) -> str:
    return "=out" if parameter.intent is Intent.OUT else ""


def _cycles(kernel: SimulatedKernel) -> int:
    """The cycles with arrays placed as by `pdojo-snitch`."""
    random = np.random.default_rng(0)
    placement = Placement(kernel.configuration, kernel.program)
    addresses: list[int] = []
    for parameter in kernel.parameters:
        dtype = INTERFACE[parameter.dtype]
        if parameter.intent is Intent.OUT:
            addresses.append(placement.output(parameter.shape, dtype).address)
        else:
            addresses.append(placement.place(random.standard_normal(parameter.shape).astype(dtype)).address)
    if kernel.source.workspace_bytes:
        addresses.append(placement.place(np.zeros(kernel.source.workspace_bytes, np.int8)).address)
    return simulate(
        kernel.program, kernel.configuration, entry=kernel.source.name, arguments=addresses, memory=placement.memory
    ).cycles
