"""One call of an operator of ATen, planned as in a graph, run by the reference interpreter, and compared."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from pdojo.model.compiled import CompiledModel
from pdojo.model.model import Model
from pdojo.torch.planning import plan
from pdojo.torch.plans import Plan
from pdojo.torch.program import Program, plain_region
from qa.torch_interpreted import Interpreted


def module_of(
    operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], read: Sequence[int] | None = None
) -> tuple[GraphModule, list[torch.Tensor]]:
    """A graph with one call whose results `read` are its outputs, and the tensors among the arguments."""
    leaves, tree = tree_flatten((list(arguments), dict(keywords)))
    graph = Graph()
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    nodes = iter([graph.placeholder(f"t{n}") for n in range(len(tensors))])
    filled = [next(nodes) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = tree_unflatten(filled, tree)
    call = graph.call_function(operator, tuple(args), kwargs)
    returns = operator._schema.returns
    several = len(returns) > 1 or isinstance(returns[0].type, torch.ListType)
    numbers = range(len(returns)) if read is None else read
    graph.output(tuple(graph.call_function(getitem, (call, n)) for n in numbers) if several else (call,))
    module = GraphModule({}, graph)
    FakeTensorProp(module, FakeTensorMode()).propagate(*tensors)
    return module, tensors


def planned(
    operator: Any, *arguments: Any, static: Sequence[int] = (), read: Sequence[int] | None = None, **keywords: Any
) -> tuple[Plan, list[torch.Tensor]]:
    """The plan of one call, and the tensors among its arguments; those at positions `static` are known."""
    module, tensors = module_of(operator, arguments, keywords, read)
    return plan(module, {n: tensors[n] for n in static}), tensors


def results(
    operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], read: Sequence[int] | None
) -> list[torch.Tensor]:
    """The results of PyTorch."""
    made: Any = operator(*arguments, **keywords)
    found: list[torch.Tensor] = list(made) if isinstance(made, tuple | list) else [made]
    return found if read is None else [found[n] for n in read]


def check(
    operator: Any,
    *arguments: Any,
    static: Sequence[int] = (),
    read: Sequence[int] | None = None,
    compiled: bool = False,
    exact: torch.Tensor | None = None,
    **keywords: Any,
) -> None:
    """Compare one call, run whole, with PyTorch in its own precision and in f64, or with the `exact` result.

    PyTorch has several implementations of a function, for vectors of other lengths, whose odd cases differ.
    """
    known, tensors = planned(operator, *arguments, static=static, read=read, **keywords)
    assert not known.fallbacks, known.fallbacks[0].reason
    compile_: Any = _compiled if compiled else Interpreted
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # errors of ours are warnings
        program = Program(known, compile_, plain_region)
    ours = program(list(tensors))
    expected = results(operator, arguments, keywords, read)
    wide, wide_keywords = _in_f64(arguments, keywords)
    right = results(operator, wide, wide_keywords, read) if exact is None else [exact]
    promised = [node.meta["val"] for node in known.outputs]
    for mine, theirs, best, traced in zip(ours, expected, right, promised, strict=True):
        # Some operators have other types when they run than when they are traced; graphs rely on those.
        assert mine.dtype == traced.dtype
        theirs = theirs.to(traced.dtype)
        assert mine.shape == theirs.shape
        strides = zip(mine.shape, mine.stride(), theirs.stride(), strict=True)
        assert all(a == b for n, a, b in strides if n > 1), (mine.stride(), theirs.stride())
        compare(mine, theirs if exact is None else exact.to(traced.dtype), best)


def _compiled(model: Model) -> CompiledModel:
    return model.compile(tune="none", threads=1)


def compare(mine: torch.Tensor, theirs: torch.Tensor, best: torch.Tensor) -> None:
    """Raise AssertionError if a result is further from the exact one than twice PyTorch's and some roundings."""
    if not theirs.is_floating_point():
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
        return
    eps = torch.finfo(theirs.dtype).eps
    a, b, c = mine.double(), theirs.double(), best.double()
    odd = ~torch.isfinite(b)
    torch.testing.assert_close(a[odd], b[odd], rtol=0, atol=0, equal_nan=True)
    assert torch.isfinite(a[~odd]).all(), (a, b)
    a, b, c = a[~odd], b[~odd], c[~odd]
    if not a.numel():
        return
    c = torch.where(torch.isfinite(c), c, b)
    bound = 2 * (b - c).abs().max() + 8 * eps * (c.abs() + c.abs().max() * 0.5)
    assert ((a - c).abs() <= bound).all(), ((a - c).abs().max(), (b - c).abs().max(), a, b, c)


def _in_f64(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    def double(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            return leaf.double()
        return torch.float64 if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf

    return tree_map(double, (list(arguments), dict(keywords)))
