"""The first and the last step of an accumulation as plain assignments, without initialisation or copied result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    ACCUMULATIONS,
    Access,
    DictionaryAttr,
    Input,
    InsertPoint,
    Leaf,
    Mapping,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    StatementOp,
    Transformation,
    accumulates,
    build_op,
    chain_ops,
    fresh_id,
)

_TWO_FUNCTIONS = Reason("the op accumulates the result of a function, which is no single operation")


@dataclass(frozen=True)
class AbsorbInit(Transformation[Leaf]):
    """Let the first step of an accumulation use the value that was assigned before it.

    `absorb_init@z#1`:

    z[0] = w[0]
    z[0] += x[0]  -->  z[0] = w[0] + x[0]

    Also turns `z fma= x * y` into `z = fma(x, y, w)`. Legal if a plain copy or constant directly precedes, and the
    addend is not in the same memory.
    """

    name: ClassVar[str] = "absorb_init"
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Accumulations after an assignment."""
        for leaf in program.nest.leaves:
            if leaf.accumulate is not None and isinstance(program.nest.previous_sibling(leaf), Leaf):
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires an initial value for the same element, and one operation for the two statements."""
        if site.accumulate is None:
            return Reason("the op does not accumulate")
        if _stepped(site, site.output) is None:
            return _TWO_FUNCTIONS
        first = program.nest.previous_sibling(site)
        if not isinstance(first, Leaf) or not _is_plain(first):
            return Reason("no plain copy or constant precedes immediately")
        if first.output.key != site.output.key:
            return Reason("the preceding op assigns another element")
        if _shares(site.output, (*first.reads, *site.reads)):
            return Reason(f"the two ops read the memory of '{site.output.array.name}'")
        if first.output.hints.data:
            return Reason(f"the first access to '{site.output.array.name}' has hints, which would be lost")
        return None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        first = program.nest.previous_sibling(site)
        assert isinstance(first, Leaf)
        rewriter.replace(site.op, _assignment(site, site.output, first.inputs[0], site.id))
        rewriter.erase(first.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return ExposeInit().as_move(f"%{site.id}")


@dataclass(frozen=True)
class ExposeInit(Transformation[Leaf]):
    """Assign the first operand, then accumulate the others.

    `expose_init@z`:

    z[0] = w[0] + x[0]  -->  z[0] = w[0]
                             z[0] += x[0]

    Also turns `z = fma(x, y, w)` into `z = w` and `z fma= x * y`. Legal if the function accumulates into the type, and
    no operand is in the memory that is written.
    """

    name: ClassVar[str] = "expose_init"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Assignments by functions that can accumulate."""
        for leaf in program.nest.leaves:
            if leaf.accumulate is None and _accumulating(leaf) is not None:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a function that can accumulate, with operands in other memory."""
        if site.accumulate is not None or _accumulating(site) is None:
            return Reason(f"the op is no assignment by a function that accumulates {site.output.array.dtype}")
        if site.parent is not None and site.parent.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if _shares(site.output, site.reads):
            return Reason(f"the op reads the memory of '{site.output.array.name}'")
        return None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Write an assignment before, and an accumulation in its place."""
        found = _accumulating(site)
        assert found is not None
        first, accumulate, terms = found
        empty = DictionaryAttr({})
        init = build_op(
            (site.output.array, site.output.index),
            [first],
            chain_ops(site),
            hints=[empty, *_hints(first)],
            identifier=fresh_id(program.nest.by_id, f"{site.id}.v"),
        )
        rewriter.insert(init, InsertPoint.before(site.op))
        rewriter.replace(site.op, _accumulation(site, site.output, accumulate, terms, site.id))

    def inverse(self, program: Program, site: Leaf) -> Move:
        return AbsorbInit().as_move(f"%{site.id}")


@dataclass(frozen=True)
class ForwardSum(Transformation[Leaf]):
    """Move a copy of a result before the step that computes it; the copy then computes this step itself.

    `forward_sum@c`:

    z[0] += x[0]        c[0] = z[0] + x[0]
    c[0] = z[0]    -->  z[0] += x[0]

    Also turns `z fma= x * y` and `c = z` into `c = fma(x, y, z)` and `z fma= x * y`, and `z = f(z, x)` and `c = z` into
    `c = f(z, x)` and `z = f(z, x)`. `delete_op` removes the step once its result is no longer read. Legal if the copy
    directly follows, into memory that the step neither reads nor writes.
    """

    name: ClassVar[str] = "forward_sum"
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Copies after an accumulation, or a function of an element's old value."""
        for leaf in program.nest.leaves:
            before = program.nest.previous_sibling(leaf)
            if _is_copy(leaf) and isinstance(before, Leaf) and _is_step(before):
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a copy of the preceding step's result into other memory."""
        step = program.nest.previous_sibling(site)
        if not _is_copy(site):
            return Reason("the op is no plain copy of an element")
        if not isinstance(step, Leaf) or not _is_step(step):
            return Reason("no accumulation or function of the element's old value precedes immediately")
        if step.output.key != site.reads[0].key:
            return Reason("the copied element is not the one that the preceding op writes")
        if _stepped(step, step.output) is None:
            return _TWO_FUNCTIONS
        if _shares(site.output, (step.output, *step.reads)) or _reads_beside(step):
            return Reason(f"the step accesses '{site.output.array.name}', or reads other elements of what it writes")
        if site.reads[0].hints.data:
            return Reason(f"the access to '{step.output.array.name}' has hints, which would be lost; clear them first")
        return None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Turn the copy into a step of its own, before the other."""
        step = program.nest.previous_sibling(site)
        assert isinstance(step, Leaf)
        old = Access(step.output.array, step.output.index, DictionaryAttr({}))
        rewriter.insert(_assignment(step, site.output, old, site.id), InsertPoint.before(step.op))
        rewriter.erase(site.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return CopySum().as_move(f"%{site.id}")


@dataclass(frozen=True)
class CopySum(Transformation[Leaf]):
    """Copy the result of a step, instead of computing the same value before the step.

    `copy_sum@c`:

    c[0] = z[0] + x[0]       z[0] += x[0]
    z[0] += x[0]        -->  c[0] = z[0]

    Legal if the step that computes the same value directly follows, and neither statement reads the memory of the copy.
    """

    name: ClassVar[str] = "copy_sum"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Assignments before an accumulation, or before a function of an element's old value."""
        for leaf in program.nest.leaves:
            after = program.nest.next_sibling(leaf)
            if leaf.accumulate is None and isinstance(after, Leaf) and _is_step(after):
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a following step that computes the same value."""
        step = program.nest.next_sibling(site)
        if not isinstance(step, Leaf) or not _is_step(step) or site.accumulate is not None:
            return Reason("the op is no assignment with an accumulation or function immediately after it")
        same = _stepped(step, step.output)
        if same is None or same[0] != site.function or not _are_equal(same[1], site.inputs):
            return Reason(f"the op does not compute what the step of '{step.output.array.name}' does")
        if _shares(site.output, (step.output, *step.reads)) or _reads_beside(step):
            return Reason(f"the step accesses '{site.output.array.name}', or reads other elements of what it writes")
        if any(i.hints != j.hints for i, j in zip(site.reads, _accesses(same[1]), strict=True)):
            return Reason("the two ops read with different hints, of which some would be lost; clear them first")
        return None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        step = program.nest.next_sibling(site)
        assert isinstance(step, Leaf)
        term = Access(step.output.array, step.output.index, DictionaryAttr({}))
        copy = build_op(
            (site.output.array, site.output.index),
            [term],
            chain_ops(site),
            hints=[site.output.hints, DictionaryAttr({})],
            identifier=site.id,
        )
        rewriter.insert(copy, InsertPoint.after(step.op))
        rewriter.erase(site.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return ForwardSum().as_move(f"%{site.id}")


def _is_plain(leaf: Leaf) -> bool:
    """Whether a statement is a plain, synchronous assignment."""
    return leaf.function is None and leaf.accumulate is None and not leaf.asynchronous


def _is_copy(leaf: Leaf) -> bool:
    return _is_plain(leaf) and len(leaf.reads) == 1


def _shares(output: Access, reads: tuple[Access, ...]) -> bool:
    """Whether one of `reads` is in the memory of `output`."""
    return any(access.array.buffer is output.array.buffer for access in reads)


def _is_step(leaf: Leaf) -> bool:
    """Whether a statement accumulates, or assigns a function of an element's old value to it."""
    if leaf.accumulate is not None:
        return True
    return leaf.function is not None and any(access.key == leaf.output.key for access in leaf.reads)


def _reads_beside(step: Leaf) -> bool:
    """Whether a step reads the memory that it writes, but for the old value of a function."""
    others = step.reads
    if step.accumulate is None:
        others = tuple(access for access in others if access.key != step.output.key)
    return _shares(step.output, others)


def _stepped(step: Leaf, old: Input) -> tuple[str, list[Input]] | None:
    """A step as a function of the old value and the terms; None if that is not one operation."""
    if step.accumulate is None:
        return None if step.function is None else (step.function, list(step.inputs))
    if isinstance(old, Access):
        old = Access(old.array, old.index, DictionaryAttr({}))
    if step.contracted:
        return "math.fma", [*step.inputs, old]
    if step.function is None:
        return step.accumulate, [old, *step.inputs]
    return None


def _accumulating(leaf: Leaf) -> tuple[Input, str, list[Input]] | None:
    """First value, accumulation and terms of an assignment by a function that can accumulate; else None."""
    dtype = leaf.output.array.dtype
    if leaf.function == "math.fma" and accumulates("arith.addf", dtype):
        return leaf.inputs[2], "arith.addf", list(leaf.inputs[:2])
    if leaf.function is not None and leaf.function in ACCUMULATIONS and accumulates(leaf.function, dtype):
        return leaf.inputs[0], leaf.function, [leaf.inputs[1]]
    return None


def _assignment(step: Leaf, output: Access, old: Input, identifier: str) -> StatementOp:
    """A statement that assigns `step` applied to `old` to an element."""
    found = _stepped(step, step.output)
    assert found is not None
    function, inputs = found
    if step.accumulate is not None:
        inputs = [*inputs[:-1], old] if step.contracted else [old, *inputs[1:]]
    return build_op(
        (output.array, output.index),
        inputs,
        chain_ops(step),
        function=function,
        hints=[output.hints, *_hints(*inputs)],
        identifier=identifier,
    )


def _accumulation(leaf: Leaf, output: Access, accumulate: str, terms: list[Input], identifier: str) -> StatementOp:
    return build_op(
        (output.array, output.index),
        terms,
        chain_ops(leaf),
        function="arith.mulf" if len(terms) > 1 else None,
        accumulate=accumulate,
        hints=[output.hints, *_hints(*terms)],
        identifier=identifier,
        contracted=len(terms) > 1,
    )


def _accesses(inputs: list[Input]) -> list[Access]:
    return [i for i in inputs if isinstance(i, Access)]


def _hints(*inputs: Input) -> list[DictionaryAttr]:
    return [access.hints for access in _accesses(list(inputs))]


def _are_equal(first: list[Input], second: tuple[Input, ...] | list[Input]) -> bool:
    """Whether two statements read the same inputs, ignoring hints; the two zeros are different."""
    if len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(
        i.key == j.key if isinstance(i, Access) and isinstance(j, Access) else type(i) is type(j) and repr(i) == repr(j)
        for i, j in pairs
    )
