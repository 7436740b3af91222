"""The simulator's configuration for a machine."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError
from pdojo.snitch_sim.simulator.configuration import CROSSINGS, Configuration


def configuration_of(machine: Machine) -> Configuration:
    """The configuration of a machine. Raises UsageError unless it is a Snitch core."""
    if not machine.snitch.stream_registers or not machine.snitch.frep_instructions:
        raise UsageError(f"machine '{machine.name}' has no streams and hardware loops, as snitch has")
    old = machine.snitch.frep_nesting < 2
    return Configuration(
        name=machine.name,
        ring=machine.snitch.frep_instructions,
        nesting=machine.snitch.frep_nesting,
        waiting_loops=8 if old else 0,
        crossings=frozenset() if old else CROSSINGS,
        inner_repetition=old,
        trips=machine.snitch.frep_trips,
        lanes=machine.snitch.stream_registers,
        dimensions=machine.snitch.stream_dims,
        repeats=machine.snitch.stream_repeats,
        memory_bytes=machine.cache_bytes[0],
        division="xdiv_sqrt" in machine.features,
    )
