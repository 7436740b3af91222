"""Requests for measurements: programs as canonical text, other libraries' implementations, options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Options of compilation and measurement; part of a measurement's fingerprint."""

    threads: int = 1
    """Number of threads of parallel scopes, and of peers."""
    effort: Literal["search", "full"] = "full"
    """The LLVM pass pipeline; see `pdojo.backends.llvm.executable.compile`."""
    samples: int = 15
    """Largest number of samples; `budget` may reduce it."""
    budget: float = 1.0
    """Seconds for the samples of one candidate, which takes at least three."""
    sample_seconds: float = 2e-4
    """Least seconds of a sample: the call is repeated to fill them."""
    cold: bool = False
    """Rotate over several sets of arrays, so that no call has its arrays in a cache."""
    check: bool = True
    """Compare the result with the reference before timing."""
    largest_error: float | None = None
    """Largest relative error: a result is wrong above it, even if the tolerance for rounding is larger."""
    seed: int = 0
    """Seed of the random inputs."""
    ranges: tuple[tuple[str, float, float], ...] = ()
    """Intervals [low, high) of uniform inputs, keyed by array; other arrays follow the distribution of their type."""
    total: float | None = None
    """Seconds for the samples of all contenders together: no turn but the first begins later. A contender that gets no
    sample within it has the outcome `Timeout`. None: only `budget` limits."""
    brief: bool = False
    """Time the plain kernel, whose results are the reference, briefly: its samples never take longer than the samples
    of the other contenders together. If its call takes more than half of `total`, the call that computed the reference
    is its sample."""
    even: bool = False
    """Every contender takes one sample in every turn, as often as the slowest one's budget allows; not with peers."""
    steady: bool = False
    """Call a contender until its time is steady before each sample, and time a plain loop afterwards. For comparisons
    that are published; not with `even`."""

    def __post_init__(self) -> None:
        for name, least in (("threads", 1), ("samples", 1), ("budget", 0), ("sample_seconds", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"a measurement needs '{name}' of at least {least}, not {getattr(self, name)}")
        if self.even and self.steady:
            raise UsageError("a race ('even') has warm-ups of its own: leave out 'steady'")


DEFAULT_OPTIONS = Options()


@dataclass(frozen=True)
class MeasuredProgram:
    """A kernel in the notation, for a machine."""

    text: str
    machine: Machine = field(default_factory=host)

    @staticmethod
    def of(kernel: KernelOp, machine: Machine | None = None) -> MeasuredProgram:
        """The canonical text of a kernel; `machine` None is the host."""
        return MeasuredProgram(print_notation(kernel), machine or host())


@dataclass(frozen=True)
class Assembled(MeasuredProgram):
    """A program that another process has compiled (`Worker.assemble`)."""

    code: JSON = field(default_factory=dict[str, Any], compare=False, repr=False)
    """The object code as JSON."""
    seconds: float = 0.0
    """Seconds that the compilation took."""


@dataclass(frozen=True)
class Peer:
    """Another library's implementation of an operator, on the arrays of the program that it is compared with."""

    library: str
    workload: str
    """The operator and its sizes, as the worker's `peers` reads them."""
    variant: str = ""
    """The name of one implementation in the library."""


Contender: TypeAlias = MeasuredProgram | Peer
"""A program or peer to be timed."""


@dataclass(frozen=True)
class KernelReference:
    """The result of a kernel, in the notation, by the reference interpreter."""

    text: str
    compiled: bool = False
    """Use the compiled kernel instead of the interpreter, which takes minutes for a large kernel."""


@dataclass(frozen=True)
class NamedReference:
    """A function that the worker knows by name (`Worker(references=...)`)."""

    name: str
    workload: str = ""
    """The argument for the worker's `references`; if empty, `name` is."""


Reference: TypeAlias = KernelReference | NamedReference
"""The source of the reference results."""


@dataclass(frozen=True)
class Request:
    """One program to measure; if the reference is None, the interpreter runs the program."""

    program: MeasuredProgram
    options: Options = DEFAULT_OPTIONS
    reference: Reference | None = None

    @property
    def fingerprint(self) -> str:
        """The key under which the outcome is stored."""
        return _digest(self.program, self.options)


def fingerprint(kernel: KernelOp, machine: Machine, options: Options) -> str:
    """Hexadecimal SHA-256 of the canonical text, the machine and the options, the inputs that determine a measurement.

    Identifiers of scopes and statements do not change the digest.
    """
    return _digest(MeasuredProgram.of(kernel, machine), options)


def _digest(program: MeasuredProgram, options: Options) -> str:
    machine = machine_to_json(program.machine)
    del machine["description"]
    facts = {"program": program.text, "machine": machine, "options": asdict(options)}
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Assembly:
    """A program to compile to object code, without running it."""

    program: MeasuredProgram
    effort: Literal["search", "full"] = "full"


@dataclass(frozen=True)
class Simulation:
    """A program to run on its machine's simulator."""

    program: MeasuredProgram
    reference: KernelReference | None = None
    """The kernel that gives the reference result; None: no comparison."""
    seed: int = 0
    """Seed of the random inputs."""
    limit: int = 10_000_000
    """The limit in cycles."""
    exact: bool = False
    """Compare the result also with the interpreter on this program, bit for bit."""
    largest_error: float | None = None
    """Largest relative error: a result is wrong above it, even if the tolerance for rounding is larger."""


@dataclass(frozen=True)
class Comparison:
    """Several contenders, timed in turns on the arrays of the first program."""

    contenders: tuple[Contender, ...]
    options: Options
    reference: Reference | None

    def without(self, indices: Sequence[int]) -> Comparison:
        """The comparison without the contenders at `indices`."""
        kept = tuple(s for i, s in enumerate(self.contenders) if i not in indices)
        return Comparison(kept, self.options, self.reference)
