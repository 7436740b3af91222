"""The outcomes of a measurement: samples, or the kind of failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from statistics import median, quantiles
from typing import Any, ClassVar, TypeAlias

JSON: TypeAlias = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True)
class Check:
    """The comparison of a result with its reference."""

    reference: str
    """`interpreter`, `plain code`, or the name of a named reference."""
    error: float
    """Largest difference as a fraction of its element's tolerance; 0 if all elements are equal."""
    absolute: float = 0.0
    """Largest absolute difference."""
    relative: float = 0.0
    """Largest difference as a fraction of the element's magnitude plus the mean magnitude of its array."""


@dataclass(frozen=True)
class Steady:
    """Additional times of a contender with steady samples, in seconds."""

    first: float
    """Time of the first call after a pause, the median over the samples."""
    loop: float
    """Time of a call in a plain loop, the median."""
    warm_up: float
    """Time of all calls before a sample, the median over the samples."""
    unsteady: int
    """Number of samples whose warm-up did not become steady within the time limit."""


LOOP_ALIKE = 0.1
"""Largest relative difference between the medians of a plain loop and of the samples that counts as agreement."""


@dataclass(frozen=True)
class Outcome:
    """The result of measuring one candidate."""

    @property
    def summary(self) -> str:
        """One line for people."""
        return type(self).__name__

    def to_json(self) -> JSON:
        """A JSON object that `outcome_from_json` reads."""
        return {"kind": type(self).__name__, **asdict(self)}


class Success(Outcome, ABC):
    """The candidate ran, and its result was right or not checked."""

    unit: ClassVar[str]
    """The unit of the cost: `s` or `cycles`."""
    check: Check | None
    """None if the result was not checked."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """The cost of a call, in `unit`."""

    @property
    @abstractmethod
    def figures(self) -> Mapping[str, str]:
        """The cost and other results of the run as text, keyed by column heading."""

    @property
    def rightness(self) -> str:
        """`not checked`, `right`, or `exact` if all bits equal the interpreter's result on this program."""
        return "not checked" if self.check is None else "right"


@dataclass(frozen=True)
class Ok(Success):
    """The candidate was timed. Times are seconds per call."""

    unit: ClassVar = "s"

    samples: tuple[float, ...]
    """One time per sample, each the mean of `repeat` calls."""
    repeat: int
    """Calls per sample."""
    sets: int
    """Number of array sets that the calls rotate over; 1 unless measured cold."""
    foreign_load: float | None
    """Average number of processors that other processes used during it; None if the system does not report it."""
    compile_seconds: float
    check: Check | None
    """None if the result was not checked."""
    environment: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """The processor, the system and the tool chain."""
    steady: Steady | None = None
    """None unless the samples are steady (`Options.steady`)."""
    turns: tuple[int, ...] = ()
    """The turn of each sample; samples of one turn form pairs. Empty if the program was not timed in turns."""

    @property
    def cost(self) -> float:
        """The median of the samples."""
        return self.median

    @property
    def figures(self) -> Mapping[str, str]:
        """Median, minimum and spread as text."""
        times = {"median ms": f"{self.median * 1e3:.3f}", "min ms": f"{self.minimum * 1e3:.3f}"}
        return {**times, "spread": f"{self.spread:.0%}"}

    @property
    def minimum(self) -> float:
        """The shortest sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def spread(self) -> float:
        """Interquartile range over median; 0 for a single sample."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / self.median

    @property
    def first_call(self) -> float | None:
        """Time of the first call after a pause over the median sample; None unless the samples are steady."""
        return None if self.steady is None else self.steady.first / self.median

    @property
    def loop_call(self) -> float | None:
        """Time of a call in a plain loop over the median sample; None unless the samples are steady."""
        return None if self.steady is None else self.steady.loop / self.median

    @property
    def is_confirmed(self) -> bool:
        """False if the plain loop's time differs from the samples by more than `LOOP_ALIKE`."""
        return self.loop_call is None or abs(self.loop_call - 1) <= LOOP_ALIKE

    @property
    def summary(self) -> str:
        return f"{self.median * 1e3:.4g} ms (min {self.minimum * 1e3:.4g}, spread {self.spread:.0%})"


@dataclass(frozen=True, kw_only=True)
class Simulated(Success):
    """The candidate ran on a simulated processor."""

    unit: ClassVar = "cycles"
    cycles: int
    """Cycles from the first instruction to the last result in memory."""
    check: Check | None = None
    """None if the result was not checked."""
    same_bits: bool | None = None
    """Whether all outputs have the interpreter's bits on this program; None without that comparison: it was not
    requested, the program does not determine the bits, or it is too large to interpret."""

    @property
    def cost(self) -> float:
        """The number of cycles."""
        return float(self.cycles)

    @property
    def figures(self) -> Mapping[str, str]:
        """Cycles as text."""
        return {"cycles": f"{self.cycles:,}"}

    @property
    def rightness(self) -> str:
        """`not checked`, `right`, or `exact` if all bits equal the interpreter's result on this program."""
        return "exact" if self.check is not None and self.same_bits else super().rightness

    @property
    def summary(self) -> str:
        return f"{self.cycles:,} cycles"


@dataclass(frozen=True, kw_only=True)
class SimulatedOnSnitch(Simulated):
    """The candidate ran on a simulated Snitch core."""

    core_cycles: int
    """Cycles from the first instruction to the return of the function."""
    instructions: int
    fpu_operations: int
    """Instructions that the FPU executed."""
    flops: int
    """Floating-point operations; a fused multiply-add counts as two."""
    width: int
    """Bytes of the element type of the peak that `fraction_of_peak` refers to."""
    stalls: Mapping[str, int] = field(default_factory=dict[str, int])
    """Cycles in which the FP subsystem stalled, keyed by cause."""

    @property
    def figures(self) -> Mapping[str, str]:
        """Cycles, instructions and FPU utilisation as text."""
        counts = {"cycles": f"{self.cycles:,}", "instructions": f"{self.instructions:,}"}
        return {**counts, "FPU busy": f"{self.utilisation:.1%}", "of peak": f"{self.fraction_of_peak:.1%}"}

    @property
    def utilisation(self) -> float:
        """FPU instructions per cycle."""
        return self.fpu_operations / self.cycles

    @property
    def fraction_of_peak(self) -> float:
        """Floating-point operations per cycle as a share of the peak, fused multiply-adds of full width."""
        return self.flops * self.width / (16 * self.cycles)

    @property
    def summary(self) -> str:
        return f"{self.cycles:,} cycles (FPU {self.utilisation:.0%} busy, {self.fraction_of_peak:.0%} of peak)"


@dataclass(frozen=True)
class Explained(Outcome):
    """Base class of failures with a message."""

    heading: ClassVar[str]
    message: str

    @property
    def summary(self) -> str:
        return f"{self.heading}: {self.message}"


@dataclass(frozen=True)
class CompileError(Explained):
    """The candidate does not compile."""

    heading: ClassVar[str] = "does not compile"
    detail: str = ""
    """The traceback of an internal error; empty if the compiler rejected the program."""


@dataclass(frozen=True)
class Timeout(Outcome):
    """The candidate exceeded the time limit of a phase, and its process was killed."""

    phase: str
    seconds: float = 0.0
    """The time limit of the phase in seconds; 0 for a simulation."""
    cycles: int | None = None
    """The cycle limit of a simulation; None for other phases."""

    @property
    def summary(self) -> str:
        limit = f"{self.seconds:g} s" if self.cycles is None else f"{self.cycles:,} cycles"
        return f"took more than {limit} to {self.phase}"


GUARD_PAGES = "guard pages"
"""The phase of a call on arrays between pages without access."""


@dataclass(frozen=True)
class Crash(Outcome):
    """The candidate killed the worker process, or raised an unexpected exception."""

    phase: str
    reason: str
    """The signal, the exit status, or the exception."""
    detail: str = ""
    """The last bytes of the process's standard error, or the traceback."""

    @property
    def summary(self) -> str:
        if self.phase == GUARD_PAGES:
            return f"accessed memory outside of its arrays, or wrote an input ({self.reason} between guard pages)"
        return f"crashed ({self.reason}) in phase {self.phase}"


@dataclass(frozen=True)
class WrongResult(Explained):
    """The candidate ran, and its result is wrong."""

    heading: ClassVar[str] = "wrong result"


@dataclass(frozen=True)
class Deadlock(Explained):
    """The candidate waits for ever on a simulated core; the message names the cause."""

    heading: ClassVar[str] = "deadlock"


@dataclass(frozen=True)
class Trap(Explained):
    """The candidate executed an instruction that the simulated hardware cannot execute."""

    heading: ClassVar[str] = "trap"


@dataclass(frozen=True)
class OutOfMemory(Outcome):
    """The candidate needs more memory than the worker's limit."""

    phase: str
    limit: int | None
    """The worker's limit of address space in bytes; None without a limit."""
    message: str = ""

    @property
    def summary(self) -> str:
        limit = "" if self.limit is None else f" (limit {self.limit / 2**30:.3g} GiB)"
        return f"out of memory in phase {self.phase}{limit}"


def cost_of(outcome: Outcome) -> float:
    """The cost of a success: the median time in seconds, or cycles. Infinite for a failure."""
    return outcome.cost if isinstance(outcome, Success) else inf


_KINDS: dict[str, type[Outcome]] = {
    kind.__name__: kind
    for kind in (
        Ok,
        Simulated,
        SimulatedOnSnitch,
        CompileError,
        Timeout,
        Crash,
        WrongResult,
        Deadlock,
        Trap,
        OutOfMemory,
    )
}


def outcome_from_json(data: JSON) -> Outcome:
    """The outcome that `to_json` wrote; raises ValueError for malformed data."""
    values = dict(data)
    kind = values.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"'{kind}' is no kind of outcome; known: {', '.join(_KINDS)}")
    if kind == "Simulated" and "core_cycles" in values:
        kind = "SimulatedOnSnitch"  # the name in files from before there were several simulators
    if kind == "Ok":
        for name in ("samples", "turns"):
            values[name] = tuple(values.get(name, ()))
        values.pop("attempts", None)  # files from before have this key: samples were taken again under load
    if values.get("check") is not None:
        values["check"] = Check(**values["check"])
    try:
        if values.get("steady") is not None:
            values["steady"] = Steady(**values["steady"])
        return _KINDS[kind](**values)
    except TypeError as error:
        raise ValueError(f"not an outcome: {error}") from None
