"""Encoders: the network's input for a program. Vectors are computed once per program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy

from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError
from pdojo.perfllm.learner import Vector
from pdojo.search.environment.actions import Action
from pdojo.search.features.structure import SIZE, VERSION, structure

ENCODERS = ("structure", "hf:MODEL")
"""Names of the encoders."""


class Encoder(Protocol):
    """Encodes programs as vectors of one length. Equal programs have equal vectors, up to rounding."""

    @property
    def name(self) -> str:
        """Name of the encoder and of everything that its vectors depend on; stored with a run."""
        ...

    @property
    def size(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, programs: Sequence[Action]) -> list[Vector]:
        """One vector per program."""
        ...


class StructureEncoder:
    """Structural features (`pdojo.search.features.structure`); they need neither a download nor a GPU."""

    name = f"structure {VERSION}"
    size = SIZE

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def encode(self, programs: Sequence[Action]) -> list[Vector]:
        """The features of each program."""
        return [numpy.array(structure(one.program.nest, self._machine), dtype=numpy.float32) for one in programs]


def encoder(name: str, machine: Machine) -> Encoder:
    """The encoder with this name. Raises UsageError if there is none, or if its packages or its model are missing."""
    kind, _, model = name.partition(":")
    if kind == "hf":
        from pdojo.perfllm.transformer import transformer_encoder

        return transformer_encoder(model)
    if name != "structure":
        raise UsageError(f"unknown encoder '{name}'; known are {', '.join(ENCODERS)}")
    return StructureEncoder(machine)
