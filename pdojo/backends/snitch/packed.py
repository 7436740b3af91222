"""Packed statements: two f32 or four f16 at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, cast

from pdojo.backends.common.addresses import address_of, bind, known_alignment
from pdojo.backends.common.walk import lanes_together
from pdojo.backends.snitch.cells import WORD, is_contiguous
from pdojo.backends.snitch.code import Register
from pdojo.backends.snitch.functions import has_instruction, instruction_operands
from pdojo.backends.snitch.numbers import SUFFIX
from pdojo.backends.snitch.packed_functions import emit_packed_function, has_packed_recipe
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.hardware_loops import exact_reciprocal, replicated_input
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.rules.streams import DIVISIONS
from pdojo.dialect.view.nest import Access, Buffer, Constant, Input, Leaf
from pdojo.dialect.view.storage import physical_index, stride_divisors
from pdojo.math.functions import FUNCTIONS, FUSED

if TYPE_CHECKING:
    from pdojo.backends.snitch.statement import Statements


def packs(leaf: Leaf, *, loses_nan: bool, divides: bool, alignment: Callable[[Buffer], int]) -> bool:
    """Whether packed instructions can compute a statement in a vector scope.

    `loses_nan` says whether a maximum of NaN and a number may be the number, as the instruction gives it; `divides`
    whether there is a divider; `alignment` returns the alignment of a buffer's start in bytes.
    """
    lanes, dtype = leaf.chain[-1], leaf.output.array.dtype
    if lanes.guard or dtype not in ("f32", "f16") or byte_width(dtype) * lanes.extent != WORD:
        return False
    if not all(_has_code(f, dtype, loses_nan=loses_nan, divides=divides) for f in (leaf.function, leaf.accumulate)):
        return False
    for value in leaf.inputs:
        if isinstance(value, Access):
            if value.array.dtype != dtype:
                return False
            if not (is_whole(value, leaf, alignment) or _is_uniform(value, leaf) or _is_joined(value)):
                return False
        elif not isinstance(value, Constant):
            return False
    if is_whole(leaf.output, leaf, alignment):
        return True
    # A reduction over the lanes is a tree, but fused products would form a chain.
    return leaf.accumulate is not None and not leaf.contracted and _is_uniform(leaf.output, leaf)


def _has_code(function: str | None, dtype: str, *, loses_nan: bool, divides: bool) -> bool:
    """Whether a function is one packed instruction, or has a packed recipe."""
    if function is None or has_instruction(function, loses_nan=loses_nan):
        return True
    return dtype == "f32" and divides and has_packed_recipe(function)


def is_whole(access: Access, leaf: Leaf, alignment: Callable[[Buffer], int]) -> bool:
    """Whether an access's lanes are an aligned word of a buffer."""
    buffer = access.array.buffer
    if buffer.swizzles or any(slots > 1 for slots in buffer.reuse):
        return False
    index, width, steps = physical_index(access, leaf.chain), byte_width(buffer.dtype), stride_divisors(buffer)
    outer = len(steps)
    if any(e.uses(leaf.chain[-1].depth) for e in index[:outer]) or any(step * width % WORD for step in steps):
        return False
    lanes = leaf.chain[-1]

    def extent(dimension: int, others: int) -> int:
        if not buffer.reuse[dimension]:
            return buffer.shape[dimension]
        return lanes.extent if index[dimension].uses(lanes.depth) else others

    # Other reused dimensions have one slot, or one for each lane if the lanes of another statement index them.
    shapes = ([extent(d, others) for d in range(len(buffer.shape))] for others in (1, lanes.extent))
    addresses = (linear_address(index[outer:], shape[outer:]) for shape in shapes)
    return all(is_contiguous(address, leaf, width, alignment(buffer)) for address in addresses)


def _is_uniform(access: Access, leaf: Leaf) -> bool:
    return not any(e.uses(leaf.chain[-1].depth) for e in access.index)


def _is_joined(access: Access) -> bool:
    """Whether the lanes may be loaded one by one: from memory, and if one instruction packs them."""
    return access.array.dtype == "f32" and access.array.buffer.memory is not Memory.REGISTER


class Packed:
    """Emits packed statements."""

    def __init__(self, statements: Statements) -> None:
        """`statements` emits scalar parts."""
        self.statements = statements
        self.code = statements.code
        self.read: dict[Hashable, Register] = {}
        """Values that the statement has read; equal reads become one."""
        self.replicates = False
        """Whether the instruction replicates its last operand, a single number, to all lanes."""

    def emit(self, leaf: Leaf) -> None:
        """Append a statement for all lanes."""
        lanes, statements = leaf.chain[-1], self.statements
        statements.known[lanes.depth] = 0
        is_sum = _is_uniform(leaf.output, leaf)
        target = None if is_sum else self._target(leaf)
        operands = self._operands(leaf, target)
        statements.functions.outliers.before_reads(operands)
        if is_sum:
            self._sum(leaf, operands)
        else:
            self._whole(leaf, operands, target)
        del statements.known[lanes.depth]

    def _operands(self, leaf: Leaf, target: Register | None) -> list[Register]:
        """The operands; a replicated one is last. A plain copy's value is in `target` if an instruction computes it."""
        replicated = replicated_input(leaf)
        self.replicates = replicated is not None and (leaf.function is not None or leaf.accumulate is not None)
        if replicated is None or not self.replicates:
            to = target if leaf.function is None and leaf.accumulate is None else None
            return [self._operand(i, leaf, to) for i in leaf.inputs]
        number = cast(Access, leaf.inputs[replicated])
        others = [self._operand(i, leaf) for k, i in enumerate(leaf.inputs) if k != replicated]
        return [*others, cast(Register, self.statements.read(number, leaf))]

    def _whole(self, leaf: Leaf, operands: list[Register], target: Register | None) -> None:
        statements, letter = self.statements, SUFFIX[leaf.output.array.dtype]
        old = self._access(leaf.output, leaf) if leaf.accumulate is not None else None
        if leaf.contracted:
            assert old is not None
            value = self._fused(letter, [*operands, old], target)
        else:
            value = self._computed(leaf, operands, target if old is None else None)
            if old is not None:
                # The sum's last operand is the product, or the replicated number itself.
                self.replicates = self.replicates and leaf.function is None
                value = self._applied(leaf.accumulate, [old, value], letter, target)
        statements.functions.outliers.finish(target, lambda: self._write(leaf, value, target))

    def _write(self, leaf: Leaf, value: Register, target: Register | None) -> None:
        """Copy the lanes to a register, or store them."""
        statements = self.statements
        if target is not None:
            self.code.move(value, target)
            return
        statements.regions.note_store(leaf.output.array.buffer)
        statements.accesses.store_packed(value, statements.place(leaf.output, leaf))

    def _sum(self, leaf: Leaf, operands: list[Register]) -> None:
        """Append a reduction: combine all lanes, then add the old value."""
        statements, dtype, accumulate = self.statements, leaf.output.array.dtype, leaf.accumulate
        assert accumulate is not None
        value = self._computed(leaf, operands, None)
        if dtype == "f32" and accumulate == "arith.addf":
            self._sum_of_three(leaf, value)
            return
        terms = statements.accesses.split(value, dtype)

        def combined(one: Register, other: Register) -> Register:
            return cast(Register, statements.functions.apply(accumulate, [one, other], (dtype, dtype), dtype))

        while len(terms) > 1:
            half = len(terms) // 2
            terms = [combined(terms[k], terms[k + half]) for k in range(half)]
        old = cast(Register, statements.read(leaf.output, leaf))
        target = statements.target(leaf)
        statements.write(leaf, combined(old, terms[0]), target)

    def _sum_of_three(self, leaf: Leaf, value: Register) -> None:
        """Add both lanes to the output by one instruction, which rounds once."""
        statements = self.statements
        total, target = cast(Register, statements.read(leaf.output, leaf)), statements.target(leaf)
        if total is not target:
            old, total = total, Register("f")
            self.code.move(old, total)
        self.code.emit("vfsum.s", (total,), (total, value))
        statements.write(leaf, total, target)

    def _computed(self, leaf: Leaf, operands: list[Register], to: Register | None) -> Register:
        dtype, reciprocal = leaf.output.array.dtype, exact_reciprocal(leaf)
        if reciprocal is not None:
            factor = self.statements.functions.numbers.splat(reciprocal, dtype)
            return self._applied("arith.mulf", [operands[0], factor], SUFFIX[dtype], to)
        return self._applied(leaf.function, operands, SUFFIX[dtype], to)

    def _applied(self, function: str | None, operands: list[Register], letter: str, to: Register | None) -> Register:
        if function is None:
            return operands[0]
        if function in FUSED:
            return self._fused(letter, operands, to, function)
        if FUNCTIONS[function].snitch is None:
            return emit_packed_function(self.statements.functions, function, operands[0])
        if function in DIVISIONS:
            self.statements.functions.need_divider(function)
        name = f"v{FUNCTIONS[function].snitch}{self._suffix(letter)}"
        return self.code.f(name, *instruction_operands(function, operands), to=to)

    def _suffix(self, letter: str) -> str:
        """The end of the name of an instruction on the statement's inputs."""
        return f".r.{letter}" if self.replicates else f".{letter}"

    def _fused(
        self, letter: str, operands: list[Register], to: Register | None, function: str = "math.fma"
    ) -> Register:
        """A fused function. Its instruction adds to its destination, a copy of the third operand or that itself if it
        is `to`.
        """
        x, y, z = operands
        if z.fixed is not None and (z is x or z is y):
            # A stream's register gives an element once.
            held = self.code.f("fmv.d", z)
            x, y, z = (held if operand is z else operand for operand in operands)
        if function == "math.fms":
            total = self.code.f(f"vfsgnjn.{letter}", z, z)
        elif z is not to or z.fixed is not None:
            total = Register("f")
            self.code.move(z, total)
        else:
            total = z
        name = "vfmre" if function == "math.fnma" else "vfmac"
        self.code.emit(f"{name}{self._suffix(letter)}", (total,), (total, x, y))
        return total

    def _target(self, leaf: Leaf) -> Register | None:
        access = leaf.output
        if access.array.buffer not in self.statements.roots:
            cells = self.statements.cells
            return cast(Register, cells.register(access, cells.position(access, leaf)))
        return self.statements.regions.register(leaf, access, writes=True)

    def _operand(self, value: Input, leaf: Leaf, to: Register | None = None) -> Register:
        if isinstance(value, Access):
            return self._access(value, leaf, to)
        assert isinstance(value, Constant)
        return self.statements.functions.numbers.splat(float(value.value), value.dtype)

    def _access(self, access: Access, leaf: Leaf, to: Register | None = None) -> Register:
        if access.key not in self.read:
            self.read[access.key] = self._read(access, leaf, to)
        return self.read[access.key]

    def _read(self, access: Access, leaf: Leaf, to: Register | None) -> Register:
        statements = self.statements
        buffer = access.array.buffer
        if _is_uniform(access, leaf):
            value = cast(Register, statements.read(access, leaf))
            lanes = WORD // byte_width(buffer.dtype)
            return statements.accesses.join([value] * lanes, buffer.dtype, to)
        if buffer not in statements.roots:
            return cast(Register, statements.cells.register(access, statements.cells.position(access, leaf)))
        stream = statements.regions.register(leaf, access, writes=False)
        if stream is not None:
            return statements.popped(stream, leaf)
        if is_whole(access, leaf, statements.alignment) or self._is_word_here(access, leaf):
            return statements.accesses.load_packed(statements.place(access, leaf))
        return statements.accesses.join(self._lanes(access, leaf), buffer.dtype, to)

    def _is_word_here(self, access: Access, leaf: Leaf) -> bool:
        """Whether an access is an aligned word for the known values of unrolled variables."""
        first, second = (self._element(access, leaf, lane) for lane in (0, 1))
        if first is None or second is None:
            return False
        return (second - first) == const(1) and self._starts_word(first, access.array.buffer)

    def _element(self, access: Access, leaf: Leaf, lane: int) -> Expr | None:
        """The distance of a lane's element from the start of its buffer, in elements; None if it is not linear."""
        statements, lanes = self.statements, leaf.chain[-1]
        layout = statements.plan.placements[access.array.buffer].layout
        found = address_of(access, layout, leaf.chain)
        linear = bind(found.linear, {**statements.known, lanes.depth: lane}, leaf.extents)
        return linear if linear.is_linear and not found.exchanges and not found.scaled else None

    def _starts_word(self, element: Expr, buffer: Buffer) -> bool:
        """Whether an element is the first one of an aligned word of memory that ends inside of the buffer."""
        layout = self.statements.plan.placements[buffer].layout
        if layout.sized:
            return False
        aligned = known_alignment(element, byte_width(buffer.dtype), self.statements.alignment(buffer))
        return aligned % WORD == 0 and layout.size_bytes % WORD == 0

    def _lanes(self, access: Access, leaf: Leaf) -> list[Register]:
        """The lanes of an access to memory that is no aligned word, loaded one by one."""
        statements, lanes = self.statements, leaf.chain[-1]
        found: list[Register] = []
        for number in lanes_together(lanes):
            element = self._element(access, leaf, number)
            statements.known[lanes.depth] = number
            place = statements.place(access, leaf)
            if element is not None and self._starts_word(element, access.array.buffer):
                # Other statements may need the whole word.
                found.append(statements.accesses.load_packed(place))
            else:
                found.append(cast(Register, statements.accesses.load(place, access.array.dtype)))
        statements.known[lanes.depth] = 0
        return found
