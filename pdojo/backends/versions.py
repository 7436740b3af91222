"""A kernel with versions as one callable: a call runs the first version whose ranges have its sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.backend import CallableKernel
from pdojo.backends.calling.arguments import Outputs, sizes_by_shapes
from pdojo.backends.calling.arrays import AnyArray, Parameter, parameters_at
from pdojo.dialect.affine import Size
from pdojo.errors import UsageError

MOST_KNOWN = 1 << 12
"""Most combinations of shapes whose version is remembered."""


class Version(NamedTuple):
    """A version as a callable, and the sizes that calls of it determine."""

    kernel: CallableKernel
    sizes: tuple[Size, ...]


@dataclass(frozen=True, repr=False)
class VersionedKernel:
    """A kernel with versions. It is called as each of them is; arrays of any sizes that one of them takes fit."""

    name: str
    versions: tuple[Version, ...]
    """The versions, in the order in which a call tries them."""
    _known: dict[Hashable, Version] = field(default_factory=dict[Hashable, Version])
    """The versions for shapes of earlier calls."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface, in order, for the sizes of the last version."""
        return self.versions[-1].kernel.parameters

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Outputs:
        """Run the version for the arrays' sizes. Raises UsageError if none takes them."""
        return self.version(arrays, named).kernel(*arrays, **named)

    def bind(self, /, *arrays: AnyArray, **named: AnyArray) -> Callable[[], None]:
        """Check the arrays once. The returned function runs their version on them."""
        return self.version(arrays, named).kernel.bind(*arrays, **named)

    def bind_constants(self, /, **named: AnyArray) -> VersionedBound:
        """Bind the constant inputs in every version."""
        return VersionedBound(self, [version.kernel.bind_constants(**named) for version in self.versions])

    def random_inputs(self, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Random arrays for the inputs of the last version, with its greatest sizes."""
        return self.versions[-1].kernel.random_inputs(seed)

    def version(self, arrays: Sequence[AnyArray], named: Mapping[str, AnyArray]) -> Version:
        """The version for arrays. Raises UsageError with the last version's reason if there is none."""
        sizes = {size.name for size in self.versions[-1].sizes}
        key = (*map(np.shape, arrays), *((n, int(v) if n in sizes else np.shape(v)) for n, v in named.items()))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._found(arrays, named)
        return found

    def _found(self, arrays: Sequence[AnyArray], named: Mapping[str, AnyArray]) -> Version:
        for version in self.versions:
            parameters = version.kernel.parameters
            try:
                values, shapes = sizes_by_shapes(self.name, parameters, arrays, named, version.sizes)
            except UsageError:
                if version is self.versions[-1]:
                    raise
                continue
            wanted = {p.name: p.shape for p in parameters_at(parameters, values)}
            if all(wanted[name] == shape for name, shape in shapes.items()):
                return version
        return self.versions[-1]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {', '.join(version.kernel.name for version in self.versions)}>"


@dataclass(frozen=True)
class VersionedBound:
    """A kernel with versions whose constant inputs are bound."""

    kernel: VersionedKernel
    bound: list[Callable[..., Outputs]]
    """The versions with their constants, in order."""

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Outputs:
        """Run the version for the arrays' sizes, without the constant inputs."""
        names = [p.name for p in self.kernel.parameters if not p.constant]
        version = self.kernel.version((), {**dict(zip(names, arrays, strict=False)), **named})
        return self.bound[self.kernel.versions.index(version)](*arrays, **named)
