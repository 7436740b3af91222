"""Verification of a kernel's operations, before there is a view: declarations, scopes, maps."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, DictionaryAttr, IndexType, NoneAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineConstraintKind, AffineDimExpr, AffineExpr

from pdojo.dialect.affine import Expr, IndexArray, Size, const
from pdojo.dialect.affine_maps import from_affine
from pdojo.dialect.attributes import IndexValueAttr, Intent, LookupAttr, Memory
from pdojo.dialect.exception import fail
from pdojo.dialect.functions import is_element_type
from pdojo.dialect.hints import hint_problem
from pdojo.dialect.index_maps import dense, is_strided, strides_of
from pdojo.dialect.names import is_machine_name, name_problem
from pdojo.dialect.narrowing import is_index_range, is_integer_type, is_memref, is_table, operands_of
from pdojo.dialect.ops import MOST_SCOPES, BufferOp, KernelOp, ScopeOp, StatementOp, Swizzle
from pdojo.dialect.ops.facts import size_of
from pdojo.dialect.reason import Reason
from pdojo.dialect.sizes import range_problem, size_problem
from pdojo.dialect.strides import Strides, strides_problem
from pdojo.dialect.syntax import names_of
from pdojo.dialect.table import MOST_ENTRIES, Outside, Table
from pdojo.dialect.text_limits import MOST_PARTS

LARGEST = 1 << 62
"""Exclusive bound of extents and of numbers in index expressions."""


def verify_interface(kernel: KernelOp) -> None:
    """Raise `KernelVerifyException` if the header is malformed: names, types, alignments, machine."""
    problem = name_problem(kernel.sym_name.data)
    if problem is not None:
        fail(kernel, f"kernel: {problem}")
    if kernel.machine is not None and not is_machine_name(kernel.machine.data):
        fail(
            kernel,
            f"machine {kernel.machine.data[:60]!r}: a kernel names a machine that is known; give a machine file to the "
            f"tool (--machine FILE), and its name to the kernel",
        )
    arguments = kernel.body.block.args
    names = names_of(kernel.arg_names)
    if not len(arguments) == len(names) == len(kernel.arg_intents.data):
        fail(kernel, f"kernel has {len(arguments)} arguments but {len(names)} names")
    if kernel.arg_alignments is not None and len(kernel.arg_alignments.data) != len(names):
        fail(kernel, f"kernel has {len(names)} arguments but {len(kernel.arg_alignments.data)} alignments")
    _verify_sizes(kernel)
    maps, sizes = kernel.arg_extents, [*kernel.known_sizes().values()]
    if maps is not None and len(maps.data) != len(names):
        fail(kernel, f"kernel has {len(names)} arguments but the extents of {len(maps.data)}")
    for position, (name, argument) in enumerate(zip(names, arguments, strict=True)):
        _verify_array_type(kernel, name, argument, None if maps is None else (maps.data[position], sizes))
    inputs = {name for name, intent in zip(names, kernel.arg_intents.data, strict=True) if intent.data is Intent.IN}
    for name in kernel.constant_names:
        if name not in inputs:
            fail(kernel, f"array '{name}' is constant, but no input of the kernel")
    _verify_tables(kernel)
    _verify_indices(kernel, dict(zip(names, arguments, strict=True)), inputs)
    _verify_unique(kernel, [*names, *kernel.known_tables(), *kernel.known_sizes()])


def _verify_sizes(kernel: KernelOp) -> None:
    for name, numbers in kernel.sizes.data.items() if kernel.sizes is not None else ():
        if not is_table(numbers) or len(numbers) != 3:
            fail(kernel, f"size '{name}' must be its least value, its greatest value and its step: array<i64: 1, 8, 1>")
        size = size_of(name, numbers)
        if (problem := size_problem(size)) is not None:
            fail(kernel, problem)
        if size.high >= LARGEST:
            fail(kernel, f"size '{name}' reaches {size.high}, which is at least 2^62")


def _kernel_around(operation: Operation) -> KernelOp | None:
    """The kernel around an operation and its scopes; None if there is none."""
    around = operation.parent_op()
    while isinstance(around, ScopeOp):
        around = around.parent_op()
    return around if isinstance(around, KernelOp) else None


def _named_sizes(operation: BufferOp | ScopeOp | StatementOp) -> list[Size]:
    """The sizes that an operation's symbols stand for; fails for a name that is no size of the kernel."""
    names = () if "sizes" not in operation.properties or operation.sizes is None else names_of(operation.sizes)
    if not names:
        return []
    kernel = _kernel_around(operation)
    known = {} if kernel is None else kernel.known_sizes()
    for name in names:
        if name not in known:
            fail(operation, f"the kernel has no size '{name}'; its sizes: {', '.join(known) or 'none'}")
    return [known[name] for name in names]


def _verify_tables(kernel: KernelOp) -> None:
    for name, entries in kernel.tables.data.items() if kernel.tables is not None else ():
        if not is_table(entries) or not len(entries):
            fail(kernel, f"table '{name}' must be an array of entries: array<i64: 7, 0, 7>")
        if len(entries) > MOST_ENTRIES:
            fail(kernel, f"table '{name}' has {len(entries)} entries; at most {MOST_ENTRIES} are analysed")
        if any(not 0 <= int(entry) < LARGEST for entry in entries.get_values()):
            fail(kernel, f"table '{name}' has an entry that is negative or at least 2^62")


def _verify_indices(kernel: KernelOp, arrays: Mapping[str, SSAValue], inputs: Container[str]) -> None:
    for name, said in kernel.indices.data.items() if kernel.indices is not None else ():
        if name not in inputs:
            fail(kernel, f"only an input has a range of indices, and '{name}' is none")
        kind = arrays[name].type
        element = kind.element_type if is_memref(kind) else kind
        if not is_integer_type(element) or element.width.data == 1:
            fail(kernel, f"array '{name}' has a range of indices, which are integers, and the type {element}")
        known = [each.value for each in Outside]
        if not is_index_range(said) or said.data[2].data not in known or not _is_bound(kernel, said.data[1]):
            fail(
                kernel,
                f'indices of \'{name}\' have a least value, a map of the sizes to the greatest one, and "", "clamp" or '
                f'"wrap": [0, affine_map<() -> (9)>, ""]',
            )
        if (problem := range_problem(kernel.index_arrays()[name])) is not None:
            fail(kernel, problem)


def _is_bound(kernel: KernelOp, bound: AffineMapAttr) -> bool:
    """Whether a map gives one number for sizes."""
    data = bound.data
    return len(data.results) == 1 and not data.num_dims and data.num_symbols == len(kernel.known_sizes())


def _verify_unique(kernel: KernelOp, interface: Iterable[str]) -> None:
    seen: set[str] = set()
    operations: list[Operation] = [kernel, *kernel.guests(), *kernel.buffers()]
    for operation in operations:
        for name in names_of(operation.array_names) if isinstance(operation, BufferOp) else interface:
            if name in seen:
                fail(operation, f"array '{name}' is declared twice")
            problem = name_problem(name)
            if problem is not None:
                fail(operation, f"array: {problem}")
            seen.add(name)


def _extents(
    operation: Operation, name: str, shape: Sequence[int], extents: tuple[AffineMapAttr, Sequence[Size]] | None
) -> list[Expr]:
    """The extents of an array as expressions of sizes; fails if the type and the map do not fit."""
    if extents is None:
        if DYNAMIC_INDEX in shape:
            fail(operation, f"array '{name}' has the extent '?', but the kernel says no size for it")
        return [const(extent) for extent in shape]
    (found, sizes) = extents
    known = found.data
    if known.num_dims or known.num_symbols != len(sizes) or len(known.results) != len(shape):
        fail(operation, f"the extents of array '{name}' are one expression per dimension over {len(sizes)} sizes")
    symbols = [size.expression for size in sizes]
    try:
        expressions = [from_affine(each, (), (), symbols) for each in known.results]
    except ValueError as error:
        fail(operation, f"the extents of array '{name}': {error}")
    for expression, extent in zip(expressions, shape, strict=True):
        if (expression.constant if expression.is_constant else DYNAMIC_INDEX) != extent:
            fail(operation, f"the type of array '{name}' has the extent {extent} for {expression.render(str)}")
    return expressions


def _verify_array_type(
    operation: Operation,
    name: str,
    array: SSAValue,
    extents_map: tuple[AffineMapAttr, Sequence[Size]] | None = None,
) -> None:
    if not is_memref(array.type):
        fail(operation, f"array '{name}' must be a memref, not {array.type}")
    if not is_element_type(array.type.element_type):
        fail(
            operation,
            f"array '{name}' has element type {array.type.element_type}; known are f64 f32 f16 bf16 i64 i32 i16 i8 i1",
        )
    shape = array.type.get_shape()
    extents = _extents(operation, name, shape, extents_map)
    if any(extent.bounds(())[0] < 1 for extent in extents):
        spelled = ", ".join(extent.render(str) for extent in extents)
        fail(operation, f"array '{name}' needs extents of at least 1, not [{spelled}]")
    if prod(extent.bounds(())[1] for extent in extents) * 8 >= 1 << 63:
        fail(operation, f"array '{name}' of {list(shape)} elements is larger than any memory")
    layout = array.type.layout
    if isinstance(operation, KernelOp) and is_strided(layout):
        _verify_strides(operation, name, strides_of(array.type), [extent.bounds(())[1] for extent in extents])
    elif not isinstance(layout, NoneAttr):
        fail(
            operation,
            f"array '{name}' has the layout {layout}, which pdojo does not know: arrays are in row-major order, and "
            f"dense, but for interface arrays such as memref<?x8xf32, strided<[?, 1], offset: ?>>",
        )
    if not isinstance(array.type.memory_space, NoneAttr):
        fail(operation, f"array '{name}' has the memory space {array.type.memory_space}; write where a buffer lies")


def _verify_strides(kernel: KernelOp, name: str, strides: Strides, shape: Sequence[int]) -> None:
    intents = dict(zip(names_of(kernel.arg_names), kernel.arg_intents.data, strict=True))
    indices = () if kernel.indices is None else kernel.indices.data
    kind = "constant" if name in kernel.constant_names else "an array of indices" if name in indices else ""
    written = intents[name].data is not Intent.IN
    if (problem := strides_problem(shape, strides, written=written, kind=kind)) is not None:
        fail(kernel, f"strided array '{name}': {problem}")


def verify_body(kernel: KernelOp) -> None:
    """Raise `KernelVerifyException` if a declaration, a scope or a map is malformed."""
    verify_declarations(kernel)
    for operation in kernel.body.block.ops:
        if not isinstance(operation, BufferOp):
            _verify_structure(operation)


def verify_declarations(kernel: KernelOp, sound: Container[Operation] = ()) -> None:
    """Raise `KernelVerifyException` if a declaration is malformed; declarations in `sound` were accepted before."""
    declared = True
    position = -1
    for operation in kernel.body.block.ops:
        if isinstance(operation, BufferOp):
            if not declared:
                fail(operation, "buffers are declared before the first scope or op")
            if operation not in sound:
                _verify_buffer(operation)
            if operands_of(operation):
                position = _verify_guests(kernel, operation, position)
            else:
                position = len(kernel.arg_intents.data)
        else:
            declared = False
    if declared:
        fail(kernel, "kernel has no statements")


def _verify_buffer(buffer: BufferOp) -> None:
    names = names_of(buffer.array_names)
    if not names or len(names) != len(buffer.arrays):
        fail(buffer, f"buffer has {len(names)} names for {len(buffer.arrays)} arrays")
    extents = None if buffer.extents is None else (buffer.extents, _named_sizes(buffer))
    found = _extents(buffer, ", ".join(names), buffer.array_type.get_shape(), extents)
    greatest = [extent.bounds(())[1] for extent in found]
    for name, array in zip(names, buffer.arrays, strict=True):
        _verify_array_type(buffer, name, array, extents)
        if array.type != buffer.array_type:
            fail(buffer, f"array '{name}' has type {array.type}; arrays of one buffer have one type")
    if buffer.reuse is not None and len(buffer.reuse.data) != len(buffer.array_type.get_shape()):
        fail(buffer, f"buffer '{names[0]}' has numbers of slots for {len(buffer.reuse.data)} dimensions")
    _verify_swizzles(buffer, names[0])
    _verify_hints(buffer, buffer.hints)
    if buffer.constant is not None:
        problem = constancy_problem(buffer)
        if problem is not None or buffer.host is not None:
            fail(buffer, str(problem or f"'{names[0]}' lives in the caller's memory, so it is not constant"))
    for extent, slots in zip(greatest, buffer.slots, strict=True):
        if slots < 0 or (slots > 1 and slots >= extent):
            known = "a circular buffer has at least 2, and fewer than there are indices"
            fail(buffer, f"buffer '{names[0]}' has {slots} slots for {extent} indices; {known}")


def constancy_problem(buffer: BufferOp) -> Reason | None:
    """The reason why the array of a buffer with memory of its own cannot be constant; None if it can."""
    name = names_of(buffer.array_names)[0]
    if len(buffer.arrays) > 1:
        return Reason(f"'{name}' shares its memory with other arrays; a constant may not")
    if buffer.memory.data is not Memory.HEAP:
        return Reason(f"'{name}' is in {buffer.memory.data.value} memory; constants are on the heap")
    if buffer.reuse is not None:
        return Reason(f"dimensions of '{name}' are reused or folded; those of a constant are whole")
    if buffer.swizzle is not None:
        return Reason(f"dimensions of '{name}' are swizzled; those of a constant are not")
    return Reason(f"'{name}' has hints; a constant has none") if buffer.hints is not None else None


def _verify_swizzles(buffer: BufferOp, name: str) -> None:
    swizzles, shape, slots = buffer.swizzles, buffer.array_type.get_shape(), buffer.slots
    for dimension, swizzle in swizzles.items():
        problem = swizzle_problem(shape, slots, dimension, swizzle)
        if problem is None and swizzle.by in swizzles:
            problem = f"dimension {swizzle.by} is swizzled itself"
        if problem is None and buffer.memory.data is Memory.REGISTER:
            problem = "registers have no addresses"
        if problem is None and buffer.host is not None:
            problem = "its memory is the caller's"
        if problem is not None:
            fail(buffer, f"dimension {dimension} of buffer '{name}' cannot be swizzled: {problem}")


def swizzle_problem(shape: Sequence[int], slots: Sequence[int], dimension: int, swizzle: Swizzle) -> Reason | None:
    """The reason why `swizzle` does not fit a dimension; None if it does. Extents that depend on sizes are negative."""
    by, granule = swizzle
    if not 0 <= by < len(shape) or by == dimension:
        return Reason("'by' must be another dimension")
    if slots[dimension] or slots[by]:
        return Reason(f"dimensions {dimension} and {by} must be whole, not reused or folded")
    if shape[dimension] < 0 or shape[by] < 0:
        return Reason(f"the extents of dimensions {dimension} and {by} must not depend on sizes")
    granules = shape[dimension] // max(granule, 1)
    if granule < 1 or shape[dimension] % granule or granules < 2 or granules & (granules - 1):
        return Reason(f"'granule' must divide the extent {shape[dimension]} into 2, 4, 8 ... granules")
    return None


def _verify_guests(kernel: KernelOp, guests: BufferOp, behind: int) -> int:
    """Check temporaries in an interface array: one declaration per array, in order, before all other buffers."""
    name = names_of(guests.array_names)[0]
    arguments = list(kernel.body.block.args)
    position = next((k for k, argument in enumerate(arguments) if argument is guests.host), None)
    if position is None or dense(arguments[position].type) != guests.array_type:
        fail(guests, f"array '{name}' can live in an interface array of its type only, not in another value")
    if kernel.arg_intents.data[position].data is Intent.IN:
        fail(guests, f"array '{name}' cannot live in '{names_of(kernel.arg_names)[position]}', an input of the kernel")
    if guests.memory.data is not Memory.HEAP or guests.reuse is not None:
        fail(guests, f"array '{name}' lives in the caller's memory, which is on the heap and not reused")
    if position <= behind:
        fail(guests, "arrays in interface arrays are declared first, in the order of these, one buffer for each")
    return position


def _verify_structure(operation: Operation, depth: int = 0) -> None:
    """Check that scopes are not empty or too deep, hold scopes and statements only, and maps use variables in scope."""
    verify_operation(operation, depth)
    if isinstance(operation, ScopeOp):
        for child in operation.body.block.ops:
            _verify_structure(child, depth + 1)


def verify_operation(operation: Operation, depth: int) -> None:
    """Raise `KernelVerifyException` if an operation inside `depth` scopes is malformed; children are not checked."""
    match operation:
        case ScopeOp():
            _verify_scope(operation, depth)
        case StatementOp():
            _verify_maps(operation)
        case _:
            fail(operation, f"'{operation.name}' cannot be part of a pdojo.kernel")


_ONE_INDEX = [IndexType()]


def _verify_scope(scope: ScopeOp, depth: int) -> None:
    count, block = scope.count, scope.block
    if not 1 <= count < LARGEST:
        fail(scope, f"a scope needs at least one iteration and fewer than 2^62, not {count}")
    if depth == MOST_SCOPES:
        fail(scope, f"scopes are nested more than {MOST_SCOPES} deep")
    if block.is_empty:
        fail(scope, f"scope of extent {count} is empty")
    if [a.type for a in block.args] != _ONE_INDEX:
        fail(scope, "a scope has one induction variable of type index")
    _verify_guard(scope)
    if "hints" in scope.properties:
        _verify_hints(scope, scope.hints)


def _verify_guard(scope: ScopeOp) -> None:
    variables = operands_of(scope)
    if "guard" in scope.properties and scope.guard is not None:
        lookups = () if "lookups" not in scope.properties or scope.lookups is None else scope.lookups.data
        dims, sizes = len(variables) + 1 + len(lookups), len(_named_sizes(scope))
        if scope.guard.data.num_dims != dims or scope.guard.data.num_symbols != sizes:
            known = "its operands, the own variable and its lookups, and its symbols its sizes"
            fail(scope, f"the guard's dimensions must be {known}")
        for number, each in enumerate(lookups):
            if each.map.data.num_dims != dims or each.map.data.num_symbols not in (0, sizes):
                fail(scope, f"{each.map} must have the dimensions and symbols of the guard")
            if isinstance(_verify_lookup(scope, each, len(variables) + 1 + number), Table):
                fail(scope, f"a guard may not read a table (here '{each.table.data}')")
        for constraint in scope.guard.data.constraints:
            if constraint.kind is not AffineConstraintKind.ge or constraint.rhs != AffineExpr.constant(0):
                fail(scope, "a guard is a conjunction of 'expression >= 0'")
            _verify_expression(scope, constraint.lhs)
    _verify_variables(scope, variables)


def _verify_hints(operation: Operation, hints: DictionaryAttr | None) -> None:
    for name, value in () if hints is None else hints.data.items():
        problem = hint_problem(name, value)
        if problem is not None:
            fail(operation, problem)


def _verify_variables(operation: Operation, variables: Sequence[SSAValue]) -> None:
    if not variables:
        return
    enclosing: list[SSAValue] = []
    around = operation.parent_op()
    while isinstance(around, ScopeOp):
        enclosing += around.block.args
        around = around.parent_op()
    # Comparing a few values by identity is faster than hashing them.
    if any(all(known is not variable for known in enclosing) for variable in variables):
        fail(operation, "index expressions use induction variables of enclosing scopes only")


def _verify_maps(op: StatementOp) -> None:
    inputs, hints = op.inputs.data, op.hints if "hints" in op.properties else None
    output, read, ivs = op.operand_groups
    _verify_variables(op, ivs)
    lookups = [] if "lookups" not in op.properties or op.lookups is None else list(op.lookups.data)
    maps = [op.output_map, *(m for m in inputs if isinstance(m, AffineMapAttr))]
    arrays = [output, *read]
    if len(maps) != len(arrays):
        fail(op, f"op has {len(maps) - 1} accesses among its inputs but {len(arrays) - 1} arrays")
    if hints is not None and len(hints.data) != len(arrays):
        fail(op, f"op has hints for {len(hints.data)} of its {len(arrays)} accesses")
    for each in () if hints is None else hints.data:
        _verify_hints(op, each)
    sizes = _named_sizes(op)
    values = [i.map for i in inputs if isinstance(i, IndexValueAttr)]
    for index_map in (*maps, *values, *(each.map for each in lookups)):
        if index_map.data.num_dims != len(ivs) + len(lookups) or index_map.data.num_symbols not in (0, len(sizes)):
            known = "one dimension per induction variable and lookup of the op, and one symbol per size"
            fail(op, f"{index_map} must have {known}")
        for expression in index_map.data.results:
            _verify_expression(op, expression)
    for array, index_map in zip(arrays, maps, strict=True):
        assert is_memref(array.type)
        rank = array.type.get_num_dims()
        if len(index_map.data.results) != rank:
            fail(op, f"access has {len(index_map.data.results)} indices for an array of {rank} dimensions")
    for number, each in enumerate(lookups):
        _verify_lookup(op, each, len(ivs) + number)


def _verify_lookup(op: ScopeOp | StatementOp, lookup: LookupAttr, dims: int) -> Table | IndexArray:
    """Check that a lookup names a table or an array of indices of the kernel, and uses dimensions below `dims` only."""
    kernel, name, places = _kernel_around(op), lookup.table.data, lookup.map.data.results
    known = {} if kernel is None else {**kernel.known_tables(), **kernel.index_arrays()}
    if name not in known:
        fail(
            op,
            f"indirection is not supported: an index may read tables, and inputs with a range of indices, and '{name}' "
            f"is neither",
        )
    table = known[name]
    rank = len(table.extents) if isinstance(table, IndexArray) else 1
    if len(places) != rank or any(d >= dims for place in places for d in place.used_dims()):
        fail(
            op,
            f"a lookup in '{name}' has {rank} place{'s' * (rank != 1)}, of variables and earlier lookups only",
        )
    place = places[0] if isinstance(table, Table) else None
    if isinstance(place, AffineConstantExpr) and not 0 <= place.value < len(table.known.entries):
        fail(op, f"table '{name}' has no entry {place.value}")
    return table


def _verify_expression(operation: Operation, expression: AffineExpr) -> None:
    """Check that an expression is small enough for recursion, and its numbers for integers of generated code."""
    parts, seen = [expression], 0
    while parts:
        part = parts.pop()
        seen += 1
        if isinstance(part, AffineDimExpr) and seen <= 2 * MOST_PARTS:
            continue
        if isinstance(part, AffineBinaryOpExpr):
            parts += (part.lhs, part.rhs)
        if seen > 2 * MOST_PARTS:
            fail(operation, f"an index expression has more than {MOST_PARTS} parts")
        if isinstance(part, AffineConstantExpr) and abs(part.value) >= LARGEST:
            fail(operation, f"{part.value} is too large for an index expression, which stays below 2^62")
