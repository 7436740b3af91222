"""Programs with sizes for a model at many shapes: made at its second shape, looked up at others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import LoadedKernel, load
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError
from pdojo.model.compiling import KernelRequest, compile_kernels
from pdojo.model.constants import SharedConstants
from pdojo.model.generalised import SizedText, generalised, skeleton_of

_MOST_FORMS = 4
"""Most texts from which a program with sizes is made."""
_MOST_LOADED = 512
"""Most programs whose code is kept; the oldest goes first."""


class NotCoveredError(PdojoError):
    """A kernel has no program yet, and none may be compiled any more."""


class Chosen(NamedTuple):
    """The program to compile for a kernel."""

    request: KernelRequest
    sizes: tuple[int, ...] = ()
    """The values of the program's sizes that make it the kernel; () for a program without sizes."""


@dataclass
class _Place:
    """The kernels of a model that are in the same place among its kernels at all shapes."""

    forms: list[str] = field(default_factory=list[str])
    """The last ones that had no program with sizes (`KernelRequest.form`)."""
    known: list[SizedText] = field(default_factory=list[SizedText])


class SizedPrograms:
    """The programs with sizes of one model; several threads may use them at once."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int, int, str], _Place] = {}
        """Kernels by their region, by their number among its kernels, and by what is no number in their texts."""
        self._lock = Lock()
        self._loaded: dict[object, LoadedKernel] = {}
        """The code of programs with sizes, and of others, which many shapes may share; keys are those of requests."""
        self.constants = SharedConstants()
        """The constants of the model at all shapes."""
        self.compiled = 0
        """The number of kernels whose code was compiled, or read from the user's cache."""
        self.is_closed = False
        """Whether no kernels are compiled any more: models need those that there are."""

    def load(
        self, name: str, kernels: Sequence[KernelOp], requests: Sequence[KernelRequest], threads: int, *, cached: bool
    ) -> list[LoadedKernel]:
        """The code of a model's kernels at one shape; it is compiled if there is none (`compile_kernels`).

        Models with one `name` are those of one region, at all shapes. Raises NotCoveredError if the programs are closed
        and a kernel has none.
        """
        chosen = self.choose(name, requests)
        missing = {key: each.request for each in chosen if (key := each.request.code(threads)) not in self._loaded}
        self.count(len(missing))
        codes = dict(zip(missing, compile_kernels([*missing.values()], cached=cached), strict=True))
        found = [self._at(*each, codes, threads) for each in zip(kernels, chosen, strict=True)]
        while len(self._loaded) > _MOST_LOADED:
            del self._loaded[next(iter(self._loaded))]
        return found

    def count(self, kernels: int) -> None:
        """Count kernels that have no program yet. Raises NotCoveredError if none may be compiled any more."""
        if kernels and self.is_closed:
            raise NotCoveredError(f"{kernels} kernels have no program at these sizes")
        self.compiled += kernels

    def _at(self, kernel: KernelOp, chosen: Chosen, codes: Mapping[object, ObjectCode], threads: int) -> LoadedKernel:
        """The code of a kernel, or of one with sizes at the values that make it this kernel."""
        key = chosen.request.code(threads)
        if key not in self._loaded:
            (general,) = parse_notation(chosen.request.text) if chosen.sizes else (kernel,)
            self._loaded[key] = load(general, codes[key], threads)
        loaded = self._loaded[key]
        return loaded.at(chosen.sizes, parameters_of(nest_of(kernel))) if chosen.sizes else loaded

    def choose(self, name: str, requests: Sequence[KernelRequest]) -> list[Chosen]:
        """The programs for the kernels of a region at one shape, in order.

        At the second shape, kernels that differ from those of the first in sizes only get programs with sizes.
        """
        with self._lock:
            return [
                self._chosen(
                    self._places.setdefault((name, len(requests), number, skeleton_of(request.form)), _Place()), request
                )
                for number, request in enumerate(requests)
            ]

    def _chosen(self, place: _Place, request: KernelRequest) -> Chosen:
        for sized in place.known:
            if (values := sized.values(request.form)) is not None:
                return Chosen(replace(request, text=sized.text), tuple(values[name] for name in sized.ranges))
        if not request.form or self.is_closed or request.form in place.forms:
            return Chosen(request)
        place.forms = [*place.forms, request.form][-_MOST_FORMS:]
        # The more texts, the fewer guesses; texts of the last two shapes may have a kernel if those of all have none.
        for forms in dict.fromkeys((tuple(place.forms), tuple(place.forms[-2:]))):
            sized = generalised(*forms) if len(forms) > 1 else None
            if sized is not None:
                place.known.append(sized)
                return self._chosen(place, request)
        return Chosen(request)
