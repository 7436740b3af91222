"""The worker of a cluster: an actor with a runtime evaluator for each of its last kernels."""

from __future__ import annotations

import json
import os
import platform
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from pdojo.backends.common.source_digest import whole_digest
from pdojo.backends.measure import MeasuredProgram
from pdojo.backends.measure.environment import environment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_from_json, machine_to_json
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON, Candidate
from pdojo.search.contract.racing import Race, TimingRequest
from pdojo.search.evaluators.cluster.processors import claim
from pdojo.search.evaluators.runtime import RuntimeEvaluator
from pdojo.transforms.game import fingerprint_of

KEPT = 4
"""Kernels whose evaluators, with their processes and arrays, a worker keeps."""
_SOURCES = ("**/*.py", "**/*.toml", "**/*.pdojo")


@dataclass(frozen=True)
class Release:
    """A version of pdojo. Costs and the workers' interface depend on it."""

    version: str
    source: str
    """SHA-256 of the package's files."""

    def __str__(self) -> str:
        return f"{self.version} ({self.source[:8]})"


@dataclass(frozen=True)
class Facts:
    """Facts about a worker."""

    environment: JSON
    """The environment as a search on the worker's machine sees it."""
    machine: str
    """The name of the machine."""
    process: int
    processors: tuple[int, ...]
    """Processors reserved for the worker."""


@lru_cache(maxsize=1)
def release() -> Release:
    """The release of pdojo in this process."""
    return Release(version("pdojo"), whole_digest(*_SOURCES))


def host_of(wanted: Release) -> JSON:
    """The machine description of the host. Raises UsageError if another pdojo is installed."""
    _check(wanted)
    return machine_to_json(host())


class Measurer:
    """The actor. It does nothing before `begin`, so that every error is the answer to a call."""

    def begin(self, wanted: Release, machine: str, processors: int) -> Facts:
        """Reserve processors for a machine description in JSON.

        Raises UsageError if another pdojo is installed, LoweringError if the machine description does not fit this
        computer, and MeasurementError if too few processors are free.
        """
        _check(wanted)
        self._machine = machine_from_json(json.loads(machine))
        _check_machine(self._machine)
        # Read the environment before this process is bound to its processors, as every search on this machine sees it.
        facts = dict(environment())
        own = claim(processors, sorted(os.sched_getaffinity(0)))
        # Compilers inherit the binding; otherwise they would disturb other timings.
        os.sched_setaffinity(0, own)
        self._evaluators: OrderedDict[str, RuntimeEvaluator] = OrderedDict()
        return Facts(facts, platform.node(), os.getpid(), tuple(own))

    def ping(self) -> None:
        """Return if the worker is alive."""

    def heat(
        self, plain: str, seed: int, texts: Sequence[str], beside: str | None, rounds: int, inputs: int | None
    ) -> list[Race]:
        """Time programs in turns with `beside`; see `RuntimeEvaluator`. `seed` is the seed of the checked inputs."""
        evaluator = self._evaluator(plain)
        evaluator.seed = seed
        other = None if beside is None else self._candidate(beside)
        return evaluator.heat(TimingRequest([self._candidate(text) for text in texts], other, rounds, inputs))

    def _candidate(self, text: str) -> Candidate:
        return Candidate(MeasuredProgram(text, self._machine), fingerprint_of(text))

    def _evaluator(self, plain: str) -> RuntimeEvaluator:
        """The evaluator of a kernel, given by its plain program."""
        if plain not in self._evaluators:
            while len(self._evaluators) >= KEPT:
                self._evaluators.popitem(last=False)[1].close()
            self._evaluators[plain] = RuntimeEvaluator(self._machine, parse_notation(plain)[0])
        self._evaluators.move_to_end(plain)
        return self._evaluators[plain]


def _check(wanted: Release) -> None:
    if release() != wanted:
        where = f"{platform.node()} has pdojo {release()} in {Path(__file__).parents[3]}"
        raise UsageError(f"{where}, and the search runs in {wanted}: install the same everywhere")


def _check_machine(machine: Machine) -> None:
    from pdojo.backends.llvm.optimize import processor

    processor(machine)
