"""Random kernels in the notation, well formed by construction.

Every access is in bounds, types agree, every element is defined before it is read, every output is fully written,
concurrent scopes do not race, and slots and shared buffers never change a value. So every move, interpreter and backend
must handle them. Integer divisions have positive constant divisors, shifts stay below the width, and only floats of an
input array are converted to integers, so that all behaviour is defined for inputs of moderate size. Extents are small.
Spelling varies on purpose (familiar and full names, several extents on a line or nested), so that a text is rarely
canonical.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.kernels.random_kernels.generator import Generator
from pdojo.kernels.random_kernels.parts import CPU, Choices, Features, features_for

__all__ = ["CPU", "Choices", "Features", "drawn_text", "features_for", "random_kernels", "random_text"]


def drawn_text(choices: Choices, features: Features) -> str:
    """The text of the kernel that the choices determine."""
    return Generator(choices, features).text()


def random_text(seed: int, features: Features = CPU) -> str:
    """The text of a random kernel, determined by the seed."""
    return drawn_text(Choices(Random(seed)), features)


def random_kernels(seed: int) -> Iterator[KernelOp]:
    """Endless random kernels, determined by the seed."""
    random = Random(seed)
    while True:
        yield parse_notation(random_text(random.getrandbits(62)))[0]
