"""A statement as C: scalar, or for the lanes of a vector scope, as GNU C vectors or as a loop."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from pdojo.backends.c.code import FunctionText, variable
from pdojo.backends.c.expressions import strip
from pdojo.backends.c.values import NARROW, apply, from_index, literal, operator
from pdojo.backends.common.addresses import Lanes, known_alignment, lanes_of
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.hints import AHEAD, PREFETCH
from pdojo.dialect.rules.hints import coming_access, value_of
from pdojo.dialect.view.nest import Access, Constant, Index, Input, Leaf, Scope

_PIECE = 16
"""Bytes of one non-temporal store."""
Loop = Callable[[Callable[[], None]], None]
"""A function that prints a loop over the lanes, whose body the argument prints."""


def statement(code: FunctionText, leaf: Leaf) -> None:
    """Print one instance of a statement."""
    for access in (*leaf.reads, leaf.output):
        prefetch(code, access, leaf)
    target = code.element(leaf.output, leaf)
    code.line(f"{assignment(code, leaf, target, target)};")


def assignment(code: FunctionText, leaf: Leaf, target: str, old: str) -> str:
    """The assignment of the statement's value to `target`; `old` is the old value for accumulations."""
    value = computed(code, leaf)
    dtype = leaf.output.array.dtype
    if leaf.accumulate is None:
        return f"{target} = {strip(value)}"
    old = _loaded(old, dtype)
    if leaf.contracted:
        factors = [_operand(code, i, leaf) for i in leaf.inputs]
        fused = apply(code.prelude, "math.fma", (*factors, old), (dtype,) * 3, dtype)
        return f"{target} = {strip(fused)}"
    sign = operator(leaf.accumulate)
    if sign and dtype in ("f32", "f64") and not (sign == "*" and dtype in code.spelling.products):
        return f"{target} {sign}= {strip(value)}"
    combined = apply(code.prelude, leaf.accumulate, (value, old), (dtype, dtype), dtype)
    return f"{target} = {strip(combined)}"


def computed(code: FunctionText, leaf: Leaf) -> str:
    """The value of the function before accumulation; empty for a contracted product."""
    if leaf.contracted:
        return ""
    operands = [_operand(code, i, leaf) for i in leaf.inputs]
    if leaf.function is None:
        return operands[0]
    dtypes = [i.array.dtype if isinstance(i, Access) else i.dtype for i in leaf.inputs]
    return apply(code.prelude, leaf.function, operands, dtypes, leaf.output.array.dtype)


def _operand(code: FunctionText, value: Input, leaf: Leaf) -> str:
    match value:
        case Access():
            return _loaded(code.element(value, leaf), value.array.dtype)
        case Constant():
            return literal(value)
        case Index():
            return from_index(code.prelude, code.index(value.expression), value.dtype)


def _loaded(text: str, dtype: str) -> str:
    # A byte is true unless it is 0.
    return f"({text} != 0)" if dtype == "i1" else text


def prefetch(code: FunctionText, access: Access, leaf: Leaf) -> None:
    """Prefetch the cache line at the hinted distance after the access, and that of a coming access.

    Addresses are computed as integers, because a pointer must not leave its array.
    """
    hints = access.hints.data
    if PREFETCH in hints:
        address = f"(uintptr_t)&{code.element(access, leaf)} + {value_of(hints[PREFETCH])}"
        code.line(code.spelling.prefetch(address))
    coming = coming_access(leaf, access, value_of(hints[AHEAD])) if AHEAD in hints else None
    if coming is not None:
        name, position = code.names[access.array.buffer], code.position(code.place(coming, leaf))
        code.line(code.spelling.prefetch(f"(uintptr_t){name} + sizeof *{name} * ({position})"))


# Lanes


def lanes(code: FunctionText, scope: Scope, leaf: Leaf, loop: Loop) -> None:
    """Print a statement for all lanes of its vector scope; `loop` prints a loop over the lanes."""
    for access in (*leaf.reads, leaf.output):
        if not {PREFETCH, AHEAD}.isdisjoint(access.hints.data):
            code.known[scope.depth] = 0
            prefetch(code, access, leaf)
            del code.known[scope.depth]
    masked = any(g.uses(scope.depth) for g in scope.guard)
    if not masked and _is_vector(code, scope, leaf):
        _vector(code, scope, leaf)
    elif not masked and _streams(code, scope, leaf):
        _apart(code, scope, leaf, loop, streams=True)
    elif _meets(code, leaf):
        _apart(code, scope, leaf, loop, streams=False)
    else:
        if not masked and _distinct(code, scope, leaf):
            code.line(code.spelling.simd())
        loop(lambda: code.line(f"{assignment(code, leaf, *(code.element(leaf.output, leaf),) * 2)};"))


def _meets(code: FunctionText, leaf: Leaf) -> bool:
    """Whether a lane may read an element that another lane writes, so that all reads must come first."""
    written = code.place(leaf.output, leaf)
    same = (a for a in leaf.reads if a.array.buffer is leaf.output.array.buffer)
    return any(code.place(a, leaf) != written for a in same)


def _distinct(code: FunctionText, scope: Scope, leaf: Leaf) -> bool:
    shape = _shape(code, scope, leaf.output, leaf)
    return shape is not None and shape.offsets is not None and len(set(shape.offsets)) == scope.extent


def _apart(code: FunctionText, scope: Scope, leaf: Leaf, loop: Loop, *, streams: bool) -> None:
    """Print the computation of all lanes into temporaries, then the stores."""
    dtype = leaf.output.array.dtype
    lane, target = f"lane[{variable(scope.depth)}]", code.element(leaf.output, leaf)
    with code.block(""):
        code.line(code.spelling.array(dtype, "lane", scope.extent, None))
        if leaf.accumulate is None:
            loop(lambda: code.line(f"{assignment(code, leaf, lane, lane)};"))
        else:
            # The terms are computed from the old contents; then the stores accumulate lane by lane.
            factors = [code.spelling.array(dtype, "factor", scope.extent, None)] if leaf.contracted else []
            for declaration in factors:
                code.line(declaration)
            loop(lambda: _terms(code, scope, leaf, lane))
        if streams:
            code.known[scope.depth] = 0
            start = code.element(leaf.output, leaf)
            del code.known[scope.depth]
            code.line(f"{code.prelude.use('pd_stream')}(&{start}, lane, sizeof lane);")
            code.prelude.use("pd_stream_end")
            code.streams = True
        else:
            loop(lambda: _store(code, scope, leaf, lane, target))


def _terms(code: FunctionText, scope: Scope, leaf: Leaf, lane: str) -> None:
    if not leaf.contracted:
        code.line(f"{lane} = {strip(computed(code, leaf))};")
        return
    first, second = (_operand(code, i, leaf) for i in leaf.inputs)
    code.line(f"{lane} = {strip(first)};")
    code.line(f"factor[{variable(scope.depth)}] = {strip(second)};")


def _store(code: FunctionText, scope: Scope, leaf: Leaf, lane: str, target: str) -> None:
    dtype = leaf.output.array.dtype
    if leaf.accumulate is None:
        code.line(f"{target} = {lane};")
        return
    if leaf.contracted:
        operands = (lane, f"factor[{variable(scope.depth)}]", target)
        value = apply(code.prelude, "math.fma", operands, (dtype,) * 3, dtype)
    else:
        value = apply(code.prelude, leaf.accumulate, (lane, _loaded(target, dtype)), (dtype, dtype), dtype)
    code.line(f"{target} = {strip(value)};")


def _shape(code: FunctionText, scope: Scope, access: Access, leaf: Leaf) -> Lanes | None:
    """The positions of an access, keyed by lane; None for a swizzled buffer, and for lanes at a distance by sizes."""
    where = code.place(access, leaf)
    apart = any(each.index.uses(scope.depth) for each in where.scaled)
    return None if where.exchanges or apart else lanes_of(code.bind(where.linear), scope.depth, code.extents)


def _streams(code: FunctionText, scope: Scope, leaf: Leaf) -> bool:
    """Whether the lanes are stored non-temporally: with a hint, and in whole aligned pieces."""
    if "nontemporal" not in leaf.output.hints.data or leaf.accumulate is not None:
        return False
    shape = _shape(code, scope, leaf.output, leaf)
    if shape is None or shape.stride != 1:
        return False
    width = byte_width(leaf.output.array.dtype)
    base = code.placements[leaf.output.array.buffer].alignment
    return scope.extent * width % _PIECE == 0 and known_alignment(shape.base, width, gcd(base, 64)) >= _PIECE


# Vectors of GNU C


def _is_vector(code: FunctionText, scope: Scope, leaf: Leaf) -> bool:
    """Whether the statement is an operator whose accesses are each contiguous or equal in all lanes."""
    dtype, count = leaf.output.array.dtype, scope.extent
    if dtype in (*NARROW, "i1") or count < 2 or count & (count - 1) or leaf.contracted:
        return False
    if any(f is not None and not operator(f) for f in (leaf.function, leaf.accumulate)):
        return False
    if any(isinstance(i, Index) for i in leaf.inputs):
        return False
    written = _shape(code, scope, leaf.output, leaf)
    if written is None or written.stride != 1:
        return False
    shapes = [_shape(code, scope, a, leaf) for a in leaf.reads]
    fits = all(s is not None and (s.uniform or s.stride == 1) for s in shapes)
    return fits and any(s is not None and s.stride == 1 and not s.uniform for s in shapes)


def _vector(code: FunctionText, scope: Scope, leaf: Leaf) -> None:
    dtype = leaf.output.array.dtype
    kind = code.prelude.vector(dtype, scope.extent)
    code.known[scope.depth] = 0
    operands = [_vector_operand(code, scope, i, leaf, kind) for i in leaf.inputs]
    start = code.element(leaf.output, leaf)
    sign = operator(leaf.function)
    value = f"{operands[0]} {sign} {operands[1]}" if len(operands) == 2 else sign + operands[0]
    accumulation = operator(leaf.accumulate)
    # `_streams` needs the lane's variable unbound.
    del code.known[scope.depth]
    if not accumulation and _streams(code, scope, leaf):
        with code.block(""):
            code.line(f"const {kind} lane = {value};")
            code.line(f"{code.prelude.use('pd_stream')}(&{start}, &lane, sizeof lane);")
        code.prelude.use("pd_stream_end")
        code.streams = True
        return
    code.line(f"*({kind} *)&{start} {accumulation}= {value};")


def _vector_operand(code: FunctionText, scope: Scope, value: Input, leaf: Leaf, kind: str) -> str:
    """A vector, or a scalar that C combines with every lane. The lane's variable is 0 in this text."""
    dtype = leaf.output.array.dtype
    cast = "" if is_float(dtype) else f"(uint{8 * byte_width(dtype)}_t)"
    if not isinstance(value, Access):
        assert isinstance(value, Constant)
        return cast + literal(value)
    text = code.element(value, leaf)
    del code.known[scope.depth]
    shape = _shape(code, scope, value, leaf)
    code.known[scope.depth] = 0
    assert shape is not None
    return cast + text if shape.uniform else f"*(const {kind} *)&{text}"
