"""Reads nearly correct texts in process: notation, MLIR, traces, machine files, moves, shapes, assembly.

Each input is a valid text with mistakes in tokens or bytes. It must be accepted, or refused with one clear error,
within five seconds: a traceback or a too deep recursion is a failure. The same seed gives the same inputs. With
--files, inputs are damaged files of the agent and of trainings (`qa.input_fuzz.stored`); reading one may take 256 MiB
of memory. With --models, inputs are damaged ONNX models; with --graphs, random ONNX graphs, whose errors must name
node, operator and reason. Exit code 1 if some inputs failed.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import TypeAlias

from pdojo_tools.command import Arguments, positive, random_seed, tool

from pdojo.errors import MeasurementError, PdojoError
from qa.input_fuzz.corpus import corpus
from qa.input_fuzz.mutations import mutated
from qa.input_fuzz.readers import READERS

SECONDS = 5.0
"""Limit of processor seconds for reading an input."""
MEMORY = 1 << 28
"""Limit of bytes that reading a file may reserve."""
_WEIGHTS = {"notation": 6, "mlir": 6, "trace": 2, "machine": 2, "moves": 3, "shape": 1, "assembly": 1}


class Hang(BaseException):
    """Raised when reading takes too long; no reader may catch this."""


@dataclass(frozen=True)
class Failure:
    """An input that was neither accepted nor properly refused."""

    number: int
    form: str
    data: bytes
    problem: str
    """The traceback's last line and position."""

    def __str__(self) -> str:
        return f"input {self.number} ({self.form}): {self.problem}\n{self.data!r}"


@dataclass
class Found:
    """Statistics of the inputs."""

    taken: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])
    slowest: float = 0.0


def drawn(seed: int, number: int) -> tuple[str, bytes]:
    """The form and the bytes of an input, by number."""
    random = Random(f"{seed}:{number}")
    (form,) = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    texts = corpus()[form]
    return form, mutated(random.choice(texts), random, texts)


def drawn_file(seed: int, number: int) -> tuple[str, bytes]:
    """The form and the bytes of a damaged file, by number; the forms take turns."""
    from qa.input_fuzz.stored import FILES, damaged

    form = list(FILES)[number % len(FILES)]
    return form, damaged(form, Random(f"{seed}:{number}"))


def drawn_model(seed: int, number: int) -> tuple[str, bytes]:
    """The bytes of a damaged ONNX model, by number."""
    from qa.input_fuzz.models import damaged_model

    return "onnx", damaged_model(Random(f"{seed}:{number}"))


def drawn_graph(seed: int, number: int) -> tuple[str, bytes]:
    """The bytes of a random ONNX graph, by number."""
    from qa.input_fuzz.graphs import odd_model

    return "graph", odd_model(Random(f"{seed}:{number}"))


def read_file(form: str, data: bytes) -> None:
    """Read a file with little memory. Raises PdojoError if it is refused, MemoryError or others if it needs more."""
    if form == "onnx":
        from qa.input_fuzz.models import read_model

        read_model(data)
        return
    if form == "graph":
        from qa.input_fuzz.graphs import read_odd

        read_odd(data)
        return
    from qa.input_fuzz.stored import read_stored

    with bounded_memory(MEMORY):
        read_stored(form, data)


def judge(form: str, data: bytes) -> str | None:
    """The problem with reading an input; None if it is accepted. Raises PdojoError if it is refused."""
    try:
        with _limit(SECONDS):
            READERS[form](data) if form in READERS else read_file(form, data)
    except PdojoError as error:
        if not str(error).strip():
            return "an error without a message"
        raise
    except Hang:
        return f"more than {SECONDS:g} s\n{''.join(traceback.format_exc(limit=-6))}"
    except Exception:  # noqa: BLE001  # any other exception is a finding
        return traceback.format_exc(limit=-6)
    return None


Draw: TypeAlias = Callable[[int, int], tuple[str, bytes]]


def fuzz(seed: int, numbers: range, found: Found, draw: Draw = drawn) -> Iterator[Failure]:
    """Judge inputs by number; yields each failure at once."""
    for number in numbers:
        form, data = draw(seed, number)
        start = time.perf_counter()
        try:
            problem = judge(form, data)
            found.taken[form] += problem is None
        except PdojoError:
            problem = None
            found.refused[form] += 1
        found.slowest = max(found.slowest, time.perf_counter() - start)
        if problem is not None:
            found.failures.append(Failure(number, form, data, problem))
            yield found.failures[-1]


@contextmanager
def bounded_memory(most: int) -> Generator[None]:
    """A context in which this process can reserve at most `most` further bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def _limit(seconds: float) -> Generator[None]:
    """Raise Hang in the main thread after `seconds` processor seconds, or ten times as many real ones."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    parser = Arguments(prog="python -m qa.fuzz_inputs", description=__doc__)
    add = parser.add_argument
    add("--inputs", type=positive, default=100_000, metavar="N", help="how many (100,000 by default)")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of everything random")
    add("--files", action="store_true", help="damaged files instead of texts")
    add("--models", action="store_true", help="damaged ONNX models instead of texts")
    add("--graphs", action="store_true", help="random ONNX graphs instead of texts")
    add("--number", type=int, metavar="N", help="only input N of the seed, as a failure names it")
    given = parser.parse_args(args)
    numbers = range(given.inputs) if given.number is None else range(given.number, given.number + 1)
    found = Found()
    chosen = ((given.models, drawn_model), (given.graphs, drawn_graph), (given.files, drawn_file))
    draw = next((each for wanted, each in chosen if wanted), drawn)
    for failure in fuzz(given.seed, numbers, found, draw):
        sys.stdout.write(f"{failure}\n\n")
        sys.stdout.flush()
    for form in sorted(found.taken.keys() | found.refused.keys()):
        if total := found.taken[form] + found.refused[form]:
            sys.stdout.write(
                f"{form:11} {total:7,} inputs, {found.taken[form]:6,} taken, {found.refused[form]:7,} refused\n"
            )
    sys.stdout.write(f"slowest {found.slowest:.2f} s; {len(found.failures)} failures of {len(numbers):,} inputs\n")
    if found.failures:
        raise MeasurementError(f"{len(found.failures)} inputs were neither taken nor refused with one error")


if __name__ == "__main__":
    sys.exit(main())
