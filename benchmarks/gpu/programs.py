"""Compiled programs in a file: made on a computer without a GPU, and run on one that may lack compilers."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeAlias

from benchmarks.origin import JSON
from pdojo.backends.common.source_digest import source_digest
from pdojo.backends.gpu.executable import CUDA, HIP, GpuCompiler, GpuKernel
from pdojo.backends.gpu.program import DeviceProgram
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import UsageError
from pdojo.files import read_bytes, replace_file
from pdojo.kernels import Workload, kernel_names, workload
from pdojo.passes.common.parameters import ParameterValues, TuningParameter
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game

Group: TypeAlias = Literal["small", "time", "check"]
LARGEST = 64 << 20
"""Greatest size of a file of programs in bytes, packed or unpacked."""
MOST_VARIANTS = 24
"""Greatest number of programs of a workload."""
FEW = 4
"""Multiprocessors of a machine so small that small sizes have the variants of large ones."""
SMALL = """softmax:37x1001 softmax:9x512 layernorm:7x1003 rmsnorm:11x4097 reducemean:13x4095 batchnorm:3x5x17x31
batchnorm:2x3x64x2048 relu_ffn:3x5x7x9 argmax:9x1025 cross_entropy:10x999 groupnorm:2x6x5x7,G=3
cumsum:33x65 colmean:129x67 transpose:65x130 gemv:63x1001 gemv_t:127x65 dot:100003 attention:3x65x33x16
causal_softmax:2x65 maxpool:2x3x17x19 depthwise_conv:2x5x17x19,S=2 conv:3x7x5x19x23x3,S=2,P=1 conv:2x10x3x40x37x5
conv_transpose:2x5x7x9x11x3 bias_gelu:7x1001 matmul_i8:33x40x37 add:1000x1001 mul""".split()
"""Workloads with odd extents, which run in seconds."""
VARIED = "matmul:130x75x66 bmm:3x65x33x70 conv:2x33x16x12x11x3 matmul_bf16:130x72x68 swiglu:1x33x130x65".split()
"""Workloads whose variants all run, made as for a machine of `FEW` multiprocessors."""
_FORMAT = 1


@dataclass(frozen=True)
class Task:
    """A workload to prepare."""

    group: Group
    workload: Workload
    varied: bool = False
    """True if all variants of the pass are prepared."""
    few: bool = False
    """True if the machine has `FEW` multiprocessors."""


@dataclass(frozen=True)
class Prepared:
    """A compiled program of a workload."""

    group: Group
    workload: Workload
    title: str
    """The answers that differ from the pass's preferences; `the pass` if none differs."""
    kernel: str
    """The program in the notation."""
    compiled: JSON
    """The `DeviceProgram`, as plain data."""

    @property
    def name(self) -> str:
        """The program in messages."""
        return self.workload.label if self.title == "the pass" else f"{self.workload.label}, {self.title}"

    def load(self, compiler: GpuCompiler) -> GpuKernel:
        """The program on the device. Raises NoDevice, LoweringError, DriverError."""
        (kernel,) = parse_notation(self.kernel, self.workload.label)
        return compiler.load(kernel, DeviceProgram.from_json(self.compiled))

    def to_json(self) -> JSON:
        """As plain data."""
        return {**asdict(self), "workload": self.workload.to_json()}

    @staticmethod
    def from_json(data: JSON) -> Prepared:
        """The inverse of `to_json`."""
        fields: JSON = {**data, "workload": Workload.from_json(data["workload"])}
        return Prepared(**fields)


@dataclass(frozen=True)
class Programs:
    """The programs of a file."""

    machine: str
    digest: str
    """Digest of pdojo's sources that made them."""
    rows: tuple[Prepared, ...]

    @property
    def compiler(self) -> GpuCompiler:
        """Loads the programs."""
        return compiler_of(known_machine(self.machine))

    def write(self, path: Path) -> None:
        """Replace the file. Raises UsageError."""
        rows = [row.to_json() for row in self.rows]
        data = {"format": _FORMAT, "machine": self.machine, "digest": self.digest, "rows": rows}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, lzma.compress(json.dumps(data).encode()))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None

    @staticmethod
    def read(path: Path) -> Programs:
        """Programs written by `write`. Raises UsageError for any other file."""
        try:
            unpacked = lzma.LZMADecompressor().decompress(read_bytes(path, LARGEST), LARGEST)
            data = json.loads(unpacked)
            if data["format"] != _FORMAT:
                raise UsageError(f"{path} was prepared by another version of pdojo; prepare it again")
            rows = tuple(map(Prepared.from_json, data["rows"]))
            return Programs(data["machine"], data["digest"], rows)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
        except (lzma.LZMAError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} has no prepared programs: {error}") from None


def compiler_of(machine: Machine) -> GpuCompiler:
    """The compiler for a machine. Raises UsageError if it is no GPU."""
    found = {CUDA.machine: CUDA, HIP.machine: HIP}.get(machine.name)
    if found is None:
        raise UsageError(f"'{machine.name}' is no GPU; known: {CUDA.machine}, {HIP.machine}")
    return found


def tasks(timed: Sequence[Workload], *, everything: bool) -> list[Task]:
    """The timed workloads; with `everything`, also small ones and all library kernels."""
    found = [Task("time", each, varied=True) for each in timed]
    if not everything:
        return found
    small = [Task("small", workload(text)) for text in SMALL]
    small += [Task("small", workload(text), varied=True, few=True) for text in VARIED]
    return [*small, *found, *(Task("check", workload(name)) for name in kernel_names(long=False))]


def prepare(
    work: Sequence[Task],
    compiler: GpuCompiler,
    path: Path,
    processes: int,
    listener: Callable[[Task, int], None] = lambda _task, _programs: None,
) -> Programs:
    """Compile the programs of all tasks, in processes, and write them to a file; needs no device.

    Programs of the same sources that the file already has are kept. `listener` receives each finished task and its
    number of programs. Raises MissingTool, LoweringError, UsageError.
    """
    digest = source_digest("**/*.py", "**/*.h", "**/*.toml", "**/*.pdojo")
    found = _kept(path, compiler.machine, digest)
    left = [task for task in work if _key(task) not in found]
    made: Iterable[tuple[Task, list[Prepared]]]
    if processes == 1:
        made = ((task, prepared(task, compiler)) for task in left)
    else:
        made = _in_processes(left, compiler, processes)
    for task, rows in made:
        found[_key(task)] = rows
        Programs(compiler.machine, digest, _in_order(work, found)).write(path)
        listener(task, len(rows))
    programs = Programs(compiler.machine, digest, _in_order(work, found))
    programs.write(path)
    return programs


def _in_processes(work: Sequence[Task], compiler: GpuCompiler, processes: int) -> Iterator[tuple[Task, list[Prepared]]]:
    # A new interpreter each: a fork would inherit the locks of this one's threads.
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        jobs = {pool.submit(_prepared_for, task, compiler.machine): task for task in work}
        for job in as_completed(jobs):
            yield jobs[job], job.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _prepared_for(task: Task, machine: str) -> list[Prepared]:
    return prepared(task, compiler_of(known_machine(machine)))


def prepared(task: Task, compiler: GpuCompiler) -> list[Prepared]:
    """The programs of a task, without repetitions. Raises MissingTool, LoweringError."""
    machine = known_machine(compiler.machine)
    if task.few:
        machine = replace(machine, gpu=replace(machine.gpu, multiprocessors=FEW))
    found: dict[str, Prepared] = {}
    for title, game in programs_of(task.workload, machine, varied=task.varied):
        text = print_notation(game.program.kernel)
        if text not in found:
            made = compiler.assemble(game.program.kernel, machine)
            found[text] = Prepared(task.group, task.workload, title, text, made.to_json())
    return list(found.values())


def programs_of(task: Workload, machine: Machine, *, varied: bool) -> Iterator[tuple[str, Game]]:
    """The heuristic pass's program, then its variants, with the answers as a title.

    Questions with the same options, such as those about two products of one kernel, get the same answer. Questions that
    arise only after an answer are included.
    """

    def play(decisions: ParameterValues) -> tuple[Game, tuple[TuningParameter, ...]]:
        game = Game(with_alignment(task.instantiate(), ALIGNMENT), machine)
        return game, run_pass("heuristic", game, decisions).choices

    first, choices = play({})
    yield "the pass", first
    open_: list[tuple[dict[str, str], tuple[TuningParameter, ...], frozenset[str]]] = [({}, choices, frozenset())]
    count = 1
    while varied and open_:
        decisions, choices, seen = open_.pop(0)
        new = [choice for choice in choices if choice.question not in seen]
        for answers in alternatives(new):
            if count == MOST_VARIANTS:
                return
            both = {**decisions, **answers}
            game, behind = play(both)
            open_.append((both, behind, seen | {choice.question for choice in choices}))
            yield "; ".join(dict.fromkeys(both.values())), game
            count += 1


def alternatives(choices: Sequence[TuningParameter]) -> Iterator[dict[str, str]]:
    """The other answers to one question at a time, or to all questions with the same options."""
    alike: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for choice in choices:
        alike.setdefault((choice.options, choice.taken), []).append(choice.question)
    for (options, taken), questions in alike.items():
        for answer in options:
            if answer != taken:
                yield dict.fromkeys(questions, answer)


def _key(task: Task | Prepared) -> tuple[str, str]:
    return task.group, task.workload.label


def _kept(path: Path, machine: str, digest: str) -> dict[tuple[str, str], list[Prepared]]:
    """The rows of a file made by the same sources, by task. Raises UsageError for any other file."""
    found: dict[tuple[str, str], list[Prepared]] = {}
    old = Programs.read(path) if path.exists() else None
    if old is not None and (old.machine, old.digest) == (machine, digest):
        for row in old.rows:
            found.setdefault(_key(row), []).append(row)
    return found


def _in_order(work: Sequence[Task], found: dict[tuple[str, str], list[Prepared]]) -> tuple[Prepared, ...]:
    return tuple(row for task in work for row in found.get(_key(task), []))
