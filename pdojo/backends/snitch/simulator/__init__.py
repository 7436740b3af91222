"""A functional and cycle-approximate simulator of one Snitch core complex. docs/snitch.md."""

from __future__ import annotations

from pdojo.backends.snitch.simulator.configuration import Configuration, Timing
from pdojo.backends.snitch.simulator.placement import Placed, Placement
from pdojo.backends.snitch.simulator.result import LineCounts, Result, TraceEvent
from pdojo.backends.snitch.simulator.simulate import simulate

__all__ = ["Configuration", "LineCounts", "Placed", "Placement", "Result", "Timing", "TraceEvent", "simulate"]
