"""Sources of a fuzz run's kernels, by number: the generator, the library at small sizes, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeAlias

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.kernels import kernel_names
from pdojo.kernels.random_kernels import CPU, features_for, random_text
from qa.sizes import small_kernel

Source: TypeAlias = Callable[[int, Random, str], KernelOp]
"""The kernel of a number for a machine, drawn with the number's own generator."""


def generated(stages: int) -> Source:
    """Random kernels of at most `stages` stages, with the mappings of the machine."""

    def drawn(number: int, random: Random, name: str) -> KernelOp:
        del number
        features = replace(features_for(machine(name)), stages=stages)
        return parse_notation(random_text(random.getrandbits(62), features))[0]

    return drawn


def library(names: Sequence[str]) -> Source:
    """Kernels of the library in turn, at random sizes."""
    chosen = names or kernel_names(long=False)

    def drawn(number: int, random: Random, name: str) -> KernelOp:
        del name
        return small_kernel(chosen[number % len(chosen)], random)

    return drawn


def from_files(paths: Sequence[str]) -> Source:
    """The kernels of files in turn. Raises UsageError if one cannot be read."""
    kernels: list[KernelOp] = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None
        kernels += parse_notation(text, path)

    def drawn(number: int, random: Random, name: str) -> KernelOp:
        del random, name
        return kernels[number % len(kernels)]

    return drawn


def source(names: Sequence[str], *, only_random: bool, stages: int = CPU.stages) -> Source:
    """The source of a command line; by default three random kernels for each library kernel.

    Raises UsageError if the options contradict each other.
    """
    if only_random and names:
        raise UsageError("give kernels or --random, not both")
    if only_random:
        return generated(stages)
    known = [name for name in names if name in kernel_names(long=False)]
    if known and len(known) < len(names):
        raise UsageError("give kernels of the library or files, not both")
    if names:
        return library(names) if known else from_files(names)
    mixed, made = library(()), generated(stages)

    def drawn(number: int, random: Random, name: str) -> KernelOp:
        return mixed(number // 4, random, name) if number % 4 == 3 else made(number, random, name)

    return drawn
