"""The options of `torch.compile(backend="pdojo", options={...})`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from pdojo.budget import Budget
from pdojo.errors import UsageError, did_you_mean

Tuning = Literal["none", "pass", "search"]


@dataclass(frozen=True)
class Options:
    """The options; the default is the expert pass of this processor."""

    tune: Tuning = "pass"
    """How kernels get their moves: none, the expert pass, or a search from its program on."""
    budget: str = "2m"
    """The time of a search for each kernel."""
    database: str | None = None
    """The database with known programs, in which searches keep what they measure; None is the default one."""
    check: bool = False
    """Whether every kernel is compared with PyTorch on its inputs in every call."""
    constants: bool = True
    """Whether parameters and buffers of a module are constants where no gradients are computed."""
    winograd: bool = True
    """Whether convolutions of 3 x 3 taps may have fewer products, with other rounding (docs/torch.md)."""
    specialisations: int = 8
    """Most combinations of shapes for which kernels are made; PyTorch runs all others."""

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> Options:
        """The options given to `torch.compile`. Raises UsageError for an unknown one or a wrong value."""
        known = {each.name: each for each in fields(Options)}
        for name in given or {}:
            if name not in known:
                raise UsageError(f"'{name}' is no option of the backend pdojo; {did_you_mean(name, tuple(known))}")
        options = Options(**dict(given or {}))
        if options.tune not in get_args(Tuning):
            raise UsageError(f"option tune is 'none', 'pass' or 'search', not {options.tune!r}")
        for name, kind in get_type_hints(Options).items():
            if name != "tune" and not isinstance(getattr(options, name), kind):
                raise UsageError(f"option {name} is of type {known[name].type}, not {getattr(options, name)!r}")
        Budget.parse(options.budget)
        if options.specialisations < 1:
            raise UsageError(f"option specialisations is a number from 1, not {options.specialisations}")
        return options


def instead_of(name: str, value: object) -> str:
    """The end of the error for an argument of `torch.compile` that is for Inductor alone: the option to give."""
    if name == "mode" and str(value).startswith("max-autotune"):
        return """, which is Inductor's; kernels are searched with options={"tune": "search", "budget": "2m"}"""
    if name == "mode":
        return """, which is Inductor's; leave it out, and choose by options={"tune": "none", "pass" or "search"}"""
    return "; its options are in docs/torch.md"
