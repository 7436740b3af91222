"""Programs with sizes for a model at many shapes: made at its second shape, looked up at others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

from pdojo.model.compiling import KernelRequest
from pdojo.model.generalised import SizedText, generalised


class Chosen(NamedTuple):
    """The program to compile for a kernel."""

    request: KernelRequest
    sizes: tuple[int, ...] = ()
    """The values of the program's sizes that make it the kernel; () for a program without sizes."""


@dataclass
class _Place:
    """The kernels of a model that are in the same place among its kernels at all shapes."""

    last: str = ""
    """The text of the last one that had no program with sizes."""
    known: list[SizedText] = field(default_factory=list[SizedText])


class SizedPrograms:
    """The programs with sizes of one model; several threads may use them at once."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], _Place] = {}
        self._lock = Lock()

    def choose(self, requests: Sequence[KernelRequest]) -> list[Chosen]:
        """The programs for the kernels of a model at one shape, in order.

        At the second shape, kernels that differ from those of the first in sizes only get programs with sizes.
        """
        with self._lock:
            return [
                self._chosen(self._places.setdefault((len(requests), number), _Place()), request)
                for number, request in enumerate(requests)
            ]

    def _chosen(self, place: _Place, request: KernelRequest) -> Chosen:
        if request.machine is not None and request.expert is None:
            # The program of a database is one for constant sizes.
            return Chosen(request)
        for sized in place.known:
            if (values := sized.values(request.text)) is not None:
                return Chosen(replace(request, text=sized.text), tuple(values[name] for name in sized.ranges))
        last, place.last = place.last, request.text
        sized = generalised(last, request.text) if last and last != request.text else None
        if sized is None:
            return Chosen(request)
        place.known.append(sized)
        return self._chosen(place, request)
