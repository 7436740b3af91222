"""`pdojo-lib build`: a library from a specification, from models, or from both."""

from __future__ import annotations

import argparse
from pathlib import Path

from pdojo_tools.phases import loading

from pdojo.errors import UsageError
from pdojo.library.naming import name_problem, prefix_problem, word_of
from pdojo.library.spec import LibrarySpec, ModelSpec, read_spec

_FUNCTION = "model"
"""The function of the only model of a library."""


def build(given: argparse.Namespace) -> None:
    """Run the command line. Raises PdojoError; a wrong specification is refused before the compiler is loaded."""
    has_kernels = given.onnx is not None or given.from_torch is not None
    is_onnx = given.spec is not None and given.spec.endswith(".onnx") and not given.torch
    is_model = is_onnx or given.torch
    if given.shape is not None and given.onnx is None and not is_onnx:
        raise UsageError("--shape belongs to an ONNX model, and to --from")
    if given.spec is None and (given.torch or not has_kernels):
        raise UsageError("name a specification (SPEC.toml), a model (MODEL.onnx, --torch), or kernels by --from")
    if given.weights != "inside" and not is_model:
        raise UsageError("--weights belongs to a model on the command line; a specification has the key 'weights'")
    if given.workers is not None and given.ray is None:
        raise UsageError("--workers belongs to --ray")
    if given.ray is not None and (given.spec is None or is_model):
        raise UsageError("--ray is for searches, which a specification asks for; name one")
    spec = _of_model(given) if given.spec is None or is_model else read_spec(Path(given.spec))
    with loading():
        from pdojo_tools.library.making import make

    make(given, spec)


def model_library(title: str) -> str:
    """The name of a library without a specification: the name of its model, or a similar one."""
    name = word_of(title, "model")
    return name if name_problem(name) is None and prefix_problem(name) is None else f"{name}_model"


def _of_model(given: argparse.Namespace) -> LibrarySpec:
    """The specification of a library of models on the command line only."""
    models: tuple[ModelSpec, ...] = ()
    if given.spec is not None:
        onnx, torch = (None, given.spec) if given.torch else (given.spec, None)
        models = (ModelSpec("", onnx, torch, _FUNCTION, given.shape, given.weights == "beside"),)
    file = given.onnx if given.spec is None else None if given.torch else given.spec
    title = Path(file).stem if file is not None else (given.spec or given.from_torch).rpartition(":")[2]
    name = model_library(title)
    return LibrarySpec(name, prefix=name, models=models)
