"""The calls of a model's kernels: where each finds the addresses of its arrays, and the values of its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from numpy.typing import NDArray

from pdojo.backends.llvm.executable import LoadedKernel
from pdojo.model.constants import Held, SharedConstants
from pdojo.model.executable import Executable
from pdojo.model.graph import Known, Operand, Tensor
from pdojo.model.kernels import Step
from pdojo.model.memory import MemoryPlan

E = TypeVar("E", bound=Executable)


class Interface(NamedTuple):
    """Where a model has its arrays."""

    inputs: Sequence[Tensor]
    results: Mapping[Tensor, str]
    """The tensors that kernels write into arrays of the caller, with the names of the outputs."""
    memory: MemoryPlan


class Calls(Generic[E]):
    """The calls of a model at all sizes. Numbers of a call, addresses and values of sizes, are in a list."""

    def __init__(
        self,
        steps: Sequence[Step],
        executables: Sequence[E],
        interface: Interface,
        constants: SharedConstants,
    ) -> None:
        self.shared = constants
        self.tensors: dict[Tensor, int] = {}
        """The places of tensors with memory of their own, or a part of another's."""
        self.sizes: dict[int, int] = {}
        """The places of extents."""
        self.constants: dict[int, tuple[int, NDArray[Any]]] = {}
        """The places of constants and the arrays, keyed by the identity of the array."""
        self.count = 0
        """The number of places."""
        self._held: list[Held] = []
        """The shared constants that it keeps alive."""
        self.steps = [(each, self._places(step, each)) for step, each in zip(steps, executables, strict=True)]
        """The code of each call, and the places of its numbers."""
        self.apart = self._places_apart(interface)
        """Of each array outside the block of intermediates: its place, the argument's, and its offset there."""

    @property
    def different(self) -> Sequence[E]:
        """The code, once each."""
        return [*{id(each): each for each, _ in self.steps}.values()]

    def _places(self, step: Step, executable: E) -> list[int]:
        """The places of a call's numbers, in the order of the code's arguments."""
        operands = {p.name: o for p, o in zip(executable.parameters, (*step.inputs, *step.outputs), strict=True)}
        made: Mapping[str, NDArray[Any]] = {}
        if executable.constants is not None:
            known = {p.name: _known(operands[p.name]) for p in executable.parameters if p.constant}
            made = self._kept(self.shared.bound(executable, known))
        places = [
            self._constant(made[p.name]) if p.name in made else self._operand(operands[p.name])
            for p in executable.arguments
        ]
        tensors = [operands[p.name] for p in executable.arguments if p.strides]
        strides = [stride for each in tensors if isinstance(each, Tensor) for stride in each.strides]
        return [*places, *(self._place(self.sizes, each) for each in (*(executable.given or step.sizes), *strides))]

    def _places_apart(self, interface: Interface) -> list[tuple[int, int, int]]:
        read = [tensor for tensor in interface.inputs if tensor in self.tensors]
        arguments = {tensor: number for number, tensor in enumerate((*read, *interface.results))}
        rows = [(place, *interface.memory.place(tensor)) for tensor, place in self.tensors.items()]
        return [(place, arguments[own], offset) for place, own, offset in rows if own in arguments]

    def _place(self, places: dict[Any, int], key: object) -> int:
        """The place of a number; a new one if it has none."""
        if key not in places:
            places[key] = self.count
            self.count += 1
        return places[key]

    def _operand(self, operand: Operand) -> int:
        if isinstance(operand, Tensor):
            return self._place(self.tensors, operand.memory)
        return self._constant(self._kept(self.shared.aligned(operand))[""])

    def _constant(self, array: NDArray[Any]) -> int:
        if id(array) not in self.constants:
            self.constants[id(array)] = self.count, array
            self.count += 1
        return self.constants[id(array)][0]

    def _kept(self, held: Held) -> Mapping[str, NDArray[Any]]:
        """Arrays that live as long as the calls."""
        self._held.append(held)
        return held.arrays


class BoundCalls:
    """The calls of a model with one block of intermediates: numbers that stay the same are converted once."""

    def __init__(self, calls: Calls[LoadedKernel], numbers: list[int], apart: Sequence[tuple[int, int, int]]) -> None:
        self.numbers = numbers
        """The numbers of the last call."""
        cells: dict[tuple[int, Any], Any] = {}
        self._calls: list[tuple[Callable[..., object], Sequence[Any]]] = []
        for executable, places in calls.steps:
            function = executable.direct
            if function is None:
                self._calls.append((_bound(executable.run_with_indices, _getter(places), numbers), ()))
                continue
            kinds = function.argtypes
            keys = [(place, kind) for place, kind in zip(places, kinds, strict=False)]
            given = [cells.setdefault(key, key[1](numbers[key[0]])) for key in keys]
            rest = [kinds[-2](None), kinds[-1](executable.threads)]
            self._calls.append((function, (*given, *rest)))
        self._apart = [
            (slot, argument, offset, [cell for (place, _), cell in cells.items() if place == slot])
            for slot, argument, offset in apart
        ]

    def place(self, addresses: Sequence[int]) -> None:
        """Take the arrays outside the block from these addresses of arguments."""
        for slot, argument, offset, cells in self._apart:
            self.numbers[slot] = address = addresses[argument] + offset
            for cell in cells:
                cell.value = address

    def run(self) -> None:
        """Run all kernels."""
        for function, arguments in self._calls:
            function(*arguments)


def _bound(
    run: Callable[[Sequence[int]], None], arguments: Callable[[list[int]], Sequence[int]], numbers: list[int]
) -> Callable[[], None]:
    return lambda: run(arguments(numbers))


def _getter(places: Sequence[int]) -> Callable[[list[int]], Sequence[int]]:
    """From a list to its elements at some places."""
    if len(places) < 2:
        return lambda numbers: [numbers[place] for place in places]
    return itemgetter(*places)


def _known(operand: Operand) -> Known:
    assert not isinstance(operand, Tensor), operand
    return operand
