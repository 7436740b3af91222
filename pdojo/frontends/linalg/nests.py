"""One perfect nest for each structured operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.element_types import is_float
from pdojo.dialect.functions import accumulates
from pdojo.dialect.rewriting import substitute_input
from pdojo.dialect.view.nest import Access
from pdojo.frontends.linalg.conditions import pieces
from pdojo.frontends.linalg.elements import Elements, Iterations, Place
from pdojo.frontends.linalg.kernel_writer import KernelWriter
from pdojo.frontends.linalg.refusal import dtype_of, name_of, refused, shape_of
from pdojo.frontends.linalg.scalars import Scalars, StatementNeeded, Surroundings, root
from pdojo.frontends.linalg.structured import Structured


def copy(writer: KernelWriter, target: Elements, source: Elements) -> None:
    """Add a nest that copies all elements of `source`, of the shape of `target`, to the memory of `target`."""
    at = writer.iterations()
    index = at.enter_all(target.shape)
    writer.write(at, place_of(at.at(target, index)), [at.at(source, index)])


def place_of(element: object) -> Place:
    """The element of an array as a place to write to."""
    assert isinstance(element, Access)
    return element.array, element.index


def as_views(structured: Structured, outside: Surroundings) -> list[Elements] | None:
    """The results of an operation on tensors that computes nothing: elements of its operands, constants, indices.

    None for other operations.
    """
    results, outputs = structured.op.results, range(len(structured.outputs))
    if (
        not results
        or structured.reduced
        or pieces(structured, outside)
        or not all(structured.covers(k) for k in outputs)
    ):
        return None
    at = Iterations(Block())
    iterations = [const(0)] * len(structured.extents)
    for d in structured.parallel:
        iterations[d] = at.enter(structured.extents[d])
    scalars = Scalars(None, at, outside, structured.op, iterations)
    _set_arguments(structured, scalars, {})
    last = structured.body.last_op
    assert last is not None
    try:
        values = [scalars.value(operand) for operand in last.operands]
    except StatementNeeded:
        return None
    found: list[Elements] = []
    for k, result in enumerate(results):
        index = structured.maps[len(structured.inputs) + k].results
        order = [e.position if isinstance(e, AffineDimExpr) else None for e in index]
        shape = shape_of(structured.op, result.type)
        wide = [d for d in structured.parallel if structured.extents[d] > 1]
        axes = {depth: var(order.index(d)) for depth, d in enumerate(wide)}
        _check_type(structured.op, result, last.operands[k])
        element = substitute_input(values[k], axes, shape)
        found.append(Elements(dtype_of(structured.op, result.type), shape, element))
    return found


def _set_arguments(structured: Structured, scalars: Scalars, targets: Mapping[int, Elements]) -> None:
    """Give the arguments that the body reads their values; the values of outputs are in `targets`."""
    for position, argument in enumerate(structured.body.args):
        if not structured.uses[argument]:
            continue
        output = position - len(structured.inputs)
        operand = (*structured.inputs, *structured.outputs)[position]
        elements = targets[output] if output in targets else scalars.outside(operand)
        if elements.element is None:
            raise refused(structured.op, f"reads operand {position}, whose elements are unspecified")
        index = structured.index(position, scalars.iterations, scalars.at.extents)
        scalars.values[argument] = scalars.at.at(elements, index)


def _check_type(op: Operation, target: SSAValue, value: SSAValue) -> None:
    want, have = dtype_of(op, target.type), dtype_of(op, value.type)
    if want != have:
        raise refused(op, f"yields a value of type {have} for elements of type {want}")


@dataclass(frozen=True)
class _Final:
    """The statement that writes an output: `value`, or the operation that `op` is if its result has no other use."""

    value: SSAValue
    op: Operation | None
    accumulate: str | None


def build(structured: Structured, writer: KernelWriter, outside: Surroundings, targets: Sequence[Elements]) -> None:
    """Add the nest of a structured operation, one for each piece of its iterations. Raises ConversionError.

    `targets` is the memory of each output: a new array for a tensor, the memref itself.
    """
    parts = pieces(structured, outside) or [[range(extent) for extent in structured.extents]]
    whole = all(len(piece[d]) == structured.extents[d] for piece in parts for d in structured.reduced)
    initialised = [k for k in structured.needed if _is_initialised(structured, k, outside)]
    inner = [k for k in initialised if structured.covers(k) and whole]
    for k in initialised:
        if k not in inner:
            copy(writer, targets[k], _initial(structured, k, outside))
    for piece in parts:
        _NestBuilder(structured, writer, outside, targets, piece).build(inner)


def _argument(structured: Structured, output: int) -> SSAValue | None:
    """The body's argument with the previous element of an output; None if the body does not read it."""
    position = len(structured.inputs) + output
    arguments = structured.body.args
    return arguments[position] if position < len(arguments) and structured.uses[arguments[position]] else None


def _is_initialised(structured: Structured, output: int, outside: Surroundings) -> bool:
    """Whether the elements of a tensor before the operation are needed."""
    before = structured.outputs[output]
    if not isinstance(before.type, TensorType):
        return False
    partial = not structured.covers(output) and outside(before).element is not None
    return partial or _argument(structured, output) is not None


def _initial(structured: Structured, output: int, outside: Surroundings) -> Elements:
    initial = outside(structured.outputs[output])
    if initial.element is None:
        raise refused(structured.op, f"accumulates into output {output}, whose elements are unspecified")
    return initial


class _NestBuilder:
    """The nest of a piece of a structured operation's iterations."""

    def __init__(
        self,
        structured: Structured,
        writer: KernelWriter,
        outside: Surroundings,
        targets: Sequence[Elements],
        piece: Sequence[range],
    ) -> None:
        self.structured = structured
        self.piece = piece
        """The iterations of each dimension."""
        self.writer = writer
        self.outside = outside
        self.targets = targets
        """The memory of each output: a new array for a tensor, the memref itself."""
        self.at = writer.iterations()
        self.iterations: list[Expr] = [const(0)] * len(structured.extents)
        self.scalars = Scalars(writer, self.at, outside, structured.op, self.iterations)
        self.places: dict[int, Place] = {}
        """The elements of the needed outputs."""

    def build(self, inner: Sequence[int]) -> None:
        """Add the nest; it gives the outputs `inner` their initial elements. Raises ConversionError."""
        structured = self.structured
        outputs = structured.needed
        # Without a reduction the body reads the initial elements where they are.
        accumulated = [k for k in outputs if k not in inner or structured.reduced]
        self._enter(structured.parallel)
        self.places = {k: place_of(self.at.at(self.targets[k], self._index(k))) for k in outputs}
        if structured.reduced:
            for k in inner:
                self.writer.write(self.at, self.places[k], [self.at.at(self._initial(k), self._index(k))])
            self._enter(structured.reduced)
        _set_arguments(structured, self.scalars, {k: self.targets[k] for k in accumulated})
        self._check_aliases()
        self._body()

    def _enter(self, dimensions: Sequence[int]) -> None:
        for d in dimensions:
            self.iterations[d] = self.at.enter(len(self.piece[d])) + self.piece[d].start

    def _index(self, output: int) -> tuple[Expr, ...]:
        return self.structured.index(len(self.structured.inputs) + output, self.iterations, self.at.extents)

    def _argument(self, output: int) -> SSAValue | None:
        return _argument(self.structured, output)

    def _initial(self, output: int) -> Elements:
        return _initial(self.structured, output, self.outside)

    def _check_aliases(self) -> None:
        """Raise ConversionError if an input lies in the memory of an output, at another element, or two outputs do."""
        if len({array.name for array, _ in self.places.values()}) < len(self.places):
            raise refused(self.structured.op, "writes one memref as several outputs")
        written = [array for array, _ in self.places.values()]
        for op in self.structured.body.walk():
            if isinstance(op, memref.LoadOp):
                source = self.outside(op.memref).element
                if isinstance(source, Access) and source.array in written:
                    raise refused(op, "reads a memref that the operation around it writes")
        for argument in self.structured.body.args[: len(self.structured.inputs)]:
            value = self.scalars.values.get(argument)
            for array, index in self.places.values():
                if (
                    isinstance(value, Access)
                    and value.array is array
                    and (value.index != index or self.structured.reduced)
                ):
                    raise refused(self.structured.op, "reads other elements of a memref that it writes")

    def _body(self) -> None:
        last = self.structured.body.last_op
        assert last is not None
        for k in self.places:
            _check_type(self.structured.op, self.structured.outputs[k], last.operands[k])
        self._write({k: self._final(k, last.operands[k]) for k in self.places})

    def _final(self, output: int, operand: SSAValue) -> _Final:
        op = self._alone(operand)
        argument = self._argument(output)
        dtype = self.targets[output].dtype
        operands = [] if op is None else [root(each) for each in op.operands]
        if op is None or argument not in operands or argument is None or self.structured.uses[argument] > 1:
            return _Final(operand, op, None)
        before = self.scalars.values[argument]
        if (
            not accumulates(name_of(op), dtype)
            or not isinstance(before, Access)
            or before.array is not self.places[output][0]
        ):
            return _Final(operand, op, None)
        (rest,) = (each for each in operands if each is not argument)
        # Products of floating-point numbers are rounded before they are added: they are temporaries.
        return _Final(rest, None if is_float(dtype) else self._alone(rest), name_of(op))

    def _alone(self, value: SSAValue) -> Operation | None:
        """The operation of the body whose result `value` is used once."""
        owner = root(value).owner
        inside = isinstance(owner, Operation) and owner.parent is self.structured.body
        return owner if inside and isinstance(owner, Operation) and self.structured.uses[root(value)] == 1 else None

    def _write(self, finals: Mapping[int, _Final]) -> None:
        """Add the statements that write the outputs; what a later one reads of an earlier output is computed before."""
        statements = {
            k: (None, [self.scalars.value(final.value)]) if final.op is None else self.scalars.inputs(final.op)
            for k, final in finals.items()
        }
        written: list[str] = []
        for k, (function, inputs) in statements.items():
            if any(isinstance(value, Access) and value.array.name in written for value in inputs):
                dtype = self.targets[k].dtype
                statements[k] = None, [self.writer.computed(self.at, dtype, inputs, function)]
            written.append(self.places[k][0].name)
        for k, (function, inputs) in statements.items():
            self.writer.write(self.at, self.places[k], inputs, function, finals[k].accumulate)
