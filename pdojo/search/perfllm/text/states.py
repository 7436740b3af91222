"""Program states for pre-training, which random legal moves generate without any measurement."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random

from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError, UsageError
from pdojo.files import exists, read_text, replace_file
from pdojo.kernels import kernel_names, workload
from pdojo.search.contract.dojo import Dojo
from pdojo.search.environment.actions import actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.features.structure import SIZE, VERSION, structure
from pdojo.search.perfllm.schema import Row, check
from pdojo.transforms.registry import transformation_names

MACHINES = ("x86-64-avx2", "x86-64-avx512", "aarch64-neon", "snitch", "nvidia-sm90")
LARGEST = 1 << 30
"""Most bytes of a file of walks."""
MOVES = 24
"""Most moves of a walk."""
SIZES = (4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256)
"""Sizes that stand for those of a kernel's file, except small ones: strides, paddings."""
SMALL = 8
"""Sizes of a kernel's file that are kept."""


@dataclass(frozen=True)
class Walk:
    """States of a random walk of legal moves from a plain kernel."""

    kernel: str
    machine: str
    texts: list[str]
    """The programs, the plain one first."""
    features: list[list[float]]
    """The structural features of each."""
    families: list[str]
    """The family of the move from each program to the next; one fewer than there are programs."""


def is_held_out(kernel: str, patterns: Sequence[str]) -> bool:
    """True if a kernel's name fits one of the patterns, such as `matmul*`."""
    return any(fnmatchcase(kernel, pattern) for pattern in patterns)


def walks(seed: int, first: int = 0) -> Iterator[Walk]:
    """Random walks on library kernels of random sizes for several machines, from number `first` on, without end.

    Each walk has a number, and depends on that and the seed only.
    """
    number = first
    while True:
        random = Random(f"{seed} {number}")
        yield _walk(random)
        number += 1


def _walk(random: Random) -> Walk:
    while True:
        kernel = random.choice(kernel_names())
        described = machine(random.choice(MACHINES))
        try:
            state = Dojo(_instance(kernel, random), described)
            break
        except PdojoError:
            # The kernel does not exist at these sizes; others are drawn.
            continue
    found = Walk(kernel, described.name, [state.text], [_features(state)], [])
    for _ in range(MOVES):
        _, *drawn = actions_of(state, Rules(1), random)
        if not drawn:
            break
        state = drawn[0].state()
        found.texts.append(state.text)
        found.features.append(_features(state))
        found.families.append(drawn[0].family)
    return found


def _features(state: Dojo) -> list[float]:
    return [float(f"{value:.6g}") for value in structure(state.game.program.nest, state.machine)]


def _instance(name: str, random: Random) -> KernelOp:
    """The kernel at random sizes, of a random type, perhaps aligned. Raises PdojoError for impossible sizes."""
    own = workload(name)
    sizes = ",".join(f"{size}={random.choice(SIZES)}" for size, value in own.sizes.items() if value > SMALL)
    dtype = random.choice([None, "f32", "f64"]) if own.element_type else None
    kernel = workload(f"{name}:{sizes}" if sizes else name, dtype).instantiate()
    if random.random() < 0.5:
        kernel = with_alignment(kernel, ALIGNMENT)
    return with_permission(kernel, Numerics.NUMBERS) if random.random() < 0.25 else kernel


def _walk_in(line: str) -> Walk:
    """The walk of a line. Raises ValueError for other lines."""
    try:
        data = json.loads(line)
        check(data, _WALK)
    except (RecursionError, UsageError) as error:
        raise ValueError(f"a line has no walk, {error}") from None
    found = Walk(**data)
    if not len(found.texts) == len(found.features) == len(found.families) + 1:
        raise ValueError("a walk has other numbers of programs and moves")
    if not set(found.families) <= set(transformation_names()):
        raise ValueError("a walk has a move of an unknown family")
    return found


_WALK = {
    **dict.fromkeys(("kernel", "machine"), str),
    "texts": [str],
    "families": [str],
    "features": [Row((float,) * SIZE)],
}


class Collection:
    """Walks in a file, one a line, which an interrupted run goes on with. Raises UsageError for another file."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path, self._seed = path, seed
        self.walks: list[Walk] = []
        header = {"seed": seed, "features": VERSION, "kernels": kernel_names(), "machines": MACHINES, "moves": MOVES}
        first = json.dumps(header)
        try:
            lines = read_text(path, LARGEST).split("\n") if exists(path) else []
            # A line that was interrupted has no end.
            whole = lines[:-1]
            if whole and whole[0] != first:
                raise UsageError(f"'{path}' has states of another seed or version; remove it, or choose another file")
            self.walks.extend(map(_walk_in, whole[1:]))
            replace_file(path, "".join(f"{line}\n" for line in whole or [first]).encode())
        except OSError as error:
            raise UsageError(f"cannot use '{path}': {error.strerror}") from None
        except ValueError as error:
            raise UsageError(f"'{path}' is damaged; remove it ({error})") from None

    @property
    def states(self) -> int:
        """The number of programs."""
        return sum(len(walk.texts) for walk in self.walks)

    def more(self) -> Iterator[Walk]:
        """Walks that are not there yet, without end; each is in the file when it is given.

        Raises UsageError if the file takes no more.
        """
        for walk in walks(self._seed, len(self.walks)):
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(walk)) + "\n")
            except OSError as error:
                raise UsageError(f"cannot write '{self._path}': {error.strerror}") from None
            self.walks.append(walk)
            yield walk
