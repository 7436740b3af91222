"""The backend of `torch.compile`: graphs of ATen, specialised for shapes and constants when they run."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from pdojo.model.compiled import CompiledModel
from pdojo.model.model import Model
from pdojo.torch.decompositions import decompositions
from pdojo.torch.options import Options
from pdojo.torch.planning import plan
from pdojo.torch.program import Program
from pdojo.torch.statics import Statics

_MOST_CHANGES = 2
"""Changes of constants after which they are constants no longer."""


def backend(
    module: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: object
) -> Callable[..., Any]:
    """The backend `pdojo` of `torch.compile`, for a graph that Dynamo captured.

    Raises UsageError for an unknown option.
    """
    return compiled_graph(module, example_inputs, Options.of(options), [])


def compiled_graph(
    module: GraphModule, example_inputs: Sequence[Any], options: Options, made: list[CompiledGraph]
) -> Callable[..., Any]:
    """The work of `backend`; the compiled graphs are appended to `made`."""

    def compiler(*, with_constants: bool) -> Callable[..., Any]:
        def compile_(graph: GraphModule, _: Sequence[Any]) -> CompiledGraph:
            static = _static_positions() if with_constants and options.constants else ()
            made.append(CompiledGraph(graph, options, static))
            return made[-1]

        return compile_

    run: Any = aot_autograd(
        fw_compiler=compiler(with_constants=False),
        bw_compiler=compiler(with_constants=False),
        inference_compiler=compiler(with_constants=True),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=False,
    )
    return run(module, example_inputs)


class CompiledGraph:
    """A graph of ATen without side effects, as a function of a list of tensors and sizes.

    Kernels are made in the first call, for each combination of shapes if sizes are symbols.
    """

    def __init__(self, module: GraphModule, options: Options, static: Sequence[int]) -> None:
        self._boxed_call = True  # PyTorch passes a list to functions with this attribute.
        self.module = module
        self.options = options
        self.programs: dict[object, Program] = {}
        """The programs by shapes; one only if no size is a symbol."""
        self._static = tuple(static)
        self._statics: Statics | None = None
        self._changes = 0
        self._is_full = False
        self._symbolic = _has_symbols(module)

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results of the graph."""
        if self._static:
            self._check_constants(arguments)
        key = _shapes(arguments) if self._symbolic else None
        program = self.programs.get(key)
        if program is None:
            if len(self.programs) >= self.options.specialisations:
                return self._run_in_pytorch(arguments)
            program = self.programs[key] = self._specialise(arguments)
        return program(arguments)

    def _specialise(self, arguments: Sequence[Any]) -> Program:
        module = _concrete(self.module, arguments) if self._symbolic else self.module
        static = {position: arguments[position] for position in self._static}
        return Program(plan(module, static), self._compile)

    def _compile(self, model: Model) -> CompiledModel:
        tune = "none" if self.options.tune == "none" else "pass"
        return model.compile(tune=tune, threads=torch.get_num_threads())

    def _check_constants(self, arguments: Sequence[Any]) -> None:
        """Forget what was made of constants that have changed."""
        tensors = [arguments[position] for position in self._static]
        if self._statics is not None and not self._statics.unchanged(tensors):
            self.programs.clear()
            self._statics = None
            self._changes += 1
            if self._changes > _MOST_CHANGES:
                self._static = ()
                return
        if self._statics is None:
            self._statics = Statics(tensors)

    def _run_in_pytorch(self, arguments: Sequence[Any]) -> list[Any]:
        if not self._is_full:
            self._is_full = True
            warnings.warn(
                f"a graph has been compiled for {len(self.programs)} combinations of shapes; PyTorch runs others "
                "(option specialisations)",
                stacklevel=2,
            )
        return list(self.module(*arguments))


def _static_positions() -> Sequence[int]:
    """The positions of parameters and buffers among the inputs of the graph that is being compiled."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return ()
    return context.fw_metadata.static_input_indices


def _has_symbols(module: GraphModule) -> bool:
    """Whether a size is a symbol."""
    return any(
        isinstance(node.meta["val"], torch.SymInt | torch.SymFloat | torch.SymBool)
        or (isinstance(node.meta["val"], torch.Tensor) and node.meta["val"]._has_symbolic_sizes_strides)
        for node in module.graph.nodes
        if node.op == "placeholder"
    )


def _shapes(arguments: Sequence[Any]) -> object:
    """What programs of graphs with symbols depend on."""
    return tuple((each.shape, each.stride()) if isinstance(each, torch.Tensor) else each for each in arguments)


def _concrete(module: GraphModule, arguments: Sequence[Any]) -> GraphModule:
    """The graph with the shapes of these arguments."""
    found = copy.deepcopy(module)
    mode = FakeTensorMode()
    fakes = [
        mode.from_tensor(each, static_shapes=True) if isinstance(each, torch.Tensor) else each for each in arguments
    ]
    FakeTensorProp(found, mode).propagate_dont_convert_inputs(*fakes)
    return found
