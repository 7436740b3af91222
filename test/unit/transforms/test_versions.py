"""Versions of kernels for parts of the ranges of their sizes: how they are made, written, verified and called."""

import ctypes
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, IntegerAttr, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import pdojo
from pdojo.backends.c.targets import PdojoCTarget
from pdojo.backends.llvm.dispatch import dispatch_function
from pdojo.backends.llvm.kernel_functions import SHARED_BYTES
from pdojo.backends.versions import VersionedKernel
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_module, parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import PDOJO, KernelOp, VersionsOp
from pdojo.dialect.semantics.oracle import equivalent
from pdojo.dialect.versions import narrowed
from pdojo.dialect.view.build import ids_of, nest_of
from pdojo.dialect.view.versions import versions_of
from pdojo.errors import IllegalMove, LocationError, NotationError, UsageError
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.versions import divide
from toolchain import c_compiler

ROWS = """\
kernel rows(x) -> (y)
size N in 1..40
size M in 4..16 multiple 4
x f32 [N, (M+1)] heap
y f32 [N, M] heap
s f32 [N] heap

N
| s[{0}] = 0
| M s[{0}] += x[{0},{1}+1]
N M y[{0},{1}] = s[{0}] * M
"""


def module_of(text: str = ROWS) -> ModuleOp:
    return parse_module(text)


def kernel_in(module: ModuleOp, name: str) -> KernelOp:
    return next(op for op in module.walk() if isinstance(op, KernelOp) and op.sym_name.data == name)


def divided(*moves: tuple[str, str]) -> ModuleOp:
    """ROWS after moves, each on a kernel."""
    module = module_of()
    for name, move in moves:
        divide(module, kernel_in(module, name), Move.parse(move))
    module.verify()
    return module


def ranges(module: ModuleOp) -> list[list[tuple[int, int, int]]]:
    (listed,) = (op for op in module.walk() if isinstance(op, VersionsOp))
    return [[(s.low, s.high, s.step) for s in kernel.known_sizes().values()] for kernel in listed.found()]


def text_of(module: ModuleOp) -> str:
    kernels = [print_notation(op) for op in module.walk() if isinstance(op, KernelOp)]
    (listed,) = (op for op in module.walk() if isinstance(op, VersionsOp))
    return "\n".join([*kernels, f"versions {listed.sym_name.data} = {', '.join(listed.names)}\n"])


def test_split_range_and_specialise_narrow_the_range_of_one_size() -> None:
    assert ranges(divided(("rows", "split_range@N{at=32}"))) == [[(1, 31, 1), (4, 16, 4)], [(32, 40, 1), (4, 16, 4)]]
    assert ranges(divided(("rows", "specialise@M{value=8}"))) == [[(1, 40, 1), (8, 8, 4)], [(1, 40, 1), (4, 16, 4)]]


def test_a_version_is_divided_in_its_place() -> None:
    moves = (("rows", "split_range@N{at=32}"), ("rows_1", "specialise@M{value=8}"), ("rows_2", "split_range@M{at=12}"))
    module = divided(*moves)
    (listed,) = (op for op in module.walk() if isinstance(op, VersionsOp))
    assert listed.names == ("rows_3", "rows_4", "rows_5", "rows_6")
    assert ranges(module)[2:] == [[(32, 40, 1), (4, 8, 4)], [(32, 40, 1), (12, 16, 4)]]


@pytest.mark.parametrize(
    ("move", "error", "message"),
    [
        ("split_range@N{at=1}", IllegalMove, "at is from 2 to 40"),
        ("split_range@N{at=41}", IllegalMove, "at is from 2 to 40"),
        ("split_range@M{at=6}", IllegalMove, "at is from 8 to 16, a multiple of 4"),
        ("specialise@N{value=0}", IllegalMove, "value is from 1 to 40"),
        ("specialise@N", IllegalMove, "write specialise@N{value=40}"),
        ("specialise@N{value=3 at=4}", IllegalMove, "write specialise@N{value=40}"),
        ("split_range@K{at=3}", LocationError, "has no size 'K'"),
    ],
)
def test_a_version_that_no_call_runs_is_refused(move: str, error: type[Exception], message: str) -> None:
    module = module_of()
    with pytest.raises(error, match=message):
        divide(module, kernel_in(module, "rows"), Move.parse(move))
    assert [op.sym_name.data for op in module.walk() if isinstance(op, KernelOp)] == ["rows"]


def test_a_size_of_one_value_is_not_divided() -> None:
    module = divided(("rows", "specialise@N{value=3}"))
    with pytest.raises(IllegalMove, match="N has one value"):
        divide(module, kernel_in(module, "rows_1"), Move.parse("specialise@N{value=3}"))


def test_both_texts_of_versions_are_read_again() -> None:
    module = divided(("rows", "split_range@N{at=32}"), ("rows_1", "specialise@M{value=8}"))
    text = text_of(module)
    assert text_of(parse_module(text)) == text
    context = Context()
    for dialect in (Builtin, PDOJO):
        context.load_dialect(dialect)
    again = Parser(context, str(module)).parse_module()
    again.verify()
    assert text_of(again) == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("versions f = rows", "version 'rows' is no kernel"),
        ("versions f = rows_1, rows_1", "has a version twice"),
        ("versions f = rows_1, other", "version 'other' is no kernel"),
        ("versions rows_1 = rows_1", "'rows_1' is defined twice"),
        ("versions f =", "the name of a version"),
        ("versions f = rows_1 rows_2", "after the versions"),
    ],
)
def test_malformed_versions_are_refused_where_they_stand(line: str, message: str) -> None:
    text = text_of(divided(("rows", "split_range@N{at=32}")))
    *kernels, _ = text.splitlines()
    with pytest.raises(NotationError, match=message) as caught:
        parse_module("\n".join([*kernels, line, ""]))
    assert f":{len(kernels) + 1}:" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("f32", "f64", "element types"),
        ("x f32 [N, (M+1)]", "x f32 [N, (M+2)]", "shapes or ranges of indices"),
        ("size M in 4..16 multiple 4", "size M in 4..16 multiple 2", ""),
        ("kernel rows_2(x) -> (y)", "kernel rows_2(x, y) -> (y)", "intents"),
        ("s f32 [N] heap\n\nN", "s f32 [N] heap\n\n40 where ({0} < N)", ""),
    ],
)
def test_versions_have_one_interface(old: str, new: str, what: str) -> None:
    first, second = text_of(divided(("rows", "split_range@N{at=32}"))).split("kernel rows_2")
    text = first + f"kernel rows_2{second}".replace(old, new)
    if not what:
        parse_module(text)
        return
    with pytest.raises(NotationError, match=f"the {what} of version 'rows_2' are not those of 'rows_1'"):
        parse_module(text)


def test_versions_have_one_range_of_indices() -> None:
    head = "kernel f_{}(i, x) -> (y)\nsize N in {}\ni i64 [4] heap in 0..{}\nx f32 [N] heap\ny f32 [4] heap\n\n"
    body = "4 y[{0}] = x[i[{0}]]\n\n"
    first = head.format(1, "9..9", 8) + body
    parse_module(f"{first}{head.format(2, '1..20', 'N-1')}{body}versions f = f_1, f_2\n")
    with pytest.raises(NotationError, match="the shapes or ranges of indices of version 'f_2' are not"):
        parse_module(f"{first}{head.format(2, '5..20', '4')}{body}versions f = f_1, f_2\n")


def test_versions_without_sizes_are_refused() -> None:
    kernel = "kernel {}(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{{0}}] = x[{{0}}]\n"
    with pytest.raises(NotationError, match="version 'a' has no sizes"):
        parse_module(kernel.format("a") + kernel.format("b") + "versions f = a, b\n")


def test_a_missing_version_does_not_verify() -> None:
    module = divided(("rows", "split_range@N{at=32}"))
    kernel_in(module, "rows_2").detach()
    with pytest.raises(VerifyException, match="version 'rows_2' is no kernel"):
        module.verify()


def test_a_narrowed_program_means_the_same_and_keeps_its_identifiers() -> None:
    (kernel,) = parse_notation(ROWS)
    played = Game(kernel, pdojo.machine("x86-64-avx2"))
    for move in ("tile_scope@y:1{size=8 tail=peel}", "tile_scope@y#0:0{size=16}"):
        played.apply(move)
    tuned = played.kernel
    for part in ({"N": range(1, 8)}, {"N": range(17, 41)}, {"M": range(4, 5)}, {"N": range(2, 3), "M": range(8, 9)}):
        narrow = narrowed(tuned, part)
        narrow.verify()
        assert set(ids_of(narrow)) <= set(ids_of(tuned))
        for n in (1, 2, 7, 17, 40):
            for m in (4, 8, 16):
                if all(value in part.get(size, (value,)) for size, value in (("N", n), ("M", m))):
                    values = {"N": n, "M": m}
                    assert equivalent(nest_of(bound(kernel, values)), nest_of(bound(narrow, values))) is None


def test_scopes_without_iterations_are_left_out() -> None:
    (kernel,) = parse_notation(ROWS)
    tuned = apply(Game(kernel, pdojo.machine("x86-64-avx2")).program, Move.parse("tile_scope@y:0{size=16 tail=peel}"))
    assert "16 M y" in print_notation(tuned.program.kernel)
    assert "16 M y" not in print_notation(narrowed(tuned.program.kernel, {"N": range(1, 16)}))
    only_tiles = narrowed(tuned.program.kernel, {"N": range(32, 33)})
    assert "2 16 M y" in print_notation(only_tiles)
    assert len(nest_of(only_tiles).leaves) == len(nest_of(kernel).leaves)


def test_scopes_of_which_all_children_are_left_out_are_left_out() -> None:
    text = """\
kernel k(x) -> (y)
size N in 1..40
x f32 [N] heap
y f32 [N] heap

N y[{0}] = x[{0}]
2
| 3 where (N//32-{1} >= 1) y[{1}] = x[{1}] * 2
| 3 where (N//16-{1} >= 1) y[{1}] = x[{1}] * 3
"""
    (kernel,) = parse_notation(text)
    narrow = narrowed(kernel, {"N": range(1, 16)})
    narrow.verify()
    assert print_notation(narrow).endswith("\n\nN y[{0}] = x[{0}]\n")


def test_a_part_outside_of_the_range_is_refused() -> None:
    (kernel,) = parse_notation(ROWS)
    for part in ({"N": range(30, 42)}, {"M": range(4, 7)}, {"K": range(1, 2)}, {"N": range(3, 3)}):
        with pytest.raises(UsageError):
            narrowed(kernel, part)


def expected(x: np.ndarray, columns: int) -> np.ndarray:
    return np.repeat(x[:, 1:].sum(1, keepdims=True) * columns, columns, 1)


def test_a_call_runs_the_first_version_for_its_sizes() -> None:
    module = divided(("rows", "split_range@N{at=32}"), ("rows_1", "specialise@M{value=8}"))
    kernel = pdojo.compile(text_of(module))
    assert isinstance(kernel, VersionedKernel)
    random = np.random.default_rng(5)
    calls = ((1, 8, "rows_3"), (31, 8, "rows_3"), (31, 4, "rows_4"), (32, 8, "rows_2"), (40, 16, "rows_2"))
    for rows, columns, name in calls:
        x = random.standard_normal((rows, columns + 1)).astype(np.float32)
        assert kernel.version((x,), {}).kernel.name == name
        np.testing.assert_allclose(kernel(x), expected(x, columns), rtol=1e-5, atol=1e-5)
        y = np.full((rows, columns), np.nan, np.float32)
        kernel.bind(x=x, y=y)()
        np.testing.assert_allclose(y, expected(x, columns), rtol=1e-5, atol=1e-5)


def test_sizes_that_no_shape_gives_are_given_by_name() -> None:
    text = """\
kernel f(x) -> (y)
size N in 1..8
x f32 [8] heap
y f32 [8] heap

8 y[{0}] = 0
N y[{0}] = x[{0}]
"""
    module = parse_module(text)
    divide(module, kernel_in(module, "f"), Move.parse("split_range@N{at=4}"))
    kernel = pdojo.compile(text_of(module))
    assert isinstance(kernel, VersionedKernel)
    x = np.ones(8, np.float32)
    for size, name in ((np.int64(3), "f_1"), (np.int64(5), "f_2"), (4, "f_2"), (2, "f_1")):
        assert kernel.version((x,), {"N": size}).kernel.name == name
        assert kernel(x, N=size).sum() == size


@pytest.mark.parametrize("shape", [(41, 9), (3, 6), (3,)])
def test_a_call_with_sizes_of_no_version_is_refused(shape: tuple[int, ...]) -> None:
    kernel = pdojo.compile(text_of(divided(("rows", "split_range@N{at=32}"))))
    with pytest.raises(UsageError, match="rows"):
        kernel(np.zeros(shape, np.float32))


def test_the_chosen_version_checks_the_arrays() -> None:
    kernel = pdojo.compile(text_of(divided(("rows", "split_range@N{at=32}"))))
    with pytest.raises(UsageError, match="dtype float64"):
        kernel(np.zeros((3, 9)))


def test_constants_are_bound_in_every_version() -> None:
    text = """\
    kernel f(x, w) -> (y)
    size N in 1..8
    x f32 [N, 4] heap
    w f32 [4] heap const
    y f32 [N, 4] heap

    N 4 y[{0},{1}] = x[{0},{1}] * w[{1}]
    """
    module = parse_module(text)
    divide(module, kernel_in(module, "f"), Move.parse("split_range@N{at=3}"))
    bound_kernel = pdojo.compile(text_of(module)).bind_constants(w=np.arange(4, dtype=np.float32))
    for rows in (2, 3):
        x = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(bound_kernel(x), x * np.arange(4))


CHOSEN = """\
kernel f_{0}(x) -> (y)
size N in {1}
x f32 [N] heap
y f32 [N] heap

N y[{{0}}] = x[{{0}}] + {0}
"""
PARTS = ("4..12 multiple 4", "3..9", "1..40")
"""Ranges of versions of which each adds its number; a call runs the first one that has its size."""
RIGHT = {1: 3, 2: 3, 3: 2, 4: 1, 5: 2, 7: 2, 8: 1, 9: 2, 10: 3, 12: 1, 13: 3, 16: 3, 40: 3}


def numbered() -> ModuleOp:
    texts = [CHOSEN.format(number, part) for number, part in enumerate(PARTS, 1)]
    return module_of("\n".join([*texts, "versions f = f_1, f_2, f_3\n"]))


def chosen(address: int) -> dict[int, int]:
    """The version that a function at an address runs, by size."""
    kinds = (*[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int)
    function, found = ctypes.CFUNCTYPE(None, *kinds)(address), dict[int, int]()
    for size in RIGHT:
        x, y = np.zeros(size, np.float32), np.full(size, np.nan, np.float32)
        function(x.ctypes.data, y.ctypes.data, size, None, 1)
        found[size] = int(y[0])
    return found


def test_calls_from_python_run_the_first_version_that_has_the_size() -> None:
    kernel = pdojo.compile(text_of(numbered()))
    assert {size: int(kernel(np.zeros(size, np.float32))[0]) for size in RIGHT} == RIGHT


def test_object_code_runs_the_first_version_that_has_the_size() -> None:
    binding: Any = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")

    from pdojo.backends.llvm import optimize
    from pdojo.backends.llvm.targets import llvm_text

    target = optimize.any_processor(None).target_machine("full")
    engine: Any = binding.create_mcjit_compiler(optimize.parse(llvm_text(numbered())), target)
    engine.finalize_object()
    assert chosen(engine.get_function_address("f")) == RIGHT


def test_c_runs_the_first_version_that_has_the_size(tmp_path: Path) -> None:
    compiler, text = c_compiler(), StringIO()
    PdojoCTarget().emit(Context(), numbered(), text)
    source, library = tmp_path / "f.c", tmp_path / "f.so"
    source.write_text(text.getvalue())
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    address = ctypes.cast(ctypes.CDLL(str(library)).f, ctypes.c_void_p).value
    assert address is not None
    assert chosen(address) == RIGHT


def test_the_workspace_is_that_of_the_version_that_needs_most() -> None:
    for parts in (("32..40", "1..31"), ("1..31", "32..40")):
        texts = [ROWS.replace("rows", f"rows_{k}").replace("1..40", part) for k, part in enumerate(parts)]
        module = module_of("\n".join([*texts, "versions rows = rows_0, rows_1\n"]))
        (listed,) = (op for op in module.walk() if isinstance(op, VersionsOp))
        assert dispatch_function(versions_of(listed)).attributes[SHARED_BYTES] == IntegerAttr(192, 64)


def test_object_code_has_the_dispatch(tmp_path: Path) -> None:
    module = divided(("rows", "split_range@N{at=32}"), ("rows_2", "specialise@N{value=40}"))
    binding: Any = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")

    from pdojo.backends.llvm import optimize
    from pdojo.backends.llvm.targets import llvm_text

    target = optimize.any_processor(None).target_machine("full")
    parsed = optimize.parse(llvm_text(module))
    optimize.run_passes(parsed, target, "full")
    engine: Any = binding.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p, ctypes.c_int)(
        engine.get_function_address("rows")
    )
    for rows in (1, 31, 32, 39, 40):
        x = np.random.default_rng(rows).standard_normal((rows, 9)).astype(np.float32)
        y, workspace = np.full((rows + 1, 8), np.nan, np.float32), np.zeros(4096, np.uint8)
        function(x.ctypes.data, y.ctypes.data, rows, 8, workspace.ctypes.data + -workspace.ctypes.data % 64, 1)
        np.testing.assert_allclose(y[:rows], expected(x, 8), rtol=1e-5, atol=1e-5)
        assert np.isnan(y[rows:]).all()
