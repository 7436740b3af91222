"""A functional and cycle-approximate simulator of one Snitch core complex. docs/snitch.md."""

from __future__ import annotations

from pdojo.backends.snitch.simulator.configuration import Configuration, Timing
from pdojo.backends.snitch.simulator.placement import Placed, Placement
from pdojo.backends.snitch.simulator.result import Event, Line, Result
from pdojo.backends.snitch.simulator.simulate import simulate

__all__ = ["Configuration", "Event", "Line", "Placed", "Placement", "Result", "Timing", "simulate"]
