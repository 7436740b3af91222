"""Simulations as text: a summary, counts of each instruction, every cycle."""

from __future__ import annotations

from collections.abc import Iterator

from pdojo.snitch_sim.simulator.causes import DESCRIPTIONS
from pdojo.snitch_sim.simulator.result import Result, TraceEvent


def summary(result: Result) -> str:
    """A text with cycles, rates, and stalled cycles by cause."""
    conflicts = f"{result.bank_conflicts} cycles that requests waited for a bank or port"
    lines = [
        f"cycles             {result.cycles:>9}   the core returned after {result.core_cycles}",
        f"instructions       {result.instructions:>9}   {result.core_instructions} issued by the core, "
        f"{result.fp_instructions} by the FP subsystem",
        f"instructions/cycle {result.instructions_per_cycle:>9.3f}",
        f"FPU utilisation    {result.utilisation:>9.3f}   {result.fpu_operations} FPU instructions",
        f"flop/cycle         {result.flops / max(1, result.cycles):>9.3f}   {result.flops} floating-point operations",
        f"stream words       {'/'.join(map(str, result.stream_elements)):>9}   {conflicts}",
    ]
    for unit, stalls in (("FP subsystem", result.fp_stalls), ("core", result.core_stalls)):
        for cause, cycles in sorted(stalls.items(), key=lambda item: -item[1]):
            share = cycles / max(1, result.cycles)
            lines.append(f"{unit + ' waits':<18} {cycles:>9}   {share:>5.1%}  {cause}: {DESCRIPTIONS[cause]}")
    return "\n".join(lines) + "\n"


def line_figures(result: Result) -> dict[int, tuple[int, dict[str, int]]]:
    """By source line with instructions: the number of issues, and the stalled cycles by cause."""
    figures: dict[int, tuple[int, dict[str, int]]] = {}
    for line in result.lines:
        number = result.program.instructions[line.index].line
        count, stalls = figures.get(number, (0, {}))
        for cause, cycles in (*line.stalls.items(), *line.offload_stalls.items()):
            stalls[cause] = stalls.get(cause, 0) + cycles
        figures[number] = (count + line.count, stalls)
    return figures


def listing(result: Result) -> str:
    """The source with its instructions' counts and stalls; instructions that never ran have no count."""
    figures = line_figures(result)
    rows = ["  issued  waited  line"]
    for number, text in enumerate(result.program.text.splitlines(), 1):
        count, stalls = figures.get(number, (0, {}))
        waited = sum(stalls.values())
        causes = ", ".join(f"{cause} {cycles}" for cause, cycles in sorted(stalls.items(), key=lambda item: -item[1]))
        rows.append(f"{count or '':>8}{waited or '':>8}{number:>6}  {text}{'    <- ' + causes if causes else ''}")
    return "\n".join(row.rstrip() for row in rows) + "\n"


def cycles(result: Result, first: int = 0, last: int | None = None) -> Iterator[str]:
    """One line for each cycle with an event: stream words, issues and stalls of the units."""
    yield f"{'cycle':>7}  {'streams':<8}  {'core':<36}  FP subsystem"
    at, moved = by_cycle(result)
    previous = None
    for cycle in sorted(at):
        if cycle < first or (last is not None and cycle > last):
            continue
        if previous is not None and cycle > previous + 1:
            skipped = cycle - previous - 1
            yield f"{'':>7}  ({skipped} cycle{'s' if skipped > 1 else ''} like the one before)"
        units = at[cycle]
        core, floating = (_cell(result, units.get(unit)) for unit in ("core", "fp"))
        yield f"{cycle:>7}  {moved.get(cycle, ''):<8}  {core:<36}  {floating}".rstrip()
        previous = cycle


def by_cycle(result: Result) -> tuple[dict[int, dict[str, TraceEvent]], dict[int, str]]:
    """By cycle: each unit's event, and the streams that read (`0r`) or wrote (`2w`) a word."""
    at: dict[int, dict[str, TraceEvent]] = {}
    moved: dict[int, list[str]] = {}
    for event in result.events:
        units = at.setdefault(event.cycle, {})
        if event.unit == "ssr":
            moved.setdefault(event.cycle, []).append(f"{event.index}{event.cause[0]}")
        else:
            units[event.unit] = event
    return at, {cycle: " ".join(sorted(words)) for cycle, words in moved.items()}


def _cell(result: Result, event: TraceEvent | None) -> str:
    if event is None:
        return ""
    text = " ".join(result.program.instructions[event.index].text.split())
    if event.cause:
        return f"- {event.cause} ({text.split(' ')[0]})"
    return text
