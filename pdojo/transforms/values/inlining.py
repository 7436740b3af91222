"""Inlining: recomputing a value at its use, and reading a value that was computed before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self, cast

from pdojo.transforms.api import (
    Access,
    Buffer,
    Expr,
    Input,
    InsertPoint,
    Intent,
    Leaf,
    Mapping,
    Memory,
    Move,
    NotationError,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    accesses_of,
    build_op,
    byte_width,
    chain_ops,
    describe_access,
    fresh_id,
    named_around,
    parse_index,
    rebuilt,
    sentence,
    var,
)
from pdojo.transforms.common.declaring import declare, fresh_name, name_reason
from pdojo.transforms.values.recomputation import Recomputation, producing_iteration, recomputation, same_value


def input_reason(site: Leaf, position: int) -> Reason | None:
    """The reason why the statement has no replaceable input at `position` (hints would be lost); None if it has one."""
    if not 0 <= position < len(site.inputs):
        return Reason(f"'input' must be between 0 and {len(site.inputs) - 1}")
    value = site.inputs[position]
    if isinstance(value, Access) and value.hints.data:
        return Reason(f"{describe_access(value)} has hints, which would be lost; clear them first")
    return None


def element_read(site: Leaf, position: int) -> Access | Reason:
    """The element read by the input at `position`; a Reason if the input cannot be replaced."""
    if (reason := input_reason(site, position)) is not None:
        return reason
    value = site.inputs[position]
    return value if isinstance(value, Access) else Reason("the input is no element of an array")


def replace_input(site: Leaf, position: int, value: Input, rewriter: PatternRewriter) -> None:
    """Replace an input of a statement."""
    inputs = [*site.inputs[:position], value, *site.inputs[position + 1 :]]
    rewriter.replace(site.op, rebuilt(site, chain_ops(site), site.output.index, inputs))


def _previous(program: Program, site: Leaf) -> Leaf | None:
    """The statement immediately before; None if there is none."""
    node = program.nest.previous_sibling(site)
    return node if isinstance(node, Leaf) else None


def index_text(index: tuple[Expr, ...]) -> str:
    """Index expressions in the form of move parameters."""
    return ",".join(e.render("{{{}}}".format) for e in index)


def named_element(program: Program, site: Leaf, name: str, index: str) -> Access | Reason:
    """The element with an array's `name` and an `index`, for a statement to read; a Reason if there is none."""
    array = program.nest.arrays.get(name)
    if array is None:
        return Reason(f"there is no array '{name}'")
    try:
        place = parse_index(index, site.extents, {**program.nest.tables, **named_around(site)}) if index else ()
    except NotationError as error:
        return Reason(f"'index' cannot be read: {sentence(error)}")
    if len(place) != len(array.shape):
        return Reason(f"'{name}' has {len(array.shape)} dimensions, the index '{index}' has {len(place)}")
    return Access(array, place)


@dataclass(frozen=True)
class InlineOp(Transformation[Leaf]):
    """Recompute a value at its use; `input` is the number of the using statement's input, from 0.

    `inline_op@y{input=0}`:

    N t[{0}] = x[{0}] + 1                N t[{0}] = x[{0}] + 1
    M y[{0}] = exp(t[{0}])          -->  M
                                         | t_y[{0}] = x[{0}] + 1
                                         | y[{0}] = exp(t_y[{0}])

    A copy, constant or index value replaces the input itself. Only this use changes; `delete_op` removes the producer
    once nothing reads it.

    Legal iff one plain assignment W: t[f(i)] = g(a[p(i)]) reaches the use of t[e(j)], and there is h, which is found by
    solving f(h(j)) = e(j) digit by digit, such that for all j: W at h(j) is the last write of t[e(j)] before j, and
    a[p(h(j))] is not written between W at h(j) and j.
    """

    name: ClassVar[str] = "inline_op"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "values"
    input: int
    into: str = ""
    """The name of the temporary."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Reads of arrays that a plain assignment writes, except values that the preceding statement computes for
        it."""
        for leaf in program.nest.leaves:
            for number, value in enumerate(leaf.inputs):
                if not isinstance(value, Access) or value.array.intent is Intent.IN:
                    continue
                computed = any(w.accumulate is None for w in program.nest.writers[value.array.name])
                if computed and not _recomputed(program, leaf, value):
                    yield leaf, cls(number)

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires an input that one assignment computes from values that still exist, and room for the value."""
        value = element_read(site, self.input)
        if isinstance(value, Reason):
            return value
        if _needs_scope(program, site, value):
            return _CROWDED
        found = recomputation(program, site, value)
        if isinstance(found, Reason):
            return found
        return self._temporary_reason(program, site, found)

    def _temporary_reason(self, program: Program, site: Leaf, found: Recomputation) -> Reason | None:
        """The reason why there can be no temporary for the value before the statement; None if there can."""
        if found.producer.function is None:
            return Reason("a copy needs no temporary: leave out 'into'") if self.into else None
        if site.parent is not None and site.parent.mapping is Mapping.VECTOR:
            return _CROWDED
        return name_reason(program, self.into)

    def argues(self, program: Program, site: Leaf) -> bool:
        """True in scopes that run in order, if the producer's inputs are in whole buffers on the heap.

        Then no iterations race, each element has a cell, and the temporary lives within one iteration.
        """
        found = recomputation(program, site, cast(Access, site.inputs[self.input]))
        assert isinstance(found, Recomputation)
        read = [value.array for value in found.inputs if isinstance(value, Access)]
        in_order = all(scope.mapping is Mapping.SEQUENTIAL for scope in site.chain)
        return in_order and all(a is not site.output.array and _is_plain(a.buffer) for a in read)

    def adds(self, program: Program, site: Leaf) -> int:
        """Bytes of the temporary, which has one slot."""
        return byte_width(cast(Access, site.inputs[self.input]).array.dtype)

    promises: ClassVar = Promises(conditions=argues, adds=adds)

    def _name(self, program: Program, site: Leaf) -> str:
        value = site.inputs[self.input]
        assert isinstance(value, Access)
        return self.into or fresh_name(program.nest.arrays, f"{value.array.name}_{site.output.array.name}")

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Replace the input, or compute it into a new temporary before the statement."""
        value = site.inputs[self.input]
        assert isinstance(value, Access)
        found = recomputation(program, site, value)
        assert isinstance(found, Recomputation)
        if found.producer.function is None:
            replace_input(site, self.input, found.inputs[0], rewriter)
            return
        # The temporary has a dimension of one slot per scope around the statement.
        name, dtype, slots = self._name(program, site), found.producer.output.array.dtype, [1] * site.depth
        array = declare(program, name, dtype, site.extents, slots, Memory.STACK, rewriter)
        index = tuple(map(position, range(site.depth), site.extents))
        identifier = fresh_id(program.nest.by_id, f"{site.id}.r")
        computed = build_op(
            (array, index), found.inputs, chain_ops(site), function=found.producer.function, identifier=identifier
        )
        rewriter.insert(computed, InsertPoint.before(site.op))
        replace_input(site, self.input, Access(array, index), rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        value = site.inputs[self.input]
        assert isinstance(value, Access)
        return OutlineOp(self.input, value.array.name, index_text(value.index)).as_move(f"%{site.id}")


_CROWDED = Reason("a vector scope wraps exactly one op; only a copy can be inlined there")


def _needs_scope(program: Program, site: Leaf, value: Access) -> bool:
    """Whether the value needs a statement of its own, which the vector scope around the site cannot contain."""
    crowded = site.parent is not None and site.parent.mapping is Mapping.VECTOR
    return crowded and all(w.function is not None for w in program.nest.writers[value.array.name])


def _is_plain(buffer: Buffer) -> bool:
    """Whether every element has a cell of its own, on the heap."""
    return buffer.memory is Memory.HEAP and not any(buffer.reuse) and len(buffer.names) == 1


def position(depth: int, extent: int) -> Expr:
    """The variable of a scope; 0 if the scope has one iteration, as in the canonical form."""
    return var(depth) * (extent > 1)


def _recomputed(program: Program, site: Leaf, value: Access) -> bool:
    """Whether the statement before computes the value for this use only."""
    before = _previous(program, site)
    if before is None or before.output.array is not value.array:
        return False
    return len(accesses_of(program.nest, value.array.buffer)) == 2


@dataclass(frozen=True)
class OutlineOp(Transformation[Leaf]):
    """Read a value that an earlier statement computed, instead of recomputing it.

    `outline_op@y{input=0 array=t index="{0}"}`:

    N t[{0}] = x[{0}] + 1                  N t[{0}] = x[{0}] + 1
    M                                 -->  M y[{0}] = exp(t[{0}])
    | p[{0}] = x[{0}] + 1
    | y[{0}] = exp(p[{0}])

    The preceding statement, which computes the input for this use only, is deleted; or the earlier statement copied the
    input.

    Legal iff `inline_op`, applied to the use of t[e(j)], would restore the present computation: W at h(j), the last
    write of that element, has the function and the inputs of the deleted statement, and no input was written since.
    """

    name: ClassVar[str] = "outline_op"
    keeps_statements: ClassVar = False
    input: int
    array: str
    index: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Inputs that an earlier statement copied, or computed with the same function from the same arrays."""
        for leaf in program.nest.leaves:
            for number, value in enumerate(leaf.inputs):
                copy = isinstance(value, Access)
                before = _previous(program, leaf) if copy and _recomputed(program, leaf, value) else None
                wanted = leaf.inputs[number : number + 1] if before is None else before.inputs
                function = None if before is None else before.function
                for producer in program.nest.leaves[: leaf.order]:
                    if producer is before or producer.function != function or producer.accumulate is not None:
                        continue
                    element = precomputed(producer, leaf, wanted, producer.inputs)
                    if element is not None and not (copy and element.key == value.key):
                        yield leaf, cls(number, element.array.name, index_text(element.index))

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires an element that holds the input's value, and a computing statement that can be deleted."""
        if (reason := input_reason(site, self.input)) is not None:
            return reason
        element = named_element(program, site, self.array, self.index)
        if isinstance(element, Reason):
            return element
        found = recomputation(program, site, element)
        if isinstance(found, Reason):
            return found
        if found.producer.function is None:
            if not same_value(site.inputs[self.input], found.inputs[0]):
                return Reason(f"the input is not what '{self.array}' is a copy of")
        elif (reason := self._recomputed_reason(program, site, found)) is not None:
            return reason
        return None

    def _recomputed_reason(self, program: Program, site: Leaf, found: Recomputation) -> Reason | None:
        """The reason why the statement before does not compute the same value for this use only; None if it does."""
        value, before = site.inputs[self.input], _previous(program, site)
        if before is None or not isinstance(value, Access) or before.output.key != value.key:
            return Reason("the input is not the value of the preceding op")
        if before is found.producer:
            return Reason(f"'{self.array}' is the temporary that the preceding op computes for this one")
        buffer = value.array.buffer
        if buffer.op is None or len(buffer.names) > 1 or len(accesses_of(program.nest, buffer)) != 2:
            return Reason(f"'{value.array.name}' is used elsewhere; only a temporary for this use can go")
        if before.function != found.producer.function or before.accumulate is not None:
            return Reason(f"the preceding op does not compute the value in '{self.array}'")
        if not all(map(same_value, before.inputs, found.inputs)):
            return Reason(f"the preceding op does not compute the value in '{self.array}'")
        plain = build_op(
            (before.output.array, before.output.index),
            found.inputs,
            chain_ops(before),
            function=before.function,
            identifier=before.id,
        )
        has_hints = plain.properties != before.op.properties
        plain.erase()
        if has_hints:
            return Reason("the preceding op has hints, which would be lost; clear them first")
        return None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Replace the input; delete the statement that computed it, and its temporary."""
        value = site.inputs[self.input]
        element = named_element(program, site, self.array, self.index)
        assert isinstance(element, Access)
        found = recomputation(program, site, element)
        assert isinstance(found, Recomputation)
        before = _previous(program, site)
        replace_input(site, self.input, element, rewriter)
        if found.producer.function is not None:
            assert before is not None
            assert isinstance(value, Access)
            assert value.array.buffer.op is not None
            rewriter.erase(before.op)
            rewriter.erase(value.array.buffer.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        value = site.inputs[self.input]
        element = named_element(program, site, self.array, self.index)
        assert isinstance(element, Access)
        found = recomputation(program, site, element)
        assert isinstance(found, Recomputation)
        if found.producer.function is None:
            return InlineOp(self.input).as_move(f"%{site.id}")
        assert isinstance(value, Access)
        return InlineOp(self.input, into=value.array.name).as_move(f"%{site.id}")


def precomputed(producer: Leaf, site: Leaf, wanted: tuple[Input, ...], operands: tuple[Input, ...]) -> Access | None:
    """The element that the producer writes in the iteration with the operands `wanted`; None if none is found."""
    equations: list[tuple[Expr, Expr]] = []
    for theirs, mine in zip(operands, wanted, strict=False):
        if not isinstance(theirs, Access) or not isinstance(mine, Access):
            continue
        if theirs.array is not mine.array:
            return None
        equations += zip(theirs.index, mine.index, strict=True)
    at = producing_iteration(producer, site, equations) if equations else None
    if at is None:
        return None
    output = producer.output
    values = dict(enumerate(at))
    index = tuple(e.substitute(values, site.extents) for e in output.index)
    return Access(output.array, index)
