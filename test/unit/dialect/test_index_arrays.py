"""Indices that callers give: texts, verification, values outside of the range."""

from collections.abc import Callable

import islpy as isl
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import pdojo
from pdojo.backends.gpu.ir.kernel_function import lower_kernel as lower_to_gpu
from pdojo.backends.loops.loop_function import lower_kernel
from pdojo.dialect.affine import IndexArray, Lookup, Size, const, lookup, var
from pdojo.dialect.flow.collision import BEFORE, EQUAL, Domain, Query, exact
from pdojo.dialect.flow.coverage import cover_together
from pdojo.dialect.flow.flows import uninitialised
from pdojo.dialect.flow.integer_sets import bounds_over_domain, projected, read_set, spell, unreached
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import shortcut_names, without
from pdojo.dialect.flow.uses import uses_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nodes import bound_of
from pdojo.errors import InvalidKernel, LoweringError, NotationError, UnknownSize, UsageError

ALL = """\
kernel all(x, len, at, start) -> (y, z)
size N in 2..20
x f32 [4, N] heap
len i8 [4] heap in 0..N clamp
at i64 [4, 2] heap align 16 in 1..9
start i32 [] heap in 0..N-2 wrap
y f32 [4, N] heap
z f32 [2] heap

4 N y[{0},{1}] = index({1}*2+at[{0},{1}//16])
4 N where (len[{0}]-{1} >= 1) y[{0},{1}] = x[at[{0},1]//4,{1}]
2 z[{0}] = x[0,{0}+start[]]
"""

Run = Callable[[dict[str, NDArray[np.generic]]], dict[str, NDArray[np.generic]]]


def parsed(text: str) -> KernelOp:
    (kernel,) = parse_notation(text)
    return kernel


def compiled(kernel: KernelOp, given: dict[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    program = pdojo.compile(kernel)
    outputs = [parameter for parameter in program.parameters if parameter.written]
    made: dict[str, NDArray[np.generic]] = {p.name: np.zeros(p.shape, np.float32) for p in outputs}
    program(**given, **made)
    return made


RUNS: list[Callable[..., dict[str, NDArray[np.generic]]]] = [interpret, interpret_stepwise, compiled]


def read_again(text: str) -> KernelOp:
    context = Context()
    for dialect in (Builtin, PDOJO):
        context.load_dialect(dialect)
    (kernel,) = Parser(context, text).parse_module().body.block.ops
    assert isinstance(kernel, KernelOp)
    kernel.verify()
    return kernel


def test_both_texts_are_read_again() -> None:
    kernel = parsed(ALL)
    assert print_notation(kernel) == ALL
    again = read_again(str(ModuleOp([kernel])))
    assert print_notation(again) == ALL
    assert str(again) == str(kernel)


@pytest.mark.parametrize("run", RUNS[:2])
def test_every_use_of_an_index(run: Callable[..., dict[str, NDArray[np.float32]]]) -> None:
    kernel, random = parsed(ALL), np.random.default_rng(0)
    for columns in (2, 7, 20):
        x = random.random((4, columns), dtype=np.float32)
        lengths, at = random.integers(-9, 99, 4, np.int8), random.integers(1, 10, (4, 2))
        given = {"x": x, "len": lengths, "at": at}
        for start in (0, columns - 2, -1):
            found = run(kernel, {**given, "start": np.array(start, np.int32)})
            rows, places = np.arange(4)[:, None], np.arange(columns)
            expected = np.where(
                places < lengths[:, None],
                x[at[:, 1] // 4],
                2 * places + at[rows, places // 16],
            )
            np.testing.assert_array_equal(found["y"], expected.astype(np.float32))
            first = start % (columns - 1)
            np.testing.assert_array_equal(found["z"], x[0, first : first + 2])


GATHER = """\
kernel gather(x, idx) -> (y)
x f32 [10, 4] heap
idx i64 [3] heap in 0..9{}
y f32 [3, 4] heap

3 4 y[{{0}},{{1}}] = x[idx[{{0}}],{{1}}]
"""


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    ("outside", "given", "used"),
    [
        ("", [0, 9, 9], [0, 9, 9]),
        (" clamp", [-5, 3, 99], [0, 3, 9]),
        (" clamp", [-(1 << 63), 3, (1 << 63) - 1], [0, 3, 9]),
        (" wrap", [-1, -10, 4], [9, 0, 4]),
        ("", [0, 10, 3], "the index 10 at [1]; its indices run from 0 to 9"),
        ("", [-1, 0, 3], "the index -1 at [0]; its indices run from 0 to 9"),
        (" wrap", [0, 3, -11], "the index -11 at [2]; its indices run from -10 to 9"),
        (" wrap", [10, 3, 0], "the index 10 at [0]; its indices run from -10 to 9"),
    ],
)
def test_an_index_outside_of_its_range(
    run: Callable[..., dict[str, NDArray[np.float32]]], outside: str, given: list[int], used: list[int] | str
) -> None:
    kernel = parsed(GATHER.format(outside))
    x = np.random.default_rng(0).random((10, 4), dtype=np.float32)
    arrays = {"x": x, "idx": np.array(given)}
    if isinstance(used, str):
        with pytest.raises(UsageError) as caught:
            run(kernel, arrays)
        assert str(caught.value) == f"kernel 'gather': 'idx' has {used}"
    else:
        np.testing.assert_array_equal(run(kernel, arrays)["y"], x[used])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("outside", ["", " wrap"])
@pytest.mark.parametrize("index", [1, 0, -9, 10])
def test_an_index_below_the_least_one(
    run: Callable[..., dict[str, NDArray[np.float32]]], outside: str, index: int
) -> None:
    kernel = parsed(GATHER.format(outside).replace("0..9", "2..9"))
    with pytest.raises(UsageError, match=rf"'idx' has the index {index} at \[1\]; its indices run from 2 to 9"):
        run(kernel, {"x": np.zeros((10, 4), np.float32), "idx": np.array([2, index, 9])})


@pytest.mark.parametrize("run", RUNS)
def test_indices_are_clamped_to_their_range(run: Callable[..., dict[str, NDArray[np.float32]]]) -> None:
    table = "idx i64 [3] heap in 2..9 clamp\nback i64 [10] table 9, 8, 7, 6, 5, 4, 3, 2, 1, 0\n"
    text = f"kernel k(x, idx) -> (y)\nx f32 [10] heap\n{table}y f32 [3] heap\n\n3 y[{{0}}] = x[back[idx[{{0}}]]]\n"
    found = run(parsed(text), {"x": np.arange(10, dtype=np.float32), "idx": np.array([0, 5, 99])})
    np.testing.assert_array_equal(found["y"], [7, 4, 0])


@pytest.mark.parametrize("run", RUNS)
def test_the_last_index_of_an_axis_in_steps(run: Callable[..., dict[str, NDArray[np.float32]]]) -> None:
    kernel = parsed(
        GATHER.format("").replace("\n", "\nsize M in 8..24 multiple 8\n", 1).replace("10", "M").replace("9", "M-1")
    )
    x = np.random.default_rng(0).random((16, 4), dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, {"x": x, "idx": np.array([15, 0, 8])})["y"], x[[15, 0, 8]])
    with pytest.raises(UsageError, match=r"the index 16 at \[2\]; its indices run from 0 to 15"):
        run(kernel, {"x": x, "idx": np.array([15, 0, 16])})


def test_calls_at_addresses_check_indices_for_their_sizes() -> None:
    text = GATHER.format("").replace("\n", "\nsize M in 8..24 multiple 8\n", 1).replace("10", "M").replace("9", "M-1")
    program = pdojo.compile(text)
    arrays = [np.zeros((16, 4), np.float32), np.array([15, 0, 16]), np.zeros((3, 4), np.float32)]
    with pytest.raises(UsageError, match=r"the index 16 at \[2\]; its indices run from 0 to 15"):
        program.run_with_indices([*(array.ctypes.data for array in arrays), 16])


def test_nothing_is_written_by_a_refused_call() -> None:
    kernel = pdojo.compile(GATHER.format(""))
    y = np.full((3, 4), 7, np.float32)
    with pytest.raises(UsageError, match="the index 10"):
        kernel(np.zeros((10, 4), np.float32), np.array([0, 0, 10]), y)
    assert (y == 7).all()


REFUSED = [
    ("idx i64 [3] heap in 0..10", "x[idx[{0}]]", "index runs from 0 to 10"),
    ("idx i64 [3] heap in 5..4", "x[idx[{0}]]", "run from at least 0 to a value that is not less, not from 5 to 4"),
    ("idx f32 [3] heap in 0..9", "x[idx[{0}]]", "which are integers, and the type f32"),
    ("idx i1 [3] heap in 0..1", "x[idx[{0}]]", "which are integers, and the type i1"),
    ("idx i64 [3] heap in 0", "x[idx[{0}]]", "expected '..'"),
    ("idx i64 [3] heap in 0..9 wrap", "x[idx[{0},0]]", "array 'idx' has 1 dimension, not 2"),
    ("idx i64 [2] heap in 0..9", "x[idx[{0}]]", "access idx[{0}] is out of bounds: dimension 0 of 'idx' has extent 2"),
    ("idx i64 [3] heap", "x[idx[{0}]]", "with a range: idx i64 [8] heap in 0..99"),
]


@pytest.mark.parametrize(("declaration", "value", "message"), REFUSED)
def test_mistakes_are_refused(declaration: str, value: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parsed(f"kernel k(x, idx) -> (y)\nx f32 [10] heap\n{declaration}\ny f32 [3] heap\n\n3 y[{{0}}] = {value}")
    assert message in str(caught.value)


SCATTER = """\
kernel scatter(x, idx) -> (y, z)
x f32 [4, 2] heap
idx i64 [4] heap in 0..5{}
y f32 [6, 2] heap
z f32 [6, 2] heap

6 2
| y[{{0}},{{1}}] = -1
| z[{{0}},{{1}}] = 1
4 2
| y[idx[{{0}}],{{1}}] = x[{{0}},{{1}}]
| z[idx[{{0}}],{{1}}] += x[{{0}},{{1}}]
"""


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    ("outside", "given", "used"),
    [
        ("", [3, 0, 3, 5], [3, 0, 3, 5]),
        ("", [5, 5, 5, 5], [5, 5, 5, 5]),
        (" wrap", [-1, 2, -6, 5], [5, 2, 0, 5]),
        (" clamp", [9, 2, -9, 5], [5, 2, 0, 5]),
    ],
)
def test_the_last_write_at_an_entry_remains_and_sums_have_all(
    run: Callable[..., dict[str, NDArray[np.float32]]], outside: str, given: list[int], used: list[int]
) -> None:
    x = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    y, z = np.full((6, 2), -1, np.float32), np.ones((6, 2), np.float32)
    for row, place in zip(x, used, strict=True):
        y[place] = row
        z[place] += row
    found = run(parsed(SCATTER.format(outside)), {"x": x, "idx": np.array(given)})
    np.testing.assert_array_equal(found["y"], y)
    np.testing.assert_array_equal(found["z"], z)


HEADER = """\
kernel k(x, idx) -> (y)
x f32 [3] heap
idx i64 [3] heap in 0..9
y f32 [10] heap
t f32 [10] heap

"""

INCOMPLETE = [
    ("3 y[idx[{0}]] = x[{0}]", "output 'y' is not written for all indices at [0]"),
    ("9 y[{0}] = 0\n3 y[idx[{0}]] += x[{0}]", "output 'y' is not written for all indices at [9]"),
    (
        "3 t[idx[{0}]] = 1\n10 y[{0}] = t[{0}]",
        "only writes at indices that are known at run time may reach what is read of 't'",
    ),
    ("9 t[{0}] = 1\n3 t[idx[{0}]] += 1\n10 y[{0}] = 0", "t[idx[{0}]] at iteration (0) gets an element of 't'"),
    (
        "10 t[{0}] = 0\n10 y[{0}] = t[{0}]\n3:p y[idx[{0}]] += x[{0}]",
        "race: write of y[idx[{0}]] at iteration (0) and write of y[idx[{0}]] at iteration (",
    ),
]


@pytest.mark.parametrize(("body", "message"), INCOMPLETE)
def test_a_write_at_an_entry_is_certain_at_no_place(body: str, message: str) -> None:
    with pytest.raises(InvalidKernel) as caught:
        validate(Program(parsed(HEADER + body), machine("toy")))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "4 y[{0}] = 0\n6 y[{0}+4] = 0\n3 y[idx[{0}]] += x[{0}]",
        "10 t[{0}] = 2\n3 t[idx[{0}]] = 1\n10 y[{0}] = t[{0}]",
        "3 t[idx[{0}]] = x[{0}]\n10 y[{0}] = 0\n3 y[{0}] = t[idx[{0}]]",
        "3 t[idx[{0}]] = x[{0}]\n3 where ({0} < idx[{0}]) t[idx[{0}]] += 1\n10 y[{0}] = 0",
    ],
)
def test_values_behind_writes_at_entries(body: str) -> None:
    validate(Program(parsed(HEADER + body), machine("toy")))


def test_integer_sets_alone_do_not_settle_reads_behind_writes_at_entries() -> None:
    program = Program(parsed(HEADER + "3 t[idx[{0}]] = x[{0}]\n10 y[{0}] = 0\n3 y[{0}] = t[idx[{0}]]"), machine("toy"))
    with without(*shortcut_names()), pytest.raises(InvalidKernel, match="cannot be checked: only writes at indices"):
        validate(program)


def test_reads_that_entries_guard_are_settled_by_integer_sets() -> None:
    body = "10 t[{0}] = 2\n10 y[{0}] = 0\n3 where ({0} < idx[{0}]) y[{0}] = t[{0}]"
    nest = nest_of(parsed(HEADER + body))
    with without(*shortcut_names()):
        assert uninitialised(uses_of(nest, "t", nest.arrays["t"].buffer.reuse)) is None


def test_other_writes_cover_a_read_behind_writes_at_entries() -> None:
    nest = nest_of(parsed(HEADER + "10 t[{0}] = 2\n3 t[idx[{0}]] = x[{0}]\n10 y[{0}] = t[{0}]"))
    *writers, reader = nest.leaves
    (read,) = reader.reads
    assert cover_together([(leaf, leaf.output) for leaf in writers], reader, read)
    assert not cover_together([(writers[1], writers[1].output)], reader, read)


@pytest.mark.parametrize("name", ["y", "t"])
def test_only_inputs_have_a_range(name: str) -> None:
    ranges = {each: " in 0..2" if each == name else "" for each in ("y", "t")}
    header = f"kernel k(x) -> (y)\nx i64 [3] heap\ny i64 [3] heap{ranges['y']}\nt i64 [3] heap{ranges['t']}\n\n"
    with pytest.raises(NotationError, match=f"only an input has a range of indices, and '{name}' is none"):
        parsed(header + "3 t[{0}] = x[{0}]\n3 y[{0}] = t[{0}]")


def test_the_mlir_form_is_verified() -> None:
    good = str(ModuleOp([parsed(GATHER.format(""))]))
    for old, new, message in [
        ('[0 : i64, affine_map<() -> (9)>, ""]', "[0 : i64]", "a least value, a map of the sizes"),
        ('affine_map<() -> (9)>, ""', 'affine_map<() -> (9)>, "any"', "a least value, a map of the sizes"),
        (
            "[0 : i64, affine_map",
            "[-1 : i64, affine_map",
            "value that is not less, not from -1 to 9",
        ),
        ('affine_map<() -> (9)>, ""', 'affine_map<(d0) -> (9)>, ""', "a least value, a map of the sizes"),
        ("{idx = [", "{y = [", "only an input has a range of indices, and 'y' is none"),
        ("idx[%i0]", "idx[%i0, %i1]", "a lookup in 'idx' has 1 place, of variables"),
        ("idx[%i0]", "x[%i0]", "'x' is neither"),
    ]:
        assert old in good
        with pytest.raises(VerifyException, match=message):
            read_again(good.replace(old, new))


def test_a_range_without_indices_at_some_size_is_refused() -> None:
    text = "kernel k(x, idx) -> (y)\nsize N in 3..9\nx f32 [N] heap\nidx i64 [2] heap in {}..N-1\ny f32 [2] heap\n\n"
    parsed(text.format(2) + "2 y[{0}] = x[idx[{0}]]\n")
    with pytest.raises(NotationError, match="run from at least 0 to a value that is not less, not from 3 to N-1"):
        parsed(text.format(3) + "2 y[{0}] = x[idx[{0}]]\n")


def test_a_guard_reads_no_table() -> None:
    text = ALL.replace("len[{0}]-{1} >= 1", "at[0,0]-{1} >= 1")
    good = str(ModuleOp([parsed(text)])).replace("attributes{", "attributes{tables = {t = array<i64: 1, 2>}, ")
    with pytest.raises(VerifyException, match=r"a guard may not read a table \(here 't'\)"):
        read_again(good.replace("+ at[0, 0]", "+ t[0]"))


def as_gpu_dialect(kernel: KernelOp) -> None:
    lower_to_gpu(nest_of(kernel), machine("nvidia-sm90"))


def as_loops(kernel: KernelOp) -> None:
    lower_kernel(nest_of(kernel), sequential=True)


@pytest.mark.parametrize(
    ("backend", "lower"),
    [("the gpu dialect", as_gpu_dialect), ("the lowering to loops", as_loops)],
)
def test_backends_of_constants_say_so(backend: str, lower: Callable[[KernelOp], None]) -> None:
    with pytest.raises(
        LoweringError, match=f"{backend} takes tables only, and the indices 'idx' are known at run time"
    ):
        lower(parsed(GATHER.format("")))


INDICES = IndexArray("idx", "i64", (const(8),), 2, const(5))


def test_integer_sets_know_the_range_only() -> None:
    here = lookup(INDICES, [var(0)], [8])
    assert bounds_over_domain(here * 2 + var(0), (8,), ()) == (4, 17)
    assert bounds_over_domain(here - lookup(INDICES, [var(0)], [8]), (8,), ()) == (0, 0)
    assert bounds_over_domain(here - lookup(INDICES, [var(0) + 0], [8]), (8,), (here - 5,)) == (0, 0)
    assert bounds_over_domain(var(0), (8,), (here - 6,)) is None


def test_equal_places_have_equal_entries() -> None:
    here, there = lookup(INDICES, [var(0)], [8, 8]), lookup(INDICES, [var(1)], [8, 8])
    assert bounds_over_domain(here - there, (8, 8), ()) == (-3, 3)
    assert bounds_over_domain(here - there, (8, 8), (var(0) - var(1), var(1) - var(0))) == (0, 0)
    box = Domain((8, 4), ())
    place = ((here + var(1), here + var(1)),)
    assert exact(Query(box, box, place, (EQUAL, BEFORE))) is None
    assert exact(Query(box, box, place, (BEFORE, BEFORE))) is not None


def test_what_is_covered_may_not_depend_on_entries() -> None:
    here, fixed = lookup(INDICES, [var(0)], [8]), lookup(INDICES, [const(3)], [8])
    whole = [((8,), (), (var(0),))]
    assert unreached([((8,), (here - var(0),), (var(0),))], whole) is None
    with pytest.raises(UnknownSize, match="known at run time only"):
        unreached(whole, [((8,), (here - var(0),), (var(0),))])
    # An entry at one place is a parameter: the same iterations are excluded from both.
    assert unreached([((8,), (fixed - var(0),), (var(0),))], [((8,), (fixed - var(0),), (var(0),))]) is None
    assert unreached([((8,), (fixed - var(0),), (var(0),))], [((8,), (fixed - var(0) - 1,), (var(0),))]) is not None
    with pytest.raises(UnknownSize, match="known at run time only"):
        projected([8, 8], [fixed - var(0) - var(1)], [1])


def test_an_extent_depends_on_sizes_only() -> None:
    size = Size("N", 1, 9).expression
    assert bound_of(size - var(0) - 1, 0) == size
    assert bound_of(lookup(INDICES, [const(3)], [8]) - var(0) - 1, 0) is None
    assert bound_of(size - var(1) - var(0) - 1, 0) is None


def test_no_number_is_tried() -> None:
    atom = Lookup(INDICES, (var(0),))
    with pytest.raises(UnknownSize, match="the entries of 'idx'"):
        lookup(INDICES, [var(0)], [8]).evaluate([1])
    assert atom.bounds([8]) == (2, 5)
    with pytest.raises(UnknownSize):
        read_set(isl.Set, f"{{ [i] : {spell(lookup(INDICES, [var(0)], [8]), ['i'])} > 3 }}")
