"""Samples of PyTorch's operators, run by PyTorch and by `pdojo.torch`, and the comparison of the results."""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch._functorch.aot_autograd import aot_function
from torch._functorch.compilers import nop
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from pdojo.model.compiled import CompiledModel
from pdojo.model.model import Model
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.decompositions import decompositions
from pdojo.torch.fallbacks import FallbackWarning
from pdojo.torch.options import Options
from pdojo.torch.program import Program
from qa.torch_comparison import compare
from qa.torch_interpreted import Interpreted

_torch: Any = torch
"""Functions of PyTorch without types."""
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64, "bool": torch.bool, "f64": torch.float64}
"""Element types of samples."""
UNINITIALISED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_")  # fmt: skip
"""Operators whose results have no defined values."""
_WIDER = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64,
          torch.complex64: torch.complex128, torch.complex32: torch.complex128}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How samples run."""

    dtype: str = "f32"
    gradients: bool = False
    compiled: bool = False
    tune: Literal["none", "pass"] = "none"
    dynamo: bool = False
    raises: bool = False
    """Whether errors of the backend are shown with their traces."""

    @property
    def mode(self) -> str:
        """Short words for the settings."""
        words = [
            "gradients" if self.gradients else "",
            f"compiled {self.tune}" if self.compiled else "interpreted",
            "dynamo" if self.dynamo else "",
        ]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sample."""

    status: str
    message: str = ""
    reasons: tuple[str, ...] = ()


def title(op: Any) -> str:
    """The name of an operator, with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def operators(dtype: str) -> list[Any]:
    """The operators that take this element type on the CPU."""
    known: list[Any] = list(op_db)
    return [op for op in known if DTYPES[dtype] in op.supported_dtypes("cpu")]


def samples_of(op: Any, settings: Settings) -> list[Any]:
    """The samples of an operator, the same in every call."""
    _torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  # some samples of PyTorch use the global generator of NumPy
    return list(op.sample_inputs("cpu", DTYPES[settings.dtype], requires_grad=settings.gradients))


class InterpretedGraph(CompiledGraph):
    """A compiled graph whose kernels the reference interpreter runs."""

    def _compile(self, model: Model) -> CompiledModel:
        return Interpreted(model)  # pyright: ignore[reportReturnType]  # it has what programs use


def run_sample(op: Any, sample: Any, settings: Settings) -> Outcome:
    """Run a sample by PyTorch and by the backend, and compare."""
    if op.name in UNINITIALISED:
        return Outcome("skipped", "its results have no defined values")
    leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    function = _function(op, leaves, spec, places)
    tensors = [leaves[place] for place in places]
    try:
        expected = _run(function, tensors, settings)
    except Exception as error:  # noqa: BLE001  # PyTorch refuses the sample, with whatever error
        return Outcome("skipped", f"PyTorch: {_first_line(error)}")
    made: list[CompiledGraph] = []
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", FallbackWarning)
            found = _run(_compiled(function, made, settings), tensors, settings)
    except Exception as error:  # noqa: BLE001  # the suite reports every error
        if settings.raises:
            traceback.print_exc()
        if not made:
            return Outcome("PyTorch only", reasons=(f"PyTorch does not trace it: {_first_line(error)}",))
        return Outcome("crash", f"{_first_line(error)} ({_shown(leaves)})")
    for each in said:
        if issubclass(each.category, FallbackWarning):
            return Outcome("crash", f"{each.message} ({_shown(leaves)})")
    programs = [program for graph in made for program in graph.programs.values() if program is not None]
    reasons = tuple(dict.fromkeys(reason for program in programs for reason in _reasons(program)))
    check = partial(
        compare,
        found,
        is_random=_is_random(programs),
        is_pointwise=_is_pointwise(op) and not settings.gradients,
        strides=not settings.gradients,
    )
    complaint = check(expected, None) and _judged(op, leaves, spec, places, settings, expected, check)
    if complaint:
        return Outcome("wrong", f"{complaint} ({_shown(leaves)})", reasons)
    return Outcome(_status(programs), reasons=reasons)


def _judged(
    op: Any,
    leaves: Sequence[Any],
    spec: Any,
    places: Sequence[int],
    settings: Settings,
    expected: Sequence[Any],
    check: Callable[..., str],
) -> str:
    """The complaint about results that are not near PyTorch's, judged by results of wider elements if there are any.

    PyTorch decomposes some operators before a backend sees them, with errors of their own: those count as PyTorch's.
    """
    exact = _exact(op, leaves, spec, places, settings)
    complaint = check(expected, exact)
    if exact is None or not complaint:
        return complaint
    shaken: list[list[Any]] = []
    if not _is_pointwise(op) or settings.gradients:
        found = [_exact(op, leaves, spec, places, settings, seed) for seed in range(1, 5)]
        shaken = [each for each in found if each is not None]
        complaint = check(expected, exact, shaken)
    if complaint and shaken:
        shaken += [_neighbour(op, leaves, spec, places, settings, seed, exact) for seed in range(1, 5)]
        complaint = check(expected, exact, shaken)
    if complaint:
        traced = _traced(_function(op, leaves, spec, places), [leaves[place] for place in places], expected, settings)
        complaint = check(traced, exact, shaken)
    return complaint


def _neighbour(
    op: Any,
    leaves: Sequence[Any],
    spec: Any,
    places: Sequence[int],
    settings: Settings,
    seed: int,
    exact: Sequence[Any],
) -> list[Any]:
    """The exact results, off by PyTorch's error for operands that differ in the last place.

    Its error for the operands themselves may be small by luck.
    """
    near = [
        _widened(leaf, seed).detach().to(leaf.dtype).requires_grad_(leaf.requires_grad)
        if isinstance(leaf, torch.Tensor)
        else leaf
        for leaf in leaves
    ]
    theirs = _run(_function(op, near, spec, places), [near[place] for place in places], settings)
    right = _exact(op, near, spec, places, settings)
    assert right is not None
    return [
        true + (other.double() - wide)
        if isinstance(true, torch.Tensor) and true.dtype == torch.float64 and true.shape == other.shape == wide.shape
        else true
        for true, other, wide in zip(exact, theirs, right, strict=True)
    ]


def _traced(
    function: Callable[..., Any], tensors: Sequence[torch.Tensor], expected: Sequence[Any], settings: Settings
) -> list[Any]:
    """The results of the graph that PyTorch makes for every backend, in the layout of the expected ones."""
    found = _run(aot_function(function, nop, nop), tensors, settings)
    return [
        torch.empty_like(theirs).copy_(each)
        if isinstance(theirs, torch.Tensor) and isinstance(each, torch.Tensor) and theirs.shape == each.shape
        else theirs
        for each, theirs in zip(found, expected, strict=True)
    ]


def _reasons(program: Program) -> list[str]:
    """Why PyTorch runs calls."""
    return [fallback.reason for fallback in program.plan.fallbacks]


def _status(programs: Sequence[Program]) -> str:
    if not any(_reasons(program) for program in programs):
        return "whole"
    return "partial" if any(program.regions for program in programs) else "PyTorch only"


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')[:200]}"


def _function(op: Any, leaves: Sequence[Any], spec: Any, places: Sequence[int]) -> Callable[..., Any]:
    """The operator as a function of the sample's tensors."""

    def call(*tensors: torch.Tensor) -> Any:
        whole = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            whole[place] = tensor
        first, arguments, keywords = pytree.tree_unflatten(whole, spec)
        return op.op(first, *arguments, **keywords)

    return call


def _compiled(function: Callable[..., Any], made: list[CompiledGraph], settings: Settings) -> Callable[..., Any]:
    options = Options(tune=settings.tune)

    def make(graph: torch.fx.GraphModule, options: Options, static: Sequence[int]) -> CompiledGraph:
        kind = CompiledGraph if settings.compiled else InterpretedGraph
        made.append(kind(graph, options, static))
        return made[-1]

    if settings.dynamo:

        def backend(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            return compiled_graph(module, inputs, options, make)

        _torch._dynamo.reset()
        return _torch.compile(function, backend=backend)

    def compiler(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        return make(gm, options, ())

    return aot_function(
        function,
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=False,
    )


def _run(function: Callable[..., Any], tensors: Sequence[torch.Tensor], settings: Settings, seed: int = 0) -> list[Any]:
    """The results on copies of the tensors, and their gradients where asked.

    With a seed, the gradients with which the backward pass begins are changed by up to a unit in the last place of f32.
    """
    torch.default_generator.manual_seed(1)
    if not settings.gradients:
        with torch.no_grad():
            return pytree.tree_leaves(function(*(_copied(tensor) for tensor in tensors)))
    given = [_copied(tensor).requires_grad_(tensor.requires_grad) for tensor in tensors]
    results = pytree.tree_leaves(function(*given))
    wanted = [each for each in given if each.requires_grad]
    ends = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    if not ends or not wanted:
        return [r.detach() if isinstance(r, torch.Tensor) else r for r in results]
    seeds = [_shaken(_weights(each), torch.float32, seed) for each in ends]
    gradients = torch.autograd.grad(ends, wanted, seeds, allow_unused=True)
    return [r.detach() if isinstance(r, torch.Tensor) else r for r in (*results, *gradients)]


def _weights(like: torch.Tensor) -> torch.Tensor:
    """The gradients of results with which the backward pass begins: the same for all element types."""
    count = like.numel()
    values = torch.cos(torch.arange(count, dtype=torch.float64) * 0.7 + 0.3).to(torch.bfloat16)
    return values.to(like.dtype).reshape(like.shape)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with the same strides in other memory."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        return tensor.detach().clone()
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0
    memory = torch.as_strided(tensor.detach(), (extent,), (1,)).clone()
    copy = torch.as_strided(memory, tensor.shape, tensor.stride())
    copy = _torch._conj(copy) if tensor.is_conj() else copy
    return _torch._neg_view(copy) if tensor.is_neg() else copy


def _exact(
    op: Any, leaves: Sequence[Any], spec: Any, places: Sequence[int], settings: Settings, seed: int = 0
) -> list[Any] | None:
    """The results with wider elements; None if PyTorch has none.

    With a seed, the elements of operands are first changed by up to a unit in the last place, those of the gradients
    with which the backward pass begins too. Pointwise functions of integers that have floats as results get their
    operands in f64.
    """
    wide = [_widened(leaf, seed) for leaf in leaves]
    try:
        found = _run(_function(op, wide, spec, places), [wide[place] for place in places], settings, seed)
        if _is_pointwise(op) and any(isinstance(each, torch.Tensor) and each.dtype in _WIDER for each in found):
            wide = [_as_f64(leaf) for leaf in wide]
            found = _run(_function(op, wide, spec, places), [wide[place] for place in places], settings)
    except Exception:  # noqa: BLE001  # an operator need not take wider elements
        return None
    return found


def _as_f64(leaf: Any) -> Any:
    is_integer = isinstance(leaf, torch.Tensor) and not (leaf.is_floating_point() or leaf.is_complex())
    return leaf.double() if is_integer else leaf


def _widened(leaf: Any, seed: int = 0) -> Any:
    if isinstance(leaf, torch.dtype):
        return _WIDER.get(leaf, leaf)
    if isinstance(leaf, torch.Tensor) and leaf.dtype in _WIDER and leaf.layout == torch.strided and not leaf.is_nested:
        wide = _shaken(leaf.detach().to(_WIDER[leaf.dtype]), leaf.dtype, seed)
        return wide.requires_grad_(leaf.requires_grad)
    return leaf


def _shaken(wide: torch.Tensor, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Elements changed by up to a unit in the last place of `dtype`; those given if `seed` is 0."""
    if not seed or wide.is_complex():
        return wide
    chance = torch.rand(wide.shape, generator=torch.Generator().manual_seed(seed), dtype=wide.dtype)
    return wide * (1 + (chance * 2 - 1) * torch.finfo(dtype).eps)


def _is_random(programs: Sequence[Program]) -> bool:
    return any(fallback.reason == "it draws random numbers" for each in programs for fallback in each.plan.fallbacks)


def _is_pointwise(op: Any) -> bool:
    return type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")


def _shown(leaves: Sequence[Any]) -> str:
    """The arguments of a sample, in short."""
    words = [
        f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}" if isinstance(leaf, torch.Tensor) else repr(leaf)
        for leaf in leaves
    ]
    return ", ".join(words)[:300]
