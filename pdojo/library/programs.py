"""The programs of a library: chosen and compiled one after the other, each kept as soon as it is finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from time import perf_counter
from typing import Any

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.source_digest import whole_digest
from pdojo.backends.llvm.described import llvm_version
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import DatabaseError, PdojoError, PluginError
from pdojo.library.choosing import Choice, Chooser
from pdojo.library.entries import PlannedEntry
from pdojo.library.levels import Level
from pdojo.library.manifest import ALIGNED, UNALIGNED, digest, program_name
from pdojo.library.objects import CompiledProgram, compile_program
from pdojo.library.publishing import Workplace
from pdojo.library.spec import LibrarySpec
from pdojo.transforms.trace import Trace

MEASURED = "measured"
"""The kind of programs that are tuned by measurements."""
PLAIN_SECONDS, PASS_SECONDS, RACE_SECONDS, EVALUATION_SECONDS = 0.2, 2.0, 12.0, 1.0
"""Seconds assumed for a program before any was made: without moves, with the pass, with a race of variants, and for
each evaluation of a search.
"""


@dataclass(frozen=True)
class Job:
    """A program to make: an entry for a level and an alignment."""

    entry: PlannedEntry
    level: Level
    align: int

    @property
    def name(self) -> str:
        """A unique name, for files and symbols."""
        return program_name(self.entry.name, self.level.name, self.align)

    @property
    def aligned_name(self) -> str:
        """The name of the program for aligned arrays."""
        return replace(self, align=ALIGNED).name

    @property
    def number(self) -> int:
        """The place among the variants of an entry and a level."""
        return 0 if self.align == ALIGNED else 1


@dataclass(frozen=True)
class Made:
    """A program and its facts."""

    job: Job
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Finished:
    """A program that was made now, or by an earlier build that did not end."""

    job: Job
    moves: int
    how: str
    seconds: float
    left: float
    """Estimate of the seconds that the other programs take."""
    is_kept: bool
    """Whether an earlier build made it."""


class BuildListener:
    """Receives the progress of a build; all methods do nothing by default."""

    def planned(self, jobs: Sequence[Job], kept: int, measured: int, seconds: float) -> None:
        """Called first: the programs, how many are kept from an earlier build or will be measured, and an estimated
        time.
        """

    def begins(self, job: Job) -> None:
        """Called before a program is chosen."""

    def made(self, finished: Finished) -> None:
        """Called after each program."""

    def left_out(self, reason: str) -> None:
        """Called for each entry that a device has no code for."""

    def failed(self, reason: str) -> None:
        """Called for each entry that has no program, or whose program is wrong; the build goes on with the others."""

    def step(self, what: str) -> None:
        """Called before each step other than a program: reading, linking, checking."""

    def detail(self, what: str) -> None:
        """Called with parts of the present step."""


def jobs_of(levels: Sequence[Level], entries: Sequence[PlannedEntry]) -> list[Job]:
    """All programs; programs for other alignments follow the programs that they may be adapted from."""
    jobs: list[Job] = []
    for level in levels:
        for entry in entries:
            if entry.is_part:
                jobs.append(Job(entry, level, ALIGNED))
                continue
            both = [print_notation(with_alignment(entry.kernel, align)) for align in (ALIGNED, UNALIGNED)]
            jobs += [Job(entry, level, ALIGNED), *([Job(entry, level, UNALIGNED)] if both[0] != both[1] else [])]
    return jobs


class ProgramMaker:
    """The programs of a build."""

    def __init__(self, spec: LibrarySpec, workplace: Workplace, chooser: Chooser, listener: BuildListener) -> None:
        self._spec = spec
        self._workplace = workplace
        self._chooser = chooser
        self._listener = listener
        self._times: dict[str, list[float]] = defaultdict(list)
        self._kinds: dict[str, str] = {}
        """Kinds of programs, keyed by name; programs of one kind take about the same time."""

    def made(self, jobs: Sequence[Job]) -> tuple[list[Made], dict[str, PdojoError]]:
        """All programs with their facts, in the order of the jobs; the errors of entries without programs, by name."""
        keys = {job.name: self._key(job) for job in jobs}
        known = {job.name: self._workplace.find(job.name, keys[job.name]) for job in jobs}
        done = {name: facts for name, facts in known.items() if facts is not None}
        missing = [job for job in jobs if job.name not in done]
        self._kinds = {job.name: self._kind(job) for job in missing}
        measured = sum(kind == MEASURED for kind in self._kinds.values())
        self._listener.planned(jobs, len(done), measured, self._left(missing))
        failed: dict[str, PdojoError] = {}
        for number, job in enumerate(jobs):
            is_kept, begun = job.name in done, perf_counter()
            if job.entry.name in failed:
                continue
            if not is_kept:
                self._listener.begins(job)
                aligned = None if job.align == ALIGNED else Trace.parse(done[job.aligned_name]["trace"])
                try:
                    done[job.name] = self._make(job, keys[job.name], aligned)
                except (DatabaseError, PluginError):
                    raise
                except PdojoError as error:
                    failed[job.entry.name] = error
                    self._listener.failed(str(error))
                    continue
                self._times[self._kinds[job.name]].append(perf_counter() - begun)
            left = self._left([each for each in jobs[number + 1 :] if each.name not in done])
            facts, seconds = done[job.name], perf_counter() - begun
            self._listener.made(Finished(job, facts["moves"], facts["how"], seconds, left, is_kept))
        return [Made(job, done[job.name]) for job in jobs if job.entry.name not in failed], failed

    def _make(self, job: Job, key: str, aligned: Trace | None) -> dict[str, Any]:
        try:
            choice = self._chooser.choose(job.entry, job.level, job.align, aligned)
            facts, code = compiled_program(self._spec, job, choice)
        except PdojoError as error:
            raise type(error)(f"{job.entry.name} for {job.level.name}: {error}") from None
        self._workplace.keep(job.name, key, facts, code)
        return facts

    def _left(self, jobs: Sequence[Job]) -> float:
        """Seconds for these jobs: the mean of earlier jobs of their kind, or a guess before the first one."""
        seconds = {"plain": PLAIN_SECONDS, "pass": PASS_SECONDS, MEASURED: _guess(self._spec)}
        seconds |= {kind: sum(times) / len(times) for kind, times in self._times.items()}
        return sum(seconds[self._kinds[job.name]] for job in jobs)

    def _kind(self, job: Job) -> str:
        if not job.entry.is_tuned:
            return "plain"
        is_measured = job.level.is_measured and job.entry.is_timed and job.align == ALIGNED
        return MEASURED if is_measured and not self._chooser.is_known(job.entry, job.level) else "pass"

    def _key(self, job: Job) -> str:
        """A digest of everything except the database that determines a program."""
        facts = (job.entry.text, job.entry.is_tuned, job.level.text(self._spec.name), job.align)
        plan = self._spec.tuning.text if job.level.is_measured and job.entry.is_timed else "pass"
        return digest(repr((*facts, plan, self._spec.prefix, _versions())).encode())


def _guess(spec: LibrarySpec) -> float:
    """Seconds of tuning for an entry, before one was tuned."""
    plan = spec.tuning
    if plan.search is None:
        return RACE_SECONDS
    limits = [plan.budget.seconds]
    limits += [None if plan.budget.evaluations is None else plan.budget.evaluations * EVALUATION_SECONDS]
    return RACE_SECONDS + min(limit for limit in limits if limit is not None)


def compiled_program(spec: LibrarySpec, job: Job, choice: Choice) -> tuple[dict[str, Any], bytes]:
    """The facts of a program, and its object file."""
    kernel = choice.tuning.after
    compiled = compile_program(kernel, job.level.machine, c_name(spec, job))
    moves = {"trace": choice.trace.dump(), "moves": len(choice.trace.steps), "how": choice.how}
    return {**moves, **facts_of(kernel, compiled)}, compiled.code


def c_name(spec: LibrarySpec, job: Job) -> str:
    """The name of a program's function."""
    return "".join(c if c.isalnum() else "_" for c in f"{spec.prefix}_{job.name}")


def facts_of(kernel: KernelOp, compiled: CompiledProgram) -> dict[str, Any]:
    """The facts that follow from a program and its code."""
    return {
        "program": digest(print_notation(kernel).encode()),
        "symbol": compiled.symbol,
        "workspace": [compiled.shared_bytes, compiled.thread_bytes],
        "parallel": compiled.is_parallel,
        "alignments": [parameter.alignment for parameter in parameters_of(nest_of(kernel))],
        "object": digest(compiled.code),
        "arguments": compiled.arguments,
        "binding": None if compiled.binding is None else asdict(compiled.binding),
    }


def tool_versions() -> dict[str, str]:
    """The versions of all code that determines programs and object files."""
    return {
        "pdojo": version("pdojo"),
        "xdsl": version("xdsl"),
        "llvmlite": version("llvmlite"),
        "LLVM": llvm_version(),
    }


@cache
def _versions() -> tuple[str, ...]:
    return (whole_digest("**/*.py", "**/*.toml"), *tool_versions().values())
