"""Instructions of a machine: a nest in the notation, and a template for each backend (Exo's idea).

An intrinsic is data, part of a machine description. It promises that the template of every backend computes
the nest of `meaning`, up to `numerics`, if the operands lie in memory as `strides` says and do not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from pdojo.dialect.templates import template_of

LANGUAGES = ("llvm", "c", "cuda", "hip", "fibers", "snitch")
"""Languages of templates; all but the last one are for code generation."""
FREE: Literal["*"] = "*"
"""A stride that may have any value; the template receives it."""
Stride: TypeAlias = int | Literal["*"]


class Instructions(Protocol):
    """A machine, as far as views of its kernels need it."""

    @property
    def intrinsics(self) -> tuple[Intrinsic, ...]:
        """Instructions that compute whole nests."""
        ...


@dataclass(frozen=True, repr=False)
class Intrinsic:
    """An instruction (or a short sequence) that computes a whole nest."""

    name: str
    meaning: str
    """A kernel in the notation, of the same name, with one nest: interface arrays are operands, others temporaries."""
    templates: Mapping[str, str]
    """The code, keyed by backend; docs/machines.md describes the templates of each."""
    features: tuple[str, ...] = ()
    """Features that the machine must have, sorted."""
    strides: Mapping[str, tuple[Stride, ...]] = field(default_factory=dict[str, "tuple[Stride, ...]"])
    """Per operand and dimension, the distance of neighbours in elements; other operands are row-major without gaps."""
    numerics: tuple[str, ...] = ()
    """Names of the numerics classes (`Numerics`) in which code and meaning differ."""
    registers: int = 0
    """Number of registers for operands, each of an operand's size; 0 if operands use the machine's vector registers."""
    threads: int = 0
    """Number of threads that run it together, those of one or several whole warps; 0 if one thread runs it."""
    warps: int = 1
    """Number of neighbouring warps that run it together."""
    fragments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Per operand, `lane, slot` over its indices: an element's thread, and its register in that thread."""
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    """Per operand that the unit itself reads from shared memory, its atom: rows, bytes of a row and of a granule.

    A fourth number is the only dimension along which elements may be neighbours.
    An instruction with such operands is asynchronous: the threads go on while it runs."""
    trusted: bool = True
    """Whether the templates may be compiled; those of a machine file need the user's trust."""

    def __repr__(self) -> str:
        return self.name

    def available(self, features: tuple[str, ...]) -> bool:
        """Whether a machine with these features can run it."""
        return set(self.features) <= set(features)

    def template(self, backend: str) -> str:
        """The code for a backend. Raises LoweringError (its text follows the name) if it is missing or not trusted."""
        return template_of(self.templates, backend, trusted=self.trusted)
