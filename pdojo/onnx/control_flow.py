"""Nodes with subgraphs and sequences: branches and loops, unrolled or as steps; lists of known length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import GraphProto, NodeProto

from pdojo import build
from pdojo.model.element_types import element_type
from pdojo.model.graph import Known, Lower, Lowered, Operand, Tensor, Value
from pdojo.onnx.kinds import Late
from pdojo.onnx.operators.registry import InvalidNode
from pdojo.onnx.protos import array_of, attributes_of, named, python_value, refuse
from pdojo.onnx.scope import Item, Scope, Staged, captured
from pdojo.onnx.stages import Body, Frame, common, frame_of, inner_scope
from pdojo.onnx.steps import BranchStep, LoopStep, RefusedFrame, Scanned, Stacked, operands_of

if TYPE_CHECKING:
    from pdojo.onnx.importing import Importer

_LONGEST, _LARGEST = 1024, 4096
"""Most iterations of a loop that is unrolled, and most nodes that they become."""


def _attributes(proto: NodeProto, scope: Scope) -> dict[str, Any]:
    return {name: python_value(each) for name, each in attributes_of(proto, scope.attributes).items()}


def _number(importer: Importer, proto: NodeProto, value: Item) -> Any:
    """The only element of a value that must be known."""
    known = importer.need(value, proto)
    if known.size != 1:
        refuse(proto, f"an operand has {known.size} elements, not one")
    return known.reshape(())[()]


def _branch(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    condition = scope.find(proto.input[0])
    if not isinstance(condition, Tensor):
        taken = "then_branch" if _number(importer, proto, condition) else "else_branch"
        graph = _graph(importer, proto, scope, taken)
        inner = inner_scope(graph, scope, [])
        return importer.inline(proto, graph.node, [output.name for output in graph.output], inner)
    graphs = [_graph(importer, proto, scope, name) for name in ("then_branch", "else_branch")]
    if any(len(graph.output) != len(proto.output) for graph in graphs):
        refuse(proto, f"its branches have {' and '.join(str(len(g.output)) for g in graphs)} results")
    names = [f"{named(proto)}, {branch}" for branch in ("then", "else")]
    frames = [_chosen(name, importer, graph, scope) for name, graph in zip(names, graphs, strict=True)]
    usable = [each for each in frames if isinstance(each, Frame)]
    refused = next((each for each in frames if not isinstance(each, Frame)), None)
    if refused and not usable:
        raise refused.error
    tensors = [each for graph in graphs for each in captured(graph.node, [e.name for e in graph.output], scope)]
    results = [common(name, [_result(frame, number) for frame in usable]) for number, name in enumerate(proto.output)]
    reason = "its condition is computed when the model runs"
    if refused:
        reason += f"; the call fails if it chooses {refused.error}"
    step = BranchStep(named(proto), reason, [condition, *tensors], results, condition, (frames[0], frames[1]))
    importer.add(step)
    return results


def _chosen(name: str, importer: Importer, graph: GraphProto, scope: Scope) -> Frame | RefusedFrame:
    """A branch; one that is refused for the shapes of its inputs, which the other takes, fails when it is chosen."""
    try:
        return frame_of(name, importer.new, graph, inner_scope(graph, scope, []))
    except InvalidNode as error:
        return RefusedFrame(error)


def _result(frame: Frame, number: int) -> Item:
    """A result of a graph; late if its shape is known only when the graph runs."""
    return frame.first.outputs[number] if frame.first.rest is None else Late(frame.outputs[number])


def _graph(importer: Importer, proto: NodeProto, scope: Scope, name: str) -> GraphProto:
    graph = _attributes(proto, scope).get(name)
    if not isinstance(graph, GraphProto):
        refuse(proto, f"it has no attribute '{name}' with a graph")
    return graph


def _loop(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    body = _graph(importer, proto, scope, "body")
    operands = [scope.find(name) for name in proto.input]
    count, condition = operands[0], operands[1] if len(operands) > 1 else None
    carried = list(operands[2:])
    if len(body.output) < 1 + len(carried):
        refuse(proto, f"its body has {len(body.output)} results for {len(carried)} carried values and the condition")
    if isinstance(count, Tensor) or isinstance(condition, Tensor):
        return _repeated(importer, proto, scope, "its number of iterations is computed when the model runs")
    most = None if count is None else int(_number(importer, proto, count))
    goes_on = condition is None or bool(_number(importer, proto, condition))
    if goes_on and _goes_on_always(body, scope):
        if most is None:
            refuse(proto, "it has no end")
        if most > _LONGEST:
            return _repeated(
                importer, proto, scope, f"it has {most} iterations, and no more than {_LONGEST} are unrolled"
            )
    found = importer.attempt(lambda: _unrolled(importer, proto, scope, most if goes_on else 0, carried))
    if not isinstance(found, Staged):
        return found
    return _repeated(importer, proto, scope, _reason(proto, found))


def _reason(proto: NodeProto, staged: Staged) -> str:
    """Why a loop is not unrolled."""
    if staged.node == named(proto):
        return staged.reason
    return f"its body waits for {staged.node}: {staged.reason}"


def _unrolled(
    importer: Importer, proto: NodeProto, scope: Scope, most: int | None, carried: list[Item]
) -> Sequence[Item]:
    """The results of a loop as those of all iterations. Raises Staged if it is not known how many there are."""
    body = _graph(importer, proto, scope, "body")
    rows: list[list[Operand]] = [[] for _ in body.output[1 + len(carried) :]]
    number, goes_on = 0, True
    while goes_on and (most is None or number < most):
        if number == _LONGEST:
            raise Staged(named(proto), f"it has more than {_LONGEST} iterations, and no more are unrolled")
        if number * len(body.node) > _LARGEST:
            raise Staged(named(proto), f"its iterations are more than {_LARGEST} nodes, and no more are unrolled")
        arguments: list[Item] = [np.array(number, np.int64), np.array(True), *carried]
        condition, *results = importer.subgraph(body, scope, arguments)
        number += 1
        if number != most:
            if isinstance(condition, Tensor):
                raise Staged(named(proto), "its condition is computed when the model runs")
            goes_on = bool(_number(importer, proto, condition))
        carried = results[: len(carried)]
        for row, value in zip(rows, results[len(carried) :], strict=True):
            row.append(_operand(value, proto))
    return [*carried, *(_stacked(importer, proto, row, 0) for row in rows)]


def _repeated(importer: Importer, proto: NodeProto, scope: Scope, reason: str) -> Sequence[Item]:
    """The results of a loop as a step that calls its body."""
    graph = _graph(importer, proto, scope, "body")
    operands = [scope.find(name) for name in proto.input]
    count, condition = (_operand(each, proto) if each is not None else None for each in (*operands[:2], None)[:2])
    carried = [_operand(each, proto) for each in operands[2:]]
    body = Body(named(proto), importer.new, graph, scope)
    _, frame = body.at([np.array(0, np.int64), np.array(True), *carried])
    names = _names(proto, graph, 1)
    results: list[Item] = [Late(name) if name else None for name in names]
    for number, (name, before) in enumerate(zip(names, carried, strict=False)):
        if name:
            results[number] = common(name, [before, _result(frame, 1 + number)])
    tensors = [*operands_of(operands), *captured(graph.node, [each.name for each in graph.output], scope)]
    stacked = [Stacked() for _ in graph.output[1 + len(carried) :]]
    importer.add(LoopStep(named(proto), reason, tensors, results, body, count, condition, carried, [], stacked, False))
    return results


def _goes_on_always(body: GraphProto, scope: Scope) -> bool:
    """Whether the condition of a loop's body is a constant, or the one that the body gets, which holds."""
    makers = {name: node for node in body.node for name in node.output}
    name = body.output[0].name
    while name in makers and makers[name].op_type in ("Identity", "Cast"):
        name = makers.pop(name).input[0]
    if name in makers:
        return makers[name].op_type == "Constant" and bool(_attributes(makers[name], scope).get("value", False))
    if any(name == each.name for each in body.input):
        return name == body.input[1].name
    known = {each.name: array_of(each) for each in body.initializer}
    value = known[name] if name in known else scope.find(name)
    return isinstance(value, np.ndarray) and bool(value)


def _names(proto: NodeProto, body: GraphProto, first: int) -> list[str]:
    """The names of all results of a body from one on, empty for those that nobody wants."""
    count = len(body.output) - first
    return [*proto.output, *[""] * count][:count]


@dataclass(frozen=True)
class _Scan:
    """The operands and attributes of a scan, checked."""

    body: GraphProto
    state: list[Operand]
    scanned: list[Scanned]
    stacked: list[Stacked]
    length: int

    @staticmethod
    def of(importer: Importer, proto: NodeProto, scope: Scope) -> _Scan:
        if scope.opsets.get("", scope.opsets.get("ai.onnx", 1)) < 9:
            refuse(proto, "scans of a batch, before version 9 of the operator set, are not supported")
        body, attributes = _graph(importer, proto, scope, "body"), _attributes(proto, scope)
        scanned = int(attributes.get("num_scan_inputs", 0))
        operands = [_operand(scope.find(name), proto) for name in proto.input]
        count = len(operands) - scanned
        if scanned < 1 or count < 0:
            refuse(proto, f"attribute 'num_scan_inputs' is {scanned}, and it has {len(operands)} operands")
        made = max(0, len(body.output) - count)
        words = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
        found: list[Sequence[int]] = []
        for name, wanted in zip(words, (scanned, scanned, made, made), strict=True):
            found.append(attributes.get(name) or (0,) * wanted)
            if len(found[-1]) != wanted:
                refuse(proto, f"attribute '{name}' has {len(found[-1])} numbers, and should have {wanted}")
        axes, backward, out_axes, flipped = found
        for value, axis in zip(operands[count:], axes, strict=True):
            _check_axis(proto, value, axis)
        rows = [
            Scanned(value, axis % len(value.shape), bool(back))
            for value, axis, back in zip(operands[count:], axes, backward, strict=True)
        ]
        lengths = {each.operand.shape[each.axis] for each in rows}
        if len(lengths) != 1:
            refuse(proto, f"its scanned operands have {sorted(lengths)} elements, and should have equal numbers")
        stacked = [Stacked(axis, bool(back)) for axis, back in zip(out_axes, flipped, strict=True)]
        return _Scan(body, operands[:count], rows, stacked, *lengths)


def _scan(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    scan = _Scan.of(importer, proto, scope)
    if scan.length > _LONGEST:
        return _scanned(
            importer, proto, scope, scan, f"it has {scan.length} iterations, and no more than {_LONGEST} are unrolled"
        )
    found = importer.attempt(lambda: _unrolled_scan(importer, proto, scope, scan))
    if not isinstance(found, Staged):
        return found
    return _scanned(importer, proto, scope, scan, _reason(proto, found))


def _unrolled_scan(importer: Importer, proto: NodeProto, scope: Scope, scan: _Scan) -> Sequence[Item]:
    """The results of a scan as those of all iterations. Raises Staged."""
    state: list[Item] = list(scan.state)
    rows: list[list[Operand]] = [[] for _ in scan.stacked]
    for number in range(scan.length):
        slices = [
            _sliced(importer, proto, each.operand, each.axis, scan.length - 1 - number if each.backward else number)
            for each in scan.scanned
        ]
        results = importer.subgraph(scan.body, scope, [*state, *slices])
        state = results[: len(state)]
        for row, value in zip(rows, results[len(state) :], strict=True):
            row.append(_operand(value, proto))
    outputs = [
        _stacked(importer, proto, row[::-1] if how.backward else row, how.axis)
        for row, how in zip(rows, scan.stacked, strict=True)
    ]
    return [*state, *outputs]


def _scanned(importer: Importer, proto: NodeProto, scope: Scope, scan: _Scan, reason: str) -> Sequence[Item]:
    """The results of a scan as a step that calls its body."""
    results: list[Item] = [Late(name) if name else None for name in _names(proto, scan.body, 0)]
    tensors = [
        *operands_of([*scan.state, *(each.operand for each in scan.scanned)]),
        *captured(scan.body.node, [each.name for each in scan.body.output], scope),
    ]
    body, count = Body(named(proto), importer.new, scan.body, scope), np.array(scan.length)
    importer.add(
        LoopStep(
            named(proto), reason, tensors, results, body, count, None, scan.state, scan.scanned, scan.stacked, True
        )
    )
    return results


def _check_axis(proto: NodeProto, value: Operand, axis: int, *, new: bool = False) -> None:
    """Refuse an axis that a value does not have, or could not get."""
    rank = len(value.shape) + new
    if not -rank <= axis < rank:
        refuse(proto, f"axis {axis} is out of bounds for {rank} dimensions")


def _operand(value: Item, proto: NodeProto) -> Operand:
    if value is None or isinstance(value, list):
        refuse(proto, "an operand that must be a tensor is a sequence, or absent")
    return value


def _sliced(importer: Importer, proto: NodeProto, value: Operand, axis: int, number: int) -> Operand:
    """One element of an operand along an axis."""
    if not isinstance(value, Tensor):
        return np.take(value, number, axis)

    def lower(inputs: tuple[Value | None, ...], prefix: str) -> Lowered:
        (x,) = inputs
        assert isinstance(x, build.Array)
        return Lowered((x[(*[slice(None)] * axis, number)],))

    return importer.apply(proto, lower, [value])[0]


def _stacked(importer: Importer, proto: NodeProto, rows: Sequence[Operand], axis: int) -> Operand:
    """The values of all iterations along a new axis."""
    if not rows:
        refuse(proto, "it has no iterations, so that the shape of a result is unknown")
    return _joined(importer, proto, rows, axis, new=True)


def _joined(importer: Importer, proto: NodeProto, rows: Sequence[Operand], axis: int, *, new: bool) -> Operand:
    _check_axis(proto, rows[0], axis, new=new)
    axis %= len(rows[0].shape) + new
    shapes = {row.shape if new else (*row.shape[:axis], None, *row.shape[axis + 1 :]) for row in rows}
    if len(shapes) > 1:
        refuse(proto, f"arrays of shapes {', '.join(str(list(row.shape)) for row in rows[:4])} are not joined")
    if not any(isinstance(row, Tensor) for row in rows):
        known = [row for row in rows if not isinstance(row, Tensor)]
        return np.stack(known, axis) if new else np.concatenate(known, axis)
    return importer.apply(proto, _joining(axis, new=new), rows)[0]


def _joining(axis: int, *, new: bool) -> Lower:
    def lower(inputs: tuple[Value | None, ...], prefix: str) -> Lowered:
        handles: list[build.Array] = []
        constants: list[tuple[build.Array, Known]] = []
        for number, each in enumerate(inputs):
            if isinstance(each, np.ndarray):
                handle = build.input(f"{prefix}{number}", element_type(each.dtype), each.shape)
                constants.append((handle, each))
                handles.append(handle)
            elif each is not None:
                handles.append(each)
        joined = build.stack(handles, axis) if new else build.concatenate(handles, axis)
        return Lowered((joined,), tuple(constants))

    return lower


def _list(value: Item, proto: NodeProto) -> list[Operand]:
    if not isinstance(value, list):
        refuse(proto, "its operand is no sequence")
    return value


def _construct(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    return [[_operand(scope.find(name), proto) for name in proto.input]]


def _empty(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    return [[]]


def _length(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    return [np.array(len(_list(scope.find(proto.input[0]), proto)), np.int64)]


def _position(importer: Importer, proto: NodeProto, scope: Scope, operand: int, count: int, default: int) -> int:
    """The position in a sequence that an operand says, from 0."""
    value = scope.find(proto.input[operand]) if len(proto.input) > operand else None
    given = default if value is None else int(_number(importer, proto, value))
    found = given + count if given < 0 else given
    if not 0 <= found <= count:
        refuse(proto, f"position {given} is outside a sequence of {count}")
    return found


def _at(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    rows = _list(scope.find(proto.input[0]), proto)
    position = _position(importer, proto, scope, 1, len(rows), 0)
    if position == len(rows):
        refuse(proto, f"position {position} is outside a sequence of {len(rows)}")
    return [rows[position]]


def _insert(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    rows = _list(scope.find(proto.input[0]), proto)
    position = _position(importer, proto, scope, 2, len(rows), len(rows))
    return [[*rows[:position], _operand(scope.find(proto.input[1]), proto), *rows[position:]]]


def _erase(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    rows = _list(scope.find(proto.input[0]), proto)
    position = _position(importer, proto, scope, 1, len(rows), -1)
    return [[*rows[:position], *rows[position + 1 :]]]


def _concatenated(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    rows, attributes = _list(scope.find(proto.input[0]), proto), _attributes(proto, scope)
    if not rows:
        refuse(proto, "its sequence is empty")
    return [_joined(importer, proto, rows, int(attributes.get("axis", 0)), new=bool(attributes.get("new_axis", 0)))]


def _split(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    attributes = _attributes(proto, scope)
    value = _operand(scope.find(proto.input[0]), proto)
    axis = int(attributes.get("axis", 0))
    _check_axis(proto, value, axis)
    axis %= len(value.shape)
    given = scope.find(proto.input[1]) if len(proto.input) > 1 else None
    length = value.shape[axis]
    if given is None:
        if length > _LONGEST:
            refuse(proto, f"an axis of {length} elements is split into more than {_LONGEST} parts")
        sizes, keeps = [1] * length, bool(attributes.get("keepdims", 1))
    else:
        split, keeps = importer.need(given, proto), True
        if split.ndim > 1:
            refuse(proto, f"its sizes have {split.ndim} dimensions, not one")
        if not split.ndim and split < 1:
            refuse(proto, f"{split} is no size")
        step = int(split) if not split.ndim else 0
        if step and length > step * _LONGEST:
            refuse(proto, f"parts of {step} elements of an axis of {length} are more than {_LONGEST}")
        sizes = [int(size) for size in split] if split.ndim else [min(step, length - n) for n in range(0, length, step)]
    if sum(sizes) != length or min(sizes, default=1) < 1 or len(sizes) > _LONGEST:
        refuse(proto, f"sizes {sizes} do not split an axis of {length}")
    pieces: list[Operand] = []
    for number, size in enumerate(sizes):
        start = sum(sizes[:number])
        where: int | slice = slice(start, start + size) if keeps else start
        pieces.append(_piece(importer, proto, value, (*[slice(None)] * axis, where)))
    return [pieces]


def _piece(importer: Importer, proto: NodeProto, value: Operand, where: tuple[int | slice, ...]) -> Operand:
    if not isinstance(value, Tensor):
        return np.asarray(value[where])

    def lower(inputs: tuple[Value | None, ...], prefix: str) -> Lowered:
        (x,) = inputs
        assert isinstance(x, build.Array)
        return Lowered((x[where],))

    return importer.apply(proto, lower, [value])[0]


def _same(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    return [scope.find(proto.input[0]) if proto.input else None]


def _has_element(importer: Importer, proto: NodeProto, scope: Scope) -> Sequence[Item]:
    return [np.array(bool(proto.input) and scope.find(proto.input[0]) is not None)]


STRUCTURES: Mapping[str, Callable[[Importer, NodeProto, Scope], Sequence[Item]]] = {
    "If": _branch,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceLength": _length,
    "SequenceAt": _at,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concatenated,
    "SplitToSequence": _split,
    "Optional": _same,
    "OptionalGetElement": _same,
    "OptionalHasElement": _has_element,
}
"""Operators that decide which nodes there are, or that move whole tensors."""
