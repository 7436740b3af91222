"""Comparing every kernel with PyTorch, on the inputs that it gets in a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from pdojo.dialect.notation import print_notation
from pdojo.errors import PdojoError
from pdojo.torch.apart import KernelCall, Memory, given_memory, kernel_calls
from pdojo.torch.keys import Key, key_of, results_of
from pdojo.torch.plans import Plan
from pdojo.torch.program import Environment, Layout, RegionStep

Numbers: TypeAlias = Mapping[Key, torch.Tensor]
_ULPS = 8
"""Units in the last place that a kernel may be wrong by where it sums nothing."""
_NARROW = (torch.float16, torch.bfloat16, torch.float32)


class WrongKernel(PdojoError):
    """A kernel whose results differ from PyTorch's; the message has the difference and the notation."""


@dataclass(frozen=True)
class Difference:
    """The element of a result that differs most from PyTorch's."""

    error: float
    """The error as a multiple of the allowed error: right up to 1; infinite if non-finite elements differ."""
    place: tuple[int, ...]
    found: float
    wanted: float


class CheckedRegion:
    """A region whose kernels are compared with PyTorch in every call."""

    def __init__(self, region: RegionStep, plan: Plan) -> None:
        self.region = region
        self._is_memory_checked = False
        self._plan = plan
        self._calls = kernel_calls(region)
        self._terms = plan.regions[region.number].terms

    def __call__(self, values: Environment) -> None:
        """Compute the results of the region. Raises WrongKernel if a kernel's, or the whole region's, are wrong.

        In the first call, raises MeasurementError if a kernel writes outside of its outputs.
        """
        if not self._is_memory_checked:
            self.region.compiled.check_memory()
            self._is_memory_checked = True
        memory = given_memory(self.region, values)
        given = {key: value for key, value in values.items() if isinstance(value, torch.Tensor)}
        for call in self._calls:
            call.bind(memory)()
            self._check(call, {**given, **{key: memory[tensor] for key, tensor in call.inputs.items()}}, memory)
        self.region(values)
        keys = self.region.keys
        for tensor in self.region.compiled.results:
            key = keys[tensor]
            if key in values and not _same(values[key], memory[tensor]):
                raise WrongKernel(
                    f"{self.region.model.name}: '{key[0].name}' has other elements if its kernels run together than if "
                    "they run one by one; please report this"
                )

    def _check(self, call: KernelCall, inputs: Numbers, memory: Memory) -> None:
        """Compare the results of a kernel with PyTorch's. Raises WrongKernel."""
        for key, tensor in call.outputs.items():
            native, exact = references(self._plan, key, inputs)
            nodes = call.nodes(self._plan)
            terms = max((self._terms.get(node, 1) for node in nodes), default=1)
            worst = difference(memory[tensor], native, exact, terms)
            if worst.error > 1:
                operators = ", ".join(dict.fromkeys(str(node.target) for node in nodes))
                raise WrongKernel(
                    f"kernel '{call.name}' of {self.region.model.name} ({operators}) differs from PyTorch: element "
                    f"{list(worst.place)} of '{key[0].name}' is {worst.found:.9g}, PyTorch's is {worst.wanted:.9g}, "
                    f"{worst.error:.3g} times the difference that is allowed\n{print_notation(call.step.kernel)}"
                )


def references(plan: Plan, key: Key, inputs: Numbers) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor of the graph as PyTorch computes it from `inputs`: with its own types, and in f64 where it can."""
    with torch.no_grad():
        native = _Reference(plan, inputs, wide=False).tensor(key)
        try:
            exact = _Reference(plan, inputs, wide=True).tensor(key)
        except RuntimeError:  # Some operators take other types only.
            exact = native
    return native, exact


class _Reference:
    """The calls of a graph between `inputs` and the wanted results, as PyTorch computes them."""

    def __init__(self, plan: Plan, inputs: Numbers, *, wide: bool) -> None:
        self._plan = plan
        self._wide = wide
        self._known = {key: self._as_asked(tensor) for key, tensor in inputs.items()}

    def tensor(self, key: Key) -> torch.Tensor:
        """A tensor of the graph."""
        if key not in self._known:
            if key in self._plan.static:
                self._known[key] = self._as_asked(self._plan.static[key])
            elif key[0].op == "placeholder":  # Only its shape matters: no region reads it any more.
                self._known[key] = self._as_asked(Layout.of(key).at(self._plan.present).new().zero_())
            else:
                self._run(key[0])
        return self._known[key]

    def _run(self, node: Node) -> None:
        arguments, keywords = torch.fx.node.map_aggregate(
            torch.fx.node.map_arg((node.args, node.kwargs), self._argument),
            lambda each: self._type(each) if isinstance(each, torch.dtype) else each,
        )
        made: Any = node.target(*arguments, **keywords)
        for number, each in enumerate(results_of(made)):
            self._known[node, number] = each

    def _argument(self, node: Node) -> Any:
        return self._plan.numbers[node] if node in self._plan.numbers else self.tensor(key_of(node))

    def _as_asked(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(self._type(tensor.dtype))

    def _type(self, dtype: torch.dtype) -> torch.dtype:
        return torch.float64 if self._wide and dtype in _NARROW else dtype


def difference(found: torch.Tensor, native: torch.Tensor, exact: torch.Tensor, terms: int) -> Difference:
    """The largest difference of `found` from the f64 result `exact`, or its first wrong element.

    An element may be wrong by twice the largest error of PyTorch's result `native`, or by some units in the last place:
    of its own without sums, of the largest element for sums of `terms` numbers. Elements of other types than floating
    point, infinities and NaN must equal `native` or `exact`.
    """
    ours, theirs, right = (each.detach().to(torch.float64) for each in (found, native, exact))
    if not found.is_floating_point():
        error = torch.where((found == native) | (ours == right), 0.0, inf)
        return _worst(error, ours, theirs)
    finite = right.isfinite() & theirs.isfinite()
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    own = (theirs - right).abs()[finite].amax() if finite.any() else torch.zeros(())
    size = right[finite].abs().amax() if finite.any() else torch.zeros(())
    unit = _ULPS * torch.finfo(found.dtype).eps
    scale = right.abs() if terms <= 1 else sqrt(terms) * size
    allowed = (2 * own).maximum(unit * scale).clamp(min=torch.finfo(found.dtype).tiny)
    error = torch.where(finite & ours.isfinite(), (ours - right).abs() / allowed, torch.where(same, 0.0, inf))
    return _worst(error, ours, right)


def _worst(error: torch.Tensor, found: torch.Tensor, wanted: torch.Tensor) -> Difference:
    flat = int(error.argmax())
    place = tuple(int(each) for each in torch.unravel_index(torch.tensor(flat), error.shape)) if error.dim() else ()
    return Difference(float(error[place]), place, float(found[place]), float(wanted[place]))


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(((left == right) | (left.isnan() & right.isnan())).all())
