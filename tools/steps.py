"""The steps of a `pdojo-opt` command line, in their order."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from pdojo.errors import UsageError

PassFactories: TypeAlias = dict[str, Callable[[], type[ModulePass]]]


@dataclass(frozen=True)
class Step:
    """An option that acts on the program (`passes`, `apply`, `apply_trace`, `undo`) and its value."""

    option: str
    value: str


class AppendStep(argparse.Action):
    """Appends the option to the common list of steps."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Record the option and its value."""
        steps: list[Step] = getattr(namespace, "steps", None) or []
        namespace.steps = [*steps, Step(self.dest, str(values))]


def parse_passes(available: PassFactories, text: str) -> PassPipeline:
    """The passes of a `-p` pipeline. Raises UsageError with a suggestion for unknown passes and wrong arguments."""
    try:
        specs = list(parse_pipeline(text))
    except ArgSpecParseError as error:
        raise UsageError(f"-p {text}: {_pipeline_message(error)}") from None
    passes: list[ModulePass] = []
    for spec in specs:
        factory = available.get(spec.name) or _plugin_passes().get(spec.name)
        if factory is None:
            raise UsageError(f"unknown pass '{spec.name}'{suggestion(spec.name, {**available, **_plugin_passes()})}")
        try:
            passes.append(factory().from_spec(spec))
        except ValueError as error:
            raise UsageError(f"pass '{spec.name}': {error}") from None
    return PassPipeline(tuple(passes))


def _plugin_passes() -> PassFactories:
    """The passes of plug-in moves; finding them is slow, so it is done for unknown names only."""
    from pdojo.transforms.pass_names import passes_by_name
    from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation_names

    return passes_by_name(transformation_names()[len(TRANSFORMATION_NAMES) :])


def _pipeline_message(error: ArgSpecParseError) -> str:
    """The message without xDSL's heading."""
    return str(error).split("\n", 1)[-1].strip()


def suggestion(name: str, known: Sequence[str] | dict[str, Any]) -> str:
    """`; did you mean 'x'?`; if no name is close, the whole list if it is short, else ''."""
    others = [each for each in known if each != name]
    close = get_close_matches(name, others, 1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(others)}" if 0 < len(others) <= 20 else ""
