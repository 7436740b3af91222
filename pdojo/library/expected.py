"""Fresh inputs of an entry, and the results that its plain kernel gives for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.backends.measure.check import Rounding, compare_all
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import is_float
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.semantics.rounding import round_float64, to_interface
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest

Content: TypeAlias = Literal["random", "special"]
"""Contents of floating-point inputs: random numbers, or these with NaN, infinities, zeros and a denormal (of f32)."""
Arrays: TypeAlias = dict[str, NDArray[Any]]

INTERPRETED = 1 << 28
"""Limit of statement instances for the interpreter: some seconds."""
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40)


@dataclass(eq=False)
class Expected:
    """The inputs and results of a plain kernel, keyed by content."""

    plain: KernelOp
    seed: int
    _known: dict[str, tuple[Arrays, Arrays]] = field(default_factory=dict[str, tuple[Arrays, Arrays]])

    @cached_property
    def nest(self) -> Nest:
        """The view of the kernel."""
        return nest_of(self.plain)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface of the kernel."""
        return parameters_of(self.nest)

    @cached_property
    def rounding(self) -> Rounding:
        """The rounding of the kernel's sums."""
        return Rounding.of(self.nest)

    @cached_property
    def contents(self) -> tuple[Content, ...]:
        """The contents for which the results are determined."""
        has_floats = any(is_float(p.dtype) for p in self.parameters)
        return ("random", "special") if has_floats and Numerics.NUMBERS not in self.plain.permitted else ("random",)

    @cached_property
    def is_interpreted(self) -> bool:
        """Whether the interpreter computes the results; else the compiled plain kernel, without any move."""
        return count_instances(self.nest) <= INTERPRETED

    def of(self, content: Content) -> tuple[Arrays, Arrays]:
        """The inputs, and the written arrays after a call, keyed by name."""
        if content not in self._known:
            inputs = random_inputs(self.parameters, self.seed)
            if content == "special":
                inputs = {p.name: _special(inputs[p.name], p, self.seed) for p in self.parameters if p.name in inputs}
            self._known[content] = inputs, self._results(inputs)
        return self._known[content]

    def difference(self, results: Arrays, content: Content) -> str | None:
        """A message about the first wrong element of the results; None if all are right."""
        return compare_all(self.parameters, results, self.of(content)[1], self.rounding)[1]

    def _results(self, inputs: Arrays) -> Arrays:
        if self.is_interpreted:
            return interpret(self.nest, inputs)
        # Loading the compiler takes longer than most calls.
        from pdojo.backends.calls import compile_for
        from pdojo.backends.measure.session import run_compiled

        return run_compiled(compile_for(self.plain, None, threads=1), ArraySet(self.parameters, inputs))[0]


def _special(array: NDArray[Any], parameter: Parameter, seed: int) -> NDArray[Any]:
    """A copy with some special values at random places."""
    if not is_float(parameter.dtype) or not array.size:
        return array
    random = np.random.default_rng([seed, array.size])
    count = min(len(_SPECIAL), array.size)
    places = random.choice(array.size, count, replace=False)
    values = random.permutation(np.asarray(_SPECIAL))[:count]
    found = array.copy()
    found.reshape(-1)[places] = to_interface(round_float64(values, parameter.dtype), parameter.dtype)
    return found
