"""Tuning one kernel: declare what callers guarantee, make moves, show that the meaning is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64

from pdojo.dialect.attributes import Numerics, NumericsAttr
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import nest_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.oracle import Difference, equivalent, reduce_sizes
from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.search.experts import expert_pass
from pdojo.search.experts.player import Note
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

INSTANCES = 20_000
"""Statement instances that the exact oracle runs at most."""


def with_alignment(kernel: KernelOp, alignment: int) -> KernelOp:
    """A copy whose callers guarantee that every interface array lies at a multiple of `alignment` bytes, at least.

    Raises UsageError for what is no alignment.
    """
    if alignment < 1 or alignment & (alignment - 1):
        raise UsageError(f"an alignment is a power of two, not {alignment}")
    aligned = kernel.clone()
    interface = [buffer for buffer in nest_of(kernel).buffers if buffer.op is None]
    facts = [max(alignment, buffer.alignment, byte_width(buffer.dtype)) for buffer in interface]
    aligned.properties["arg_alignments"] = ArrayAttr(IntegerAttr(fact, i64) for fact in facts)
    return aligned


def with_permission(kernel: KernelOp, *classes: Numerics) -> KernelOp:
    """A copy that permits these numerics classes too (docs/numerics.md)."""
    found = kernel.clone()
    found.properties["numerics"] = ArrayAttr(NumericsAttr(n) for n in dict.fromkeys((*kernel.permitted, *classes)))
    return found


@dataclass
class Tuning:
    """A kernel, and the moves that were made on it."""

    game: Game
    notes: list[Note] = field(default_factory=list[Note])
    """Why an expert pass made its moves."""

    @property
    def before(self) -> KernelOp:
        """The kernel before the first move, in canonical form."""
        return self.game.initial.kernel

    @property
    def after(self) -> KernelOp:
        """The tuned kernel."""
        return self.game.kernel


def tune(kernel: KernelOp, machine: Machine, expert: str | None, trace: Trace | None = None) -> Tuning:
    """Replay a trace, then let an expert pass make moves; both may be left out.

    Raises IllegalMove or LocationError, with the number of the move, for a trace that does not apply.
    """
    tuning = Tuning(Game(kernel, machine))
    for number, step in enumerate(trace.steps if trace else ()):
        try:
            tuning.game.apply(step.resolved)
        except (IllegalMove, LocationError) as error:
            raise type(error)(f"move {number} of the trace, {step.move}: {error}") from None
    if expert is not None:
        tuning.notes = expert_pass(expert, machine)(tuning.game)
    return tuning


class OracleVerdict(Enum):
    """What the exact oracle found."""

    EQUIVALENT = "the same meaning"
    NOT_REDUCIBLE = "the program cannot be made small enough"
    MOVES_DO_NOT_FIT = "some moves do not fit the small program"


def check_meaning(tuning: Tuning, limit: int = INSTANCES) -> OracleVerdict | Difference:
    """Replay the trace on a smaller copy of the kernel, and compare exactly, under adversarial schedules."""
    small = reduce_sizes(tuning.before, limit)
    if small is None:
        return OracleVerdict.NOT_REDUCIBLE
    game = Game(small, tuning.game.machine)
    if game.replay(tuning.game.trace.steps):
        return OracleVerdict.MOVES_DO_NOT_FIT
    return equivalent(small, game.kernel) or OracleVerdict.EQUIVALENT
