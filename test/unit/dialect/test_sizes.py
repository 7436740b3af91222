"""Sizes that callers give: texts, verification, values."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import pdojo
from pdojo.backends.common.addresses import is_within
from pdojo.dialect.affine import Expr, Size, const, floordiv, var
from pdojo.dialect.flow.integer_sets import bounds_over_domain, unreached
from pdojo.dialect.flow.points import evaluate
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import shortcut_names, without
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.ops.kernel import Swizzle
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.sizes import probes
from pdojo.dialect.verification.structure import swizzle_problem
from pdojo.dialect.view.build import nest_of
from pdojo.errors import InvalidKernel, NotationError, UnknownSize, UsageError

ROWS = """\
kernel rows(x) -> (y)
size N in 1..9
size M in 4..16 multiple 4
x f32 [N, (M+1)] heap
y f32 [N, M] heap
s f32 [N] heap

N
| s[{0}] = 0
| M s[{0}] += x[{0},{1}+1]
N M y[{0},{1}] = s[{0}] * M
"""


def parsed(text: str) -> KernelOp:
    (kernel,) = parse_notation(text)
    return kernel


def test_both_texts_of_a_kernel_with_sizes_are_read_again() -> None:
    kernel = parsed(ROWS)
    assert print_notation(kernel) == ROWS
    context = Context()
    for dialect in (Builtin, PDOJO):
        context.load_dialect(dialect)
    module = Parser(context, str(ModuleOp([kernel]))).parse_module()
    (again,) = module.body.block.ops
    assert isinstance(again, KernelOp)
    again.verify()
    assert print_notation(again) == ROWS


def test_a_given_size_is_a_constant() -> None:
    (kernel,) = parse_notation(ROWS, given={"N": 3})
    assert list(kernel.known_sizes()) == ["M"]
    (kernel,) = parse_notation(ROWS, given={"N": 3, "M": 8})
    plain = ROWS.replace("size N in 1..9\nsize M in 4..16 multiple 4\n", "").replace("(M+1)", "9")
    assert print_notation(kernel) == plain.replace("N", "3").replace("M", "8")


@pytest.mark.parametrize("given", [{"N": 10}, {"N": 0}, {"M": 6}, {"M": "f32"}])
def test_a_value_outside_of_the_range_is_refused(given: dict[str, int | str]) -> None:
    with pytest.raises(UsageError, match="the size"):
        parse_notation(ROWS, given=given)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("size N in 0..4", "from at least 1"),
        ("size N in 5..4", "not less"),
        ("size N in 4..9 multiple 4", "multiples of 4"),
        ("size N in 4..8 multiple 0", "a multiple of at least 1, not of 0"),
        ("size N 1..4", "expected 'in'"),
        ("size N in 1", "expected '..'"),
    ],
)
def test_malformed_ranges_are_refused_where_they_stand(line: str, message: str) -> None:
    with pytest.raises(NotationError, match=message) as caught:
        parsed(ROWS.replace("size N in 1..9", line))
    assert ":2:" in str(caught.value)


def test_an_index_beyond_an_extent_is_refused_with_a_size() -> None:
    with pytest.raises(NotationError, match=r"out of bounds at M = \d+, N = \d+: dimension 1 of 'x' has extent M\+1"):
        parsed(ROWS.replace("{1}+1", "{1}+2"))


def test_a_constant_index_is_within_the_least_extent() -> None:
    text = "kernel k(x) -> (y)\nsize N in 2..5\nx f32 [N] heap\ny f32 [1] heap\n\ny[0] = x[{}]\n"
    parsed(text.replace("{}", "1"))
    with pytest.raises(NotationError, match="at N = 2"):
        parsed(text.replace("{}", "2"))


def test_unknown_sizes_are_refused() -> None:
    with pytest.raises(NotationError, match="'K' is neither"):
        parsed(ROWS.replace("N M y", "N K y"))
    with pytest.raises(NotationError, match="declared above the arrays"):
        parsed(ROWS.replace("s f32 [N] heap", "s f32 [N] heap\nsize K in 1..2"))


def test_a_size_has_one_name() -> None:
    with pytest.raises(NotationError, match="declared twice"):
        parsed(ROWS.replace("size M in 4..16 multiple 4", "size N in 4..16"))
    with pytest.raises(NotationError, match="declared twice"):
        parsed(ROWS.replace("s f32 [N] heap", "M f32 [N] heap").replace("s[", "M["))


@pytest.mark.parametrize(("n", "m"), [(1, 4), (9, 16), (5, 12)])
def test_interpreters_find_sizes_in_shapes(n: int, m: int) -> None:
    x = np.random.default_rng().standard_normal((n, m + 1)).astype(np.float32)
    kernel = parsed(ROWS)
    wanted = np.repeat(x[:, 1:].astype(np.float64).sum(1, keepdims=True) * m, m, 1)
    for run in (interpret, interpret_stepwise):
        np.testing.assert_allclose(run(kernel, {"x": x})["y"], wanted, rtol=1e-4, atol=1e-4)


def test_a_shape_without_a_size_is_refused() -> None:
    with pytest.raises(UsageError, match="a multiple of 4, not 5, by dimension 1 of array 'x'"):
        interpret(parsed(ROWS), {"x": np.zeros((3, 6), np.float32)})


def test_a_shape_that_an_extent_never_has_is_refused() -> None:
    text = "kernel k(x) -> (y)\nsize N in 1..9\nx f32 [(N*2+1)] heap\ny f32 [N] heap\n\nN y[{0}] = x[{0}*2+1]\n"
    assert interpret(parsed(text), {"x": np.arange(5, dtype=np.float32)})["y"].tolist() == [1, 3]
    with pytest.raises(UsageError, match=r"dimension 0 of array 'x' is N\*2\+1, which is never 6"):
        interpret(parsed(text), {"x": np.zeros(6, np.float32)})


def test_what_is_given_goes_before_shapes() -> None:
    x = np.ones((4, 5), np.float32)
    with pytest.raises(UsageError, match=r"array 'x' has shape 4x5, the kernel takes 3x5"):
        pdojo.compile(parsed(ROWS))(x, N=3)


def test_a_size_of_one_value_is_not_given() -> None:
    text = "kernel k(x) -> (y)\nsize N in 4..4\nx f32 [3] heap\ny f32 [3] heap\n\n3 y[{0}] = x[{0}] * N\n"
    assert interpret(parsed(text), {"x": np.ones(3, np.float32)})["y"].tolist() == [4, 4, 4]


def test_probes_are_within_ranges() -> None:
    found = list(probes([Size("N", 1, 2), Size("M", 8, 64, 8)]))
    assert found == [{"N": 1, "M": 8}, {"N": 2, "M": 32}, {"N": 2, "M": 64}]


def test_memory_is_that_of_the_greatest_sizes() -> None:
    text = "kernel k(x) -> (y)\nsize N in 1..{}\nx f32 [N, 8] heap\ny f32 [1] heap\n\ny[0] = x[0,0]\n"
    parsed(text.format(1 << 40))
    with pytest.raises(NotationError, match="larger than any memory"):
        parsed(text.format(1 << 58))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(s0, (s1 + 1))", "((s0 + -1), (s1 + 1))", r"array 'x' needs extents of at least 1, not \[N-1, M\+1\]"),
        ("N = array<i64: 1, 9, 1>", f"N = array<i64: 1, {1 << 62}, 1>", "size 'N' reaches 4611686018427387904"),
        ("%x: memref<?x?xf32>", "%x: memref<7x?xf32>", "the type of array 'x' has the extent 7 for N"),
    ],
)
def test_the_mlir_form_is_verified(old: str, new: str, message: str) -> None:
    context = Context()
    for dialect in (Builtin, PDOJO):
        context.load_dialect(dialect)
    text = str(ModuleOp([parsed(ROWS)]))
    assert old in text
    with pytest.raises(VerifyException, match=message):
        Parser(context, text.replace(old, new)).parse_module().verify()


def test_a_guard_has_symbols_for_its_sizes() -> None:
    kernel = parsed(ROWS)
    del nest_of(kernel).scopes[0].op.properties["sizes"]
    with pytest.raises(VerifyException, match=r"the guard's dimensions must be .* and its symbols its sizes"):
        kernel.verify()


def test_swizzled_dimensions_do_not_depend_on_sizes() -> None:
    for shape in ((-1, 8), (8, -1)):
        assert "must not depend on sizes" in str(swizzle_problem(shape, (0, 0), 0, Swizzle(1, 2)))
    assert swizzle_problem((8, 8), (0, 0), 0, Swizzle(1, 2)) is None


def test_integer_sets_know_the_least_size() -> None:
    size = Size("N", 3, 9)
    below = size.expression - var(0) - 1
    assert bounds_over_domain(size.expression, (9,), (below,)) == (3, 9)
    assert bounds_over_domain(Size("M", 8, 24, 8).expression, (9,), (Size("M", 8, 24, 8).expression - var(0),)) == (
        8,
        24,
    )


def test_arrays_without_sizes_are_written_at_all_sizes() -> None:
    """Only the values of the range count, where sets without sizes meet others."""
    body = "N t[{0}] = x[{0}]\n9 where ({0} >= N) t[{0}] = 1\nN y[{0}] = t[{0}]\n9 where ({0} >= N) y[{0}] = t[{0}]\n"
    text = f"kernel k(x) -> (y)\nsize N in 1..9\nx f32 [N] heap\ny f32 [9] heap\nt f32 [9] heap\n\n{body}"
    with without(*shortcut_names()):
        validate(Program(parsed(text), machine("toy")))
        with pytest.raises(InvalidKernel, match="'t' that nothing has written"):
            validate(Program(parsed(text.replace(">= N) t[", "> N) t[")), machine("toy")))
        few = text.replace("N in 1", "N in 3").replace("y f32 [9]", "y f32 [3]").replace(body, body.split("9 where")[0])
        validate(Program(parsed(few + "3 y[{0}] = t[{0}]\n"), machine("toy")))
    n, i = Size("N", 1, 9).expression, var(0)
    first, last = ((9,), (n - 1 - i,), (i,)), ((9,), (i - n,), (i,))
    assert unreached([((9,), (), (i,))], [first, last]) is None
    assert unreached([((9,), (), (i,))], [first]) is not None


@pytest.mark.parametrize(
    "body",
    [
        "N t[{0}] = x[0]\n(6-N) y[{0}] = t[{0}]",
        "2 where (N//2-{0} >= 1) t[0] = x[0]\n5 y[{0}] = t[0]",
        "5 t[N-1] = x[0]\n5 y[{0}] = t[4]",
        "(N+1) t[{0}] = x[0]\n5 y[{0}] = t[2]",
    ],
)
def test_what_is_written_at_the_greatest_sizes_only_is_not_written(body: str) -> None:
    head = "kernel k(x) -> (y)\nsize N in 1..5\nx f32 [1] heap\ny f32 [5] heap\nt f32 [6] heap\n\n5 y[{0}] = 0\n"
    with pytest.raises(InvalidKernel, match="'t' that nothing has written"):
        validate(Program(parsed(head + body + "\n"), machine("toy")))


@pytest.mark.parametrize(
    "body",
    [
        "t[1] = x[0]\nt[0] = x[1]\n8 where (N-{0} >= 2) t[1] = x[2]\ny[0] = t[1]",
        "t[1] = x[0]\n(10-N)\n| y[0] = t[1]\n| t[0] = x[1]",
        "t[8] = x[0]\nt[N-1] = x[1]\n9 y[{0}] = t[8]",
    ],
)
def test_what_a_cell_keeps_at_the_greatest_sizes_only_is_lost(body: str) -> None:
    head = "kernel k(x) -> (y)\nsize N in 1..9\nx f32 [3] heap\ny f32 [9] heap\nt f32 [9:N] heap\n\n9 y[{0}] = 0\n"
    for alone in ((), ("representatives",)):
        others = [name for name in shortcut_names() if alone and name not in alone]
        with without(*others), pytest.raises(InvalidKernel, match=r"'t' would be (overwritten|read) before"):
            validate(Program(parsed(head + body + "\n"), machine("toy")))


def test_the_greatest_size_is_a_multiple_of_its_step() -> None:
    assert evaluate(Size("M", 4, 12, 4).expression + var(0), np.arange(3)[None], greatest=True).tolist() == [12, 13, 14]


def test_an_index_is_within_the_present_extent() -> None:
    size = Size("N", 3, 9).expression
    assert [is_within(var(0), size, [extent]) for extent in (3, 4, 9)] == [True, False, False]
    assert is_within(size - 1, size, [])


def test_a_bound_kernel_needs_all_values() -> None:
    with pytest.raises(UsageError, match="needs a value for its size 'M'"):
        bound(parsed(ROWS), {"N": 3})


def test_sizes_have_one_form_in_expressions() -> None:
    size = Size("M", 4, 16, 4).expression
    assert floordiv(size, 4, ()) * 4 == size
    assert floordiv(size * 3 + 3, 4, ()) * 4 == size * 3
    assert (size + var(0) - size) == var(0)
    assert size.bounds(()) == (4, 16)
    assert Size("K", 3, 3).expression == const(3)
    assert floordiv(size, 8, ()).render(str) == "(M//4)//2"


def test_a_size_has_no_value_by_itself() -> None:
    expression: Expr = Size("N", 1, 9).expression + 1
    with pytest.raises(UnknownSize, match="'N'"):
        expression.evaluate(())


def test_a_circular_buffer_has_a_slot_for_each_index_of_a_small_size() -> None:
    text = """\
kernel k(x) -> (y)
size N in 1..9
x f32 [N] heap
y f32 [N] heap
t f32 [N:N2] heap

N
| t[{0}] = x[{0}] * 2
| y[{0}] = t[{0}] + 1
"""
    kernel = parsed(text)
    for size, declared in ((1, "[1]"), (2, "[2]"), (3, "[3:N2]")):
        known = bound(kernel, {"N": size})
        assert f"t f32 {declared} heap" in print_notation(known)
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(interpret(nest_of(known), {"x": x})["y"], x * 2 + 1)
    with pytest.raises(NotationError, match="has 2 slots for 2 indices"):
        parsed(text.replace("size N in 1..9\n", "").replace("[N", "[2").replace("\nN\n", "\n2\n"))
