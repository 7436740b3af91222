"""The worker's side of a comparison: compile, check and time all contenders; each step is reported before it begins."""

from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from statistics import median
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.measure.arrays import Arrays, ArraySet, data_bytes, random_inputs
from pdojo.backends.measure.check import Rounding, compare_all
from pdojo.backends.measure.environment import environment, huge_page_bytes
from pdojo.backends.measure.guarded import SIDES, GuardPlacement, guarded_argument
from pdojo.backends.measure.outcome import (
    GUARD_PAGES,
    Check,
    CompileError,
    Crash,
    Ok,
    Outcome,
    OutOfMemory,
    Steady,
    Timeout,
    WrongResult,
)
from pdojo.backends.measure.request import (
    JSON,
    Assembled,
    Assembly,
    Comparison,
    Contender,
    KernelReference,
    MeasuredProgram,
    NamedReference,
    Options,
    Peer,
)
from pdojo.backends.measure.steady import Run
from pdojo.backends.measure.timing import Timed, take_samples
from pdojo.backends.measure.tools import Compiled, CompileFunction, PeerBuild, Tools, required
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import MeasurementError, PdojoError

_KEPT = 5
"""Number of reference results kept in the cache."""


Referred: TypeAlias = tuple[dict[str, NDArray[Any]], float]
"""The reference outputs, and the seconds of the compiled call that computed them; 0 if no such call did."""


@dataclass
class ContenderState:
    """A contender and its state in the comparison."""

    index: int
    contender: Contender
    compiled: Compiled | None = None
    built: PeerBuild | None = None
    compile_seconds: float = 0.0
    check: Check | None = None
    right: tuple[int, ...] = ()
    """Checksums of the arrays after the checked call."""
    outcome: Outcome | None = None
    finish: Run | None = None


@dataclass
class Cache:
    """The latest reference results and arrays: a search measures many programs on the same few sets of inputs."""

    results: dict[tuple[object, ...], Referred] = field(default_factory=dict[tuple[object, ...], "Referred"])
    sets_key: tuple[object, ...] | None = None
    sets: list[ArraySet] = field(default_factory=list[ArraySet])


class Fatal(Exception):
    """A candidate made this process unusable: the parent receives the outcome and starts another process."""

    def __init__(self, index: int, outcome: Outcome) -> None:
        super().__init__(outcome.summary)
        self.index = index
        """The index of the candidate in the comparison."""
        self.outcome = outcome


class WorkerSession(ABC):
    """One comparison; calls `report` with a candidate's index and the phase that begins.

    Backends have subclasses (`Worker(session=...)`), which load the code that other processes compiled.
    """

    def __init__(self, comparison: Comparison, tools: Tools, cache: Cache, report: Callable[[int, str], None]) -> None:
        self.comparison = comparison
        self.options: Options = comparison.options
        self.tools = tools
        self.cache = cache
        self.report = report
        self.candidates = [ContenderState(i, s) for i, s in enumerate(comparison.contenders)]
        self.nests: dict[int, Nest] = {
            c.index: _nest(c.contender.text) for c in self.candidates if isinstance(c.contender, MeasuredProgram)
        }
        self.parameters = self._interface()

    def run(self) -> list[Outcome]:
        """The outcomes, in order."""
        sets = self._array_sets()
        # Peers first: a process has one OpenMP runtime, and some libraries work only with their own.
        for candidate in sorted(self._alive(), key=lambda c: isinstance(c.contender, MeasuredProgram)):
            self._guarded(candidate, "compile", lambda c: self._compile(c, sets[0]))
        if self.options.check:
            for candidate in self._alive():
                self._check(candidate, sets[0])
        if self._alive():
            self._time(sets)
        return [c.outcome for c in self.candidates if c.outcome is not None]

    def _alive(self) -> list[ContenderState]:
        return [c for c in self.candidates if c.outcome is None]

    def _interface(self) -> tuple[Parameter, ...]:
        """The interface of the first program. Raises MeasurementError if another program's interface differs."""
        if not self.nests:
            raise MeasurementError(
                "a comparison needs at least one program of pdojo, because its arrays are made for the first one"
            )
        interfaces = [parameters_of(nest) for nest in self.nests.values()]
        kinds = [[(p.dtype, p.shape, p.intent) for p in interface] for interface in interfaces]
        if any(kind != kinds[0] for kind in kinds):
            raise MeasurementError("programs that are compared must have the same interface arrays")
        return interfaces[0]

    def _guarded(self, candidate: ContenderState, phase: str, action: Callable[[ContenderState], None]) -> None:
        """Run a phase of a candidate; a failure becomes the candidate's outcome."""
        self.report(candidate.index, phase)
        try:
            action(candidate)
        except Exception as error:  # noqa: BLE001  # a bug that a candidate shows is data here; the traceback is kept
            candidate.outcome = self.failure(candidate, phase, error)

    def failure(self, candidate: ContenderState, phase: str, error: Exception) -> Outcome:
        """The outcome of a candidate that raised `error`; called in the exception handler. Raises Fatal."""
        if isinstance(error, MemoryError):
            return OutOfMemory(phase, self.tools.memory_limit, str(error))
        if isinstance(error, PdojoError):
            return CompileError(str(error))
        text = f"{type(error).__name__}: {error}"
        if phase == "compile":
            return CompileError(text, traceback.format_exc())
        return Crash(phase, text, traceback.format_exc())

    def _compile(self, candidate: ContenderState, arrays: ArraySet) -> None:
        contender = candidate.contender
        start = time.perf_counter()
        if isinstance(contender, Peer):
            peers = required(self.tools.peers, "peers (Worker(peers=...))")
            candidate.built = peers(contender, self.options.threads)
            # Some libraries compile at the first call.
            self._bind(candidate, arrays.arrays)()
            candidate.compile_seconds = time.perf_counter() - start
            return
        kernel = self.nests[candidate.index].kernel
        if isinstance(contender, Assembled):
            candidate.compiled = self.load(kernel, contender.code)
            candidate.compile_seconds = contender.seconds + time.perf_counter() - start
            return
        candidate.compiled = self.compiler(
            kernel, contender.machine, threads=self.options.threads, optimize=self.options.effort
        )
        candidate.compile_seconds = time.perf_counter() - start

    @property
    def compiler(self) -> CompileFunction:
        """The worker's compiler."""
        return required(self.tools.compiler, "a compiler (Worker(compiler=...))")

    @abstractmethod
    def load(self, kernel: KernelOp, code: JSON) -> Compiled:
        """A kernel's code from `assembled`, ready to run; another process may have made it."""

    @staticmethod
    @abstractmethod
    def assembled(kernel: KernelOp, machine: Machine, effort: Literal["search", "full"], tools: Tools) -> JSON:
        """Compile a kernel to code for `load`. Raises PdojoError."""

    def _array_sets(self) -> list[ArraySet]:
        """One set of arrays; for cold measurements, enough sets to fill the largest cache twice."""
        alignment = max(p.alignment for nest in self.nests.values() for p in parameters_of(nest))
        count = 1
        if self.options.cold:
            machines = [s.machine for s in self.comparison.contenders if isinstance(s, MeasuredProgram)]
            cache = max(m.cache_bytes[-1] for m in machines)
            count = 1 + -(-2 * cache // max(1, data_bytes(self.parameters)))
        key = (self.parameters, self.options.seed, self.options.ranges, alignment, count)
        if self.cache.sets_key == key:
            for arrays in self.cache.sets[1:]:
                # Undo the damage of earlier candidates.
                arrays.reset()
            return self.cache.sets
        # Free the old sets before allocating new ones.
        self.cache.sets_key, self.cache.sets = None, []
        try:
            inputs = random_inputs(self.parameters, self.options.seed, self.options.ranges)
            self.cache.sets = [ArraySet(self.parameters, inputs, alignment) for _ in range(count)]
            self.cache.sets_key = key
        except MemoryError as error:
            for candidate in self._alive():
                candidate.outcome = OutOfMemory("allocate", self.tools.memory_limit, str(error))
        return self.cache.sets

    def _bind(self, candidate: ContenderState, arrays: Arrays) -> Run:
        if isinstance(candidate.contender, MeasuredProgram):
            assert candidate.compiled is not None
            return candidate.compiled.bind(*arrays)
        assert candidate.built is not None
        run = candidate.built.bind(arrays)
        candidate.finish = run.finish
        return run

    def _check(self, candidate: ContenderState, arrays: ArraySet) -> None:
        """Run a candidate once on poisoned outputs and compare the result, unless its code is the reference's."""
        self.report(candidate.index, "reference")
        try:
            reference = self._reference(candidate, arrays)
        except MemoryError as error:
            raise MeasurementError(f"there is not enough memory for the reference result: {error}") from None
        if self.is_reference(candidate):
            candidate.check = Check("plain code", 0.0)
            return
        self._guarded(candidate, "run", lambda c: self.run_once(c, arrays))
        if candidate.outcome is None:
            self._judge(candidate, self._difference(candidate, arrays, reference))
            candidate.right = arrays.checksums()
        if candidate.outcome is None and isinstance(candidate.contender, MeasuredProgram):
            self.check_memory(candidate, arrays)

    def check_memory(self, candidate: ContenderState, arrays: ArraySet) -> None:
        """Look for accesses outside of the arrays."""
        self._guarded(candidate, GUARD_PAGES, lambda c: self._run_between_pages(c, arrays))

    def _run_between_pages(self, candidate: ContenderState, arrays: ArraySet) -> None:
        """Run a program on read-only inputs and poisoned outputs between pages without access.

        An access outside of an array ends the process, or is the candidate's outcome.
        """
        assert candidate.compiled is not None
        own = parameters_of(self.nests[candidate.index])
        contents = [arrays.inputs.get(p.name) for p in self.parameters]
        for side in SIDES:
            placed = [GuardPlacement(side, p.alignment) for p in own]
            guarded = [guarded_argument(*each) for each in zip(own, contents, placed, strict=True)]
            candidate.compiled.bind(*(each.array for each in guarded))()
            damage = (each.damage(p.name) for p, each in zip(own, guarded, strict=True))
            wrong = next((each for each in damage if each is not None), None)
            if wrong is not None:
                self._judge(candidate, wrong)
                return

    def is_reference(self, candidate: ContenderState) -> bool:
        """True if a candidate's code is the reference's code, so that its results are right already."""
        wanted = self.comparison.reference
        return self._is_plain(candidate) and isinstance(wanted, KernelReference) and wanted.compiled

    def _check_again(self, candidate: ContenderState, sets: Sequence[ArraySet], *, alone: bool) -> None:
        """Check a candidate once more after all timed calls: a later call may be wrong, or compute nothing.

        If the candidate was timed alone, also check the arrays as the timed calls left them.
        """
        if alone and isinstance(candidate.contender, MeasuredProgram):
            damage = next((damage for arrays in sets if (damage := self.damage(arrays)) is not None), None)
            if damage is not None:
                self._judge(candidate, f"{damage} by one of the timed calls")
                return
        arrays = sets[0]
        self._guarded(candidate, "run", lambda c: self.run_once(c, arrays))
        if candidate.outcome is None and arrays.checksums() != candidate.right:
            # Sums over threads may differ in the last bits from call to call.
            wrong = self._difference(candidate, arrays, self._reference(candidate, arrays))
            self._judge(candidate, wrong and f"{wrong} (after the timed calls; right before)")

    def damage(self, arrays: ArraySet) -> str | None:
        """A message about memory that timed calls changed but must not change."""
        return arrays.damage()

    def _judge(self, candidate: ContenderState, wrong: str | None) -> None:
        if wrong is not None:
            candidate.outcome = WrongResult(wrong)

    def _difference(
        self, candidate: ContenderState, arrays: ArraySet, reference: dict[str, NDArray[Any]]
    ) -> str | None:
        """A message about wrong arrays after a call, None if all are right; sets the candidate's `check`."""
        results = {p.name: a for p, a in zip(self.parameters, arrays.arrays, strict=True)}
        rounding = reduce(Rounding.__or__, map(Rounding.of, self.nests.values()))
        error, wrong = compare_all(self.parameters, results, reference, rounding, self.options.largest_error)
        name = self.comparison.reference
        is_compiled = isinstance(name, KernelReference) and name.compiled
        against = name.name if isinstance(name, NamedReference) else "plain code" if is_compiled else "interpreter"
        candidate.check = Check(against, error.fraction, error.absolute, error.relative)
        return wrong or (arrays.damage() if isinstance(candidate.contender, MeasuredProgram) else None)

    def run_once(self, candidate: ContenderState, arrays: ArraySet) -> None:
        """Run a candidate on poisoned outputs; afterwards the results are in `arrays`."""
        arrays.reset()
        self._bind(candidate, arrays.arrays)()
        if candidate.finish is not None:
            candidate.finish()

    def _reference(self, candidate: ContenderState, arrays: ArraySet) -> dict[str, NDArray[Any]]:
        return self._referred(candidate, arrays)[0]

    def _referred(self, candidate: ContenderState, arrays: ArraySet) -> Referred:
        """The reference result, from the cache or computed."""
        wanted = self.comparison.reference
        own = (
            self.comparison.contenders[min(self.nests)]
            if isinstance(candidate.contender, Peer)
            else candidate.contender
        )
        if wanted is None and isinstance(own, MeasuredProgram):
            wanted = KernelReference(own.text)
        key = (wanted, self.parameters, self.options.seed, self.options.ranges)
        known = self.cache.results
        if key not in known:
            while len(known) >= _KEPT:
                del known[next(iter(known))]
            known[key] = self._compute(wanted, arrays)
        return known[key]

    def _compute(self, wanted: object, arrays: ArraySet) -> Referred:
        inputs = arrays.inputs
        written = [p.name for p in self.parameters if p.written]
        if isinstance(wanted, KernelReference):
            nest = _nest(wanted.text)
            reference = parameters_of(nest)
            if [(p.dtype, p.shape) for p in reference] != [(p.dtype, p.shape) for p in self.parameters]:
                raise MeasurementError(f"the reference '{nest.name}' and the program have different interface arrays")
            names = {theirs.name: ours.name for theirs, ours in zip(reference, self.parameters, strict=True)}
            if wanted.compiled:
                return self.run_plain(nest, arrays)
            given = {name: inputs[ours] for name, ours in names.items() if ours in inputs}
            return {names[name]: value for name, value in interpret(nest, given).items()}, 0.0
        assert isinstance(wanted, NamedReference)
        references = required(self.tools.references, "references (Worker(references=...))")
        values = references(wanted.workload or wanted.name)(*inputs.values())
        return dict(zip(written, values, strict=True)), 0.0

    def run_plain(self, nest: Nest, arrays: ArraySet) -> Referred:
        """The outputs of a compiled reference kernel, and the seconds of the call."""
        machine = next(s.machine for s in self.comparison.contenders if isinstance(s, MeasuredProgram))
        return run_compiled(self.compiler(nest.kernel, machine, threads=1, optimize="full"), arrays)

    # Timing

    def timed(self, candidate: ContenderState, sets: Sequence[ArraySet]) -> Timed:
        """A candidate that is ready to be timed on these sets of arrays."""
        return Timed([self._bind(candidate, s.arrays) for s in sets], lambda: _restore(sets))

    def sample(self, timed: Sequence[Timed], begin: Callable[[int], None]) -> float | None:
        """Take the samples; `begin` is called with an index into `timed` before each. Returns the foreign load."""
        return take_samples(timed, self.options, begin)

    def facts(self) -> JSON:
        """The environment that determines times, in addition to the programs."""
        return {**environment(), "huge_page_bytes": huge_page_bytes()}

    def _time(self, sets: Sequence[ArraySet]) -> None:
        timed: list[tuple[ContenderState, Timed]] = []
        known: list[tuple[ContenderState, float]] = []
        for candidate in self._alive():
            if (seconds := self._known_time(candidate, sets[0])) is not None:
                known.append((candidate, seconds))
                continue
            made: list[Timed] = []

            def prepare(candidate: ContenderState, made: list[Timed] = made) -> None:
                made.append(self.timed(candidate, sets))
                made[0].is_brief = self.options.brief and self._is_plain(candidate)

            self._guarded(candidate, "allocate", prepare)
            if candidate.outcome is None:
                timed.append((candidate, made[0]))
        load = self.sample([t for _, t in timed], lambda i: self.report(timed[i][0].index, "time")) if timed else None
        facts = self.facts()
        for candidate, seconds in known:
            candidate.outcome = Ok((seconds,), 1, 1, None, candidate.compile_seconds, candidate.check, facts)
        for candidate, result in timed:
            if not result.samples:
                assert self.options.total is not None
                candidate.outcome = Timeout("time", self.options.total)
                continue
            if self.options.check and not self.is_reference(candidate):
                self._check_again(candidate, sets, alone=len(timed) == 1)
            candidate.outcome = candidate.outcome or Ok(
                tuple(result.samples),
                result.repeat,
                len(sets),
                load,
                candidate.compile_seconds,
                candidate.check,
                facts,
                steady_of(result),
                tuple(result.turns),
            )

    def _is_plain(self, candidate: ContenderState) -> bool:
        """True if a candidate is the plain kernel, whose results are the reference."""
        wanted, contender = self.comparison.reference, candidate.contender
        return (
            isinstance(wanted, KernelReference)
            and isinstance(contender, MeasuredProgram)
            and contender.text == wanted.text
        )

    def _known_time(self, candidate: ContenderState, arrays: ArraySet) -> float | None:
        """Seconds of the call that computed the reference, if the candidate made it, too slow for turns; else None."""
        if not (self.options.brief and self.options.check and self.is_reference(candidate)):
            return None
        seconds = self._referred(candidate, arrays)[1]
        return seconds if self.options.total is not None and seconds > self.options.total / 2 else None


def run_compiled(compiled: Compiled, arrays: ArraySet) -> Referred:
    """The arrays that a compiled kernel writes, from the inputs of a set, and the seconds of the call."""
    own = ArraySet(arrays.parameters, arrays.inputs, arrays.alignment)
    run = compiled.bind(*own.arrays)
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    return {p.name: array for p, array in zip(own.parameters, own.arrays, strict=True) if p.written}, seconds


def steady_of(timed: Timed) -> Steady | None:
    """Times besides the samples; None unless the samples are steady."""
    if timed.loop is None:
        return None
    first, seconds = (median(times) for times in zip(*((w.first, w.seconds) for w in timed.warm_ups), strict=True))
    return Steady(first, timed.loop, seconds, sum(not w.is_steady for w in timed.warm_ups))


def assemble(request: Assembly, session: type[WorkerSession], tools: Tools) -> JSON:
    """Object code as JSON with the `seconds` that compiling took, or a CompileError as JSON."""
    start = time.perf_counter()
    program = request.program
    try:
        code = session.assembled(_nest(program.text).kernel, program.machine, request.effort, tools)
    except PdojoError as error:
        return {"outcome": CompileError(str(error)).to_json()}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # a bug that a candidate shows is data here; the traceback is kept
        failure = CompileError(f"{type(error).__name__}: {error}", traceback.format_exc())
        return {"outcome": failure.to_json()}
    return {"code": code, "seconds": time.perf_counter() - start}


def _restore(sets: Sequence[ArraySet]) -> None:
    for arrays in sets:
        arrays.restore()


def _nest(text: str) -> Nest:
    kernels = parse_notation(text, "<program>")
    if len(kernels) != 1:
        raise MeasurementError(f"a program is one kernel, not {len(kernels)}")
    return nest_of(kernels[0])
