"""PyTorch models on command lines: their kernels, and the part of a report about a whole model."""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, cast

from pdojo_tools.onnx_models import in_turns
from pdojo_tools.tuning.report.elements import Html, folded, joined, listing, note, table, tag

from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError, PdojoError, UsageError

if TYPE_CHECKING:
    from pdojo.model.model import Model
    from pdojo.torch.explaining import Explanation, KernelPart, TorchPart

SECONDS = 3.0
"""Seconds in which systems run in turns."""


@dataclass(frozen=True)
class TorchModel:
    """A module, or a function of tensors, and inputs for it."""

    title: str
    module: Callable[..., Any]
    inputs: tuple[Any, ...]

    def explain(self, **options: Any) -> Explanation:
        """The explanation of the model in inference."""
        import torch

        from pdojo.torch import explain

        with torch.no_grad():
            return explain(self.module, *self.inputs, options=options)

    @property
    def model(self) -> Model:
        """The whole model. Raises UsageError for one with calls that have no kernel."""
        from pdojo.torch.exporting import exported_model

        return exported_model(self.title, self.module, self.inputs)

    @property
    def kernels(self) -> list[tuple[str, KernelOp]]:
        """The different kernels with their titles."""
        distinct = {part.notation: part.kernel for part in self.explain(tune="none").kernels}
        return [(f"{self.title}:{n}:{k.sym_name.data}", k) for n, k in enumerate(distinct.values())]


@lru_cache(maxsize=8)
def torch_model(name: str) -> TorchModel:
    """The model that the function of `MODULE:FUNCTION` or `FILE.py:FUNCTION` returns, with its inputs.

    Raises UsageError if there is no such function, or if it returns something else.
    """
    where, colon, called = name.rpartition(":")
    if not colon or not called.isidentifier():
        raise UsageError(f"'{name}' names no function; write MODULE:FUNCTION or FILE.py:FUNCTION")
    with _user_code(name):
        function = getattr(_module(where), called, None)
        if not callable(function):
            raise UsageError(f"'{where}' has no function '{called}'")
        made: object = function()
    pair = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else ()
    if len(pair) != 2 or not callable(pair[0]):
        raise UsageError(f"'{name}' returns no pair of a module and a list of inputs")
    module, inputs = pair
    given = cast("Sequence[Any]", inputs) if isinstance(inputs, tuple | list) else [inputs]
    return TorchModel(called, module, tuple(given))


@contextmanager
def _user_code(name: str) -> Generator[None]:
    """Raise UsageError for an exception of the user's code, with the last line of that code that was run."""
    try:
        yield
    except PdojoError:
        raise
    except Exception as error:
        frames = [each for each in extract_tb(error.__traceback__) if "site-packages" not in each.filename]
        place = "" if isinstance(error, SyntaxError) else f" ({frames[-1].filename}, line {frames[-1].lineno})"
        raise UsageError(f"the code of '{name}' raises {type(error).__name__}: {error}{place}") from error


def _module(where: str) -> object:
    """The module of a name or a file. Raises UsageError if there is none."""
    import pdojo.torch

    assert pdojo.torch
    if where.endswith(".py"):
        spec = spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None or not Path(where).is_file():
            raise UsageError(f"there is no file '{where}'")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise
        raise UsageError(f"there is no module '{where}'") from None
    except ValueError as error:
        raise UsageError(f"'{where}' is no name of a module: {error}") from None


def sections(names: Sequence[str], database: str | None, *, with_inductor: bool) -> Html:
    """The part of a report about whole models: their kernels, shares of time, and PyTorch's calls."""
    return joined(_section(torch_model(name), database, with_inductor=with_inductor) for name in names)


def _section(model: TorchModel, database: str | None, *, with_inductor: bool) -> Html:
    found = model.explain(database=database)
    parts = [part for graph in found.graphs for part in graph.parts]
    between = sum(graph.between for graph in found.graphs)
    total = (sum(part.seconds for part in parts) + between) or 1.0
    rows = [(*_cells(part), f"{part.seconds * 1e3:.4g} ms", f"{part.seconds / total:.1%}") for part in parts]
    rows.append(("between them", "", "", f"{between * 1e3:.4g} ms", f"{between / total:.1%}"))
    headings = ("kernel", "operators of ATen", "results", "time", "share")
    return tag(
        "section",
        tag("h2", model.title),
        *(note(line) for line in _speeds(model, database, with_inductor=with_inductor)),
        *(note(f"graph break: {each}") for each in found.breaks),
        table(headings, rows, left=(0, 1, 2)),
        id=f"model-{model.title}",
    )


def _cells(part: KernelPart | TorchPart) -> tuple[object, str, str]:
    from pdojo.torch.explaining import KernelPart

    if isinstance(part, KernelPart):
        return folded(part.name, listing(part.notation)), ", ".join(part.operators), ", ".join(part.outputs)
    reason = f" ({part.reason})" if part.reason else ""
    return "PyTorch", part.operator + reason, ", ".join(part.outputs)


def _speeds(model: TorchModel, database: str | None, *, with_inductor: bool) -> list[str]:
    """The median times of the model in PyTorch, in pdojo and in Inductor, run in turns."""
    import torch

    compiled = cast("Callable[..., Any]", torch.compile)  # pyright: ignore[reportUnknownMemberType]
    backends: dict[str, Any] = {"pdojo": compiled(model.module, backend="pdojo", options={"database": database})}
    backends["PyTorch"] = model.module
    if with_inductor:
        backends["Inductor"] = compiled(model.module, backend="inductor")
    with torch.no_grad():
        try:
            times = in_turns({name: lambda call=call: call(*model.inputs) for name, call in backends.items()}, SECONDS)
        except Exception as error:
            if not with_inductor:
                raise
            raise MeasurementError(f"Inductor cannot run '{model.title}': {str(error).splitlines()[0]}") from None
    medians = {name: median(samples) for name, samples in times.items()}
    threads = torch.get_num_threads()
    return [
        f"{name}: median {seconds * 1e3:.4g} ms, {seconds / medians['pdojo']:.3g} times pdojo's, {threads} threads"
        for name, seconds in medians.items()
    ]
