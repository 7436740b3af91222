"""The backend of `torch.compile`: graphs of ATen, specialised for shapes and constants when they run."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from pdojo.build.sizes import OpenExtent
from pdojo.errors import UsageError
from pdojo.model.compiled import CompiledModel
from pdojo.model.model import Model
from pdojo.model.sized_programs import NotCoveredError, SizedPrograms
from pdojo.torch.byte_layers import multiply_bytes
from pdojo.torch.checking import CheckedRegion
from pdojo.torch.constants import constant_positions
from pdojo.torch.decompositions import decompositions
from pdojo.torch.devices import choose_device
from pdojo.torch.fallbacks import FallbackWarning, leave_to_pytorch
from pdojo.torch.flexible_attention import expand_flexible_attention
from pdojo.torch.idle_views import drop_idle_views
from pdojo.torch.in_place import write_in_place
from pdojo.torch.interpolation import interpolate_by_axes
from pdojo.torch.linear_layers import keep_rows_apart
from pdojo.torch.options import Options, instead_of
from pdojo.torch.planning import plan
from pdojo.torch.program import Program, Wrap, plain_region
from pdojo.torch.recurrent_layers import keep_recurrent_layers
from pdojo.torch.scalar_indices import gather_at_tensors
from pdojo.torch.skipping import warn_of_skipped_functions
from pdojo.torch.statics import LateChangeWarning, Statics, can_be_constant
from pdojo.torch.symbols import SizedSymbol, Symbols, joined, known_sizes
from pdojo.torch.tuning import compile_tuned

if TYPE_CHECKING:
    from pdojo.model.device_models import DeviceModel

_MOST_CHANGES = 2
"""Changes of constants after which they are constants no longer."""
_MOST_SHAPES = 256
"""Most combinations of shapes whose programs are kept; the oldest goes first."""


def backend(
    module: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **others: object
) -> Callable[..., Any]:
    """The backend `pdojo` of `torch.compile`, for a graph that Dynamo captured.

    Raises UsageError for an unknown option, and for a `mode` other than "default", which PyTorch does not pass on.
    """
    warn_of_skipped_functions(backend)  # `torch._dynamo.reset` forgot it.
    for name, value in others.items():
        raise UsageError(f"the backend pdojo has no {name} {value!r}{instead_of(name, value)}")
    return compiled_graph(module, example_inputs, Options.of(options), CompiledGraph)


warn_of_skipped_functions(backend)


def compiled_graph(
    module: GraphModule, example_inputs: Sequence[Any], options: Options, make: MakeGraph
) -> Callable[..., Any]:
    """The work of `backend`; `make` makes the compiled graphs: one without gradients, else one for each direction."""

    def compiler(*, with_constants: bool) -> Callable[..., Any]:
        def compile_(graph: GraphModule, _: Sequence[Any]) -> CompiledGraph:
            gather_at_tensors(graph)
            keep_rows_apart(graph)
            drop_idle_views(graph)
            if with_constants:
                write_in_place(graph)
            return make(graph, options, constant_positions(graph) if with_constants and options.constants else ())

        return compile_

    run: Any = aot_autograd(
        fw_compiler=compiler(with_constants=False),
        bw_compiler=compiler(with_constants=False),
        inference_compiler=compiler(with_constants=True),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=False,
    )
    interpolate_by_axes(module)
    expand_flexible_attention(module)
    multiply_bytes(module)
    with keep_recurrent_layers(module, example_inputs):
        return run(module, example_inputs)


class CompiledGraph:
    """A graph of ATen without side effects, as a function of a list of tensors and sizes.

    Kernels are made in the first call, for each combination of shapes if sizes are symbols.
    """

    def __init__(self, module: GraphModule, options: Options, static: Sequence[int]) -> None:
        self._boxed_call = True  # PyTorch passes a list to functions with this attribute.
        self.module = module
        self.options = options
        self.place = choose_device(module)
        """The GPU of the kernels; None if they are for the CPU."""
        for node in module.graph.nodes:
            node.meta["winograd"] = options.winograd and self.place is None
        self.programs: dict[tuple[int, object], Program | None] = {}
        """The programs, keyed by number of threads and shapes; None if PyTorch runs the graph, because of an error."""
        self._lock = Lock()
        self._static = tuple(static)
        self._statics: Statics | None = None
        self._changes = 0
        self._seconds = 0.0
        """The time of the last call."""
        self._is_full = False
        self._symbolic = _has_symbols(module)
        self._symbols = Symbols.of(module) if self._symbolic else None
        """The symbols, by whose values programs are kept; None if there are none, or not all are arguments."""
        self._open: dict[int, list[tuple[list[SizedSymbol], Program]]] = {}
        """The programs for ranges of sizes, keyed by number of threads, with what symbols are in them."""
        self.closed = ""
        """The reason for which programs are for single combinations of shapes, though sizes are symbols."""
        self._seen: list[tuple[int, ...]] = []
        """The values of symbols for which programs with sizes were made."""
        self._sized: dict[tuple[int, str], SizedPrograms] = {}
        """The programs for all shapes, keyed by number of threads and region."""
        self._compiled: Counter[int] = Counter()
        """The combinations of shapes for which kernels were compiled, by number of threads."""
        self._not_covered: Counter[int] = Counter()
        """The combinations of shapes for which kernels would have had to be compiled, by number of threads."""

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results of the graph."""
        if self._static:
            with self._lock:
                self._check_constants(arguments)
        key = (torch.get_num_threads(), self._sizes(arguments))
        program = self.programs.get(key)
        if program is None:
            with self._lock:
                program = self._made(key, arguments)
        begin = perf_counter()
        found = list(self.module(*arguments)) if program is None else program(arguments)
        self._seconds = perf_counter() - begin
        return found

    def _sizes(self, arguments: Sequence[Any]) -> object:
        """The key of a program but for threads: the values of symbols, or all shapes; None if all are known."""
        if self._symbols is not None:
            return self._symbols.values(arguments)
        return _shapes(arguments) if self._symbolic else None

    def _opened(self, arguments: Sequence[Any]) -> Program | None:
        """The program for the values of symbols, of one for ranges; None if there is none."""
        if self._symbols is None:
            return None
        values = self._symbols.values(arguments)
        known = self._open.setdefault(torch.get_num_threads(), [])
        for sized, program in known:
            if (sizes := known_sizes(sized, values)) is not None:
                return program.at(sizes)
        most = [max(column) for column in zip(*self._seen, strict=True)]
        sized = None if self.closed else self._symbols.sizes(values, most)
        if sized is None:
            return None
        self._seen.append(values)
        static = {position: arguments[position] for position in self._static}
        try:
            planned = plan(self._symbols.opened(sized), static)
            if planned.fallbacks and (near := joined(sized, values)) != sized:
                other = plan(self._symbols.opened(near), static)
                if len(other.fallbacks) < len(planned.fallbacks):
                    planned, sized = other, near
            self.closed = "; ".join([f"{node.name}: {reason}" for node, reason in planned.closed.items()])
            compile_ = partial(compile_tuned, options=self.options, place=self.place)
            program = None if self.closed else Program(planned, compile_, self._wrap)
        except OpenExtent as error:
            program, self.closed = None, str(error)
        if program is None:
            return None
        known.append((sized, program))
        sizes = known_sizes(sized, values)
        assert sizes is not None
        return program.at(sizes)

    def _made(self, key: tuple[int, object], arguments: Sequence[Any]) -> Program | None:
        """The program for a key, made if there is none; None if PyTorch runs the graph."""
        if key not in self.programs:
            threads, most = key[0], self.options.specialisations
            if self._not_covered[threads] >= most:
                self._warn_of_shapes()
                return None
            before = sum(each.compiled for each in self._sized.values())
            self.programs[key] = self._specialise(arguments, is_closed=self._compiled[threads] >= most)
            # A graph without symbols has one combination of shapes.
            self._compiled[threads] += before < sum(each.compiled for each in self._sized.values())
            while len(self.programs) > _MOST_SHAPES:
                del self.programs[next(iter(self.programs))]
        return self.programs[key]

    def _specialise(self, arguments: Sequence[Any], *, is_closed: bool) -> Program | None:
        static = {position: arguments[position] for position in self._static}

        def compile_(model: Model) -> CompiledModel | DeviceModel:
            programs = None
            if self._symbolic:
                programs = self._sized.setdefault((torch.get_num_threads(), model.name), SizedPrograms())
                programs.is_closed = is_closed
            return compile_tuned(model, self.options, programs, self.place)

        try:
            found = self._opened(arguments)
            if found is not None:
                return found
            module = _concrete(self.module, arguments) if self._symbolic else self.module
            return Program(plan(module, static), compile_, self._wrap)
        except NotCoveredError:
            self._not_covered[torch.get_num_threads()] += 1
            self._warn_of_shapes()
        except Exception as error:  # noqa: BLE001  # an error of ours must not break the user's model
            leave_to_pytorch([*self.module.graph.nodes], error)
        return None

    @property
    def _wrap(self) -> Wrap:
        return CheckedRegion if self.options.check else plain_region

    def _check_constants(self, arguments: Sequence[Any]) -> None:
        """Forget what was made of constants that have changed."""
        if self._statics is None:
            self._static = tuple(position for position in self._static if can_be_constant(arguments[position]))
        tensors = [arguments[position] for position in self._static]
        if self._statics is not None and not self._are_unchanged(self._statics, tensors):
            self.programs.clear()
            self._open.clear()
            for programs in self._sized.values():
                programs.constants.forget()
            self._statics = None
            self._changes += 1
            if self._changes > _MOST_CHANGES:
                self._static = ()
                return
        if self._statics is None:
            self._statics = Statics(tensors)

    def _are_unchanged(self, statics: Statics, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether no change of the constants is found; one that was found late is said."""
        if not statics.unchanged(tensors):
            return False
        late = statics.late_change(self._seconds)
        if late is not None:
            warnings.warn(late, LateChangeWarning, stacklevel=2)
        return late is None

    def _warn_of_shapes(self) -> None:
        if not self._is_full:
            self._is_full = True
            warnings.warn(
                f"a graph has been compiled for {self.options.specialisations} combinations of shapes; PyTorch runs "
                "others for which kernels would have to be compiled (option specialisations)",
                FallbackWarning,
                stacklevel=2,
            )


MakeGraph: TypeAlias = Callable[[GraphModule, Options, Sequence[int]], CompiledGraph]
"""From a graph, options and the positions of constants to a compiled graph."""


def _has_symbols(module: GraphModule) -> bool:
    """Whether a size is a symbol."""
    return any(
        isinstance(node.meta["val"], torch.SymInt | torch.SymFloat | torch.SymBool)
        or (isinstance(node.meta["val"], torch.Tensor) and node.meta["val"]._has_symbolic_sizes_strides)
        for node in module.graph.nodes
        if node.op == "placeholder"
    )


def _shapes(arguments: Sequence[Any]) -> object:
    """The key of a program of a graph with symbols: shapes, strides and sizes."""
    return tuple((each.shape, each.stride()) if isinstance(each, torch.Tensor) else each for each in arguments)


def _concrete(module: GraphModule, arguments: Sequence[Any]) -> GraphModule:
    """The graph with the shapes of these arguments."""
    found = copy.deepcopy(module)
    for node in found.graph.nodes:
        node.meta.pop("unbacked_bindings", None)  # They belong to the symbols of the first shapes.
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fakes = [
        mode.from_tensor(each, static_shapes=True) if isinstance(each, torch.Tensor) else each for each in arguments
    ]
    FakeTensorProp(found, mode).propagate_dont_convert_inputs(*fakes)
    return found
