"""Pipelines of passes on the command line of `pdojo-opt`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pdojo_tools.steps import suggestion
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from pdojo.errors import UsageError

PassFactories: TypeAlias = dict[str, Callable[[], type[ModulePass]]]


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
    """The passes of plug-in moves; finding them is slow, so it happens only for unknown names."""
    from pdojo.transforms.pass_names import passes_by_name
    from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation_names

    return passes_by_name(transformation_names()[len(TRANSFORMATION_NAMES) :])


def _pipeline_message(error: ArgSpecParseError) -> str:
    """The message without xDSL's heading."""
    return str(error).split("\n", 1)[-1].strip()
