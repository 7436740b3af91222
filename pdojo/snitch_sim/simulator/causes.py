"""The causes that make a unit wait in a cycle."""

from __future__ import annotations

NONE = 0
OPERAND = 1
STREAM = 2
BUSY = 3
MEMORY = 4
CONSISTENCY = 5
QUEUE = 6
LOOP = 7
CONFIGURED = 8
ORDER = 9
DIVIDER = 10

NAMES = (
    "",
    "operand",
    "stream",
    "unit busy",
    "memory",
    "address order",
    "FP queue full",
    "loop waits",
    "stream configured",
    "FP queue not empty",
    "divider busy",
)
DESCRIPTIONS = {
    "operand": "a register that is read or written waits for its result",
    "stream": "a stream has no element yet",
    "unit busy": "the pipeline of the FPU is full, or it divides",
    "memory": "four accesses are in flight, or the port is taken",
    "address order": "an FP access to the same word, or eight FP accesses, are in flight",
    "FP queue full": "the sequencer's ring is full",
    "loop waits": "a hardware loop is accepted only after the one before it has ended",
    "stream configured": "the lane already has a job that waits",
    "FP queue not empty": "an instruction between integer and FP registers waits until all before it have issued",
    "divider busy": "the integer divider works",
}
COUNT = len(NAMES)
INFINITE = 1 << 60
"""The time of an event that has not happened yet."""
