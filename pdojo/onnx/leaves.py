"""Ensembles of one tree each, as in isolation forests and AdaBoost: functions of a leaf are tables.

Such an ensemble has as many results as its tree has leaves. Nodes that compute each sample by itself are applied to
these results when the model is imported: f(table[leaf]) = (f(table))[leaf]. The trees of the same samples are walked
together, and a sum over trees is one lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TypeProto, helper

from pdojo import build
from pdojo.build import Array
from pdojo.build.sizes import is_open
from pdojo.errors import UsageError
from pdojo.model.element_types import element_type
from pdojo.model.extents import is_extents
from pdojo.model.graph import Known, Lower, Operand, Tensor
from pdojo.onnx.definitions import defect, definition, inferred
from pdojo.onnx.kinds import Late, is_foreign
from pdojo.onnx.labels import ML, label_node
from pdojo.onnx.lowering import MALFORMED, lower_by
from pdojo.onnx.operators.ml_forest import END, Forest, Nodes, Places
from pdojo.onnx.operators.ml_masks import MaskedForest
from pdojo.onnx.operators.ml_trees import PARTS, walked
from pdojo.onnx.operators.registry import Lowering, NeedsArrays, Node
from pdojo.onnx.protos import declared_type, named, python_value, title_of
from pdojo.onnx.rows import by_rows, puts_axis_first
from pdojo.onnx.scope import Item, Scope
from pdojo.onnx.steps import NumpyStep

Apply: TypeAlias = Callable[[NodeProto, Lower, Sequence[Operand | None]], Sequence[Operand]]
"""A function that adds an operation for a node, of these operands, and gives its results."""


@dataclass(frozen=True, eq=False)
class _Tree:
    nodes: Nodes
    leaves: Places
    """The nodes that are leaves, in the order of the rows of tables."""


@dataclass(eq=False)
class _Grove:
    """Trees that are walked together."""

    samples: Tensor
    trees: list[_Tree] = field(default_factory=list[_Tree])
    forest: Forest | None = None
    records: Operand | None = None
    """The records of the leaves, once something needs them: [samples, trees], or [trees, samples] of masked trees."""

    def rows(self, tables: Mapping[int, Known]) -> Known:
        """The rows of each record, those of all trees one after the other; 0 for trees and records without row."""
        assert self.forest is not None
        first = next(iter(tables.values()))
        starts = np.cumsum([0, *(len(tree.nodes.mode) for tree in self.trees)])
        found = np.zeros((int(starts[-1]), *first.shape[1:]), first.dtype)
        for number, table in tables.items():
            found[starts[number] + self.trees[number].leaves] = table
        return found[self.forest.node]

    def of_samples(self, node: Node) -> Array:
        """The records of the leaves, [samples, trees], of an operation whose operand 0 are `records`."""
        is_turned = isinstance(self.forest, MaskedForest)
        return build.transpose(node.array(0)) if is_turned else node.array(0)

    def part(self, number: int) -> tuple[int, int, int]:
        """The first record of a tree's leaves, the number of its records, and the most of a tree, or more."""
        if isinstance(self.forest, MaskedForest):
            leaves = self.forest.masks.leaves
            return number * leaves, leaves, leaves
        branches = [int((tree.nodes.mode != END).sum()) for tree in self.trees]
        return len(branches) + 2 * sum(branches[:number]), 2 * branches[number], 2 << max(branches).bit_length()


class Leafwise(Tensor):
    """A tensor whose rows are functions of the leaves that samples find: a sum over trees. No operation takes it."""

    def __init__(self, name: str, grove: _Grove, tables: Mapping[int, Known], *, leads: bool = False) -> None:
        row = next(iter(tables.values()))
        shape = (grove.samples.shape[0], *row.shape[1:])
        super().__init__(name, element_type(row.dtype), (1, *shape) if leads else shape, grove.samples.sources)
        self.grove, self.tables = grove, tables
        self.leads = leads
        """Whether an axis of one element is before that of samples."""
        self.settled: Operand | None = None
        """The tensor that an operation computes, once something needs it."""


class Leaves:
    """The functions of leaves in the import of a graph."""

    def __init__(self, apply: Apply, nodes: Iterable[NodeProto] = ()) -> None:
        self._apply = apply
        # A single tree is walked by itself.
        self._has_many = sum(map(_is_single, nodes)) > 1
        self._groves: list[_Grove] = []
        self._uniform: dict[Tensor, Known] = {}
        """The only element of tensors whose shape depends on sizes."""

    def note(self, proto: NodeProto, results: Sequence[Item]) -> None:
        """Remember what functions of leaves may read."""
        if self._has_many and (proto.domain, proto.op_type) == ("", "ConstantOfShape"):
            values = [np.asarray(python_value(each)).reshape(()) for each in proto.attribute if not each.ref_attr_name]
            given = np.array(0, np.float32) if not proto.attribute else values[0] if values else None
            if given is not None and isinstance(results[0], Tensor):
                self._uniform[results[0]] = given

    def results(self, proto: NodeProto, scope: Scope) -> Sequence[Operand] | None:
        """The results of a node of the model's own graph, if they are functions of leaves."""
        if not self._has_many or scope.depth or any(each.ref_attr_name for each in proto.attribute):
            return None
        if proto.domain == ML and proto.op_type in PARTS:
            return self._ensemble(proto, scope) if _is_single(proto) else None
        operands = [scope.find(name) for name in proto.input]
        given = [each for each in operands if isinstance(each, Leafwise)]
        if not given or len(proto.output) != 1 or any(each.grove is not given[0].grove for each in given):
            return None
        if (types := _types(proto, scope, operands)) is None:
            return None
        if _is_sum(proto, operands):
            return [_sum(proto.output[0], given)]
        if _is_stack(proto, operands):
            return [self._stacked(proto, given)]
        if any(each.leads for each in given):
            return None
        if puts_axis_first(proto, operands):
            return [Leafwise(proto.output[0], given[0].grove, given[0].tables, leads=True)]
        return self._by_rows(proto, scope, operands, types)

    def settle(self, names: Iterable[str], scope: Scope) -> None:
        """Give functions of leaves among the values of these names operations that compute them."""
        if not self._groves:
            return
        for name in names:
            holder: Scope | None = scope
            while holder is not None and name not in holder.values:
                holder = holder.parent
            value = None if holder is None else holder.values[name]
            if holder is not None and isinstance(value, Leafwise):
                if value.settled is None:
                    value.settled = self._tensor(value)
                holder.values[name] = value.settled

    def _ensemble(self, proto: NodeProto, scope: Scope) -> list[Leafwise] | None:
        """The results of an ensemble of one tree; None if its own lowering has to take or refuse it."""
        samples, opset = scope.find(proto.input[0]), scope.opsets.get(ML, 1)
        if not isinstance(samples, Tensor) or isinstance(samples, Late | Leafwise) or len(samples.shape) != 2:
            return None
        if is_open(samples.shape[1:]) or label_node(proto) is not None or _types(proto, scope, [samples]) is None:
            return None
        values = {each.name: python_value(each) for each in proto.attribute}
        given = (samples.input("x"),)
        node = Node(proto.op_type, ML, title_of(proto), opset, given, tuple(proto.output), values)
        try:
            nodes, ensemble, finish = PARTS[proto.op_type](node)
        except (UsageError, *MALFORMED):
            return None
        forest = ensemble.forest
        if not forest.depth or len(nodes.roots) > 1 or int(forest.feature.max()) >= samples.shape[1]:
            return None
        place = np.full(len(nodes.mode), -1)
        place[forest.node[::-1]] = np.arange(len(forest.node))[::-1]
        tree = _Tree(nodes, np.flatnonzero((nodes.mode == END) & (place >= 0)))
        lower = lower_by(replace(node, inputs=()), lambda own: finish(own, own.array(0)))
        tables = self._apply(proto, lower, [place[tree.leaves][:, None].astype(np.int32)])
        grove = self._grove(samples, nodes)
        grove.trees.append(tree)
        number = len(grove.trees) - 1
        rows = zip(proto.output, tables, strict=True)
        return [Leafwise(name, grove, {number: table}) for name, table in rows if not isinstance(table, Tensor)]

    def _grove(self, samples: Tensor, nodes: Nodes) -> _Grove:
        """The trees of the same samples that are not walked yet."""
        for each in self._groves:
            is_same = each.samples.memory is samples.memory and each.samples.shape == samples.shape
            if is_same and each.records is None and each.trees[0].nodes.value.dtype == nodes.value.dtype:
                return each
        self._groves.append(_Grove(samples))
        return self._groves[-1]

    def _by_rows(
        self, proto: NodeProto, scope: Scope, operands: Sequence[Item], types: Mapping[str, TypeProto]
    ) -> list[Leafwise] | None:
        """The results of a node that computes each sample by itself, from one tree and what is known."""
        given = [each for each in operands if isinstance(each, Leafwise)]
        grove, number = given[0].grove, next(iter(given[0].tables))
        if any([*each.tables] != [number] for each in given):
            return None
        arrays: list[Known | None] = []
        for each in operands:
            if isinstance(each, Leafwise):
                arrays.append(each.tables[number])
            elif each is None or (isinstance(each, np.ndarray) and not is_extents(each)):
                arrays.append(None if each is None else _of_any_row(each, given[0]))
            elif isinstance(each, Tensor) and each in self._uniform and each.shape == given[0].shape:
                arrays.append(np.broadcast_to(self._uniform[each], (1, *each.shape[1:])))
            else:
                return None
        if not by_rows(proto, arrays, [isinstance(each, Leafwise) for each in operands]):
            return None
        known = {name: each for name, each in zip(proto.input, arrays, strict=True) if each is not None}
        wanted = declared_type(types[proto.output[0]].tensor_type.elem_type, named(proto))
        try:
            evaluator = NumpyStep.evaluator_of(proto, scope.opsets.get(proto.domain, 1))
            (found,) = NumpyStep(named(proto), "", [], [], {}, evaluator).compute(known)
        except UsageError:
            # Its own lowering takes the node, or gives the reason.
            return None
        if found.dtype != wanted or is_foreign(found) or found.shape[:1] != (len(grove.trees[number].leaves),):
            return None
        return [Leafwise(proto.output[0], grove, {number: found})]

    def _tensor(self, value: Leafwise) -> Operand:
        """The result of an operation that looks up the rows of leaves."""
        grove, shape = value.grove, value.shape

        def lower(given: Node) -> Array:
            table = grove.rows(value.tables)
            if len(value.tables) > 1 or len(grove.trees) == 1:
                return _sum_of_rows(given, grove.of_samples(given), table, shape)
            return _rows_of_one(given, grove, next(iter(value.tables)), table, shape)

        return self._looked_up(value.name, grove, lower)

    def _stacked(self, proto: NodeProto, given: Sequence[Leafwise]) -> Operand:
        """The result of an operation that looks up the rows of trees and puts them side by side."""
        grove, leads = given[0].grove, given[0].leads
        order = [next(iter(each.tables)) for each in given]
        tables = {number: table for each in given for number, table in each.tables.items()}
        one = given[0].shape

        def rows(own: Node, records: Array) -> Array:
            table = grove.rows(tables)
            kind, flat = element_type(table.dtype), table.reshape(len(table), -1)
            found = build.take(own.constant(flat, kind), records, 0, outside="clamp")
            if leads:
                found = build.transpose(found, (1, 0, 2))
                return build.reshape(found, (len(order), *one[1:]))
            return build.reshape(found, (one[0], -1, *one[2:]))

        def lower(own: Node) -> Any:
            if order == [*range(len(grove.trees))]:
                return rows(own, grove.of_samples(own))
            raise NeedsArrays(
                lambda given: build.take(grove.of_samples(given), order, 1),
                lambda given: rows(given, given.array(0)),
                kept=(),
            )

        return self._looked_up(proto.output[0], grove, lower)

    def _looked_up(self, name: str, grove: _Grove, lower: Lowering) -> Operand:
        """The result of an operation for the records of leaves, after that of the walk."""
        proto = helper.make_node("TreeEnsemble", [], [name])
        node = Node("TreeEnsemble", ML, f"{len(grove.trees)} trees", 1, (), (name,), {})
        if grove.records is None:
            forest = grove.forest = MaskedForest.of(Nodes.joined([tree.nodes for tree in grove.trees]))
            walk = lower_by(node, lambda given: walked(given, forest, lambda _, found: _as_made(forest, found)))
            (grove.records,) = self._apply(proto, walk, [grove.samples])
        return self._apply(proto, lower_by(node, lower), [grove.records])[0]


def _as_made(forest: Forest, records: Array) -> Array:
    """Records [samples, trees] in the order in which the walk makes them."""
    return build.transpose(records) if isinstance(forest, MaskedForest) else records


def _is_single(proto: NodeProto) -> bool:
    """Whether a node is an ensemble of one tree."""
    if proto.domain != ML or proto.op_type not in PARTS:
        return False
    name = "tree_roots" if proto.op_type == "TreeEnsemble" else "nodes_treeids"
    return len({number for each in proto.attribute if each.name == name for number in each.ints}) == 1


def _types(proto: NodeProto, scope: Scope, operands: Sequence[Item]) -> Mapping[str, TypeProto] | None:
    """The types of a node's results, keyed by name; None if its definition has a complaint."""
    schema = definition(proto.op_type, scope.opsets.get(proto.domain, 1), proto.domain)
    known = [each for each in operands if not isinstance(each, list)]
    if schema is None or len(known) < len(operands) or defect(proto, schema, known) is not None:
        return None
    return inferred(proto, schema, known)


def _of_any_row(known: Known, rows: Tensor) -> Known:
    """A known operand; one row of an array whose rows, one for each sample, are equal."""
    if known.shape == rows.shape and known.shape[0] > 1 and bool((known == known[:1]).all()):
        return known[:1]
    return known


def _is_sum(proto: NodeProto, operands: Sequence[Item]) -> bool:
    """Whether a node adds functions of the leaves of several trees."""
    given = [each for each in operands if isinstance(each, Leafwise)]
    return (
        (proto.domain, proto.op_type) in {("", "Add"), ("", "Sum")}
        and len(given) == len(operands)
        and len({(each.dtype, each.shape) for each in given}) == 1
        and given[0].dtype in ("f32", "f64")
        and len({number for each in given for number in each.tables}) > 1
    )


def _sum(name: str, terms: Sequence[Leafwise]) -> Leafwise:
    tables: dict[int, NDArray[Any]] = {}
    for each in terms:
        for number, table in each.tables.items():
            tables[number] = tables[number] + table if number in tables else table
    return Leafwise(name, terms[0].grove, tables, leads=terms[0].leads)


def _is_stack(proto: NodeProto, operands: Sequence[Item]) -> bool:
    """Whether a node puts functions of the leaves of different trees side by side: [samples, n] along the last axis, or
    [1, samples, n] along the first one."""
    given = [each for each in operands if isinstance(each, Leafwise)]
    if (proto.domain, proto.op_type) != ("", "Concat") or len(given) < max(len(operands), 2):
        return False
    numbers = {number for each in given for number in each.tables}
    kinds = {(each.dtype, each.shape, each.leads) for each in given}
    if len(kinds) > 1 or len(numbers) < len(given) or any(len(each.tables) > 1 for each in given):
        return False
    (axis,) = [each.i for each in proto.attribute if each.name == "axis"]
    rank = len(given[0].shape)
    return (rank, axis % rank, given[0].leads) in {(3, 0, True), (2, 1, False)}


def _sum_of_rows(node: Node, records: Array, table: Known, shape: tuple[int, ...]) -> Array:
    """The sums of the rows of records [samples, trees] of a table [records, ...]."""
    kind, flat = element_type(table.dtype), table.reshape(len(table), -1)
    handle = node.constant(flat[:, 0] if flat.shape[1] == 1 else flat, kind)
    found = build.take(handle, records, 0, outside="clamp")
    return build.reshape(found[:, 0] if records.shape[1] == 1 else build.sum(found, 1), shape)


def _rows_of_one(node: Node, grove: _Grove, number: int, table: Known, shape: tuple[int, ...]) -> Array:
    """The rows of the records of one tree: the kernels of all trees of similar size are the same."""
    start, count, size = grove.part(number)
    own = np.zeros((size, *table.shape[1:]), table.dtype)
    own[:count] = table[start : start + count]

    def column(given: Node) -> Array:
        places = given.constant(np.array([number, start]), "i32")
        return build.take(grove.of_samples(given), places[:1], 1, outside="clamp") - places[1]

    raise NeedsArrays(column, lambda given: _sum_of_rows(given, given.array(0), own, shape), kept=())
