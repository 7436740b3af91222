"""From handles to a kernel: interface, declarations and nests as operations of the dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from pdojo.build.array import Array, define, is_whole
from pdojo.build.graph import (
    Computed,
    Definition,
    Indices,
    Loop,
    Operand,
    Read,
    Write,
    dtype_of,
    expressions,
    identity,
)
from pdojo.build.plan import Plan, index_ranges, needed, plan
from pdojo.build.sizes import expression_of, greatest, is_open
from pdojo.dialect.affine import Expr, IndexArray, Size, var
from pdojo.dialect.attributes import Intent, Memory, Numerics
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.element_types import is_float
from pdojo.dialect.functions import byte_width
from pdojo.dialect.index_maps import memref_of, shape_map
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.dialect.names import name_problem
from pdojo.dialect.ops import BufferOp, KernelOp, ScopeOp
from pdojo.dialect.rewriting import build_op, place_guards, set_guard
from pdojo.dialect.table import Table
from pdojo.dialect.view import nest as view
from pdojo.errors import UsageError, did_you_mean


def kernel(
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[Array] | Mapping[str, Array],
    *,
    numerics: Sequence[str] | None = None,
) -> KernelOp:
    """The kernel that computes `outputs` from `inputs`, its arguments in this order.

    `inputs` are results of `build.input`. `outputs` are named by a mapping; in a sequence they are `y`, `y1` ...
    `numerics` are the classes of docs/numerics.md that moves may use; None is the default.

    >>> from pdojo import build
    >>> from pdojo.dialect.notation import print_notation
    >>> x = build.input("x", "f32", (4, 8))
    >>> print(print_notation(build.kernel("total", [x], {"s": build.sum(x * x, axis=-1)})))
    kernel total(x) -> (s)
    x f32 [4, 8] heap
    s f32 [4] heap
    p f32 [4, 8] heap
    <BLANKLINE>
    4 8 p[{0},{1}] = x[{0},{1}] * x[{0},{1}]
    4
    | s[{0}] = 0
    | 8 s[{0}] += p[{0},{1}]
    <BLANKLINE>
    """
    for definition in repeated_inputs(_listed(outputs)):
        raise UsageError(
            f"kernel '{name}': elements of input '{definition.name}' are indices of axes of several lengths, or read "
            "in several ways; pass them as several inputs"
        )
    return kernel_with_repeats(name, inputs, outputs, numerics=numerics)


def repeated_inputs(outputs: Sequence[Array]) -> list[Definition]:
    """The inputs whose elements are indices with several ranges: again for each range but the first."""
    return [each for each, tables in index_ranges([output.operand for output in outputs]).items() for _ in tables[1:]]


def _listed(outputs: Sequence[Array] | Mapping[str, Array]) -> Sequence[Array]:
    return [*outputs.values()] if isinstance(outputs, Mapping) else outputs


def kernel_with_repeats(
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[Array] | Mapping[str, Array],
    *,
    numerics: Sequence[str] | None = None,
) -> KernelOp:
    """The kernel that `kernel` makes, with the arguments `repeated_inputs(outputs)` after the inputs."""
    given = {definition.name: definition for definition in [_input(array) for array in inputs]}
    wanted = _named(outputs, given)
    _check_names(name, inputs, wanted)
    results: dict[Definition, str] = {}
    for title, array in wanted.items():
        results[_result(title, array, results)] = title
    for definition in needed(results):
        if definition.is_input and definition not in given.values():
            raise UsageError(f"kernel '{name}' reads input '{definition.name}', which is not among its inputs")
        if not definition.is_input and not definition.writes:
            raise UsageError(f"kernel '{name}' reads a state or an element of a scan outside of its step")
    made = _Kernel(name, given, results, _classes(numerics))
    return made.of(plan(results))


def _input(array: Array) -> Definition:
    if not isinstance(array.operand, Read) or not is_whole(array) or not array.operand.definition.is_input:
        raise UsageError(f"inputs are results of build.input, and {array!r} is a view, or computed")
    _check_size("input", array.operand.definition.name, array)
    return array.operand.definition


def _named(outputs: Sequence[Array] | Mapping[str, Array], given: Mapping[str, Definition]) -> dict[str, Array]:
    if isinstance(outputs, Mapping):
        return dict(outputs)
    taken = dict.fromkeys(given)
    return {_fresh("y", taken): array for array in outputs}


def _fresh(name: str, taken: dict[str, None]) -> str:
    """`name`, or the first of `name1`, `name2` ... that is not in `taken`, which it joins."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}{number}"
    taken[found] = None
    return found


def _check_names(name: str, inputs: Sequence[Array], wanted: Mapping[str, Array]) -> None:
    interface = [*[_input(array).name for array in inputs], *wanted]
    for title in (name, *interface):
        problem = name_problem(title)
        if problem is not None:
            raise UsageError(problem)
    for title in interface:
        if interface.count(title) > 1:
            raise UsageError(f"kernel '{name}' has two arrays '{title}'")
    if not wanted:
        raise UsageError(f"kernel '{name}' has no outputs")


def _check_size(role: str, title: str, array: Array) -> None:
    if not array.size:
        raise UsageError(f"{role} '{title}' has no elements; the arrays of a kernel have at least one")


def _result(title: str, array: Array, taken: Mapping[Definition, str]) -> Definition:
    """The definition of an output: the array's own, or a copy."""
    _check_size("output", title, array)
    operand = array.operand
    if isinstance(operand, Read):
        own = operand.definition
        if is_whole(array) and not own.is_input and own not in taken:
            return own
    copy = define(array.dtype, array.shape, Write(array.shape, identity(array.shape), operand)).operand
    assert isinstance(copy, Read)
    return copy.definition


def _classes(numerics: Sequence[str] | None) -> list[Numerics] | None:
    known = [each.value for each in Numerics]
    for each in numerics or ():
        if each not in known:
            raise UsageError(f"'{each}' is no numerics class; {did_you_mean(each, known)}")
    return None if numerics is None else [Numerics(each) for each in numerics]


_LETTERS = {
    **{
        "arith.addf": "s",
        "arith.addi": "s",
        "arith.mulf": "p",
        "arith.muli": "p",
        "arith.subf": "d",
        "arith.subi": "d",
    },
    **{"arith.divf": "q", "arith.maximumf": "m", "arith.minimumf": "m", "math.exp": "e", "math.rsqrt": "r"},
    **{"math.sqrt": "r", "arith.select": "w", "math.log": "l", "arith.negf": "n", "math.tanh": "h", "math.erf": "f"},
}


def _letter(write: Write) -> str:
    """The name of the array that a nest writes, before numbers tell equal ones apart."""
    function = write.value.function if isinstance(write.value, Computed) else ""
    if write.reduction is not None:
        function = write.reduction.accumulate
    if ".cmp" in function:
        return "c"
    return _LETTERS.get(function, "u" if not function or "ext" in function or "tofp" in function else "v")


def _in_order(writes: Mapping[Definition, Sequence[Write]]) -> list[tuple[Definition, Write]]:
    """The nests in the order of execution: those of a loop together, after those that compute its initial states."""
    rows = [(definition, write) for definition, nests in writes.items() for write in nests]
    for loop in dict.fromkeys(write.loop for _, write in rows if write.loop is not None):
        within = [k for k, (_, write) in enumerate(rows) if write.loop is loop]
        span = rows[within[0] : within[-1] + 1]
        rows[within[0] : within[-1] + 1] = sorted(span, key=lambda row: row[1].loop is loop)
    return rows


def _ends(extents: Sequence[int], depths: Iterable[int]) -> list[Expr]:
    """The guards of the scopes whose extents depend on sizes."""
    return [expression_of(extents[d]) - var(d) - 1 for d in depths if is_open([extents[d]])]


@dataclass
class _Kernel:
    """The operations of one kernel while they are made."""

    name: str
    inputs: Mapping[str, Definition]
    results: Mapping[Definition, str]
    numerics: Sequence[Numerics] | None
    names: dict[str, None] = field(default_factory=dict[str, None])
    arrays: dict[Definition, view.Array] = field(default_factory=dict[Definition, view.Array])
    buffers: list[BufferOp] = field(default_factory=list[BufferOp])
    extents: tuple[int, ...] = ()
    """The extents of the scopes of the present nest."""

    def of(self, made: Plan) -> KernelOp:
        """The kernel with the nests of a plan, verified."""
        sizes = self._sizes(made)
        for title in (*self.inputs, *self.results.values(), *[size.name for size in sizes]):
            if title in self.names:
                raise UsageError(f"kernel '{self.name}': '{title}' is a size and an array")
            self.names[title] = None
        tables, indices = self._tables(made), self._indices()
        repeats = {table.name: origin.definition for origin, table in indices.items() if table.name != origin.name}
        rows = [(d, title, Intent.IN) for title, d in (*self.inputs.items(), *repeats.items())]
        rows += [(d, title, Intent.OUT) for d, title in self.results.items()]
        extents = [tuple(map(expression_of, d.shape)) for d, _, _ in rows]
        arguments = [
            (title, intent, memref_of(d.dtype, e, d.strides))
            for (d, title, intent), e in zip(rows, extents, strict=True)
        ]
        constants = [title for definition, title, _ in rows if definition.constant]
        kernel = KernelOp(
            self.name,
            arguments,
            numerics=self.numerics,
            tables=list(tables.values()),
            constants=constants,
            sizes=sizes,
            extents=[shape_map(each, sizes) for each in extents],
            indices=[*indices.values()],
        )
        for (definition, title, intent), value in zip(rows, kernel.body.block.args, strict=True):
            width = byte_width(definition.dtype)
            box, reuse = greatest(definition.shape), (0,) * len(definition.shape)
            buffer = view.Buffer((title,), definition.dtype, box, reuse, Memory.HEAP, intent, None, width)
            self.arrays.setdefault(definition, view.Array(title, buffer, value))
        nests: list[tuple[list[ScopeOp], Write]] = []
        loops: dict[Loop, ScopeOp] = {}
        body = Block()
        for definition, plain in _in_order(made.writes):
            write = plain.with_tables({**tables, **indices})
            nests.append((self._nest(body, self._array(definition, made), write, loops), write))
        kernel.body.block.add_ops(self.buffers)
        for operation in tuple(body.ops):
            operation.detach()
            kernel.body.block.add_op(operation)
        rewriter = PatternRewriter(InsertPoint.at_end(kernel.body.block))
        for chain, write in nests:
            # Constant guards hold for all iterations, and there may be no scope for them.
            first = int(write.loop is not None)
            guard = [each for each in write.guard if not (each.is_constant and each.constant >= 0)]
            guard += _ends(write.extents, range(first, len(chain)))
            if guard:
                place_guards(guard, chain, range(first, len(chain)), rewriter)
        canonicalize(kernel)
        try:
            kernel.verify()
        except VerifyException as error:
            raise UsageError(f"kernel '{self.name}': {error}") from None
        return kernel

    def _sizes(self, made: Plan) -> list[Size]:
        """The sizes of the kernel, in the order in which arguments and nests have them first."""
        shapes = [each.shape for each in (*self.inputs.values(), *self.results)]
        nests = [nest for writes in made.writes.values() for nest in writes]
        shown = [expression_of(extent) for shape in (*shapes, *(nest.extents for nest in nests)) for extent in shape]
        shown += [each for nest in nests for each in expressions(nest)]
        found = list(dict.fromkeys(size for each in shown for size in sizes_in([each])))
        for size in found:
            if any(each.name == size.name and each != size for each in found):
                raise UsageError(f"kernel '{self.name}' has two sizes '{size.name}' with different ranges")
        return found

    def _indices(self) -> dict[Indices, IndexArray]:
        """The ranges of inputs whose elements are indices, and the arguments that have one range each."""
        found: dict[Indices, IndexArray] = {}
        for tables in index_ranges([Read(each, identity(each.shape)) for each in self.results]).values():
            for number, each in enumerate(tables):
                title = _fresh(each.name, self.names) if number else each.name
                found[each] = IndexArray(title, each.dtype, each.extents, each.low, each.last, each.outside)
        return found

    def _tables(self, made: Plan) -> dict[Table, Table]:
        """The tables that nests look up, and the same ones with names of their own."""
        found = (each.table for nests in made.writes.values() for w in nests for each in lookups_in(expressions(w)))
        used = dict.fromkeys(table for table in found if isinstance(table, Table))
        return {table: Table(_fresh(table.name, self.names), table.entries) for table in used}

    def _array(self, definition: Definition, made: Plan) -> view.Array:
        """The array of a definition, declared if it is a temporary with memory of its own."""
        if definition in made.hosts:
            self.arrays[definition] = self.arrays[made.hosts[definition]]
        elif definition not in self.arrays:
            letter = _letter(made.writes[definition][-1])
            self.arrays[definition] = self._declared(letter, definition.dtype, definition.shape, Memory.HEAP)
        return self.arrays[definition]

    def _declared(self, letter: str, dtype: str, shape: Sequence[int], memory: Memory) -> view.Array:
        """A new temporary; one on the stack takes a single slot."""
        name = _fresh(letter, self.names)
        slots = (int(memory is Memory.STACK),) * len(shape)
        op = BufferOp.of([name], dtype, [expression_of(extent) for extent in shape], memory, slots)
        self.buffers.append(op)
        width = byte_width(dtype)
        buffer = view.Buffer((name,), dtype, greatest(shape), slots, memory, None, op, width)
        return view.Array(name, buffer, op.arrays[0])

    def _nest(self, body: Block, array: view.Array, write: Write, loops: dict[Loop, ScopeOp]) -> list[ScopeOp]:
        """Add a nest to `body`; returns its scopes, outermost first."""
        chain: list[ScopeOp] = []
        block, self.extents = body, write.extents
        if write.loop in loops:
            chain.append(loops[write.loop])
            block = chain[0].body.block
        block = self._scopes(block, chain, write.extents[len(chain) : write.outer])
        if write.loop is not None and write.loop not in loops:
            loops[write.loop] = chain[0]
            set_guard(chain[0], _ends(write.extents, [0]), chain[:1], PatternRewriter(chain[0]))
        reduction = write.reduction
        if reduction is None:
            value = write.value if write.joins is None else self._summand(block, chain, write.value)
            self._statement(block, chain, (array, write.target), value, write.joins)
            return chain
        sums, cell = array, write.target
        if reduction.running:
            cell = tuple(var(depth) for depth in range(write.outer))
            sums = self._declared("s", array.dtype, write.extents[: write.outer], Memory.HEAP)
        self._statement(block, chain, (sums, cell), reduction.initial)
        block = self._scopes(block, chain, write.extents[write.outer :])
        if reduction.exclusive:
            block.add_op(build_op((array, write.target), [view.Access(sums, cell)], chain))
        self._statement(block, chain, (sums, cell), self._summand(block, chain, write.value), reduction.accumulate)
        if reduction.running and not reduction.exclusive:
            block.add_op(build_op((array, write.target), [view.Access(sums, cell)], chain))
        return chain

    def _scopes(self, block: Block, chain: list[ScopeOp], extents: Sequence[int]) -> Block:
        """Nest scopes into `block`, adding them to `chain`; returns the innermost block."""
        for extent in extents:
            (count,) = greatest([extent])
            scope = ScopeOp(count)
            block.add_op(scope)
            chain.append(scope)
            block = scope.body.block
        return block

    def _summand(self, block: Block, chain: Sequence[ScopeOp], value: Operand) -> Operand | view.Access:
        """The operand of a reduction: products of floating-point numbers are rounded, in a temporary."""
        return self._operand(block, chain, value) if is_float(dtype_of(value)) else value

    def _statement(
        self,
        block: Block,
        chain: Sequence[ScopeOp],
        output: tuple[view.Array, Sequence[Expr]],
        value: Operand | view.Access,
        accumulate: str | None = None,
    ) -> None:
        """Add `output = value` to `block`, which is in the innermost scope of `chain`."""
        operands = value.operands if isinstance(value, Computed) else (value,)
        inputs = [self._operand(block, chain, operand) for operand in operands]
        function = value.function if isinstance(value, Computed) else None
        op: Operation = build_op(output, inputs, chain, function=function, accumulate=accumulate)
        block.add_op(op)

    def _operand(self, block: Block, chain: Sequence[ScopeOp], operand: Operand | view.Access) -> view.Input:
        """The operand of a statement; a function application is computed before, in a temporary on the stack."""
        match operand:
            case Read(definition, index):
                return view.Access(self.arrays[definition], index)
            case Computed(_, _, dtype):
                index = tuple(var(depth) for depth in range(len(chain)))
                temporary = self._declared("t", dtype, self.extents[: len(chain)], Memory.STACK)
                self._statement(block, chain, (temporary, index), operand)
                return view.Access(temporary, index)
            case _:
                return operand
