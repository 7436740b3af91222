"""Explanations of deadlocks for messages."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.simulator import causes
from pdojo.snitch_sim.simulator.core import Core
from pdojo.snitch_sim.simulator.float_unit import FloatUnit
from pdojo.snitch_sim.simulator.lane import Lane
from pdojo.snitch_sim.simulator.sequencer import Sequencer


def explain(core: Core, sequencer: Sequencer, floats: FloatUnit, now: int) -> str:
    """A message about all that waits: stuck results, the FP subsystem, the offloaded instruction, the core."""
    found = [*_results(floats, now), *_head(sequencer, floats, now), *_offloaded(core, floats.lanes), *_core(core)]
    return "; ".join(found) if found else "the program is still at work"


def _at(i: Instruction) -> str:
    return f"line {i.line} ('{i.text}')"


def _results(floats: FloatUnit, now: int) -> list[str]:
    stuck = [result[1] - 32 for result in floats.pipe if result[0] <= now]
    lanes = [floats.lanes[number] for number in dict.fromkeys(stuck) if 0 <= number < len(floats.lanes)]
    return [f"a result for SSR{lane.number} cannot leave the FPU: {_unwritable(lane)}" for lane in lanes]


def _unwritable(lane: Lane) -> str:
    if not lane.writes:
        return "it has no write stream"
    if not lane.addresses:
        return f"its write stream of line {lane.line} has had all its {lane.length} elements"
    return "its buffer is full"


def _head(sequencer: Sequencer, floats: FloatUnit, now: int) -> list[str]:
    if sequencer.head is None:
        if not sequencer.active:
            return []
        loop = sequencer.loops[0]
        there = sequencer.written - loop.base
        return [f"the hardware loop of {_at(loop.instruction)} has {there} of its {loop.count} instructions"]
    operation = sequencer.head[0]
    view = operation.streaming if floats.streaming else operation.plain
    where = _at(operation.instruction)
    waiting = [lane for lane in view.lanes if not lane.fifo or lane.fifo[0][0] > now]
    if waiting:
        return [f"{where} reads SSR{lane.number}: {_unreadable(lane)}" for lane in waiting]
    blocked = [r for r in view.registers if floats.ready[r] == causes.INFINITE]
    return [f"{where} waits for {'a result' if blocked else 'the FPU'}"]


def _unreadable(lane: Lane) -> str:
    if lane.addresses:
        return "the memory has not answered"
    if not lane.line:
        return "it has no stream"
    return f"all {lane.length} elements of its stream of line {lane.line} have been read"


def _offloaded(core: Core, lanes: Sequence[Lane]) -> list[str]:
    if not core.offload:
        return []
    item = core.offload[0]
    if core.blocked != causes.CONFIGURED:
        return [f"{_at(item.instruction)} waits: {causes.DESCRIPTIONS.get(causes.NAMES[core.blocked], 'for its turn')}"]
    reasons = [
        f"SSR{lane.number} still has a job that waits behind the one of line {lane.line}: {lane.left()}"
        for lane in lanes
        if lane.pending is not None
    ]
    return [f"{_at(item.instruction)} waits: {', '.join(reasons)}"]


def _core(core: Core) -> list[str]:
    step = core.step
    if step is None:
        return []
    meaning = causes.DESCRIPTIONS.get(causes.NAMES[core.stall], "nothing")
    return [f"the core is at {_at(step.instruction)}: {meaning}"]
