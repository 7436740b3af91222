"""The versions of a kernel as code generators see them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from pdojo.dialect.affine import Size
from pdojo.dialect.names import symbol
from pdojo.dialect.ops import VersionsOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError


@dataclass(frozen=True)
class Versions:
    """A kernel with versions. A call runs the first whose ranges have its sizes.

    Sizes that no version has are the caller's mistake, as sizes outside of the ranges of any kernel: code runs the last
    version.
    """

    name: str
    nests: tuple[Nest, ...]
    """The versions, in the order in which a call tries them."""

    @property
    def symbol(self) -> str:
        """The symbol of its function."""
        return symbol(self.name)

    def tests(self) -> list[tuple[Nest, list[Size]]]:
        """The versions, each with the sizes that a call compares with their ranges; none for the last version."""
        last = self.nests[-1]
        return [(nest, [] if nest is last else [*nest.sizes.values()]) for nest in self.nests]


def versions_of(op: VersionsOp) -> Versions:
    """The versions that an operation lists. Raises VerifyException for one that is no kernel."""
    return Versions(op.sym_name.data, tuple(nest_of(kernel) for kernel in op.found()))


def version_lists(module: ModuleOp) -> list[VersionsOp]:
    """The lists of versions in a module, in order."""
    return [op for op in module.walk() if isinstance(op, VersionsOp)]


def refuse_versions(module: ModuleOp, where: str) -> None:
    """Raise LoweringError for a kernel with versions; `where` has no code that chooses one."""
    for listed in version_lists(module):
        raise LoweringError(
            f"{where} has no code that chooses among the versions of '{listed.sym_name.data}': "
            f"{', '.join(listed.names)}; give it a module with one version"
        )
