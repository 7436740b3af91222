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
_ULPS = 4
"""Units in the last place by which a result may be off in any case."""


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
    if complaint:
        traced = _traced(_function(op, leaves, spec, places), [leaves[place] for place in places], expected, settings)
        complaint = check(traced, exact, shaken)
    return complaint


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


def _run(function: Callable[..., Any], tensors: Sequence[torch.Tensor], settings: Settings) -> list[Any]:
    """The results on copies of the tensors, and their gradients where asked."""
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
    seeds = [_weights(each) for each in ends]
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

    With a seed, the elements of operands are first changed by up to a unit in the last place.
    """
    wide = [_widened(leaf, seed) for leaf in leaves]
    try:
        return _run(_function(op, wide, spec, places), [wide[place] for place in places], settings)
    except Exception:  # noqa: BLE001  # an operator need not take wider elements
        return None


def _widened(leaf: Any, seed: int = 0) -> Any:
    if isinstance(leaf, torch.dtype):
        return _WIDER.get(leaf, leaf)
    if isinstance(leaf, torch.Tensor) and leaf.dtype in _WIDER and leaf.layout == torch.strided and not leaf.is_nested:
        wide = leaf.detach().to(_WIDER[leaf.dtype])
        if seed and not leaf.is_complex():
            chance = torch.rand(wide.shape, generator=torch.Generator().manual_seed(seed), dtype=wide.dtype)
            wide = wide * (1 + (chance * 2 - 1) * torch.finfo(leaf.dtype).eps)
        return wide.requires_grad_(leaf.requires_grad)
    return leaf


def _is_random(programs: Sequence[Program]) -> bool:
    return any(fallback.reason == "it draws random numbers" for each in programs for fallback in each.plan.fallbacks)


def _is_pointwise(op: Any) -> bool:
    return type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")


def compare(
    found: Sequence[Any],
    expected: Sequence[Any],
    exact: Sequence[Any] | None,
    shaken: Sequence[Sequence[Any]] = (),
    *,
    is_random: bool = False,
    is_pointwise: bool = False,
    strides: bool = True,
) -> str:
    """The fault of results; empty if they are as good as PyTorch's.

    Random results are compared in shape and type only. The elements of a pointwise function are judged by their own
    size, others by the largest of the result. `shaken` are exact results for operands that differ in the last place:
    a result may be off by twice as much.
    Gradients need not have the strides that PyTorch gives them without a compiler.
    """
    if len(found) != len(expected):
        return f"{len(found)} results instead of {len(expected)}"
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        true = exact[number] if exact is not None and len(exact) == len(expected) else None
        others = [each[number] for each in shaken if len(each) == len(expected)]
        complaint = _compare_one(ours, theirs, true, others, is_random, is_pointwise, strides)
        if complaint:
            return f"result {number}: {complaint}"
    return ""


def _compare_one(
    ours: Any, theirs: Any, true: Any, shaken: Sequence[Any], is_random: bool, is_pointwise: bool, strides: bool
) -> str:
    if not isinstance(theirs, torch.Tensor):
        same = type(ours) is type(theirs) and (ours == theirs or (ours != ours and theirs != theirs) or is_random)
        return "" if same else f"{ours!r} instead of {theirs!r}"
    if not isinstance(ours, torch.Tensor):
        return f"{ours!r} instead of a tensor"
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {list(ours.shape)} instead of {theirs.dtype} {list(theirs.shape)}"
    if theirs.layout != torch.strided or is_random or theirs.is_nested:
        return ""
    if strides and _strides(ours) != _strides(theirs):
        return f"strides {ours.stride()} instead of {theirs.stride()} for {list(ours.shape)}"
    plain = [each.resolve_conj().resolve_neg() for each in (ours, theirs)]
    return _compare_elements(plain[0], plain[1], true, shaken, is_pointwise=is_pointwise)


def _strides(tensor: torch.Tensor) -> list[int]:
    """The strides that matter: those of extents above 1."""
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1] if tensor.numel() else []


def _compare_elements(
    ours: torch.Tensor, theirs: torch.Tensor, true: Any, shaken: Sequence[Any], *, is_pointwise: bool
) -> str:
    if not theirs.numel():
        return ""
    if not (theirs.is_floating_point() or theirs.is_complex()):
        wrong = ours != theirs
        return _complaint(wrong, ours, theirs, theirs) if bool(wrong.any()) else ""
    if theirs.is_complex():
        ours, theirs = torch.view_as_real(ours), torch.view_as_real(theirs)
        true, *shaken = (
            torch.view_as_real(each.resolve_conj()) if isinstance(each, torch.Tensor) and each.is_complex() else None
            for each in (true, *shaken)
        )
    ulp = torch.finfo(theirs.dtype).eps
    tiny = torch.finfo(theirs.dtype).tiny * ulp
    mine, other = ours.double(), theirs.double()
    good = (mine == other) | (mine.isnan() & other.isnan())
    has_exact = isinstance(true, torch.Tensor) and true.shape == theirs.shape and true.is_floating_point()
    right = true.double() if has_exact else other
    moved = torch.zeros((), dtype=torch.float64)
    for each in shaken if has_exact else ():
        if not isinstance(each, torch.Tensor) or each.shape != right.shape:
            continue
        moved = torch.maximum(moved, torch.nan_to_num((each.double() - right).abs(), 0, 0).max())
    for target in (right, other):
        good |= _near(mine, target, other, _ULPS * ulp, tiny + 2 * moved, is_pointwise)
    return "" if bool(good.all()) else _complaint(~good, ours, theirs, right)


def _near(
    mine: torch.Tensor,
    right: torch.Tensor,
    other: torch.Tensor,
    relative: float,
    absolute: torch.Tensor,
    is_pointwise: bool,
) -> torch.Tensor:
    """Where `mine` is as near to `right` as `other` is, or within an error relative to the size, or an absolute one."""
    finite = right.isfinite() & other.isfinite()
    size = torch.where(finite, right.abs(), 0)
    error = torch.where(finite, (other - right).abs(), 0)
    if not is_pointwise:
        size, error = size.max(), error.max()
    allowed = torch.maximum(2 * error, relative * size + absolute)
    return finite & ((mine - right).abs() <= allowed)


def _complaint(wrong: torch.Tensor, ours: torch.Tensor, theirs: torch.Tensor, right: torch.Tensor) -> str:
    place = tuple(int(i) for i in wrong.nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements wrong, first at {list(place)}: {ours[place].item()!r}, "
        f"PyTorch {theirs[place].item()!r}, exact {right[place].item()!r}"
    )


def _shown(leaves: Sequence[Any]) -> str:
    """The arguments of a sample, in short."""
    words = [
        f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}" if isinstance(leaf, torch.Tensor) else repr(leaf)
        for leaf in leaves
    ]
    return ", ".join(words)[:300]
