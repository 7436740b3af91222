"""A functional and cycle-approximate simulator of one Snitch core complex. docs/snitch.md."""

from __future__ import annotations

from pdojo.snitch_sim.simulator.configuration import Configuration, Timing
from pdojo.snitch_sim.simulator.placement import Placed, Placement
from pdojo.snitch_sim.simulator.result import LineCounts, Result, TraceEvent
from pdojo.snitch_sim.simulator.simulate import simulate

__all__ = ["Configuration", "LineCounts", "Placed", "Placement", "Result", "Timing", "TraceEvent", "simulate"]
