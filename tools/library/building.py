"""`pdojo-lib build`: a library from a specification, from models, or from both."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pdojo_tools.phases import loading

from pdojo.errors import UsageError
from pdojo.library.naming import name_problem, prefix_problem
from pdojo.library.spec import LibrarySpec, read_spec


def build(given: argparse.Namespace) -> None:
    """Run the command line. Raises PdojoError; a wrong specification is refused before the compiler is loaded."""
    has_model = given.onnx is not None or given.from_torch is not None
    if given.shape is not None and given.onnx is None:
        raise UsageError("--shape belongs to --from")
    if given.spec is None and not has_model:
        raise UsageError("name a specification (SPEC.toml), or a model by --from or --from-torch")
    if given.workers is not None and given.ray is None:
        raise UsageError("--workers belongs to --ray")
    if given.ray is not None and given.spec is None:
        raise UsageError("--ray is for searches, which a specification asks for; name one")
    spec = _of_model(given) if given.spec is None else read_spec(given.spec)
    with loading():
        from pdojo_tools.library.making import make

    make(given, spec)


def model_library(title: str) -> str:
    """The name of a library without a specification: the name of its model, or a similar one."""
    name = re.sub(r"[^a-z0-9_]", "_", title.lower()).lstrip("_0123456789")[:56] or "model"
    return name if name_problem(name) is None and prefix_problem(name) is None else f"{name}_model"


def _of_model(given: argparse.Namespace) -> LibrarySpec:
    """The specification of a library that has the kernels of a model only."""
    title = Path(given.onnx).stem if given.onnx is not None else given.from_torch.rpartition(":")[2]
    name = model_library(title)
    return LibrarySpec(name, prefix=name)
