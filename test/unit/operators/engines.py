"""What computes the samples of operators: handles and their kernels, PyTorch, ONNX, and the frontends for both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.arguments import listed, replaced
from pdojo.build.array import Array
from pdojo.build.graph import Read
from pdojo.build.kernel import kernel_with_repeats, repeated_inputs
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.model.element_types import element_type, memory_of, numpy_type
from qa.operators.peers import AbsentError, Call, ElementType, Node, Operand, Peer, asked
from qa.operators.tables import CALLS, NODES
from unit.operators.absences import Case, absence

Values: TypeAlias = NDArray[Any]


def _in_memory(operand: Operand) -> Values:
    """The elements of an operand in the NumPy type of its element type."""
    return operand.values.astype(numpy_type(operand.dtype))


def _as_handles(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, Any, dict[Array, Values]]:
    """The arguments with handles for operands, and the elements of the inputs; arrays without elements are no input."""
    given: dict[Array, Values] = {}

    def handle(operand: Operand) -> Array:
        if not operand.values.size:
            return build.constant(0, operand.dtype, operand.shape)
        made = build.input(f"x{len(given)}", operand.dtype, operand.shape)
        given[made] = _in_memory(operand)
        return made

    return replaced([*arguments], Operand, handle), replaced(keywords, Operand, handle), given


@dataclass(frozen=True)
class _Made:
    results: list[Array | Values]
    kernel: KernelOp | None
    memory: dict[str, Values]

    def read(self, found: Mapping[str, Values]) -> list[Any]:
        """The results from the arrays of the kernel; those without elements from their shapes."""
        return [
            each
            if not isinstance(each, Array)
            else found[f"y{k}"].view(numpy_type(each.dtype))
            if each.size
            else np.zeros(each.shape, numpy_type(each.dtype))
            for k, each in enumerate(self.results)
        ]


def _made(results: Any, given: Mapping[Array, Values]) -> _Made:
    parts = listed(results)
    outputs = {f"y{k}": each for k, each in enumerate(parts) if isinstance(each, Array) and each.size}
    if not outputs:
        return _Made(parts, None, {})
    kernel = kernel_with_repeats("made", list(given), outputs)
    validate(Program(kernel, host()))
    names = [name.data for name in kernel.arg_names]
    values = {handle.operand.definition: v for handle, v in given.items() if isinstance(handle.operand, Read)}
    arrays = [values[each] for each in (*values, *repeated_inputs([*outputs.values()]))]
    return _Made(parts, kernel, {name: memory_of(v) for name, v in zip(names, arrays, strict=False)})


@cache
def _kernel(case: Case) -> _Made:
    """The kernel of a case."""
    arguments, keywords, given = _as_handles(*case.operands())

    def constants(values: Values, dtype: str) -> Array:
        made = build.input(f"c{len(given)}", dtype, values.shape, const=True)
        given[made] = values.astype(numpy_type(dtype))
        return made

    if "constants" in signature(case.record.build).parameters:
        keywords["constants"] = constants
    return _made(case.record.build(*arguments, **keywords), given)


def interpreted(case: Case) -> list[Any]:
    """The results of the kernel of handles, by the reference interpreter."""
    made = _kernel(case)
    return made.read({} if made.kernel is None else interpret(made.kernel, made.memory))


def compiled(case: Case) -> list[Any]:
    """The results of the kernel of handles, compiled by LLVM."""
    from pdojo.api.calls import compile

    made = _kernel(case)
    if made.kernel is None:
        return made.read({})
    names = [name.data for name in made.kernel.arg_names]
    found: Any = compile(made.kernel, threads=1)(*made.memory.values())
    return made.read(dict(zip(names[len(made.memory) :], listed(found), strict=True)))


def _call_of(case: Case, peers: Mapping[str, Sequence[Peer]]) -> Any:
    """The call of the first peer that has the arguments of a case."""
    arguments, keywords = case.operands()
    reasons: list[str] = []
    for each in peers[case.record.name]:
        try:
            return asked(each, arguments, keywords)
        except AbsentError as reason:
            reasons.append(str(reason))
    raise AbsentError("; ".join(reasons))


def _tensors(call: Call) -> tuple[Any, list[Any], dict[str, Any]]:
    """The operator of PyTorch, and the arguments with tensors."""
    import torch

    from pdojo.torch import recurrent_layers
    from pdojo.torch.element_types import TENSORS

    assert recurrent_layers
    known: Any = torch

    def tensor(operand: Operand) -> Any:
        return known.from_numpy(operand.values.copy()).to(TENSORS[operand.dtype])

    space, name, overload = call.full.split(".")
    operator = getattr(getattr(getattr(known.ops, space), name), overload)
    arguments: Any = replaced(replaced([*call.arguments], Operand, tensor), np.ndarray, known.from_numpy)
    arguments = replaced(arguments, ElementType, lambda each: TENSORS[each.name])
    return operator, arguments, replaced(call.keywords, Operand, tensor)


def _known(call: Call) -> list[int]:
    """The numbers of the tensors among the arguments whose elements are known."""
    found: list[Any] = []
    for each in call.arguments:
        found += listed(each)
    known = [not isinstance(each, Operand) for each in found if isinstance(each, Operand | np.ndarray)]
    return [number for number, each in enumerate(known) if each]


def _read(results: Any, call: Call | Node) -> list[Any]:
    """The results that are the operator's, in its shapes."""
    parts = listed(results)
    return _shaped(parts if call.read is None else [None if n is None else parts[n] for n in call.read], call)


def _shaped(parts: list[Any], call: Call | Node) -> list[Any]:
    if call.shapes is None:
        return parts
    return [each.reshape(shape) for each, shape in zip(parts, call.shapes, strict=False)]


def _of_tensor(tensor: Any) -> Values:
    import torch

    is_bf16 = tensor.dtype == torch.bfloat16
    return tensor.view(torch.uint16).numpy().view(numpy_type("bf16")) if is_bf16 else tensor.numpy()


def eager(case: Case) -> list[Any]:
    """The results of PyTorch."""
    pytest.importorskip("torch", reason="needs PyTorch")
    call = _call_of(case, CALLS)
    operator, arguments, keywords = _tensors(call)
    try:
        found = operator(*arguments, **keywords)
    except RuntimeError as error:
        raise absence("PyTorch", case, error) from error
    return [_of_tensor(each) for each in _read(found, call)]


def by_torch_rule(case: Case) -> list[Any]:
    """The results of the rule for PyTorch's operator, by the reference interpreter."""
    pytest.importorskip("torch", reason="needs PyTorch")
    from pdojo.torch.operators.registry import RULES
    from pdojo.torch.program import Program as Graph
    from pdojo.torch.program import plain_region
    from qa.torch_interpreted import Interpreted
    from unit.torch.harness import planned

    call = _call_of(case, CALLS)
    if call.full not in RULES:
        raise AbsentError("PyTorch decomposes the operator, or runs it")
    eager(case)
    operator, arguments, keywords = _tensors(call)
    several = len(operator._schema.returns) > 1
    plan, tensors = planned(operator, *arguments, static=_known(call), read=call.read if several else None, **keywords)
    if plan.fallbacks and not all(tensor.numel() for tensor in tensors):
        raise AbsentError(plan.fallbacks[0].reason)
    assert not plan.fallbacks, plan.fallbacks[0].reason
    interpreter: Any = Interpreted
    return _shaped([_of_tensor(each) for each in Graph(plan, interpreter, plain_region)(tensors)], call)


def by_onnx_lowering(case: Case) -> list[Any]:
    """The results of the lowering of ONNX's node, by the reference interpreter."""
    pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")
    from pdojo.onnx.model import load
    from pdojo.onnx.operators.registry import NeedsParts, lowering_of
    from pdojo.onnx.operators.registry import Node as Seen

    node: Node = _call_of(case, NODES)
    _check_elements(node)
    inputs, _, given = _as_handles(node.inputs, {})
    names = tuple(f"y{k}" for k in range(node.outputs))
    lower = lowering_of(node.operator, node.domain, node.opset)
    assert lower is not None, node.operator
    seen = Seen(node.operator, node.domain, "n", node.opset, tuple(inputs), names, node.attributes)
    try:
        results: Any = lower(seen)
    except NeedsParts:
        # The importer makes them, by a kernel of its own.
        model, elements = _model(node)
        found = load(model).interpret(**elements)
        return _read(found if isinstance(found, tuple) else [found], node)
    for k, handle in seen.constants.items():
        given[handle] = np.asarray(seen.inputs[k])
    made = _made(results, given)
    return _read(made.read({} if made.kernel is None else interpret(made.kernel, made.memory)), node)


def _model(node: Node) -> tuple[Any, dict[str, Values]]:
    """A model of one node, and the elements of its inputs."""
    from onnx import helper, shape_inference

    given: dict[str, Values] = {}
    constants: list[Any] = []
    names: list[str] = []
    for k, each in enumerate(node.inputs):
        names.append("" if each is None else f"x{k}")
        if isinstance(each, Operand):
            given[f"x{k}"] = _in_memory(each)
        elif each is not None:
            kind = helper.np_dtype_to_tensor_dtype(each.dtype)
            constants.append(helper.make_tensor(f"x{k}", kind, each.shape, each.reshape(-1)))
    outputs = [f"y{k}" for k in range(node.outputs)]
    made = helper.make_node(node.operator, names, outputs, domain=node.domain, **node.attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for name, v in given.items()
    ]
    graph = helper.make_graph([made], "g", inputs, [helper.make_empty_tensor_value_info(n) for n in outputs], constants)
    opsets = [helper.make_opsetid(node.domain, node.opset)]
    return shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=10)), given


def _check_elements(node: Node) -> None:
    """Raise AbsentError if ONNX's operator takes no elements of these types."""
    from onnx import defs

    schema = defs.get_schema(node.operator, node.opset, node.domain)
    for k, each in enumerate(node.inputs):
        if isinstance(each, Operand):
            name = numpy_type(each.dtype).name
            word = {"float64": "double", "float32": "float"}.get(name, name)
            if f"tensor({word})" not in schema.inputs[min(k, len(schema.inputs) - 1)].types:
                raise AbsentError(f"{node.operator} of ONNX takes no {each.dtype}")


def by_onnx_reference(case: Case) -> list[Any]:
    """The results of ONNX's reference evaluator."""
    pytest.importorskip("onnx", reason="needs the package onnx")
    from pdojo.onnx.reference import reference

    node: Node = _call_of(case, NODES)
    _check_elements(node)
    model, given = _model(node)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            evaluator: Any = reference(model)
            return _read(evaluator.run(None, given), node)
        except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError) as error:
            raise absence("onnx.reference", case, error) from error


def by_onnxruntime(case: Case) -> list[Any]:
    """The results of ONNX Runtime."""
    pytest.importorskip("onnx", reason="needs the package onnx")
    ort: Any = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    node: Node = _call_of(case, NODES)
    _check_elements(node)
    model, given = _model(node)
    if any(element_of(each) == "bf16" for each in given.values()):
        raise AbsentError("ONNX Runtime takes no arrays of bf16 from NumPy")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # It crashes in its fusions for a LayerNormalization without a shift.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return _read(session.run(None, given), node)
    except Exception as error:
        # Its classes of errors have no common base.
        if type(error).__name__ not in ("NotImplemented", "Fail", "InvalidGraph", "RuntimeException"):
            raise
        raise absence("ONNX Runtime", case, error) from error


ENGINES: Mapping[str, tuple[Callable[[Case], list[Any]], Mapping[str, Any] | None]] = {
    "interpreter": (interpreted, None),
    "compiled": (compiled, None),
    "PyTorch": (eager, CALLS),
    "pdojo.torch": (by_torch_rule, CALLS),
    "ONNX Runtime": (by_onnxruntime, NODES),
    "onnx.reference": (by_onnx_reference, NODES),
    "pdojo.onnx": (by_onnx_lowering, NODES),
}
"""Engines by name, and the table of the operators that they have; None is all."""
OURS = ("interpreter", "compiled", "pdojo.torch", "pdojo.onnx")
"""The engines that compute in the types that records name; others may round more often."""


def element_of(values: Values) -> str:
    """The element type of handles of NumPy's values."""
    return element_type(values.dtype)
